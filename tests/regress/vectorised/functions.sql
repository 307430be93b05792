-- Aggregates and expressions that the server's own functions compute inside a vectorised node, and the new
-- ones of query.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
\i include/same_answers.sql
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE TABLE heap_t (id int, a int, b text, n numeric, f float8, g float8, d date, tz timestamptz, ip inet, u uuid, by bytea, iv interval, ia int[],
    ta text[], j jsonb, r int4range, m mood, bt bit(4)) USING heap;
INSERT INTO heap_t SELECT g, CASE WHEN g % 11 = 0 THEN NULL ELSE g % 7 END, CASE WHEN g % 13 = 0 THEN NULL ELSE 'b' || g % 5 END,
    (g % 17) / 4.0, CASE WHEN g % 9 = 0 THEN NULL ELSE g % 23 * 0.5 END, g % 19, date '2024-01-01' + g % 50,
        timestamptz '2024-03-01 12:34:56+00' + g * interval '7 hours',
    ('10.0.' || g % 7 || '.' || g % 200)::inet, md5((g % 50)::text)::uuid, decode(md5((g % 20)::text), 'hex'), g % 100 * interval '1 hour 3 days',
    ARRAY[g % 5, g % 3, NULL], ARRAY['b' || g % 4, 'x'], jsonb_build_object('k', g % 6, 's', jsonb_build_object('deep', 'v' || g % 4)),
        int4range(g % 10, g % 10 + 5),
    CASE WHEN g % 2 = 0 THEN 'low' ELSE 'high' END::mood, (g % 16)::bit(4) FROM generate_series(1, 6000) g;
CREATE TABLE column_t (LIKE heap_t) USING colcompress;
INSERT INTO column_t SELECT * FROM heap_t ORDER BY id;
ANALYZE heap_t, column_t;
CREATE TABLE asked (number serial, q text);
-- an order asked for where only floats depend on it, or only its errors are seen
INSERT INTO asked (q) SELECT 'SELECT a, ' || x || ' FROM {t} GROUP BY a' FROM unnest(ARRAY[
    'sum(f / 3 + id * 1e-9 ORDER BY id DESC), avg((f + id) / 7 ORDER BY id DESC), sum((g / 3)::float4 ORDER BY id DESC)',
    'sum(DISTINCT (f + id) / 3), avg(DISTINCT (id / 7.0::float8) ORDER BY id / 7.0::float8 DESC)',
    'stddev((f + id) / 7 ORDER BY id DESC), var_pop(DISTINCT id / 7.0::float8)', 'corr(f / 3, id / 7.0::float8 ORDER BY id DESC)',
    'sum(a ORDER BY 1 / (id - 77))', 'count(b ORDER BY 1 / (id - 77)), max(id ORDER BY n)',
    'max(CASE WHEN id % 2 = 0 THEN 0 ELSE -0.0::float8 END ORDER BY id DESC), min(CASE WHEN id % 2 = 0 THEN 1.0 ELSE 1.00 END ORDER BY id DESC)',
    'count(*) FILTER (WHERE b = ''none'' AND 1 / (id - id) > 0)',
    'string_agg(b, ''+'' ORDER BY id) FILTER (WHERE NOT (b <> ''none'' OR 1 / (id - id) > 0))',
    'sum(id) FILTER (WHERE id < 0 AND 1 / (id - id) > 0)']) x;
