-- Plans that are made simpler, patterns that are matched without the server's function, and pairs of integers
-- as keys: heap's answers.
CREATE TABLE plain (small int2, i int, big int8, t text) USING heap;
INSERT INTO plain SELECT (n % 700 - 350)::int2, n * 7 % 1000, n * 123456789012 % 5003,
    (ARRAY['http://a' || n % 50 || '.com/x/' || n, 'https://www.b' || n % 20 || '.org/', 'http://www.c', 'münchen.de/é' || n, '',
    'key=' || n % 9 || ';value=' || n,
    'a-b-' || n, 'http://www./', E'line\nbreak ' || n % 7, NULL])[n % 10 + 1] FROM generate_series(1, 20000) n;
INSERT INTO plain VALUES (NULL, NULL, NULL, NULL), (NULL, 5, NULL, 'x'), (32767, 2147483647, 9223372036854775807, '-'),
    (-32768, -2147483647, -9223372036854775808, '=');
CREATE TABLE stored (LIKE plain) USING colcompress;
INSERT INTO stored SELECT * FROM plain;
\set heap plain
\set columns stored
\i include/answers.sql
CREATE FUNCTION operators(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Aggregate|Project' THEN RETURN NEXT trim(regexp_replace(line, 'Operators:|->', '', 'g')); END IF;
    END LOOP;
END $$;
-- Sums of one column plus constants are one sum: the projection above the aggregate says so.
SELECT operators('SELECT sum(small), sum(small + 1), sum(2 + small), sum(small - 3) FROM stored');
SELECT operators('SELECT sum(i), sum(i + 1), sum(2 + i), sum(i - 3) FROM stored');
SELECT same(query) FROM unnest(ARRAY['SELECT sum(small), sum(small + 1), sum(2 + small), sum(small - 3) FROM {t}',
    'SELECT sum(small), sum(small + 1), sum(2 + small), sum(small - 3) FROM {t} WHERE i < 0',
    'SELECT i % 7, sum(small), sum(small + 1), count(*), sum(2 + small), sum(small - 3) FILTER (WHERE i > 5), sum(DISTINCT small + 1), '
        'sum(small - 1000000) FROM {t} GROUP BY 1',
    'SELECT sum(i), sum(i + 1), sum(i + 2), sum(i + 3) FROM {t}',
    'SELECT sum(small + 2147483647), sum(small + 2147483646), sum(small + 2147483645) FROM {t}']) query;
-- Keys that follow from others.
SELECT operators('SELECT i, i - 1, i - 2, count(*) FROM stored GROUP BY 1, 2, 3');
SELECT same(query) FROM unnest(ARRAY['SELECT i, i - 1, i - 2, count(*), sum(small) FROM {t} WHERE i > -5 GROUP BY 1, 2, 3',
    'SELECT i, i - 1, i - 2, count(*) FROM {t} GROUP BY 1, 2, 3',
    'SELECT i % 3, small, small * 2, i, small + i, max(t) FROM {t} WHERE i BETWEEN -5 AND 100 GROUP BY 1, 2, 3, 4, 5',
    'SELECT i, i + 1, count(*) FROM {t} GROUP BY 1, 2 LIMIT 1',
    'SELECT i + 1, i, count(*) FROM {t} WHERE i < 900 OR i IS NULL GROUP BY 1, 2 HAVING i + 1 > 500 ORDER BY 3 DESC, 1 LIMIT 5']) query;
-- Pairs of integers, with NULLs and without.
SELECT same(query) FROM unnest(ARRAY['SELECT big, i, count(*), sum(small) FROM {t} GROUP BY 1, 2',
    'SELECT big, i, count(*) FROM {t} WHERE big IS NOT NULL AND i IS NOT NULL GROUP BY 1, 2',
    'SELECT i, count(DISTINCT big) FROM {t} GROUP BY 1', 'SELECT small, count(DISTINCT big), avg(small), avg(i), avg(big) FROM {t} GROUP BY 1',
    'SELECT DISTINCT big, small FROM {t}']) query;
-- Patterns: those that are understood here, and those that are left to the server's function.
SELECT pattern, with_text, same(format('SELECT t, regexp_replace(t, %L, %L) AS r, length(t) FROM {t}', pattern, with_text)) FROM
    unnest(ARRAY['^https?://(?:www\.)?([^/]+)/.*$', '^http://([^/]*)(/.*)$', '^(.*)-([0-9]+)$', '^key=([0-9]);value=(.*)$', '^(.)(.*)$',
        '^(m.n?)(.*)$', '^([a-z]*)(.?)(.*)$', '^(a?)(.*)$', '^(?:http)?(.*)$', '^(.+)(.+)$', '^[^a-m](.*)$', '^$',
        '^(.*)$', '^(?:a)?(?:ab)?(b?).*$', '^(a|h)(.*)$', '^(h(t+))(.*)$', '(t+)', '^(\w+)(.*)$', '^(.*?)(.*)$', '^((?:ab)*)(.*)$']) pattern,
    unnest(ARRAY['\1', '<\2|\1>', '\\\&', '', '\x', '\3']) with_text
        WHERE CASE WHEN same(format('SELECT t, regexp_replace(t, %L, %L) AS r, length(t) FROM {t}', pattern, with_text)) LIKE 'same%' THEN false
        ELSE true END;
SELECT same(format('SELECT regexp_replace(t, %L, %L) AS r, count(*), min(t) FROM {t} WHERE t <> %L GROUP BY 1 HAVING count(*) > 10',
    '^https?://(?:www\.)?([^/]+)/.*$', '\1', ''));
-- One that goes back too often in one text only.
INSERT INTO plain VALUES (1, 1, 1, repeat('a', 300)); INSERT INTO stored VALUES (1, 1, 1, repeat('a', 300));
SELECT same(format('SELECT regexp_replace(t, %L, %L) FROM {t} WHERE i < 10', '^(.*)(.*)(.*)(.*)(.*)x$', '\1'));
