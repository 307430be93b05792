-- The vectorised node as the executor sees it: falling back, errors, rescans, cursors, prepared statements,
-- own rows, hot and cold rows, cancelling.
\i include/node.sql
\i include/plan.sql
\set ECHO none
SET max_parallel_workers_per_gather = 0;
SET timezone = 'UTC';
CREATE TABLE heap_t (id int8, g int, v int8, n numeric, f float8, t text, d date, nothing int) USING heap;
INSERT INTO heap_t SELECT i, i % 20, CASE WHEN i % 13 = 0 THEN NULL ELSE i * 3 END,
    CASE WHEN i % 17 = 0 THEN NULL WHEN i % 2 = 0 THEN i / 4.00 ELSE i * 1.5 END, i / 3.0, 'text ' || i % 500, date '2024-01-01' + i / 500, NULL
    FROM generate_series(1, 50000) i;
CREATE TABLE column_t (LIKE heap_t) USING colcompress WITH (stripe_row_limit = 20000, chunk_group_row_limit = 5000);
INSERT INTO column_t SELECT * FROM heap_t ORDER BY id;
INSERT INTO heap_t SELECT -i, i % 20, i, i, i, 'hot ' || i, date '2023-01-01', NULL FROM generate_series(1, 300) i;
INSERT INTO column_t SELECT * FROM heap_t WHERE id < 0;
ANALYZE heap_t, column_t;
-- The answer or error of a query over {t}, with both tables; NULL when they are the same.
CREATE FUNCTION outcome(query text, t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    EXECUTE format('SELECT count(*) || '' rows '' || coalesce(string_agg(r::text, '' '' ORDER BY r::text), '''') FROM (%s) r',
        replace(query, '{t}', t)) INTO result;
    RETURN CASE WHEN length(result) > 200 THEN left(result, 40) || '... ' || md5(result) ELSE result END;
EXCEPTION WHEN OTHERS THEN
    RETURN 'ERROR ' || SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE FUNCTION twin(query text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN h = c THEN 'same: ' || h ELSE 'DIFFERENT: heap ' || h || ', columns ' || c END
    FROM (SELECT outcome(query, 'heap_t') AS h, outcome(query, 'column_t') AS c) o $$;
CREATE FUNCTION explained(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN plan;
END $$;
\set ECHO all
-- premise: the node is there, hot and cold rows too
SELECT node('SELECT g, count(*), sum(v) FROM column_t GROUP BY g'), node('SELECT count(*) FROM heap_t');
SELECT (ctid::text::point)[0] >= 2147483648 AS cold, count(*) FROM column_t GROUP BY 1 ORDER BY 1;
SET colonnade.enable_vectorised = off;
SELECT node('SELECT g, count(*), sum(v) FROM column_t GROUP BY g');
RESET colonnade.enable_vectorised;
-- answers from statistics
SELECT twin('SELECT count(*), count(v), count(nothing), count(1) FROM {t}');
SELECT twin('SELECT min(id), max(id), sum(id), avg(id), min(d), max(d), sum(g), avg(g) FROM {t}');
SELECT twin('SELECT min(v), max(v), sum(v), avg(v), sum(nothing), min(nothing), avg(nothing) FROM {t}');
SELECT twin('SELECT sum(n), avg(n), min(n), max(n) FROM {t}'), twin('SELECT min(t), max(t), min(f), max(f) FROM {t}');
SELECT twin('SELECT count(*), sum(id), max(n) FROM {t} WHERE id > 20000 AND id < 900000');
SELECT twin('SELECT count(*), sum(id), max(n) FROM {t} WHERE id BETWEEN 15001 AND 45000');
SELECT twin('SELECT count(*), sum(id), max(n) FROM {t} WHERE id > 900000'), twin('SELECT count(*) FROM {t} WHERE nothing IS NULL');
-- groups, sorts, joins with other tables
SELECT twin('SELECT g, count(*), sum(v), avg(n), min(t) FROM {t} GROUP BY g');
SELECT twin('SELECT * FROM {t} ORDER BY v DESC NULLS LAST, id LIMIT 7');
SELECT twin('SELECT a.g, count(*) FROM {t} a JOIN heap_t b ON a.id = b.id WHERE b.v % 5 = 0 GROUP BY a.g');
-- errors are the server's, whichever part raises them
SELECT twin('SELECT sum(v / (g - 7)) FROM {t}'), twin('SELECT sum((id * 1000000000000) * v) FROM {t}'), twin('SELECT sum(g * 1000000000) FROM {t}');
SELECT twin('SELECT sum(n / (g - 7)) FROM {t}'), twin('SELECT g, sum(f / (g - 7)) FROM {t} GROUP BY g');
SELECT twin('SELECT count(*) FROM {t} a JOIN (SELECT 10 / (id - 5) AS k FROM heap_t) b ON a.id = b.k');
SELECT twin('SELECT count(*), sum(g) FROM {t} WHERE 10 / (g - 7) > 1');
-- what has no exact counterpart is run by the server
CREATE TABLE odd (LIKE heap_t) USING colcompress;
INSERT INTO odd SELECT id, g, v, CASE WHEN id % 1000 = 0 THEN 1e40 + id ELSE n END, f, t, d FROM heap_t;
SELECT node('SELECT sum(n) FROM odd'), outcome('SELECT sum(n), max(n), count(n) FROM {t}', 'odd');
SELECT plan($$SELECT sum(n), count(*) FROM odd$$, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
-- restarted with other parameters
SELECT twin('SELECT o.x, s.* FROM (VALUES (1), (2), (3), (NULL), (99)) o (x), LATERAL (SELECT count(*), sum(v), min(t) FROM {t} WHERE g = o.x OFFSET 0) s');
SELECT twin('SELECT x, (SELECT sum(v) FROM {t} WHERE id < x * 100 AND g = x) FROM generate_series(1, 12) x');
SELECT twin('SELECT x, (SELECT sum(10 / (g - x)) FROM {t} WHERE g <> 3 AND id < 100 * x) FROM generate_series(2, 3) x');
SELECT twin('SELECT count(*) FROM {t} WHERE v > (SELECT avg(v) FROM {t}) AND g = (SELECT max(g) FROM {t})');
SELECT twin('SELECT x, (SELECT sum(n) FROM (SELECT n FROM {t} WHERE g = x ORDER BY id LIMIT 5) s) FROM generate_series(1, 4) x');
-- prepared statements
PREPARE p(int8, int8) AS SELECT count(*), sum(v), min(t) FROM column_t WHERE id BETWEEN $1 AND $2;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(1, 10);
EXECUTE p(100, 30000);
EXECUTE p(NULL, 30000);
EXECUTE p(9, 8);
EXPLAIN (COSTS OFF) EXECUTE p(1, 10);
RESET plan_cache_mode;
-- cursors
BEGIN;
DECLARE c CURSOR FOR SELECT g, count(*), sum(v) FROM column_t GROUP BY g ORDER BY g;
FETCH 2 FROM c;
MOVE 3 FROM c;
FETCH 1 FROM c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT g, count(*), sum(v) FROM column_t GROUP BY g ORDER BY g;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 4 FROM c;
DECLARE kept CURSOR WITH HOLD FOR SELECT g, max(id) FROM column_t GROUP BY g ORDER BY g DESC LIMIT 2;
COMMIT;
FETCH ALL FROM kept;
CLOSE kept;
-- two at once, and one left half read when its transaction ends
BEGIN;
DECLARE a CURSOR FOR SELECT id, t FROM column_t ORDER BY id;
DECLARE b CURSOR FOR SELECT id, t FROM column_t ORDER BY id DESC;
FETCH 2 FROM a;
FETCH 2 FROM b;
FETCH 1 FROM a;
COMMIT;
-- own rows, in memory and in savepoints
BEGIN;
INSERT INTO column_t SELECT i, 100, i, i, i, 'own', '2025-01-01' FROM generate_series(100001, 130000) i;
SELECT count(*), sum(id), min(id) FROM column_t WHERE g = 100;
SAVEPOINT s;
INSERT INTO column_t SELECT i, 101, i, i, i, 'own', '2025-01-01' FROM generate_series(200001, 200010) i;
INSERT INTO column_t SELECT i, 101, i, i, i, 'own', '2025-01-01' FROM generate_series(200011, 230010) i;
SELECT g, count(*), sum(id) FROM column_t WHERE g >= 100 GROUP BY g ORDER BY g;
ROLLBACK TO s;
SELECT g, count(*), sum(id) FROM column_t WHERE g >= 100 GROUP BY g ORDER BY g;
INSERT INTO column_t SELECT max(id) + 1, 102 FROM column_t;
SELECT g, count(*), sum(id) FROM column_t WHERE g >= 100 GROUP BY g ORDER BY g;
ROLLBACK;
SELECT count(*) FROM column_t WHERE g >= 100;
-- columns that came later or changed their type
ALTER TABLE heap_t ADD COLUMN late int DEFAULT 7, ADD COLUMN empty text;
ALTER TABLE column_t ADD COLUMN late int DEFAULT 7, ADD COLUMN empty text;
SELECT twin('SELECT late, empty, count(*), sum(late) FROM {t} GROUP BY late, empty'),
    twin('SELECT sum(late), count(empty) FROM {t} WHERE late = 7 AND id > 10');
INSERT INTO heap_t SELECT i, 1, 1, 1, 1, 'x', NULL, NULL, i % 3, 'e' FROM generate_series(50001, 65000) i;
INSERT INTO column_t SELECT * FROM heap_t WHERE id > 50000;
SELECT twin('SELECT late, empty, count(*), sum(late) FROM {t} GROUP BY late, empty'),
    twin('SELECT sum(late), count(empty), min(empty) FROM {t} WHERE late <> 7 OR id < 10');
ALTER TABLE heap_t ALTER COLUMN g TYPE oid USING g::oid;
ALTER TABLE column_t ALTER COLUMN g TYPE oid USING g::oid;
SELECT twin('SELECT g, count(*) FROM {t} GROUP BY g'), twin('SELECT count(*), sum(id) FROM {t} WHERE g = 4');
-- rows that are locked or changed are never looked at by the node
SELECT node('SELECT id FROM column_t WHERE id < -290 ORDER BY id FOR UPDATE');
-- INSERT ... SELECT and CREATE TABLE AS
CREATE TABLE copied AS SELECT g, count(*) AS n, sum(v) AS s FROM column_t GROUP BY g;
SELECT twin('SELECT * FROM copied EXCEPT SELECT g, count(*), sum(v) FROM {t} GROUP BY g');
-- cancelled soon, and everything works afterwards
SET statement_timeout = '100ms';
SELECT clock_timestamp() AS before \gset
SELECT count(*), sum(a.v + b.v) FROM column_t a JOIN column_t b ON a.g = b.g AND a.v < b.v + 1;
RESET statement_timeout;
SELECT clock_timestamp() - :'before'::timestamptz < interval '400 ms' AS soon;
SELECT twin('SELECT count(*) FROM {t}');
-- the same with threads: chunks are filtered and decoded by workers, errors and cancelling end them
SET max_parallel_workers_per_gather = 3;
SELECT twin('SELECT g, count(*), sum(v), avg(n), min(t), max(f) FROM {t} GROUP BY g'),
    twin('SELECT count(*), sum(id) FROM {t} WHERE t LIKE ''text 1%'' AND v > 300');
SELECT twin('SELECT * FROM {t} ORDER BY v DESC NULLS LAST, id LIMIT 7'),
    twin('SELECT a.g, count(*), sum(b.v) FROM {t} a JOIN {t} b USING (id) WHERE b.late = 7 GROUP BY a.g');
SELECT twin('SELECT sum(v / (id - 777)) FROM {t}'), twin('SELECT late, empty, count(*), sum(late) FROM {t} GROUP BY late, empty'),
    twin('SELECT g, min(id) FROM {t} WHERE id > 10 GROUP BY g');
SELECT twin('SELECT x, (SELECT sum(v) FROM {t} WHERE id < x * 100 AND late <> x) FROM generate_series(1, 12) x');
BEGIN;
DECLARE c CURSOR FOR SELECT id, t FROM column_t ORDER BY id;
FETCH 1 FROM c;
ROLLBACK;
SET statement_timeout = '100ms';
SELECT count(*), sum(a.v + b.v) FROM column_t a JOIN column_t b ON a.g = b.g AND a.v < b.v + 1;
RESET statement_timeout;
SELECT twin('SELECT count(*), sum(v) FROM {t}');
-- every format of EXPLAIN
SELECT plan -> 0 -> 'Plan' ->> 'Custom Plan Provider' AS node, jsonb_path_query_array(plan, 'strict $[0].Plan.Operators.**.Operator') AS operators,
    jsonb_path_query_array(plan, 'strict $[0].Plan.Operators.**.Rows') AS rows
    FROM (SELECT explained('SELECT g, count(*) FROM column_t WHERE v > 0 GROUP BY g ORDER BY 2 LIMIT 3') AS plan) p;