-- aggregates: in order, DISTINCT, filtered, of nothing
INSERT INTO asked (q) SELECT format('SELECT a, %s FROM {t}%s GROUP BY a', x, w) FROM unnest(ARRAY[
    'array_agg(b ORDER BY id)', 'array_agg(DISTINCT b)', 'array_agg(DISTINCT b ORDER BY b DESC NULLS LAST), array_agg(n ORDER BY f DESC, id)',
    'array_agg(ia ORDER BY id)', 'array_agg(iv ORDER BY id), array_agg(m ORDER BY id)',
    'string_agg(DISTINCT b, ''+'' ORDER BY b DESC)', 'string_agg(DISTINCT b, ''-'')', 'string_agg(by, ''\x00''::bytea ORDER BY id)',
    'json_agg(d ORDER BY id), jsonb_agg(ia ORDER BY id)', 'jsonb_object_agg(id, b ORDER BY id)',
    'min(ip), max(ip), min(iv), max(ia), max(m), min(ta)', 'sum(iv), avg(iv)', 'bit_and(id), bit_or(a), bit_xor(id::int8), bit_or(bt)',
    'range_agg(r)', 'min(b COLLATE "en-x-icu"), max(b COLLATE "C")',
    'array_agg(b ORDER BY id) FILTER (WHERE f > 3), sum(iv) FILTER (WHERE d > ''2024-01-10'')', 'sum(DISTINCT n), avg(DISTINCT n)',
    'percentile_disc(ARRAY[0, 0.3, 1]) WITHIN GROUP (ORDER BY n)', 'percentile_cont(ARRAY[0.9, 0.1]) WITHIN GROUP (ORDER BY g)',
    'percentile_disc(0.5) WITHIN GROUP (ORDER BY b), mode() WITHIN GROUP (ORDER BY u)',
    'regr_count(f, g), round(corr(f, g)::numeric, 9), round(covar_pop(f, g)::numeric, 9), round(covar_samp(f, g)::numeric, 9)',
    'round(regr_slope(f, g)::numeric, 9), round(regr_intercept(f, g)::numeric, 9), round(regr_r2(f, g)::numeric, 9), regr_avgx(f, g), regr_avgy(f, '
        'g), round(regr_sxx(f, g)::numeric, 6), round(regr_syy(f, g)::numeric, 6), round(regr_sxy(f, g)::numeric, 6)']) x,
    unnest(ARRAY['', ' WHERE id < 0', ' WHERE id % 11 = 0 OR id = 5']) w;
INSERT INTO asked (q) SELECT regexp_replace(q, 'SELECT a, (.*) GROUP BY a', 'SELECT \1') FROM asked;
-- expressions, as columns and as conditions
INSERT INTO asked (q) SELECT format('SELECT max(id), (%s)::text AS x FROM {t} GROUP BY 2', x) FROM unnest(ARRAY[
    'b LIKE left(b, 1) || ''%''', 'b ILIKE upper(left(b, 2))', 'to_char(d, ''Day DDth Mon'')', 'to_char(n, ''FM990.00'')',
    'to_char(tz, ''YYYY-MM-DD HH24 TZ'')', 'j #> ''{s,deep}''', 'j #>> ''{s,deep}''', 'j #> ''{s}'' ->> ''deep''', 'j #>> ''{s,1}''',
    'j #> ''{ -1,x}''', 'j #> ''{}''', 'j #>> ARRAY[''s'', NULL]', 'jsonb_build_array(j, a) #>> ''{0,k}''', 'jsonb_build_array(j) #>> ''{k}''',
    'j -> ''s'' ->> ''deep''', 'j ?| ''{k,z}''', 'j ?& ''{k,s}''',
    'ia @> ARRAY[2]', 'ia <@ ARRAY[0,1,2,3,4]', 'ia && ARRAY[4]', 'a = ANY (ia)', 'a <> ALL (ia)', 'ia[1]', 'ta[2:3]', 'array_length(ia, 1)',
    'cardinality(ta)', 'tz AT TIME ZONE ''America/New_York''', 'date_trunc(''month'', tz)', 'extract(hour FROM tz)',
    'regexp_replace(b, ''[0-9]'', ''#'')', 'regexp_match(b, ''b([0-9])'')', 'iv * 2 + interval ''1 day''', 'width_bucket(f, 0, 12, 4)', 'round(n, 1)',
    'trunc(n)', 'ceil(n)', 'floor(n)', 'sign(n)', 'abs(n)',
    'power(f, 2)', 'sqrt(f)', 'ln(f + 1)', 'exp(f / 100)', 'GREATEST(a, 1, 2, 3, 4, 5)', 'LEAST(b, ''b3'')', 'mod(id, 5)', 'ARRAY[a, id % 2]',
    'concat(a, b)', 'concat_ws(''-'', a, NULL, b)', 'format(''%s'', a)',
    'CASE b WHEN ''b1'' THEN initcap(b) ELSE md5(b) END', 'concat(CASE a WHEN 4 THEN a WHEN 3 THEN id % 2 END, b)',
    'CASE concat(a, b) WHEN ''3b1'' THEN format(''%s'', a) WHEN b THEN b END', 'ROW(a, id % 3)',
    'num_nulls(a, b)', 'b || a', 'a::text::int + 1', 'm::text', 'coalesce(initcap(b), ''none'')', 'd + (a || '' days'')::interval']) x;
