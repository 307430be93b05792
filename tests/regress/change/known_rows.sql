-- What a backend keeps of stripes and dead rows from one look-up of a single row to the next holds for the
-- next one: after own changes, savepoints, rollbacks, movers and changes of the catalogs themselves.
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE t (id int PRIMARY KEY, v int) USING colcompress;
INSERT INTO t SELECT g, g FROM generate_series(1, 300) g;
SELECT count(*) AS cold FROM t WHERE ctid >= '(2147483648,1)';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
-- How many of 300 rows are found one by one, and the sum of their values.
CREATE FUNCTION found(OUT n int, OUT sum int) LANGUAGE plpgsql AS $$
DECLARE
    one int;
BEGIN
    n := 0;
    sum := 0;
    FOR key IN 1..300 LOOP
        SELECT v INTO one FROM t WHERE id = key;
        IF FOUND THEN
            n := n + 1;
            sum := sum + one;
        END IF;
    END LOOP;
END $$;
SELECT * FROM found();

-- Single rows and savepoints.
BEGIN;
DELETE FROM t WHERE id = 7;
SELECT * FROM found();
SAVEPOINT s;
UPDATE t SET v = v + 1000 WHERE id IN (8, 9);
SELECT * FROM found();
ROLLBACK TO s;
SELECT * FROM found();
COMMIT;
SELECT * FROM found();

-- A lock leaves a row where it is.
BEGIN;
SELECT * FROM t WHERE id = 10 FOR UPDATE;
SELECT * FROM found();
COMMIT;
SELECT * FROM found();

-- In bulk.
BEGIN;
DELETE FROM t WHERE id BETWEEN 100 AND 199;
SELECT * FROM found();
ROLLBACK;
SELECT * FROM found();
DELETE FROM t WHERE id BETWEEN 100 AND 199;
SELECT * FROM found();

-- A cursor sees what it saw.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE id IN (1, 2, 3, 4) ORDER BY id;
FETCH 1 FROM c;
DELETE FROM t WHERE id IN (2, 3);
SELECT * FROM found();
FETCH ALL FROM c;
ROLLBACK;
SELECT * FROM found();

-- The catalogs themselves.
BEGIN;
TRUNCATE engine.delete_bitmap;
DELETE FROM t WHERE id = 250;
SELECT n > 199 AS as_if_never_deleted FROM found();
ROLLBACK;
SELECT * FROM found();
BEGIN;
ALTER TABLE engine.row_proxy RENAME TO elsewhere;
SELECT count(*) >= 0 AS looked FROM t WHERE id = 7;
ROLLBACK;
SELECT * FROM found();

-- A key that is free again, and one that is not.
INSERT INTO t VALUES (7, -7);
INSERT INTO t VALUES (6, -6);
SELECT * FROM found();

-- Movers and rewriters.
CALL engine.colcompress_repack('t');
SELECT * FROM found();
DELETE FROM t WHERE id = 11;
SELECT * FROM found();
VACUUM t;
SELECT * FROM found();
VACUUM FULL t;
SELECT * FROM found();
DELETE FROM t WHERE id = 12;
SELECT * FROM found();
TRUNCATE t;
SELECT * FROM found();
INSERT INTO t SELECT g, -g FROM generate_series(1, 300) g;
SELECT * FROM found();
DROP FUNCTION found();
DROP TABLE t;

-- Joined stripes: until VACUUM the index has an entry for the old place of each row, too.
CREATE TABLE small (id int PRIMARY KEY, v int) USING colcompress;
DO $$ BEGIN FOR part IN 0..29 LOOP INSERT INTO small SELECT g, g FROM generate_series(part * 10 + 1, part * 10 + 10) g; END LOOP; END $$;
CREATE FUNCTION stripes() RETURNS int8 LANGUAGE sql AS
$$ SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'small'::regclass $$;
SELECT stripes();
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*), sum(v) FROM small WHERE id BETWEEN 1 AND 300;
COMMIT;
CALL harness.settle();
CALL engine.colcompress_repack('small');
SELECT stripes();
SELECT count(*), sum(v) FROM small WHERE id BETWEEN 1 AND 300;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SET colonnade.enable_vectorised = off;
EXPLAIN (COSTS off) SELECT count(*), sum(v) FROM small WHERE id BETWEEN 1 AND 300;
SELECT count(*), sum(v) FROM small WHERE id BETWEEN 1 AND 300;
DELETE FROM small WHERE id % 3 = 0;
SELECT count(*), sum(v) FROM small WHERE id BETWEEN 1 AND 300;
SELECT count(*), sum(s.v) FROM generate_series(1, 300) g JOIN LATERAL (SELECT v FROM small WHERE id = g OFFSET 0) s ON true;
DROP FUNCTION stripes();
DROP TABLE small;
