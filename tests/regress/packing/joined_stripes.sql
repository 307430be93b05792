-- CALL engine.colcompress_repack(table) joins small stripes and drops dead rows; VACUUM takes what is left of
-- the old stripes. Beside others: tests/isolation/twins/joined_*.spec and moved_twice.spec,
-- tests/crash/cold_changes.py, tests/packing.py.
-- What the catalogs know of changes of the table's rows.
CREATE FUNCTION noted(t regclass) RETURNS TABLE (proxies bigint, bitmaps bigint) LANGUAGE sql
AS
    'SELECT (SELECT count(*) FROM engine.row_proxy WHERE storage_id = s), (SELECT count(*) FROM engine.delete_bitmap WHERE storage_id = s) '
    'FROM engine.colcompress_relation_storageid(t) s';
\i include/packing.sql
SET colonnade.stripe_threshold_rows = 1;

-- Many loads, each a stripe of its own, some before a column was added; rows deleted singly and in bulk,
-- updated and locked.
CREATE TABLE t (gone int, k int, n numeric, v text, tags int[]) USING colcompress WITH (orderby = 'n DESC NULLS LAST, k', stripe_row_limit = 1000);
DO $$BEGIN
  FOR load IN 0..7 LOOP
    INSERT INTO t SELECT 7, g, CASE WHEN g % 10 > 0 THEN g % 97 END, 'text ' || g, ARRAY[g, g % 5] FROM generate_series(load * 300 + 1, load * 300 + 300) g;
    COMMIT;
  END LOOP;
END$$;
ALTER TABLE t DROP COLUMN gone, ADD COLUMN later text DEFAULT 'added';
INSERT INTO t SELECT g, g % 97, 'text ' || g, ARRAY[g, g % 5], 'loaded' FROM generate_series(2401, 2500) g;
CREATE INDEX by_expression ON t (lower(v)) WHERE n > 50;
CREATE INDEX by_tag ON t USING gin (tags);
ALTER TABLE t ADD PRIMARY KEY (k);
SELECT count(*) AS hot FROM t WHERE ctid < '(2147483648,0)';
SELECT count(*) AS stripes FROM stripes('t');
DELETE FROM t WHERE k BETWEEN 301 AND 600;
DELETE FROM t WHERE k IN (5, 700, 2450);
UPDATE t SET v = v || '!' WHERE k % 100 = 1;
SELECT count(*) AS locked FROM (SELECT FROM t WHERE k % 50 = 3 FOR UPDATE) l;
SELECT cold_rows, dead_rows, stripes, small_stripes, overlapping_stripes, advice FROM engine.storage_health('t');
CREATE TABLE before USING heap AS SELECT t.* FROM t;
CALL repack('t');
SELECT * FROM stripes('t');
SELECT count(*) AS hot FROM t WHERE ctid < '(2147483648,0)';
SELECT count(*) AS different FROM (TABLE before EXCEPT TABLE t UNION ALL (TABLE t EXCEPT TABLE before)) d;
-- What no row of the directory names is told of until VACUUM has been there.
SELECT kind, count(*) FROM engine.verify('t') WHERE kind <> 'unclaimed' GROUP BY 1;
-- Each stripe is sorted.
SELECT count(*) AS rows, count(*) FILTER (WHERE s.first_row = s.before AND (n, -k) > (n0, -k0)) AS out_of_order
FROM (SELECT *, lag(n) OVER w AS n0, lag(k) OVER w AS k0, lag(first_row) OVER w AS before
      FROM (SELECT t.n, t.k, (ctid::text::point)[0]::int8 * 256 + (ctid::text::point)[1]::int8 AS place FROM t) t
      JOIN stripes('t') s ON place - 1 - 2147483648 * 256 BETWEEN s.first_row AND s.first_row + s.row_count - 1
      WINDOW w AS (ORDER BY place)) s;