INSERT INTO asked (q) SELECT format('SELECT count(*), sum(n) FROM {t} WHERE %s', x) FROM unnest(ARRAY[
    'b LIKE left(b, 1) || ''%'' AND a > 2', 'a = ANY (ia) OR ia[2] = 1', 'a = 3 AND NOT (j ?| ''{z}'')', 'id = ANY (ARRAY[a, a + 1, 77])',
    '(a, b) > (3, ''b2'')', 'num_nulls(a, b) = 1', 'CASE WHEN a = 0 THEN false ELSE 10 / a > 2 END']) x;
-- orders of ICU
INSERT INTO asked (q)
    VALUES ('SELECT b COLLATE "de-x-icu", id FROM {t} ORDER BY upper(b) COLLATE "de-x-icu" DESC NULLS LAST, n::text || b COLLATE "en-x-icu", id'),
    ('SELECT max(concat(b, chr(196), n) COLLATE "de-x-icu") FROM {t} WHERE b COLLATE "en-x-icu" > ''B2''');
-- errors are those of the rows that the server asks for
INSERT INTO asked (q) VALUES ('SELECT sum(10 / a) FROM {t} WHERE a <> 0 AND length(format(''%s'', 7 / a)) = 1'),
    ('SELECT count(*) FROM {t} WHERE format(''%s'', 7 / a) = ''x'''), ('SELECT percentile_cont(NULL::float8) WITHIN GROUP (ORDER BY f) FROM {t}'),
    ('SELECT max(jsonb_build_object(b, 1)::text) FROM {t} WHERE b IS NOT NULL'),
        ('SELECT a, max(jsonb_build_object(b, a)::text) FROM {t} WHERE b > ''b1'' GROUP BY a'),
    ('SELECT array_agg(b ORDER BY id), grouping(a) FROM {t} WHERE id < 50 GROUP BY ROLLUP (a)'),
        ('SELECT max(initcap(b)), format(''%s'', count(*)) FROM {t} GROUP BY a HAVING format(''%s'', min(id)) > ''2''');
-- where several rows have errors it is the one that the server meets first, from functions of its own, too
SELECT sum(1 / (id - 4000)) FROM column_t WHERE (CASE WHEN id = 4050 THEN 'bad' ELSE '1' END)::int = 1;
SELECT jsonb_object_agg(CASE WHEN id <> 4050 THEN 'k' END, 1), sum(1 / (id - 4000)) FROM column_t;
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE NOT same OR (plan !~ '^Colonnade Vectorised' AND q !~ 'NULL::float8') ORDER BY number;
-- once more in little memory and with threads
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 1;
SELECT q, heap, columns, plan FROM asked, same_answers(q) WHERE NOT same ORDER BY number;
RESET work_mem;
SET max_parallel_workers_per_gather = 0;
-- parameters, also where the node is started again and again
PREPARE with_parameters (text, int[], float8[]) AS SELECT a, format($1, count(*)), count(*) FILTER (WHERE a = ANY ($2)), percentile_disc($3) WITHIN
    GROUP (ORDER BY n) FROM column_t WHERE ia[1] < $2[1] GROUP BY a ORDER BY a;
