-- Whole queries on vectors: the same answers as on heap, and which parts of a plan are taken.
\i include/scan_twins.sql
\set ECHO none
CREATE TABLE heap_keys (k int, name text, ch char(6), n numeric) USING heap;
INSERT INTO heap_keys SELECT g, 'name ' || g % 17, left('äbcdef' || g % 90, g % 7), g / 4.0 FROM generate_series(1, 500) g;
INSERT INTO heap_keys VALUES (NULL, NULL, NULL, NULL), (7, 'again', 'x', 1), (NULL, 'null', 'ä', 2);
CREATE TABLE column_keys (LIKE heap_keys) USING colcompress;
INSERT INTO column_keys SELECT * FROM heap_keys;
ANALYZE heap_keys, column_keys;
-- {t} and {keys} for both twins
CREATE FUNCTION both_differ(queries text[]) RETURNS TABLE (query text, heap text, columns text) LANGUAGE sql AS $$
    SELECT * FROM (SELECT q, outcome(replace(q, '{keys}', 'heap_keys'), 'heap_rows') AS heap,
                          outcome(replace(q, '{keys}', 'column_keys'), 'column_rows') AS columns
                   FROM unnest(queries) q OFFSET 0) a
    WHERE heap IS DISTINCT FROM columns $$;
