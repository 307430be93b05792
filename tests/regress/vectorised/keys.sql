-- Grouping, DISTINCT, joins, set operations, windows and orders by types that only the server compares: their
-- values become numbers.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
\i include/same_answers.sql
CREATE TYPE mood AS ENUM ('low', 'high');
ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high';
CREATE TYPE pair AS (a int, b text);
CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE heap_t (id int, iv interval, ip inet, ci cidr, m mood, ia int[], ta text[], j jsonb, r int4range, bt varbit, tz timetz, o oid, p pair,
    ma macaddr, f text COLLATE folded, c bpchar, ar numeric[], by bytea, mr int4multirange, na name) USING heap;
INSERT INTO heap_t SELECT g, CASE WHEN g % 13 = 0 THEN NULL WHEN g % 3 = 0 THEN g % 5 * interval '24 hours' WHEN g % 3 = 1
    THEN g % 5 * interval '1 day' ELSE g % 90 * interval '1 day' END,
    ('10.0.' || g % 7 || '.' || g % 20 || CASE WHEN g % 2 = 0 THEN '/24' ELSE '' END)::inet, ('10.' || g % 9 || '.0.0/' || 16 + g % 3)::cidr,
        (ARRAY['low', 'high', 'middle', NULL])[g % 4 + 1]::mood,
    CASE WHEN g % 17 > 0 THEN ARRAY[g % 5, NULLIF(g % 3, 0)] END, ARRAY['b' || g % 4, repeat('x', g % 3)],
        jsonb_build_object('k', (ARRAY[1, 1.0, 1.00, 2])[g % 4 + 1], 's', g % 3),
    CASE WHEN g % 8 > 0 THEN int4range(g % 10, g % 10 + 5) ELSE 'empty' END, (g % 16)::bit(4)::varbit || (g % 3)::bit(2)::varbit,
        (g % 24 || ':00:00+0' || g % 3)::timetz, g % 40 * 100000000::int8,
    CASE WHEN g % 5 > 0 THEN ROW(g % 3, 'b' || g % 2)::pair END, ('08:00:2b:01:02:' || to_char(g % 50, 'FM00'))::macaddr,
        (ARRAY['a', 'A', 'b', 'B', 'ab', 'AB'])[g % 6 + 1], (ARRAY['x', 'x ', 'y', 'x  '])[g % 4 + 1],
    ARRAY[(ARRAY[1, 1.0, 2.50, 2.5])[g % 4 + 1], g % 3], decode(md5((g % 20)::text), 'hex'),
        int4multirange(int4range(g % 4, g % 4 + 2), int4range(20, 25)), 'n' || g % 9 FROM generate_series(1, 6000) g;
CREATE TABLE column_t (LIKE heap_t) USING colcompress;
-- One by one: from 16 on heap puts a few of many rows into pages before the last, and the order counts below.
DO $$ DECLARE r heap_t; BEGIN FOR r IN SELECT * FROM heap_t ORDER BY id LOOP INSERT INTO column_t SELECT r.*; END LOOP; END $$;
ANALYZE heap_t, column_t;
CREATE TABLE asked (number serial, q text);
\i include/node.sql
-- the first value of a group shows it: the heap hashes here, so that its first is the table's
-- (there is no hash of bits, so that the server joins by them in nested loops)
SET enable_sort = off;
INSERT INTO asked (q) SELECT replace(q, '#', c) FROM unnest(ARRAY['iv', 'ip', 'ci', 'm', 'ia', 'ta', 'j', 'r', 'tz', 'o', 'p', 'ma', 'f', 'c', 'ar',
    'by', 'mr', 'na', 'bt']) c, unnest(ARRAY[
    'SELECT #, count(*), min(id) FROM {t} GROUP BY #', 'SELECT DISTINCT # FROM {t} WHERE id > 100',
    'SELECT id % 3 AS rest, #, count(*), grouping(#) FROM {t} GROUP BY GROUPING SETS ((1, 2), (2), ())',
    'SELECT count(DISTINCT #), count(DISTINCT #) FILTER (WHERE id < 50) FROM {t}',
    'SELECT a.id, b.id FROM {t} a JOIN {t} b USING (#) WHERE a.id < 30 AND b.id BETWEEN 100 AND 150',
    'SELECT id FROM {t} a WHERE # IN (SELECT # FROM {t} b WHERE b.id < 4)',
    'SELECT id FROM {t} a WHERE NOT EXISTS (SELECT FROM {t} b WHERE b.id < 40 AND a.# = b.#)',
    'SELECT # FROM {t} WHERE id < 1000 EXCEPT SELECT # FROM {t} WHERE id < 4',
    'SELECT count(*) FROM (SELECT # FROM {t} WHERE id < 1000 INTERSECT ALL SELECT # FROM {t} WHERE id > 500) x',
    'SELECT id, count(*) OVER (PARTITION BY #), min(id) OVER (PARTITION BY #) FROM {t} WHERE id < 2000']) q;
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE NOT same OR plan !~ '^(Colonnade Vectorised|Nested Loop)' ORDER BY number;
RESET enable_sort;
-- orders, with NULLs, limits and more keys
INSERT INTO asked (q) SELECT replace(q, '#', c) FROM unnest(ARRAY['iv', 'ip', 'ci', 'm', 'ia', 'ta', 'j', 'r', 'tz', 'o', 'p', 'ma', 'f', 'c', 'ar',
    'by', 'mr', 'na', 'bt']) c, unnest(ARRAY[
    'SELECT id, # FROM {t} ORDER BY #, id', 'SELECT id FROM {t} WHERE id % 7 > 0 ORDER BY # DESC NULLS LAST, id DESC LIMIT 700',
    'SELECT id FROM {t} ORDER BY id % 2, # NULLS FIRST, id OFFSET 17',
    'SELECT array_agg(DISTINCT #) IS NOT NULL, array_agg(id ORDER BY # DESC, id) FROM {t}',
    'SELECT DISTINCT ON (#) id FROM {t} ORDER BY #, id',
    'SELECT id, rank() OVER (ORDER BY #), sum(id) OVER (ORDER BY # DESC, id ROWS 3 PRECEDING) FROM {t} WHERE id < 3000',
    'SELECT id, dense_rank() OVER (PARTITION BY # ORDER BY id) FROM {t} ORDER BY #, id LIMIT 2000']) q;
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE number > 190 AND (NOT same OR plan !~ '^Colonnade Vectorised') ORDER BY number;
SELECT q, fell_back(q) FROM asked WHERE fell_back(q) IS NOT NULL ORDER BY number;
-- values past the memory are left to the server; little memory; threads
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT q, heap, columns FROM asked, same_answers(q) WHERE number > 190 AND number % 4 = 1 AND NOT same ORDER BY number;
SELECT fell_back('SELECT count(*) FROM (SELECT ARRAY[id, 7] FROM {t} GROUP BY 1) x'),
    fell_back('SELECT count(*) FROM (SELECT iv FROM {t} ORDER BY iv OFFSET 1) x');
