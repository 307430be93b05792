-- Semi and anti joins keep the side that is expected to be smaller, with residual conditions, NULLs and
-- spilled sides; answers are heap's.
SET max_parallel_workers_per_gather = 0; SET enable_mergejoin = off; SET enable_nestloop = off; SET colonnade.vectorised_min_rows = 0;
CREATE TABLE heap_few (id int, k int, s int, t text, n numeric) USING heap;
INSERT INTO heap_few SELECT g, nullif(g * 7 % 900, 0), g % 5, 'name ' || g % 50, g % 40 / 2.0 FROM generate_series(1, 600) g;
CREATE TABLE heap_many (id int, k int, s int, t text, n numeric) USING heap;
INSERT INTO heap_many SELECT g, nullif(g % 700, 3), nullif(g % 11, 7), 'name ' || g % 80, g % 60 / 4.00 FROM generate_series(1, 20000) g;
CREATE TABLE column_few (LIKE heap_few) USING colcompress;
CREATE TABLE column_many (LIKE heap_many) USING colcompress WITH (stripe_row_limit = 5000, chunk_group_row_limit = 1000);
INSERT INTO column_few SELECT * FROM heap_few;
INSERT INTO column_many SELECT * FROM heap_many;
ANALYZE heap_few, heap_many, column_few, column_many;
\set plan_lines 'Hash Join|Hash Aggregate|SubPlan'
\i include/join_answers.sql
CREATE TABLE asked (number serial, query text);
INSERT INTO asked (query) VALUES
    ('SELECT f.id, f.t FROM {t}_few f WHERE EXISTS (SELECT FROM {t}_many m WHERE m.k = f.k)'),
    ('SELECT f.id, f.t FROM {t}_few f WHERE NOT EXISTS (SELECT FROM {t}_many m WHERE m.k = f.k)'),
    ('SELECT m.id, m.t FROM {t}_many m WHERE EXISTS (SELECT FROM {t}_few f WHERE m.k = f.k)'),
    ('SELECT m.id, m.t FROM {t}_many m WHERE NOT EXISTS (SELECT FROM {t}_few f WHERE m.k = f.k)'),
    ('SELECT f.* FROM {t}_few f WHERE EXISTS (SELECT FROM {t}_many m WHERE m.k = f.k AND m.s <> f.s)'),
    ('SELECT f.* FROM {t}_few f WHERE NOT EXISTS (SELECT FROM {t}_many m WHERE m.k = f.k AND m.s <> f.s AND m.id % 3 = 0)'),
    ('SELECT m.* FROM {t}_many m WHERE NOT EXISTS (SELECT FROM {t}_few f WHERE m.k = f.k AND m.s <> f.s)'),
    ('SELECT f.t, f.n FROM {t}_few f WHERE EXISTS (SELECT FROM {t}_many m WHERE m.t = f.t AND m.n = f.n)'),
    ('SELECT f.t, f.n FROM {t}_few f WHERE NOT EXISTS (SELECT FROM {t}_many m WHERE m.t = f.t AND m.n = f.n AND m.id > 1000)'),
    ('SELECT f.id FROM {t}_few f WHERE f.k IN (SELECT m.k FROM {t}_many m WHERE m.s > 2) AND NOT EXISTS (SELECT FROM {t}_many o WHERE o.k = f.k '
        'AND o.s = f.s)'),
    ('SELECT f.id FROM {t}_few f WHERE EXISTS (SELECT FROM {t}_many m WHERE m.n = f.n) AND f.id % 2 = 0'),
    -- in a join: made distinct first by the server's plan, or not
    ('SELECT f.s, count(*) FROM {t}_few f JOIN {t}_few g ON f.k = g.k WHERE EXISTS (SELECT FROM {t}_many m WHERE m.k = f.k) GROUP BY f.s'),
    ('SELECT f.s, count(*) FROM {t}_few f WHERE f.id < 50 AND EXISTS (SELECT FROM {t}_many m WHERE m.id = f.k AND m.s < m.id) GROUP BY f.s');
SELECT number, joins(query) FROM asked ORDER BY number;
SELECT number FROM asked WHERE answer(query, 'column') <> answer(query, 'heap') ORDER BY 1;
-- a semi join whose other side the server makes distinct first is not made distinct here
SET enable_hashjoin = on; SET enable_nestloop = on; SET enable_mergejoin = on;
CREATE TABLE column_wide (id int, k int, d1 int, d2 int) USING colcompress;
INSERT INTO column_wide SELECT g, g / 4, g % 7, g % 5 FROM generate_series(1, 200000) g;
ANALYZE column_wide;
SELECT joins('SELECT s, count(*) FROM {t}_few f WHERE id BETWEEN 10 AND 300 AND EXISTS (SELECT * FROM {t}_wide w WHERE w.k = f.id AND d1 < d2) GROUP BY s');
SELECT s, count(*) FROM column_few f WHERE id BETWEEN 10 AND 300 AND EXISTS (SELECT * FROM column_wide w WHERE w.k = f.id AND d1 < d2) GROUP BY s ORDER BY s;
SET colonnade.enable_vectorised = off;
SELECT s, count(*) FROM column_few f WHERE id BETWEEN 10 AND 300 AND EXISTS (SELECT * FROM column_wide w WHERE w.k = f.id AND d1 < d2) GROUP BY s ORDER BY s;
RESET colonnade.enable_vectorised;
-- more rows than the memory of an operator holds
SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET enable_nestloop = off; SET enable_mergejoin = off;
CREATE TABLE heap_half (LIKE heap_many) USING heap;
INSERT INTO heap_half SELECT * FROM heap_many WHERE id % 3 = 0;
CREATE TABLE column_half (LIKE heap_many) USING colcompress;
INSERT INTO column_half SELECT * FROM heap_half;
ANALYZE heap_half, column_half;
TRUNCATE asked;
INSERT INTO asked (query) VALUES
    ('SELECT h.* FROM {t}_half h WHERE EXISTS (SELECT FROM {t}_many m WHERE m.id = h.id + 9000 AND m.s <> h.s)'),
    ('SELECT h.* FROM {t}_half h WHERE NOT EXISTS (SELECT FROM {t}_many m WHERE m.id = h.id + 9000 AND m.s <> h.s)');