EXECUTE with_parameters ('%s rows', '{3,1}', '{0.5,1}');
EXECUTE with_parameters ('%s rows', '{3,1}', NULL);
SET plan_cache_mode = force_generic_plan;
EXECUTE with_parameters ('%s of them', '{2,0}', '{0.25}');
EXECUTE with_parameters (NULL, NULL, '{0.25}');
RESET plan_cache_mode;
SELECT v, (SELECT array_agg(id ORDER BY id) FILTER (WHERE concat(a, '') = concat(v, '')) FROM column_t WHERE id < 20 + v) FROM generate_series(0, 2) v;
-- a reader that stops early meets no error of later rows
EXPLAIN (COSTS OFF) SELECT (CASE WHEN x.id = 500 THEN 'bad' ELSE '1' END)::int AS value FROM column_t x JOIN column_t y USING (id);
BEGIN;
DECLARE stops CURSOR FOR SELECT (CASE WHEN x.id = 500 THEN 'bad' ELSE '1' END)::int AS value FROM column_t x JOIN column_t y USING (id);
FETCH 2 FROM stops;
FETCH ALL FROM stops;
ROLLBACK;
-- questions about documents of a heap table
EXPLAIN (COSTS OFF) SELECT bool_and(j ? 'k') FROM heap_t;
SELECT bool_and(j ? 'k'), max(j ->> 'k') FROM heap_t;
-- values whose making may call functions of the user's are made by the server
CREATE FUNCTION checked(x int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN x < 100; END $$;
CREATE DOMAIN small AS int CHECK (checked(VALUE));
EXPLAIN (COSTS OFF) SELECT max((('{' || a || '}')::small[])[1]) FROM column_t;
SELECT max((('{' || a || '}')::small[])[1]) FROM column_t;
-- functions of the user's stay outside: called for the rows that conditions let through, and only by who may
CREATE FUNCTION told(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN IF x = 3 THEN RAISE EXCEPTION 'asked for %', x; END IF; RETURN x + 1; END $$;
SELECT count(*), max(told(a)) FROM column_t WHERE a <> 3;
SELECT max(told(a)) FROM column_t;
EXPLAIN (COSTS OFF) SELECT b COLLATE "de-x-icu", array_agg(ia[1] ORDER BY id) FROM column_t GROUP BY 1 ORDER BY 1;
REVOKE EXECUTE ON FUNCTION told(int) FROM PUBLIC;
CREATE ROLE sqlrest_reader;
GRANT SELECT ON column_t TO sqlrest_reader;
SET ROLE sqlrest_reader;
SELECT max(told(a)) FROM column_t WHERE id < 0;
-- nor the server's own, an aggregate, a window function, a function or an operator, once that is forbidden:
-- by a plan that was made before, too
PREPARE allowed AS SELECT sum(id) FROM column_t;
EXECUTE allowed;
-- and what tells groups apart
PREPARE grouped AS SELECT count(*) FROM (SELECT a FROM column_t GROUP BY a) x;
PREPARE ranked AS SELECT max(n) FROM (SELECT rank() OVER (PARTITION BY a) AS n FROM column_t) x;
PREPARE united AS SELECT count(*) FROM (SELECT a FROM column_t EXCEPT SELECT a FROM column_t WHERE id < 3) x;
PREPARE pairs AS SELECT length(string_agg(DISTINCT b, b)) FROM column_t;
EXPLAIN (COSTS OFF) EXECUTE grouped;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION int4eq(int, int), texteq(text, text) FROM PUBLIC;
SET ROLE sqlrest_reader;
EXECUTE grouped;
EXECUTE ranked;
EXECUTE united;
EXECUTE pairs;
RESET ROLE;
GRANT EXECUTE ON FUNCTION int4eq(int, int), texteq(text, text) TO PUBLIC;
REVOKE EXECUTE ON FUNCTION sum(int), upper(text), row_number(), int4pl(int, int) FROM PUBLIC;
SET ROLE sqlrest_reader;
SELECT max(id), min(length(b)) FROM column_t;
EXECUTE allowed;
EXPLAIN EXECUTE allowed;
SELECT sum(id) FROM column_t;
SELECT max(upper(b)) FROM column_t;
SELECT max(id + 1) FROM column_t;
SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY a ORDER BY id) AS n FROM column_t) x;
RESET ROLE;
REVOKE ALL ON column_t FROM sqlrest_reader;
DROP ROLE sqlrest_reader;
EXPLAIN (COSTS OFF) EXECUTE allowed;