SET max_parallel_workers_per_gather = 1;
SELECT q, heap, columns FROM asked, same_answers(q) WHERE number > 190 AND number % 4 = 2 AND NOT same ORDER BY number;
SELECT q, heap, columns FROM (VALUES ('SELECT array_length(count, 1) FROM (SELECT array_agg(id) AS count FROM {t} GROUP BY ARRAY[id, id + 1], ta) x'),
    ('SELECT ARRAY[id, id % 5] FROM {t} ORDER BY ARRAY[id % 5, id]')) x(q), same_answers(q) WHERE NOT same;
RESET work_mem;
RESET hash_mem_multiplier;
SET max_parallel_workers_per_gather = 0;
-- a group shows its own first value, not that of another; the node is started again and again
SELECT x, iv FROM (SELECT CASE WHEN id < 4 THEN 1 ELSE 2 END AS x, iv FROM column_t WHERE id IN (1, 3, 6)) y GROUP BY 1, 2 ORDER BY 1, 2;
SELECT v, (SELECT string_agg(iv || ' ' || n, ', ' ORDER BY iv) FROM (SELECT iv, count(*) AS n FROM column_t WHERE id % 50 = v AND iv < '3 days'
    GROUP BY iv) x) FROM generate_series(1, 3) v;
-- rows without a type are left to the server: whether their columns can be compared is known from them alone
SELECT count(*) FROM (SELECT DISTINCT ROW(id % 3, ia) FROM column_t) x;
-- groups of rows that a window has put in order
SELECT q, heap, columns, plan
    FROM
    (VALUES ('SELECT by, max(n), count(*) FROM (SELECT by, row_number() OVER (PARTITION BY by ORDER BY id) AS n FROM {t}) x GROUP BY by ORDER BY by'),
    ('SELECT DISTINCT o, m, count(*) OVER (PARTITION BY o, m) FROM {t} ORDER BY o, m'),
    ('SELECT o, last, count(*) FROM (SELECT o, last_value(id) OVER (PARTITION BY o ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING '
        'AND UNBOUNDED FOLLOWING) AS last, id FROM {t} OFFSET 0) x WHERE id % 3 > 0 GROUP BY o, last ORDER BY o')) x(q), same_answers(q)
    WHERE NOT same OR plan !~ '^Colonnade Vectorised';
SET enable_hashagg = off;
SELECT q, heap, columns, plan
    FROM
    (VALUES ('SELECT by, max(n), count(*) FROM (SELECT by, row_number() OVER (PARTITION BY by ORDER BY id) AS n FROM {t}) x GROUP BY by ORDER BY by'),
    ('SELECT DISTINCT o, m, count(*) OVER (PARTITION BY o, m) FROM {t} ORDER BY o, m'),
    ('SELECT o, last, count(*) FROM (SELECT o, last_value(id) OVER (PARTITION BY o ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING '
        'AND UNBOUNDED FOLLOWING) AS last, id FROM {t} OFFSET 0) x WHERE id % 3 > 0 GROUP BY o, last ORDER BY o'),
    ('SELECT iv, count(*) FROM {t} GROUP BY iv ORDER BY iv DESC')) x(q), same_answers(q) WHERE NOT same AND q !~ ' iv'
    OR plan !~ '^Colonnade Vectorised';