-- The nodes of a plan, indented, without their details.
CREATE FUNCTION shape(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ '^ *(->)? *[A-Z][A-Za-z ]+(\(| on |$)' THEN RETURN NEXT line; END IF;
    END LOOP;
END $$;
\set ECHO all
-- premise: large enough to be taken
SELECT count(*) FROM shape('SELECT few, count(*) FROM column_rows GROUP BY few') s WHERE s ILIKE '%vectorised%';
-- aggregates over every type
SELECT * FROM both_differ(ARRAY[
    'SELECT count(*), count(i2), sum(i2), sum(i4), sum(num2), avg(i2), avg(i4), avg(num2) FROM {t}',
    'SELECT min(i2), max(i2), min(i4), max(i4), min(i8), max(i8), min(d), max(d), min(ts), max(ts), min(tstz), max(tstz) FROM {t}',
    'SELECT min(t), max(t), min(tc), max(tc), min(vc), max(vc), min(ch), max(ch) FROM {t}',
    'SELECT min(f4), max(f4), min(f8), max(f8), sum(num), avg(num), min(num2), max(num2) FROM {t}',
    'SELECT sum(i8) FROM {t}', 'SELECT avg(i8) FROM {t}',
    'SELECT bool_and(b), bool_or(b), every(b) FROM {t}',
    'SELECT count(DISTINCT t), count(DISTINCT i2), count(DISTINCT ch), count(DISTINCT num2), count(DISTINCT u) FROM {t}',
    'SELECT count(*) FILTER (WHERE b), sum(i4) FILTER (WHERE i4 > 0 AND b IS NOT NULL) FROM {t}',
    'SELECT var_samp(i2), var_pop(i4), stddev(num2), variance(num2) FROM {t}',
    'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY i4), percentile_cont(0.25) WITHIN GROUP (ORDER BY f8) FROM {t} WHERE f8 < 1000',
    'SELECT percentile_disc(NULL) WITHIN GROUP (ORDER BY i4), percentile_cont(NULL) WITHIN GROUP (ORDER BY f8) FROM {t}',
    'SELECT percentile_cont((SELECT NULL::float8)) WITHIN GROUP (ORDER BY f8) FROM {t}',
    'SELECT sum(x), avg(x) FROM (SELECT CASE WHEN id <= 2 THEN 1e308 WHEN id = 3 THEN float8 ''NaN'' END x FROM {t} WHERE i4 = i4) s',
    'SELECT mode() WITHIN GROUP (ORDER BY num2) FROM {t}',
    'SELECT string_agg(few, '','' ORDER BY id, t) FROM {t}',
    'SELECT count(*) FROM {t} WHERE false', 'SELECT sum(i4), min(t) FROM {t} WHERE id < 0']);
-- groups of every type that has an equality
SELECT * FROM both_differ(ARRAY(SELECT 'SELECT ' || c || ', count(*), sum(i4) FROM {t} GROUP BY ' || c
    FROM unnest(ARRAY['i2', 'i4', 'i8', 'f4', 'f8', 'num2', 'd', 'ts', 'tstz', 'b', 'u', 't', 'tc', 'vc', 'ch', 'by', 'm', 'dom', 'lab',
                      'allnull', 'const', 'few', 'few, b', 'ch, m, d', 'arr', 'j', 'num', 'i4 % 7', 'few || t', 'id / 100']) c));
SELECT * FROM both_differ(ARRAY[
    'SELECT few, count(*) FROM {t} GROUP BY few HAVING count(*) > 1400 OR few IS NULL',
    'SELECT DISTINCT few, b, m FROM {t}', 'SELECT DISTINCT ON (few) few, id FROM {t} ORDER BY few, id, t',
    'SELECT few, b, count(*) FROM {t} GROUP BY GROUPING SETS ((few), (b), ())',
    'SELECT few, b, count(*) FROM {t} GROUP BY ROLLUP (few, b)',
    'SELECT few FROM {t} GROUP BY few ORDER BY few DESC NULLS LAST LIMIT 2',
    'SELECT count(*) FROM (SELECT few, max(id) m FROM {t} GROUP BY few) x WHERE m > 5990']);
-- order, also by collations, and its limits; the row numbers make the order part of the answer
SELECT * FROM both_differ(ARRAY(SELECT 'SELECT array_agg(ROW(v, id)::text) FROM (SELECT ' || c || ' AS v, id FROM {t} ORDER BY ' || c || ', id, i4'
    || l || ') x'
    FROM unnest(ARRAY['i2', 'i4 DESC', 'f8', 'f4 DESC NULLS LAST', 'num2', 'd', 'ts DESC', 'b', 'u', 't', 't DESC', 'tc', 'vc', 'ch', 'm',
    't COLLATE "C"']) o(c0),
         LATERAL (SELECT split_part(c0, ' ', 1) AS c, substr(c0, length(split_part(c0, ' ', 1)) + 1) AS how) s,
         unnest(ARRAY['', ' LIMIT 10', ' LIMIT 7 OFFSET 100', ' OFFSET 5990']) l
    WHERE how = ''));
SELECT * FROM both_differ(ARRAY(SELECT 'SELECT array_agg(id) FROM (SELECT id FROM {t} ORDER BY ' || c || ', id, i4 LIMIT 50) x'
    FROM unnest(ARRAY['i4 DESC', 'f4 DESC NULLS LAST', 'ts DESC', 't DESC NULLS FIRST', 't COLLATE "C" DESC', 'd NULLS FIRST', 'upper(t)', 'i4 % 10, tc']) c));
-- joins of every kind
SELECT * FROM both_differ(ARRAY(SELECT format('SELECT %s FROM {t} r %s JOIN {keys} s ON %s',
                                              CASE WHEN cond LIKE '%ch%' THEN 'r.id, r.ch, s.ch, s.k' ELSE 'r.id, s.k, s.name' END, kind, cond)
    FROM unnest(ARRAY['INNER', 'LEFT', 'RIGHT', 'FULL']) kind,
         unnest(ARRAY['r.i2 = s.k', 'r.i4 = s.k', 'r.i8 = s.k', 'r.id = s.k AND r.i4 + s.k <> 3', 'r.ch = s.ch', 'r.num2 = s.n', 'r.few = s.name',
                      'r.d - date ''2020-01-01'' = s.k', 'r.i2 = s.k AND r.few = s.name']) cond));
SELECT * FROM both_differ(ARRAY[
    'SELECT id FROM {t} WHERE EXISTS (SELECT 1 FROM {keys} WHERE k = i2)',
    'SELECT id FROM {t} WHERE NOT EXISTS (SELECT 1 FROM {keys} WHERE k = i2)',
    'SELECT id FROM {t} WHERE i2 IN (SELECT k FROM {keys})', 'SELECT id FROM {t} WHERE i2 NOT IN (SELECT k FROM {keys})',
    'SELECT id FROM {t} WHERE i2 NOT IN (SELECT k FROM {keys} WHERE k IS NOT NULL)',
    'SELECT id FROM {t} r WHERE EXISTS (SELECT 1 FROM {keys} s WHERE s.k = r.i2 AND s.name <> coalesce(r.t, ''''))',
    'SELECT s.name, count(*), sum(r.num2) FROM {t} r JOIN {keys} s ON r.i2 = s.k GROUP BY s.name ORDER BY 3 DESC LIMIT 5',
    'SELECT a.few, count(*) FROM {t} a JOIN {t} b ON a.id = b.id + 1 JOIN {keys} k ON k.k = b.dom GROUP BY a.few',
    'SELECT count(*) FROM {t} a, {keys} b WHERE a.i2 < b.k AND a.id < 100',
    'SELECT id, (SELECT max(name) FROM {keys} WHERE k = i2) FROM {t} WHERE id < 50',
    'SELECT a.id FROM {t} a LEFT JOIN {keys} s ON s.k = a.i2 AND a.b WHERE s.name IS NULL',
    'SELECT few, id FROM {t} UNION SELECT name, k FROM {keys}', 'SELECT few, i4 FROM {t} UNION ALL SELECT name, k FROM {keys}',
    'SELECT few, id FROM {t} INTERSECT SELECT name, k FROM {keys}', 'SELECT i4 FROM {t} EXCEPT SELECT k FROM {keys}',
    'WITH x AS MATERIALIZED (SELECT few, count(*) n FROM {t} GROUP BY few) SELECT * FROM x a JOIN x b ON a.n = b.n',
    'SELECT id, row_number() OVER (PARTITION BY few ORDER BY id, i4, t) FROM {t}',
    'SELECT id, sum(i4) OVER (PARTITION BY few ORDER BY id, i4, t) FROM {t}']);
-- aggregates that outer rows ask for, also where no row answers and where that is not NULL
SELECT * FROM both_differ(ARRAY[
    'SELECT id FROM {t} r WHERE num2 > (SELECT avg(n) FROM {keys} s WHERE s.k = r.i2)',
    'SELECT id FROM {t} r WHERE (SELECT 0.5 * sum(n) FROM {keys} s WHERE r.i2 = s.k AND s.name > ''n'') <= r.num2',
    'SELECT id FROM {t} r WHERE 0 = (SELECT count(*) FROM {keys} s WHERE s.k = r.i2)',
    'SELECT id FROM {t} r WHERE num2 = (SELECT max(b.num2) FROM {t} b WHERE b.few = r.few AND b.b = r.b)',
    'SELECT id FROM {t} r WHERE coalesce((SELECT max(n) FROM {keys} s WHERE s.k = r.i2), 0) < 1',
    'SELECT id FROM {t} r WHERE num2 IS DISTINCT FROM (SELECT max(n) FROM {keys} s WHERE s.k = r.i2)',
    'SELECT id FROM {t} r WHERE ch = (SELECT max(ch) FROM {keys} s WHERE s.ch = r.ch)']);
-- conditions
SELECT * FROM both_differ(ARRAY(SELECT 'SELECT count(*), sum(id) FROM {t} WHERE ' || c FROM unnest(ARRAY[
    'i2 + i4 > 5', 'i2 * 2 < i4', 'i4 IS DISTINCT FROM i2', 'b IS NOT TRUE', 'b IS UNKNOWN', 'NOT b', 'b OR i4 > 0', 'coalesce(i2, i4, 0) = 0',
    'nullif(i2, 3) IS NULL', 'greatest(i2, i4) = i2', 'least(d, date ''2021-01-01'') = d', 'CASE WHEN b THEN i2 ELSE i4 END > 10',
    'CASE few WHEN ''red'' THEN 1 WHEN ''blue'' THEN 2 END = 2', 'ch = ''äb''', 'ch = ''äb   ''', 'ch IN (''ä'', ''äb'', NULL)', 'ch <> ''ä''', 'ch < ''äc''',
    'i2 = ANY (ARRAY[1, 2, NULL])', 'i2 <> ALL (ARRAY[1, 2, 3])', 'i2 <> ALL (ARRAY[1, NULL])', 'i2 = ANY (ARRAY[]::int[])', 't > ''/page/2''',
    'tc < ''B''', 'd + 30 > ''2021-01-01''', 'd - date ''2021-01-01'' > 5', 'ts > d', 'tstz > ts', 'num2 * 2 - 1 > num2 / 3', 'i4 / 0 = 1', 'i2 % 7 = 3',
    'abs(i2) = 5', '-i4 > 5', 'f8 * 2 > 10', 'f4 + f8 > 3', 'num % 3 = 1', 'id = (SELECT max(id) FROM {t})', 'i2 + 32000::int2 > 0',
    'lower(t) = ''/page/7''', 't LIKE ''%7''', 't ~ ''[13]$''', 'j @> ''{"k": 3}''', 'arr @> ARRAY[3]', 'm > ''sad''', 'random() < 2']) c));
