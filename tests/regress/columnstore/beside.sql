-- Several columnstore indexes of one table: a query reads the columns of those that it needs, side by side.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
SET enable_seqscan = off;
\i include/with_and_without.sql
-- A plan, without what 18 says of scans that are switched off.
CREATE FUNCTION plan(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
        IF line !~ 'Disabled: ' THEN RETURN NEXT line; END IF;
    END LOOP;
END $$;
CREATE TABLE t (a int, b text, c numeric, d int, e text, other int) WITH (fillfactor = 70, autovacuum_enabled = off);
INSERT INTO t SELECT g, 'b' || g % 100, g / 4.0, g % 7, repeat('e', g % 50), g FROM generate_series(1, 20000) g;
CALL harness.settle();
CREATE INDEX one ON t USING columnstore (a, b);
-- rows move on their pages between the builds; columns of neither index are changed, so the copies stay
UPDATE t SET other = 0 WHERE a % 50 = 1;
CALL harness.settle();
VACUUM t;
CREATE INDEX two ON t USING columnstore (d, c, b);
CREATE INDEX three ON t USING columnstore (e) WITH (compression_type = lz4);
SELECT plan('SELECT a, c FROM t WHERE d = 3');
SELECT * FROM compared('SELECT a, c FROM t WHERE d = 3');
SELECT * FROM compared('SELECT b, sum(a), sum(c), max(e), count(*) FROM t GROUP BY b');
SELECT * FROM compared('SELECT sum(a) FROM t WHERE c BETWEEN 100 AND 120');
SELECT * FROM compared('SELECT count(*) FROM t WHERE e LIKE ''ee%'' AND a % 2 = 0');
SELECT * FROM compared('SELECT x.a, y.c FROM t x JOIN t y ON x.a = y.d WHERE x.e > ''e''');
-- one index has them all, or none has
SELECT plan('SELECT b FROM t WHERE d = 3');
SELECT plan('SELECT a FROM t WHERE other = 3');
-- threads; row by row
SET max_parallel_workers_per_gather = 1;
SELECT * FROM compared('SELECT d, sum(a), sum(c) FROM t GROUP BY d');
SET max_parallel_workers_per_gather = 0;
SET colonnade.enable_vectorised = off;
SELECT * FROM compared('SELECT a, c, e FROM t WHERE d = 3 AND b < ''b5''');
RESET colonnade.enable_vectorised;
-- blocks that changed are read from the heap; a refresh of one index is one of all
DELETE FROM t WHERE a BETWEEN 500 AND 600;
UPDATE t SET c = c + 1 WHERE a BETWEEN 3000 AND 3100;
INSERT INTO t SELECT g, 'new', g, 1, 'new', 1 FROM generate_series(30001, 33000) g;
SELECT same FROM compared('SELECT count(*), sum(a), sum(c) FROM t');
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(e) FROM t');
UPDATE t SET d = d + 1 WHERE a % 1000 = 17;
CALL harness.settle();
CALL engine.columnstore_refresh('three');
SELECT same FROM compared('SELECT count(*), sum(a), sum(c), sum(d), max(e) FROM t');
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), sum(d), max(e) FROM t');
SELECT index_name, v.* FROM engine.columnstore_indexes, engine.columnstore_verify(index_name) v;
-- an index that is left alone has other copies after a while: blocks of both are read from the heap then
ALTER INDEX two SET (refresh = off);
UPDATE t SET b = 'changed' WHERE a BETWEEN 7000 AND 7010;
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT sum(a), max(e) FROM t');
SELECT same, blocks LIKE '%from heap 0' AS all_are FROM compared('SELECT sum(a), sum(c) FROM t');
CALL engine.columnstore_refresh('two');
SELECT * FROM compared('SELECT sum(a), sum(c) FROM t');
ALTER INDEX two RESET (refresh);
-- chunks of other sizes: the next refresh makes them the same
CREATE INDEX four ON t USING columnstore (other) WITH (chunk_group_row_limit = 1000);
SELECT same, split_part(blocks, ',', 1) AS from_copies FROM compared('SELECT sum(a), sum(other) FROM t');
CALL engine.columnstore_refresh('one');
SELECT * FROM compared('SELECT sum(a), sum(other) FROM t');
SELECT index_name, clean_blocks = heap_blocks AS all_are, v.* FROM engine.columnstore_indexes LEFT JOIN engine.columnstore_verify(index_name) v ON true ORDER BY 1;
-- one of them is dropped, or not valid
PREPARE two_indexes AS SELECT count(*), sum(a), sum(other) FROM t;
EXECUTE two_indexes;
DROP INDEX four;
EXECUTE two_indexes;
SELECT plan('EXECUTE two_indexes');
-- own changes, savepoints
BEGIN;
DELETE FROM t WHERE a < 100;
SAVEPOINT s;
INSERT INTO t VALUES (1, 'own', 1, 1, 'own', 1);
SELECT same FROM compared('SELECT count(*), sum(a), sum(c), max(e) FROM t');
ROLLBACK TO s;
SELECT same FROM compared('SELECT count(*), sum(a), sum(c), max(e) FROM t');
ROLLBACK;
-- wide values: copies of one column and of all end at other rows
CREATE TABLE wide (a int, b text, c text) WITH (autovacuum_enabled = off);
INSERT INTO wide SELECT g, repeat(md5(g::text), 3000), 'c' || g FROM generate_series(1, 1500) g;
CALL harness.settle();
CREATE INDEX wide_b ON wide USING columnstore (a, b);
CREATE INDEX wide_c ON wide USING columnstore (c);
SELECT index_name, copies FROM engine.columnstore_indexes WHERE table_name = 'wide'::regclass ORDER BY 1;
SELECT same FROM compared('SELECT count(*), sum(length(b)), max(c) FROM wide');
CALL engine.columnstore_refresh('wide_c');
SELECT * FROM compared('SELECT count(*), sum(length(b)), max(c) FROM wide');
CALL engine.columnstore_refresh('wide_c');
-- a cursor's scan that WHERE CURRENT OF may find is left to the heap; one below a join or groups is not
BEGIN;
SELECT plan('DECLARE c CURSOR FOR SELECT a FROM t WHERE c > 5');
SELECT plan('DECLARE c CURSOR FOR SELECT d, sum(a) FROM t GROUP BY d');
DECLARE plain CURSOR FOR SELECT a FROM t WHERE a = 17;
FETCH 1 FROM plain;
UPDATE t SET other = 99 WHERE CURRENT OF plain;
SELECT other FROM t WHERE a = 17;
DECLARE grouped CURSOR FOR SELECT d, count(*) FROM t GROUP BY d ORDER BY d;
FETCH 1 FROM grouped;
UPDATE t SET other = 99 WHERE CURRENT OF grouped;
ROLLBACK;
DROP TABLE t, wide;
