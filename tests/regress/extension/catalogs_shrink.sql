-- The extension's catalogs give room back to the file system once their rows are gone, as heap tables do.
\i include/packing.sql
CREATE FUNCTION kilobytes(catalog text) RETURNS bigint LANGUAGE sql AS $$ SELECT pg_relation_size('engine.' || catalog) / 1024 $$;
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE t (id int PRIMARY KEY, n int) USING colcompress WITH (packing = off);
INSERT INTO t SELECT g, 0 FROM generate_series(1, 150000) g;
-- Locks that are rolled back.
BEGIN; SELECT count(*) FROM (SELECT FROM t FOR UPDATE) x; ROLLBACK;
SELECT kilobytes('row_proxy') > 5000 AS is_large;
CALL harness.settle();
VACUUM t;
SELECT 'VACUUM engine.row_proxy' FROM generate_series(1, 3) \gexec
SELECT kilobytes('row_proxy') < 100 AS is_small;
SELECT count(*) FROM (SELECT FROM t WHERE id % 1000 = 0 FOR UPDATE) x;
-- Rows that were changed and packed: where they went, and their bits.
DO $$ BEGIN FOR i IN 1..20 LOOP UPDATE t SET n = i WHERE id > 145000 AND id % 2 = 0; END LOOP; END $$;
UPDATE t SET n = n + 1;
CALL harness.settle();
CALL engine.colcompress_repack('t');
SELECT kilobytes('row_move') > 1000 AS moves, kilobytes('delete_bitmap') > 0 AS bits;
CALL harness.settle();
-- VACUUM of a table has what is known of rows that are gone taken out; each catalog has a VACUUM of its own,
-- autovacuum's if nobody else's.
VACUUM t; CALL harness.settle(); VACUUM t; CALL harness.settle();
-- VACUUM leaves the end of a file alone while somebody else has a lock on it, be it autovacuum.
SELECT 'VACUUM engine.row_move, engine.delete_bitmap, engine.row_proxy' FROM generate_series(1, 3) \gexec
SELECT kilobytes('row_move') < 100 AS moves, kilobytes('delete_bitmap') < 100 AS bits, kilobytes('row_proxy') < 100 AS proxies;
SELECT count(*), sum(n) FROM t;
SELECT * FROM engine.verify('t');
DROP TABLE t; DROP PROCEDURE settle; DROP FUNCTION kilobytes;
