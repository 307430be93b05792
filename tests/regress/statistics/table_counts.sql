-- pg_class.reltuples and pg_stat_user_tables beside a heap twin: the same statements on h and c.
SET colonnade.stripe_threshold_rows = 1000;
-- Autovacuum has nothing to do. Where it is off, 18 writes nothing to pg_class when an index is built.
\set quiet 'autovacuum_vacuum_threshold = 2000000000, autovacuum_analyze_threshold = 2000000000, autovacuum_vacuum_insert_threshold = -1'
CREATE TABLE h (k int, v int, s text) USING heap WITH (:quiet);
CREATE TABLE c (k int, v int, s text) USING colcompress WITH (stripe_row_limit = 10000, chunk_group_row_limit = 1000, :quiet);
\i include/packing.sql
CREATE VIEW counted AS
SELECT relname AS t, n_tup_ins AS ins, n_tup_upd AS upd, n_tup_del AS del, n_mod_since_analyze AS mods, n_ins_since_vacuum AS since_vacuum,
    round(n_dead_tup / 3000.0) * 3000 AS dead, n_live_tup AS live, reltuples
FROM pg_stat_user_tables JOIN pg_class USING (relname) WHERE relname IN ('h', 'c');
-- Dead rows about, as heap pages are pruned by readers, too. Heap's VACUUM guesses rows of pages that it has
-- not read, so live rows and reltuples are held against those that there are.
CREATE VIEW counts AS
SELECT c.ins, c.upd, c.del, c.mods, c.since_vacuum, c.dead, c.live, c.reltuples, (SELECT count(*) FROM c) AS rows,
  (SELECT string_agg(key || ' ' || value, ', ' ORDER BY key) FROM jsonb_each_text(to_jsonb(h) - '{t,dead,live,reltuples}'::text[])
      WHERE to_jsonb(c) ->> key <> value) AS heap_has
FROM counted h, counted c WHERE h.t = 'h' AND c.t = 'c';

-- Loads, singly and in bulk.
\set stmt 'INSERT INTO {t} SELECT g, g % 7, g::text FROM generate_series(1, 30000) g'
\i include/counts_twin.sql
\set stmt 'INSERT INTO {t} SELECT g, g % 7, g::text FROM generate_series(30001, 30500) g'
\i include/counts_twin.sql
\set stmt 'COPY {t} (k) FROM PROGRAM \'seq 30501 33000\''
\i include/counts_twin.sql
\set stmt 'ANALYZE {t}'
\i include/counts_twin.sql
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
-- Rolled back: the whole, and to a savepoint.
\set stmt 'BEGIN; INSERT INTO {t} SELECT g FROM generate_series(1, 5000) g; ROLLBACK'
\i include/counts_twin.sql
\set stmt 'BEGIN; SAVEPOINT a; INSERT INTO {t} SELECT g FROM generate_series(1, 5000) g; ROLLBACK TO a; INSERT INTO {t} SELECT g FROM generate_series(40001, 42000) g; COMMIT'
\i include/counts_twin.sql
\set stmt 'BEGIN; DELETE FROM {t} WHERE k <= 100; UPDATE {t} SET v = 1 WHERE k BETWEEN 101 AND 150; ROLLBACK'
\i include/counts_twin.sql
CALL harness.settle();
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
-- Rows of stripes deleted and updated, by row and in bulk.
\set stmt 'DELETE FROM {t} WHERE k IN (5, 10005, 20005)'
\i include/counts_twin.sql
\set stmt 'UPDATE {t} SET v = 8 WHERE k IN (6, 10006, 20006)'
\i include/counts_twin.sql
\set stmt 'DELETE FROM {t} WHERE k BETWEEN 100 AND 6099'
\i include/counts_twin.sql
\set stmt 'UPDATE {t} SET v = v + 1 WHERE k BETWEEN 12001 AND 13000'
\i include/counts_twin.sql
\set stmt 'ANALYZE {t}'
\i include/counts_twin.sql
CALL harness.settle();
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
\set stmt 'ANALYZE {t}'
\i include/counts_twin.sql
-- VACUUM and ANALYZE in one, and a VACUUM that finds nothing to do.
\set stmt 'DELETE FROM {t} WHERE k BETWEEN 6100 AND 8099'
\i include/counts_twin.sql
CALL harness.settle();
\set stmt 'VACUUM ANALYZE {t}'
\i include/counts_twin.sql
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
\set stmt 'VACUUM (INDEX_CLEANUP off, DISABLE_PAGE_SKIPPING) {t}'
\i include/counts_twin.sql
-- Indexes have as many entries, and who builds them counts rows that are alive.
\set stmt 'DELETE FROM {t} WHERE k BETWEEN 8100 AND 8199'
\i include/counts_twin.sql
CALL harness.settle();
\set stmt 'CREATE INDEX {t}_k ON {t} (k)'
\i include/counts_twin.sql
\set stmt 'CREATE INDEX {t}_some ON {t} (v) WHERE k > 20000'
\i include/counts_twin.sql
\set stmt 'CREATE INDEX {t}_tags ON {t} USING gin ((ARRAY[v]))'
\i include/counts_twin.sql
CREATE VIEW indexes AS SELECT substr(h.relname, 2) AS index, h.reltuples AS heap_has, c.reltuples FROM pg_class h JOIN pg_class c ON h.relname ~ '^h_'
    AND c.relname = 'c' || substr(h.relname, 2) ORDER BY 1;
