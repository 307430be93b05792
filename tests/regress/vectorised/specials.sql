-- NaN and infinities among numerics do not keep a query from vectors.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
\i include/same_answers.sql
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE heap_t (id int, k int, n numeric, m numeric(12, 2), w numeric) USING heap;
INSERT INTO heap_t SELECT g, g % 11, CASE WHEN g % 97 = 0 THEN numeric 'NaN' WHEN g % 101 = 0 THEN 'Infinity' WHEN g % 103 = 0 AND g % 11 <> 3
    THEN '-Infinity' WHEN g % 13 = 0 THEN NULL ELSE (g % 50 - 25)::numeric / (ARRAY[1, 2, 4, 10])[g % 4 + 1] END,
    CASE WHEN g = 4000 THEN numeric 'NaN' WHEN g % 7 > 0 THEN g % 40 - 20 END, CASE WHEN g = 3 THEN 1e50 ELSE g END FROM generate_series(1, 9000) g;
CREATE TABLE column_t (LIKE heap_t) USING colcompress;
INSERT INTO column_t SELECT * FROM heap_t ORDER BY id;
ANALYZE heap_t, column_t;
-- premise
SELECT count(*), count(*) FILTER (WHERE n = 'NaN') AS nans, count(*) FILTER (WHERE abs(n) = 'Infinity') AS infinities,
    count(*) FILTER (WHERE m = 'NaN') AS m, min((ctid::text::point)[0]) >= 2147483648 AS cold FROM column_t;
\i include/node.sql
CREATE TABLE asked (number serial, q text);
INSERT INTO asked (q) SELECT format(q, x) FROM unnest(ARRAY['n', 'm', 'n + m', 'n - m', 'n * m', '-n', 'abs(n)', 'n + 1', '2.5 - n', 'n * 0',
    'm * -1.5', 'n - ''Infinity''', 'n * ''-Infinity''', 'CASE WHEN k = 3 THEN n ELSE m END', 'coalesce(n, m)', 'n / 3',
    '(id + 1) / coalesce(nullif(n, 0), 1)', 'm / 0.5', 'round(n, 1)', 'trunc(n)', 'ceil(n)', 'floor(n * 3)', 'm::numeric(10, 1)',
    'n::float8::numeric']) x, unnest(ARRAY[
    'SELECT sum(%1$s), avg(%1$s), count(%1$s), min(%1$s), max(%1$s) FROM {t}',
    'SELECT k, sum(%1$s), avg(%1$s), count(%1$s), min(%1$s), max(%1$s) FROM {t} GROUP BY k',
    'SELECT k, sum(%1$s), max(%1$s) FROM {t} GROUP BY ROLLUP (k)', 'SELECT %1$s, count(*), min(id) FROM {t} GROUP BY 1',
    'SELECT DISTINCT %1$s FROM {t} WHERE id > 90', 'SELECT count(DISTINCT %1$s), sum(DISTINCT %1$s) FROM {t}',
    'SELECT id, %1$s FROM {t} ORDER BY 2, id', 'SELECT id, %1$s FROM {t} ORDER BY 2 DESC NULLS LAST, id LIMIT 300',
    'SELECT count(*), sum(id) FROM {t} WHERE (%1$s) > 3',
    'SELECT count(*), sum(id) FROM {t} WHERE (%1$s) <= m', 'SELECT count(*), sum(id) FROM {t} WHERE m <> (%1$s) OR k = 2',
    'SELECT count(*), sum(id) FROM {t} WHERE (%1$s) >= ''Infinity''', 'SELECT count(*), sum(id) FROM {t} WHERE (%1$s) = ''NaN''',
    'SELECT count(*), sum(id) FROM {t} WHERE NOT (%1$s) < ''-Infinity''']) q;
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE NOT same OR plan !~ '^Colonnade Vectorised' ORDER BY number;
SELECT q, fell_back(q) FROM asked WHERE fell_back(q) IS NOT NULL ORDER BY number;
-- spilling, threads (which of equal values stands for them is not determined then, nor where the server sorts
-- to group, as it does with little memory)
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SET max_parallel_workers_per_gather = 1;
INSERT INTO asked (q) VALUES ('SELECT id, n, sum(m), max(n) FROM {t} GROUP BY id, n'),
    ('SELECT trim_scale(x), count FROM (SELECT id + n AS x, count(*) FROM {t} GROUP BY 1) y'), ('SELECT n, id, n + id FROM {t} ORDER BY 3, 1, 2');
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE (number % 3 = 1 OR number > 336) AND NOT same AND q !~ 'DISTINCT|min.id|n . 0' ORDER BY number;
RESET work_mem;
RESET hash_mem_multiplier;
SET max_parallel_workers_per_gather = 0;
-- joins by them, with them on either side or both, and lists of them
TRUNCATE asked;
INSERT INTO asked (q) VALUES ('SELECT a.id, b.id, a.n FROM {t} a JOIN {t} b ON a.n = b.n WHERE b.id % 40 = 1 OR b.id IN (97, 101, 206)'),
    ('SELECT a.id, b.id FROM {t} a LEFT JOIN (SELECT * FROM {t} WHERE id BETWEEN 3990 AND 4200) b ON a.m = b.n WHERE a.id % 5 = 0'),
    ('SELECT a.id, b.id FROM (SELECT * FROM {t} WHERE id < 700) a FULL JOIN (SELECT * FROM {t} WHERE id > 8500) b ON a.n = b.m'),
        ('SELECT id FROM {t} a WHERE EXISTS (SELECT FROM {t} b WHERE b.n = a.n AND b.id % 97 = 0)'),
    ('SELECT id, n FROM {t} a WHERE NOT EXISTS (SELECT FROM {t} b WHERE b.n = a.n AND b.id % 101 = 0)'),
        ('SELECT id FROM {t} WHERE m IN (SELECT n FROM {t} WHERE id < 150)'),
        ('SELECT id FROM {t} WHERE n NOT IN (SELECT n + 0.5 FROM {t} WHERE id % 97 = 0 AND n IS NOT NULL)'),
    ('SELECT count(*), sum(b.id) FROM {t} a JOIN {t} b ON a.n = b.n AND a.k = b.k'),
        ('SELECT count(*), sum(id) FROM {t} WHERE n IN (''NaN'', 1.5, 3)'),
        ('SELECT count(*), sum(id) FROM {t} WHERE n NOT IN (1.50, ''-Infinity'', ''NaN'')'),
    ('SELECT count(*), sum(id) FROM {t} WHERE n IN (1, 2, 3, 4, 5, 6, 7, ''Infinity'', 8.5, ''NaN'')'),
        ('SELECT count(*), sum(id) FROM {t} WHERE n NOT IN (1, 2, 3, 4, 5, 6, 7, NULL, 8.5, ''NaN'')'),
        ('SELECT count(*), sum(id) FROM {t} WHERE (n IN (''NaN'', NULL, ''Infinity'')) IS NULL'),
    ('SELECT id, sum(n) OVER (PARTITION BY k ORDER BY id) AS a, avg(m) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 3 PRECEDING '
        'AND 1 FOLLOWING) AS b, count(n) OVER (PARTITION BY n) AS c, rank() OVER (ORDER BY n) AS d FROM {t}'),
    ('SELECT id, max(n) OVER w AS a, min(n) OVER w AS b, sum(n) OVER w AS c, avg(n) OVER w AS d FROM {t} WINDOW w AS (PARTITION BY m '
        'ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)'),
    ('SELECT count(*) FROM {t} WHERE n IN (0, 1)'), ('SELECT count(*) FROM {t} WHERE n NOT IN (0, 1, 2, 3, 4, 5, 6, 7)');