SET enable_seqscan = off; SET colonnade.enable_scan = off;
SELECT k, n, later FROM t WHERE lower(v) = 'text 155' AND n > 50;
SELECT count(*) FROM t WHERE tags @> '{3}';
EXPLAIN (COSTS OFF) SELECT k, n, v, later FROM t WHERE k IN (101, 301, 2450, 2451) ORDER BY k;
SELECT k, n, v, later FROM t WHERE k IN (101, 301, 2450, 2451) ORDER BY k;
INSERT INTO t (k) VALUES (77);
INSERT INTO t (k) VALUES (301) ON CONFLICT (k) DO UPDATE SET later = 'conflict' RETURNING k, n, later;
RESET enable_seqscan; RESET colonnade.enable_scan;
-- The old stripes' pages, index entries and changes go.
SELECT dead_bytes > 0 AS dead FROM engine.storage_health('t');
SELECT pg_relation_size('t') AS size \gset
CALL harness.settle();
VACUUM t;
SELECT dead_bytes, dead_rows, small_stripes FROM engine.storage_health('t');
SELECT * FROM engine.verify('t');
CALL repack('t');
SELECT * FROM noted('t');
-- Nothing is left to do, so nothing is done.
SELECT array_agg(first_row ORDER BY first_row) AS before_again FROM stripes('t') \gset
CALL repack('t');
SELECT array_agg(first_row ORDER BY first_row) = :'before_again' AS same FROM stripes('t');
VACUUM t;
SELECT * FROM engine.verify('t');
SELECT count(*) AS different FROM (TABLE before EXCEPT TABLE t) d;
INSERT INTO t SELECT k + 10000, n, v, tags, later FROM before WHERE k <= 2000;
SELECT pg_relation_size('t') <= :size + 8192 * 20 AS pages_are_used_again;

-- Full stripes: few dead rows stay, many go, and a stripe without a living row needs no successor.
CREATE TABLE d (k int, v text) USING colcompress WITH (stripe_row_limit = 1000);
INSERT INTO d SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
SELECT * FROM stripes('d');
DELETE FROM d WHERE k <= 1000 OR k % 1000 IN (1, 2) OR k BETWEEN 3001 AND 3300;
CALL repack('d');
SELECT * FROM stripes('d');
SELECT count(*), sum(k), min(k), max(k), count(DISTINCT v) FROM d;
DELETE FROM d;
CALL repack('d');
SELECT * FROM stripes('d');
SELECT count(*) FROM d;
CALL harness.settle();
VACUUM d;
CALL repack('d');
SELECT * FROM noted('d');
SELECT * FROM engine.verify('d');
SELECT reltuples FROM pg_class WHERE oid = 'd'::regclass;

-- Stripes that are full by their bytes are not small, however few rows they have.
CREATE TABLE wide (k int, v text) USING colcompress WITH (stripe_row_limit = 100000);
INSERT INTO wide SELECT g, repeat(md5(g::text), 1000) FROM generate_series(1, 1300) g;
INSERT INTO wide SELECT g, repeat(md5(g::text), 1000) FROM generate_series(1301, 2600) g;
INSERT INTO wide SELECT g, md5(g::text) FROM generate_series(2601, 2610) g;
INSERT INTO wide SELECT g, md5(g::text) FROM generate_series(2611, 2620) g;
SELECT * FROM stripes('wide');
CALL repack('wide');
SELECT row_count FROM stripes('wide') ORDER BY first_row;
SELECT count(*), count(DISTINCT k), sum(length(v)) FROM wide;

-- Rare wide rows, which the estimate does not meet: two stripes would make two, so they stay, and what was
-- written for that is given back.
CREATE TABLE rare (k int, v text) USING colcompress;
INSERT INTO rare SELECT g, CASE WHEN g % 1000 IN (18, 19, 20) THEN repeat('x', 12000000) ELSE md5(g::text) END FROM generate_series(1, 1000) g;
INSERT INTO rare SELECT g, CASE WHEN g % 1000 IN (18, 19, 20) THEN repeat('x', 12000000) ELSE md5(g::text) END FROM generate_series(1001, 2000) g;
SET statement_timeout = '60s';
CALL repack('rare');
RESET statement_timeout;
SELECT * FROM stripes('rare');
SELECT * FROM engine.verify('rare');
-- NULLs take room while a stripe is made: columns that are mostly NULL fill one long before its rows do, and
-- few bytes in the file.
DO $$BEGIN EXECUTE 'CREATE TABLE sparse (k int, ' || (SELECT string_agg('c' || g || ' int', ', ')
    FROM generate_series(1, 900) g) || ') USING colcompress'; END$$;