SELECT joins(query) FROM asked;
SELECT number FROM asked WHERE answer(query, 'column') <> answer(query, 'heap');
-- a condition that may end the query: the server stops at the first match, so it is left alone
SELECT joins('SELECT count(*) FROM {t}_few f WHERE EXISTS (SELECT FROM {t}_many m WHERE m.k = f.k AND 100 / (m.s + f.s) > 1)');
-- IN over an expression: the server's plan makes its values distinct and computes them once more in the join,
-- out of columns that are not grouped by
RESET enable_hashjoin; RESET enable_nestloop; RESET enable_mergejoin; RESET work_mem; RESET hash_mem_multiplier;
TRUNCATE asked RESTART IDENTITY;
INSERT INTO asked (query) VALUES
    ('SELECT count(*), sum(id) FROM {t}_many WHERE k IN (SELECT id / 4 FROM {t}_half)'),
    ('SELECT id FROM {t}_many WHERE (k, s) IN (SELECT id / 4, s % 3 FROM {t}_half)'),
    ('SELECT id FROM {t}_many WHERE n IN (SELECT n * 2 FROM {t}_few WHERE s > 1)'),
    ('SELECT id FROM {t}_many WHERE t IN (SELECT left(t, 6) || id % 3 FROM {t}_half WHERE k < 300)'),
    ('SELECT id FROM {t}_many WHERE t IN (SELECT t COLLATE "C" FROM {t}_half WHERE k < 300) AND k IN (SELECT abs(k - 90) FROM {t}_half)'),
    ('SELECT m.id, f.id FROM {t}_many m JOIN {t}_few f ON m.k = f.k WHERE f.s IN (SELECT h.s / 2 FROM {t}_half h)'),
    ('SELECT count(*) FROM {t}_many m WHERE EXISTS (SELECT FROM {t}_half h WHERE h.id / 7 = m.k AND h.s > 3)'),
    ('SELECT count(*) FROM {t}_many m WHERE k IN (SELECT a.k + b.s FROM {t}_half a JOIN {t}_few b ON a.k = b.k)'),
    ('SELECT count(*) FROM {t}_many m WHERE k IN (SELECT row_number() OVER (PARTITION BY s ORDER BY id) % 70 FROM {t}_half)'),
    ('SELECT DISTINCT count(*) OVER (PARTITION BY k ORDER BY s), k FROM {t}_many'),
    ('SELECT count(*), sum(id) FROM {t}_many WHERE k IN (SELECT coalesce(h.k, f.k) % 50 FROM {t}_half h LEFT JOIN {t}_few f ON h.k = f.k)');
SELECT joins(query, 'Aggregate|Hash Cond') FROM asked WHERE number <= 2;
SELECT number, answer(query, 'column') FROM asked WHERE answer(query, 'column') <> answer(query, 'heap') ORDER BY 1;
SET enable_hashagg = off;
SELECT number, answer(query, 'column') FROM asked WHERE answer(query, 'column') <> answer(query, 'heap') ORDER BY 1;
RESET enable_hashagg;
-- columns that depend on the grouped ones, also where grouping sets have these in common
CREATE TABLE heap_keyed (id int PRIMARY KEY, t text, n numeric, x float8) USING heap;
INSERT INTO heap_keyed SELECT g, nullif('t' || g % 9, 't4'), g / 4.00, nullif(g % 6, 2) FROM generate_series(1, 300) g;
CREATE TABLE column_keyed (LIKE heap_keyed INCLUDING ALL) USING colcompress;
INSERT INTO column_keyed SELECT * FROM heap_keyed;
ANALYZE heap_keyed, column_keyed;
TRUNCATE asked RESTART IDENTITY;
INSERT INTO asked (query) VALUES
    ('SELECT y.id, y.t, y.n, y.x, count(*), sum(m.n) FROM {t}_keyed y JOIN {t}_many m ON m.k = y.id GROUP BY y.id'),
    ('SELECT y.t || y.x, y.n * 2, max(m.t) FROM {t}_keyed y LEFT JOIN {t}_many m ON m.k = y.id GROUP BY y.id HAVING y.x > 1 OR y.t IS NULL'),
    ('SELECT y.id, y.t, y.n, m.s, count(*), grouping(m.s) FROM {t}_keyed y JOIN {t}_many m ON m.k = y.id GROUP BY GROUPING SETS ((y.id, m.s), (y.id))'),
    ('SELECT y.id, y.t, y.x FROM {t}_keyed y JOIN {t}_many m ON m.k = y.id GROUP BY y.id');
SELECT number, answer(query, 'column') FROM asked WHERE answer(query, 'column') <> answer(query, 'heap') ORDER BY 1;
SET enable_hashagg = off;
SELECT number, answer(query, 'column') FROM asked WHERE answer(query, 'column') <> answer(query, 'heap') ORDER BY 1;
