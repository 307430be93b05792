-- Grouping sets, set operations, DISTINCT ON: on vectors, with heap's answers.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
\i include/same_answers.sql
CREATE TABLE heap_t (id int, a int, b text, n numeric, f float8, d date) USING heap;
INSERT INTO heap_t SELECT g, CASE WHEN g % 11 = 0 THEN NULL ELSE g % 7 END, CASE WHEN g % 13 = 0 THEN NULL ELSE 'b' || g % 5 END,
    (g % 17) / 4.0, CASE WHEN g % 9 = 0 THEN NULL ELSE sin(g) END, date '2024-01-01' + g % 50 FROM generate_series(1, 20000) g;
CREATE TABLE column_t (LIKE heap_t) USING colcompress;
INSERT INTO column_t SELECT * FROM heap_t;
ANALYZE heap_t, column_t;
-- each is one vectorised node and answers as heap does; an answer whose order is asked for is compared in
-- order
CREATE TABLE asked (q text);
INSERT INTO asked VALUES
    ('SELECT a, b, count(*), sum(n), grouping(a, b), grouping(b) FROM {t} GROUP BY ROLLUP (a, b)'),
    ('SELECT a, b, count(*), sum(n), grouping(a, b) FROM {t} GROUP BY CUBE (a, b) HAVING count(*) > 500 OR grouping(a) = 1'),
    ('SELECT a, b, count(DISTINCT d), count(*) FILTER (WHERE f > 0) FROM {t} GROUP BY GROUPING SETS ((a), (b), (), (a, b), (a))'),
    ('SELECT a, b, d, max(n) FROM {t} GROUP BY CUBE (a, b, d)'),
    ('SELECT a, b, count(*) FROM {t} WHERE id < 0 GROUP BY CUBE (a, b)'),
    ('SELECT a + 1, d, count(*) FROM {t} GROUP BY d, ROLLUP (a + 1)'),
    ('SELECT string_agg(b, '','' ORDER BY id), a FROM {t} WHERE id < 100 GROUP BY GROUPING SETS ((a), ())'),
    ('SELECT a, b, count(*), grouping(a, b) FROM {t} GROUP BY ROLLUP (a, b) ORDER BY a, b, 4'),
    ('SELECT a, b FROM {t} INTERSECT SELECT a, b FROM {t} WHERE id > 19990'),
    ('SELECT a, b FROM {t} INTERSECT ALL SELECT a, b FROM {t} WHERE id > 12345'),
    ('SELECT a, b FROM {t} EXCEPT SELECT a, b FROM {t} WHERE id > 19990'),
    ('SELECT a, b FROM {t} EXCEPT ALL SELECT a, b FROM {t} WHERE id > 12345'),
    ('SELECT a, b FROM {t} EXCEPT SELECT a, b FROM {t}'),
    ('SELECT a, b FROM {t} UNION SELECT a + 1, b FROM {t} WHERE id > 12345 ORDER BY 1, 2'),
    ('SELECT DISTINCT ON (a, b) a, b, id, n FROM {t} ORDER BY a, b DESC, n DESC, id'),
    ('SELECT DISTINCT ON (a) a, b, id FROM {t} ORDER BY a DESC NULLS LAST, id LIMIT 3 OFFSET 2'),
    ('SELECT a FROM {t} GROUP BY a ORDER BY a DESC'),
    ('SELECT DISTINCT ON (n, f) n, f, id FROM {t} ORDER BY n, f, id');
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE NOT same OR plan !~ '^Colonnade Vectorised';
SET enable_hashagg = off;
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE NOT same OR plan !~ '^Colonnade Vectorised';
RESET enable_hashagg;
SET max_parallel_workers_per_gather = 1;
SET work_mem = '64kB';
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE NOT same OR plan !~ '^Colonnade Vectorised';
RESET max_parallel_workers_per_gather;
RESET work_mem;
-- what EXPLAIN tells
EXPLAIN (COSTS OFF) SELECT a, b, count(*) FROM column_t GROUP BY CUBE (a, b);
EXPLAIN (COSTS OFF) SELECT a FROM column_t INTERSECT ALL SELECT id FROM column_t;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (a) a, id FROM column_t ORDER BY a, id;