INSERT INTO sparse SELECT generate_series(1, 9500);
INSERT INTO sparse SELECT generate_series(9501, 19000);
SELECT count(*) FROM stripes('sparse');
SET statement_timeout = '60s';
CALL repack('sparse');
RESET statement_timeout;
SELECT count(*), max(row_count) < 10000 AS full_by_bytes FROM stripes('sparse');
SELECT count(*), sum(k) FROM sparse;

-- Full stripes that overlap in the order of the table are sorted over each other, once; two at a time where
-- there is a unique index; with many proxies.
CREATE TABLE o (k int, v text) USING colcompress WITH (orderby = 'k DESC', stripe_row_limit = 1000);
DO $$BEGIN
  FOR load IN 0..5 LOOP
    INSERT INTO o SELECT g * 6 + load, md5(g::text) FROM generate_series(1, 1000) g;
    COMMIT;
  END LOOP;
END$$;
CREATE UNIQUE INDEX ON o (k);
SELECT count(*) AS locked FROM (SELECT FROM o FOR UPDATE) l;
DELETE FROM o WHERE k IN (7, 8, 9, 5000);
CREATE TABLE o_before USING heap AS SELECT * FROM o;
SELECT stripes, overlapping_stripes FROM engine.storage_health('o');
CALL repack('o');
SELECT stripes, overlapping_stripes FROM engine.storage_health('o');
SELECT count(*) AS different FROM (TABLE o_before EXCEPT TABLE o UNION ALL (TABLE o EXCEPT TABLE o_before)) d;
SELECT kind, count(*) FROM engine.verify('o') WHERE kind <> 'unclaimed' GROUP BY 1;
SELECT array_agg(first_row ORDER BY first_row) AS before_again FROM stripes('o') \gset
CALL repack('o');
SELECT array_agg(first_row ORDER BY first_row) = :'before_again' AS same FROM stripes('o');

-- A btree that is nearly empty is told of, until it is built anew. One that packing has left half empty is
-- not: later rows fill it.
CREATE TABLE keyed (k bigint PRIMARY KEY, v text) USING colcompress WITH (autovacuum_enabled = off);
CREATE INDEX keyed_v ON keyed (v);
SET colonnade.stripe_threshold_rows = 1000000;
INSERT INTO keyed SELECT g, 'v ' || g % 10 FROM generate_series(1, 200000) g;
RESET colonnade.stripe_threshold_rows;
ANALYZE keyed;
SELECT advice FROM engine.storage_health('keyed');
CALL repack('keyed');
CALL harness.settle();
VACUUM ANALYZE keyed;
SELECT pg_relation_size('keyed_pkey') > 7000000 AS half_empty, advice FROM engine.storage_health('keyed');
DELETE FROM keyed WHERE k % 4 > 0;
CALL repack('keyed');
CALL harness.settle();
VACUUM ANALYZE keyed;
SELECT regexp_replace(possible, '\d+', 'N', 'g') AS possible, needed FROM engine.storage_health('keyed');
REINDEX INDEX CONCURRENTLY keyed_pkey;
SELECT advice FROM engine.storage_health('keyed');
SET colonnade.stripe_threshold_rows = 1;

-- Unlogged and temporary tables; a rewrite that follows.
CREATE UNLOGGED TABLE u (k int) USING colcompress;
CREATE TEMP TABLE tmp (k int) USING colcompress;
INSERT INTO u SELECT generate_series(1, 50); INSERT INTO tmp SELECT generate_series(1, 50);
INSERT INTO u SELECT generate_series(51, 100); INSERT INTO tmp SELECT generate_series(51, 100);
CALL repack('u'); CALL repack('tmp');
SELECT row_count FROM stripes('u'); SELECT row_count FROM stripes('tmp');
VACUUM FULL u; CLUSTER t USING t_pkey;
SELECT (SELECT sum(k) FROM u), (SELECT sum(k) FROM tmp), (SELECT count(*) FROM t);
SELECT * FROM engine.verify('t');
DROP TABLE t, before, d, wide, rare, sparse, o, o_before, keyed, u, tmp;
SELECT count(*) FROM engine.row_move;
