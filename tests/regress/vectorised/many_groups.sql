-- Many groups in several threads: heap's answer, with room for all groups and with little.
SET colonnade.stripe_threshold_rows = 0;
\set plan_lines 'Hash Aggregate|Threads'
\i include/join_answers.sql
CREATE TABLE heap_rows (k bigint, s text, n numeric(12, 2), i int) USING heap;
INSERT INTO heap_rows SELECT CASE WHEN g % 40 = 0 THEN 7 WHEN g % 501 = 0 THEN NULL ELSE (g::bigint * 7919) % 130003 * 1000003 END,
    CASE WHEN g % 3 = 0 THEN 'a longer text of ' || (g * 31) % 90001 ELSE ((g * 31) % 90001)::text END,
    CASE WHEN g % 7 > 0 THEN (g % 100003) / 100.0 - 300 END, g % 1000 - 500
FROM generate_series(1, 250000) g;
CREATE TABLE column_rows (LIKE heap_rows) USING colcompress;
INSERT INTO column_rows SELECT * FROM heap_rows;
ANALYZE heap_rows, column_rows;
SET colonnade.vectorised_min_rows = 0;
CREATE TABLE asked (name text, query text) USING heap;
INSERT INTO asked VALUES
    ('integers', 'SELECT k, count(*), count(n), sum(n), avg(i), min(n), max(s), stddev(i) FROM {t}_rows GROUP BY k'),
    ('texts', 'SELECT s, sum(i), min(k), bool_and(i > 0), max(i) FILTER (WHERE n > 0) FROM {t}_rows GROUP BY s'),
    ('both', 'SELECT s, k, count(*), sum(n * 2) FROM {t}_rows GROUP BY s, k HAVING count(*) < 5'),
    ('distinct', 'SELECT k % 100000, count(DISTINCT s) FROM {t}_rows GROUP BY 1'),
    ('distinct of one', 'SELECT count(DISTINCT k), sum(DISTINCT k), max(DISTINCT k) FROM {t}_rows'),
    ('distinct of several', 'SELECT i, count(DISTINCT s), count(DISTINCT k), sum(n) FROM {t}_rows GROUP BY i'),
    ('distinct of few', 'SELECT i / 500, count(DISTINCT n), sum(DISTINCT n), avg(DISTINCT n) FROM {t}_rows GROUP BY 1'),
    ('distinct of none', 'SELECT count(DISTINCT s), sum(DISTINCT n) FROM {t}_rows WHERE i > 1000'),
    ('above', 'SELECT c, count(*), sum(t) FROM (SELECT k, count(*) AS c, sum(i) AS t FROM {t}_rows GROUP BY k) x GROUP BY c'),
    ('joined', 'SELECT a.s, b.c FROM {t}_rows a JOIN (SELECT k, count(*) AS c FROM {t}_rows GROUP BY k) b USING (k) WHERE a.i = 3'),
    ('sets', 'SELECT k, s, count(*) FROM {t}_rows GROUP BY GROUPING SETS ((k), (s), ())');
CREATE TABLE answered AS SELECT name, query, answer(query, 'heap') AS heap FROM asked;
SET max_parallel_workers_per_gather = 2;
SET work_mem = '4MB';
SELECT name, heap, answer(query, 'column') FROM answered WHERE heap <> answer(query, 'column');
SET work_mem = '256MB';
SELECT name, heap, answer(query, 'column') FROM answered WHERE heap <> answer(query, 'column');
-- It is vectorised.
SELECT name, joins(query) FROM asked;