SELECT q, heap, columns, plan, fell_back(q) FROM asked, same_answers(q) WHERE NOT same OR fell_back(q) IS NOT NULL ORDER BY number;
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 1;
SELECT q, heap, columns, plan, fell_back(q) FROM asked, same_answers(q) WHERE NOT same OR fell_back(q) IS NOT NULL ORDER BY number;
RESET work_mem;
SET max_parallel_workers_per_gather = 0;
-- what still is the server's: numbers of more digits, other functions
SELECT q, same, regexp_replace(fell_back(q), '^ +', '') FROM (VALUES ('SELECT sum(w), count(*) FROM {t}'), ('SELECT sum(n % 7) FROM {t}'),
    ('SELECT k, variance(n) FROM {t} GROUP BY k')) x(q), same_answers(q);
-- What only PostgreSQL's executor can add up or give out is met when other groups could be with the reader
-- already: results of variances, rows in files.
CREATE TABLE late (id int8, x int8, v numeric) USING colcompress;
INSERT INTO late SELECT g / 2, CASE WHEN g >= 99998 THEN 9000000000000000000 ELSE g END, CASE WHEN g = 99999 THEN 1e50 ELSE g
    END FROM generate_series(0, 99999) g;
ANALYZE late;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT id, stddev(x) FROM late GROUP BY id;
SELECT count(*), max(s) FROM (SELECT id, stddev(x) AS s FROM late GROUP BY id OFFSET 0) x;
CREATE TABLE got (id int8, s numeric);
INSERT INTO got SELECT id, stddev(x) FROM late GROUP BY id;
SELECT count(*), max(s) FROM got;
SET work_mem = '64kB';
TRUNCATE got;
INSERT INTO got SELECT id, sum(v) FROM late GROUP BY id;
SELECT count(*), max(s) FROM got;
DECLARE c CURSOR WITH HOLD FOR SELECT id, sum(v) AS s FROM late GROUP BY id;
MOVE ALL IN c;
CLOSE c;
RESET work_mem;
DROP TABLE late, got;