SELECT * FROM indexes;
\set stmt 'DELETE FROM {t} WHERE k BETWEEN 25001 AND 27000'
\i include/counts_twin.sql
CALL harness.settle();
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
SELECT * FROM indexes;
\set stmt 'VACUUM ANALYZE {t}'
\i include/counts_twin.sql
SELECT * FROM indexes;
\set stmt 'REINDEX INDEX CONCURRENTLY {t}_k'
\i include/counts_twin.sql
-- Rows that packing moves are neither new nor gone, and copies that they leave are dead until VACUUM.
CALL harness.settle();
CALL engine.colcompress_repack('c');
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT * FROM counts;
CALL harness.settle();
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
SELECT hot_rows, cold_rows - dead_rows AS live FROM engine.storage_health('c');
SELECT * FROM indexes;
-- Stripes with dead rows that are written anew.
\set stmt 'DELETE FROM {t} WHERE k % 2 = 0'
\i include/counts_twin.sql
CALL harness.settle();
CALL engine.colcompress_repack('c');
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT * FROM counts;
CALL harness.settle();
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
-- Rewrites.
\set stmt 'VACUUM FULL {t}'
\i include/counts_twin.sql
SELECT engine.colcompress_merge('c');
SELECT * FROM counts;
DROP INDEX c_k, c_some, c_tags, h_k, h_some, h_tags;
\set stmt 'CLUSTER {t} USING {t}_c'
CREATE INDEX h_c ON h (v); CREATE INDEX c_c ON c (v);
\i include/counts_twin.sql
DROP INDEX h_c, c_c;
SELECT engine.colcompress_merge('c');
SELECT * FROM counts;
SELECT engine.unpack('c');
SELECT * FROM counts;
SELECT engine.colcompress_merge('c');
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
-- In one transaction with ANALYZE; TRUNCATE, also rolled back.
\set stmt 'BEGIN; INSERT INTO {t} SELECT g FROM generate_series(50001, 53000) g; DELETE FROM {t} WHERE k BETWEEN 50001 AND 50010; ANALYZE {t}; COMMIT'
\i include/counts_twin.sql
\set stmt 'BEGIN; TRUNCATE {t}; INSERT INTO {t} SELECT g FROM generate_series(1, 2000) g; ROLLBACK'
\i include/counts_twin.sql
\set stmt 'TRUNCATE {t}'
\i include/counts_twin.sql
\set stmt 'INSERT INTO {t} SELECT g FROM generate_series(1, 2000) g'
\i include/counts_twin.sql
\set stmt 'DELETE FROM {t}'
\i include/counts_twin.sql
CALL harness.settle();
\set stmt 'VACUUM {t}'
\i include/counts_twin.sql
SELECT hot_rows, cold_rows, dead_rows FROM engine.storage_health('c');
-- (A stripe without any row left is freed; below, one row of each stays.)
-- What the planner expects: rows that had died when VACUUM counted do not come back when the file grows.
CREATE FUNCTION expected(t regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE format('EXPLAIN (FORMAT json) SELECT FROM %s', t) INTO plan;
  RETURN plan #>> '{0,Plan,Plan Rows}';
END $$;
CREATE TABLE p (k int) USING colcompress WITH (stripe_row_limit = 10000, autovacuum_enabled = off);
INSERT INTO p SELECT generate_series(1, 30000);
VACUUM p;
DELETE FROM p WHERE k <= 10000 AND k > 1;
SELECT expected('p');
CALL harness.settle();
VACUUM p;
SELECT expected('p');
INSERT INTO p SELECT generate_series(30001, 35000);
SELECT expected('p');
INSERT INTO p SELECT generate_series(35001, 35500);
SELECT expected('p');
DELETE FROM p WHERE k BETWEEN 10001 AND 12000;
ANALYZE p;
SELECT expected('p'), (SELECT count(*) FROM p) AS rows;
INSERT INTO p SELECT generate_series(40001, 42000);
SELECT expected('p'), (SELECT count(*) FROM p) AS rows;
CALL harness.settle();
CALL engine.colcompress_repack('p');
SELECT expected('p'), (SELECT count(*) FROM p) AS rows;
