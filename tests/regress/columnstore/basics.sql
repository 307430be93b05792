-- A columnstore index: what is copied, what is read from where, and that answers are the heap's.
SET max_parallel_workers_per_gather = 0;
\i include/with_and_without.sql
CREATE TABLE t (id int, day date, name text, amount numeric(10,2), ratio float8, gone int, doc jsonb) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, date '2024-01-01' + g % 400, 'name ' || g % 50, g / 7.0, CASE WHEN g % 11 > 0 THEN g * 0.5 END, g, jsonb_build_object('n', g % 9)
FROM generate_series(1, 60000) g;
ALTER TABLE t DROP COLUMN gone;
CALL harness.settle();
CREATE INDEX t_copy ON t USING columnstore (day, name, amount, ratio, id, doc);
SELECT relname, reltuples FROM pg_class WHERE relname = 't_copy';
ANALYZE t;
SELECT * FROM compared('SELECT count(*) FROM t');
SELECT * FROM compared('SELECT count(*), sum(id), min(day), max(name), avg(amount), sum(ratio) FROM t');
SELECT * FROM compared('SELECT day, count(*), sum(amount) FROM t WHERE name LIKE ''name 1%'' AND day > ''2024-06-01'' GROUP BY day');
SELECT * FROM compared('SELECT id, name FROM t WHERE ratio IS NULL AND amount < 500');
SELECT * FROM compared('SELECT doc->>''n'' AS n, count(*) FROM t GROUP BY 1');
SELECT * FROM compared('SELECT a.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE b.name = ''name 7''');
-- what the copies' statistics know is not read
CREATE FUNCTION known(query text, OUT rows_known text, OUT bytes_read text) LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
    SELECT jsonb_path_query_first(plan, '$.**."Rows from Statistics"'),
           CASE jsonb_path_query_first(plan, '$.**."Bytes Decoded"') WHEN '0' THEN 'none' ELSE 'some' END INTO rows_known, bytes_read;
END $$;
SELECT * FROM known('SELECT count(*) FROM t');
SELECT * FROM known('SELECT min(day), max(id), count(ratio) FROM t');
SELECT * FROM known('SELECT count(*) FROM t WHERE id > 0');
SELECT * FROM known('SELECT sum(id) FROM t');
-- the plan says which index it reads
EXPLAIN (COSTS OFF) SELECT name, sum(id) FROM t GROUP BY name;
-- system columns and whole rows are the heap's, but for tableoid
SELECT * FROM compared('SELECT ctid, id FROM t WHERE id < 2000');
SELECT * FROM compared('SELECT t FROM t WHERE id < 2000');
SELECT * FROM compared('SELECT DISTINCT tableoid FROM t');
-- a new column is not in the index
ALTER TABLE t ADD COLUMN later int DEFAULT 5;
SELECT * FROM compared('SELECT sum(later) FROM t');
SELECT * FROM compared('SELECT sum(id) FROM t');
-- changed blocks are read from the heap, at once
INSERT INTO t (id, name) SELECT g, 'more' FROM generate_series(100001, 100020) g;
UPDATE t SET name = 'changed' WHERE id % 10000 = 1;
DELETE FROM t WHERE id % 10000 = 2;
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
SELECT * FROM known('SELECT count(*) FROM t');
SELECT * FROM compared('SELECT count(*) FROM t');
BEGIN;
DELETE FROM t WHERE id % 10000 = 3;
SAVEPOINT s;
INSERT INTO t (id, name) SELECT g, 'own' FROM generate_series(200001, 201000) g;
SELECT * FROM compared('SELECT name, count(*) FROM t GROUP BY name');
ROLLBACK TO s;
SELECT * FROM compared('SELECT name, count(*) FROM t GROUP BY name');
COMMIT;
-- VACUUM makes blocks visible to all again; a refresh copies them
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
CALL harness.settle();
CALL engine.columnstore_refresh('t_copy');
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
CALL harness.settle();
CALL engine.columnstore_refresh('t_copy');
-- a cursor, and a prepared statement that outlives the index
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE name = 'name 3' ORDER BY id;
FETCH 2 FROM c;
MOVE 3 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
PREPARE p AS SELECT count(*), sum(id) FROM t WHERE name < $1;
EXECUTE p('name 2');
DROP INDEX t_copy;
EXECUTE p('name 2');
CALL harness.settle();
CREATE INDEX t_copy ON t USING columnstore (id, name) WITH (compression_type = lz4, compression_level = 1);
EXECUTE p('name 2');
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
-- the smallest index that has all columns is read
CALL harness.settle();
CREATE INDEX t_narrow ON t USING columnstore (id);
EXPLAIN (COSTS OFF) SELECT sum(id) FROM t;
-- switched off
SET colonnade.enable_columnstore_index = off;
EXPLAIN (COSTS OFF) SELECT sum(id) FROM t;
RESET colonnade.enable_columnstore_index;
-- TRUNCATE and rewriting
BEGIN;
TRUNCATE t;
INSERT INTO t (id, name) SELECT g, 'n' || g FROM generate_series(1, 20000) g;
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
COMMIT;
CALL harness.settle();
VACUUM FULL t;
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
CALL harness.settle();
REINDEX INDEX t_copy;
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
CALL harness.settle();
ALTER TABLE t ALTER COLUMN id TYPE bigint;
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
-- CONCURRENTLY: empty at first
CALL harness.settle();
REINDEX INDEX CONCURRENTLY t_copy;
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
CALL harness.settle();
CALL engine.columnstore_refresh('t_copy');
SELECT * FROM compared('SELECT count(*), sum(id), max(name) FROM t');
CALL harness.settle();
CREATE INDEX CONCURRENTLY t_third ON t USING columnstore (name);
DROP INDEX CONCURRENTLY t_third;
