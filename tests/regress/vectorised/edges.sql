-- What lies at the edges of the vectorised executor: expressions and documents of many levels, inputs whose
-- order somebody relies on, errors of what no row asks for.
SET colonnade.vectorised_min_rows = 0;
SET colonnade.stripe_threshold_rows = 0;
\i include/same_answers.sql
CREATE TABLE heap_t (a int, b int, t text, doc jsonb) USING heap;
INSERT INTO heap_t SELECT 1, g, 'word ' || g % 7, CASE g WHEN 45000 THEN jsonb_build_object('a', (repeat('[', 6000) || repeat(']', 6000))::jsonb)
    ELSE '{"a": 1}' END FROM generate_series(1, 60000) g;
CREATE TABLE column_t (LIKE heap_t) USING colcompress;
INSERT INTO column_t SELECT * FROM heap_t;
ANALYZE heap_t, column_t;
SET max_parallel_workers_per_gather = 1;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
-- Expressions of more levels than the stack of a thread has room for.
CREATE TABLE deep (number serial, q text);
INSERT INTO deep (q) SELECT format('SELECT sum(%s) FROM {t}', string_agg('a', ' + ')) FROM generate_series(1, 800);
INSERT INTO deep (q) SELECT format('SELECT count(*) FROM {t} WHERE %s > 5', string_agg('a', ' + ')) FROM generate_series(1, 900);
INSERT INTO deep (q) SELECT format('SELECT max(%s 0 %s) FROM {t}', string_agg('CASE WHEN b = ' || g || ' THEN a ELSE', ' '), string_agg('END', ' '))
    FROM generate_series(1, 900) g;
INSERT INTO deep (q) SELECT format('SELECT count(DISTINCT %s) FROM {t} WHERE b < 30', string_agg('t', ' || ')) FROM generate_series(1, 700);
-- Those that are written several times, in one another.
INSERT INTO deep (q) SELECT format('SELECT sum(%s b %s) FROM {t}', repeat('NULLIF(', 60), string_agg(', ' || g || ')', '')) FROM generate_series(1, 60) g;
INSERT INTO deep (q) SELECT format('SELECT sum(%s b%s) FROM {t}', string_agg('GREATEST(' || g || ',', ' '), repeat(')', 40)) FROM generate_series(1, 40) g;
INSERT INTO deep (q) SELECT format('SELECT count(*) FROM {t} WHERE %s b > 3%s', repeat('(', 40), repeat(') IS DISTINCT FROM (a = 2)', 40));
INSERT INTO deep (q) SELECT format('SELECT sum(%s b %s) FROM {t}', repeat('CASE ', 40), repeat(' WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 5 END', 40));
-- Not `same_answers`: EXPLAIN prints no expressions of so many levels.
CREATE FUNCTION value_of(query text) RETURNS text LANGUAGE plpgsql AS $$DECLARE found text; BEGIN EXECUTE query INTO found; RETURN found;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END$$;
SELECT number, left(q, 40) AS q, value_of(replace(q, '{t}', 'heap_t')) AS heap, value_of(replace(q, '{t}', 'column_t')) AS columns FROM deep ORDER BY number;
-- A document of as many levels.
SELECT q, same, heap, columns, plan FROM unnest(ARRAY['SELECT count(DISTINCT doc ->> ''a'') FROM {t}', 'SELECT max(length(doc ->> ''a'')) FROM {t}',
    'SELECT count(*) FROM {t} WHERE doc #>> ''{a}'' = ''1''']) q, same_answers(q);
SELECT same, heap, columns FROM same_answers(format('SELECT count(*) FROM {t} WHERE doc @> %L', '{"a": ' || repeat('[', 5900) || repeat(']', 5900) || '}'));
SELECT same, columns FROM same_answers(format('SELECT count(doc #> %L) FROM {t}', '{a' || repeat(',b', 3000) || '}'));
RESET parallel_setup_cost; RESET parallel_tuple_cost;
SET max_parallel_workers_per_gather = 0;

-- Partitions that are sorted below an Append: it has no order of its own to go by.
CREATE TABLE heap_p (id int8, v int) USING heap;
INSERT INTO heap_p SELECT (g * 7919::int8) % 50000, g FROM generate_series(0, 49999) g;
INSERT INTO heap_p SELECT g, g FROM generate_series(50000, 55000) g;
CREATE TABLE p (id int8, v int) PARTITION BY RANGE (id);
CREATE TABLE p_cold PARTITION OF p FOR VALUES FROM (0) TO (50000) USING colcompress;
CREATE TABLE p_hot PARTITION OF p FOR VALUES FROM (50000) TO (100000) USING heap;
CREATE INDEX ON p_hot (id);
INSERT INTO p SELECT * FROM heap_p;
ANALYZE p;
EXPLAIN (COSTS OFF) SELECT id, v - lag(v) OVER (ORDER BY id) FROM p;
SELECT q, md5(h::text) = md5(c::text) AS same
    FROM unnest(ARRAY['SELECT sum(id * (v - l)) FROM (SELECT id, v, lag(v) OVER (ORDER BY id) AS l FROM %s) s',
    'SELECT md5(array_agg(id)::text) FROM (SELECT id FROM %s ORDER BY id) s',
    'SELECT sum(id * n) FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM %s) s']) q,
    query_to_xml(format(q, 'heap_p'), true, false, '') h, query_to_xml(format(q, 'p'), true, false, '') c;

-- Rows that a window's condition leaves out, or OFFSET, and what is computed for them all the same.
-- (Of the first, versions of the server have different answers.)
SELECT same FROM same_answers('SELECT count(*) FROM (SELECT count(*) OVER (ROWS UNBOUNDED PRECEDING) c FROM {t}) s WHERE c = 5');
SELECT q, same, columns FROM unnest(ARRAY[
    'SELECT count(*) FROM (SELECT count(*) OVER (ORDER BY b % 10 RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP) c '
        'FROM {t} WHERE b <= 500) s WHERE c <= 440',
    'SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY b) c FROM {t}) s WHERE c <= 7',
    'SELECT b, y FROM (SELECT b, row_number() OVER (ORDER BY b) rn, 1 / (b - 9) y FROM {t}) s WHERE rn <= 3',
    'SELECT b % 10, 1 / (sum(a) - 6000 + b % 10) FROM {t} GROUP BY b % 10 ORDER BY b % 10 OFFSET 1']) q, same_answers(q);

-- Errors of what no row asks for.
CREATE TABLE heap_rates (name text, rate int) USING heap;
INSERT INTO heap_rates VALUES ('XXX', 2), ('XXX', 3);
SELECT q, same, columns FROM unnest(ARRAY[
    'SELECT sum(CASE WHEN t = ''none'' THEN b * (SELECT rate FROM heap_rates WHERE name = ''XXX'') ELSE a END) FROM {t}',
    'SELECT coalesce(max(b), (SELECT 1 / (count(*) - 2) FROM heap_rates)::int) FROM {t}',
    'SELECT sum(length(CASE WHEN t = ''none'' THEN overlay(t placing ''x'' from (SELECT rate FROM heap_rates)) ELSE t END)) FROM {t}',
    'SELECT sum(CASE WHEN b > (SELECT max(rate) FROM heap_rates) THEN a ELSE 0 END) FROM {t}',
    'SELECT sum(CASE WHEN t = ''word 1'' THEN (SELECT rate FROM heap_rates) ELSE a END) FROM {t}',
    'SELECT b % 10, sum(b * (SELECT 1 / (rate - 2) FROM heap_rates WHERE rate = 2)) FILTER (WHERE b < 0) FROM {t} GROUP BY 1 ORDER BY 1',
    'SELECT string_agg(t, '','' ORDER BY b + (SELECT rate FROM heap_rates)) FILTER (WHERE b < 0) FROM {t}',
    'SELECT count(s) FROM (SELECT sum(b * (SELECT rate FROM heap_rates)) FILTER (WHERE b < 0) OVER () s FROM {t}) x',
    'SELECT count(s) FROM (SELECT sum(b * (SELECT rate FROM heap_rates)) FILTER (WHERE b > 0) OVER () s FROM {t}) x']) q, same_answers(q);
-- Constants that cannot be computed, which no row asks for, and which one does.
SELECT q, same, columns FROM unnest(ARRAY[
    'SELECT b, CASE WHEN b < 0 THEN current_date + 2147483647 END FROM {t} ORDER BY b LIMIT 3',
    'SELECT count(coalesce(b, (now()::date - 2147483647) - current_date)) FROM {t} WHERE b IS NOT NULL',
    'SELECT sum(a) FILTER (WHERE b < 0 AND current_date + b > current_date + 2147483647) FROM {t}',
    'SELECT count(*) FROM {t} WHERE b = CASE WHEN current_date > ''2000-01-01'' THEN 5 ELSE (SELECT 1 / (rate - 2) FROM heap_rates WHERE rate = 2) END',
    'SELECT count(*) FROM {t} WHERE a = ANY (CASE WHEN now() > ''2000-01-01'' THEN ARRAY[1, 2] ELSE (SELECT ARRAY[1 / (rate - 2)] FROM heap_rates '
        'WHERE rate = 2) END)',
    'SELECT count(*) FROM {t} WHERE b = coalesce(extract(day FROM current_date)::int * 0 + 7, (SELECT rate FROM heap_rates))',
    'SELECT count(*) FROM {t} WHERE b < 0 AND a = (SELECT max(b) FROM heap_t)::int2']) q, same_answers(q);
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION asked(statement text, argument text) RETURNS text LANGUAGE plpgsql AS $$DECLARE found text; BEGIN
    EXECUTE format('EXECUTE %s(%L)', statement, argument) INTO found; RETURN found; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END$$;
PREPARE cast_heap(text) AS SELECT count(*) FROM heap_t WHERE b < 0 AND a = $1::int;
PREPARE cast_column(text) AS SELECT count(*) FROM column_t WHERE b < 0 AND a = $1::int;
PREPARE first_heap(text) AS SELECT count(*) FROM heap_t WHERE b > 5 AND a = $1::int;
PREPARE first_column(text) AS SELECT count(*) FROM column_t WHERE b > 5 AND a = $1::int;
PREPARE list_heap(int) AS SELECT count(*) FROM heap_t WHERE CASE WHEN $1 <> 0 THEN a = ANY (ARRAY[1 / $1, 2]) ELSE true END;
PREPARE list_column(int) AS SELECT count(*) FROM column_t WHERE CASE WHEN $1 <> 0 THEN a = ANY (ARRAY[1 / $1, 2]) ELSE true END;
PREPARE between_heap(int) AS SELECT count(*) FROM heap_t WHERE t = 'none' AND a BETWEEN 1 / $1 AND 10;
PREPARE between_column(int) AS SELECT count(*) FROM column_t WHERE t = 'none' AND a BETWEEN 1 / $1 AND 10;
CREATE FUNCTION compared() RETURNS TABLE (statement text, argument text, heap text, same bool) LANGUAGE sql AS $$
SELECT s, a, asked(s || '_heap', a), asked(s || '_heap', a) IS NOT DISTINCT FROM asked(s || '_column', a)
FROM (VALUES ('cast', 'abc'), ('cast', '1'), ('first', 'abc'), ('first', '1'), ('list', '0'), ('list', '1'), ('between', '0'), ('between', '1')) v (s, a)$$;
SELECT * FROM compared();
SET colonnade.enable_vectorised = off;
SELECT * FROM compared();
RESET colonnade.enable_vectorised;
RESET plan_cache_mode;
DROP FUNCTION compared, asked;
-- Built-in functions that run queries, or hold entries of caches while they fail: what is held back leaves
-- nothing behind.
\set VERBOSITY terse
CREATE ROLE edges_plain;
GRANT SELECT ON column_t TO edges_plain;
CREATE FUNCTION edges_fails() RETURNS int STABLE SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / 0; END $$;
CREATE VIEW edges_evil AS SELECT edges_fails();
GRANT SELECT ON edges_evil TO edges_plain;
SET ROLE edges_plain;
SELECT count(*) FROM column_t WHERE b < -1 AND a = length(table_to_xml((SELECT 'edges_evil'::regclass), true, false, '')::text);
SELECT current_user;
SELECT count(*) FROM column_t WHERE b < -1 AND a = to_regtype((SELECT 'text(3)'))::oid::int8;
RESET ROLE;
DROP VIEW edges_evil;
DROP FUNCTION edges_fails;
REVOKE ALL ON column_t FROM edges_plain;
DROP ROLE edges_plain;
SELECT count(*) FROM column_t WHERE a = ((1, (SELECT 1 / (rate - 2) FROM heap_rates WHERE rate = 2)) < (2, 0))::int;
\set VERBOSITY default
-- Errors of rows that OFFSET leaves out, whoever computes them.
SELECT q, same, columns FROM unnest(ARRAY[
    'SELECT b, s::jsonb, row_number() OVER (ORDER BY b) FROM (SELECT b, CASE WHEN b = 1 THEN ''x'' ELSE ''{}'' END s FROM {t}) x LIMIT 3 OFFSET 1',
    'SELECT b, s::jsonb, row_number() OVER (ORDER BY b) FROM (SELECT b, CASE WHEN b = 9 THEN ''x'' ELSE ''{}'' END s FROM {t}) x LIMIT 3 OFFSET 1'])
    q, same_answers(q);
CREATE TABLE heap_t_o (id int, v int) USING heap;
CREATE TABLE heap_t_attrs (item int, n int, value text, x int) USING heap;
INSERT INTO heap_t_o SELECT g, g % 50 FROM generate_series(1, 300) g;
INSERT INTO heap_t_attrs SELECT g % 4000, g % 100, CASE WHEN g % 4000 BETWEEN 1 AND 3000 THEN (g % 30)::text ELSE 'none' END,
    CASE WHEN g % 4000 BETWEEN 1 AND 3000 THEN 1 ELSE 0 END FROM generate_series(1, 80000) g;
CREATE TABLE column_t_o (LIKE heap_t_o) USING colcompress; INSERT INTO column_t_o SELECT * FROM heap_t_o;
CREATE TABLE column_t_attrs (LIKE heap_t_attrs) USING colcompress; INSERT INTO column_t_attrs SELECT * FROM heap_t_attrs;
ANALYZE heap_t_o, heap_t_attrs, column_t_o, column_t_attrs;
SELECT q, same, columns, plan FROM unnest(ARRAY['a.value::int > 5', '10 / a.x > 1', 'a.n > 5',
    'a.n BETWEEN 3 AND 60 AND (a.x = 1 OR a.value IS NULL) AND a.value <> ''none''']) c,
    LATERAL (SELECT 'SELECT count(*) FROM {t}_o o WHERE o.v < (SELECT avg(a.n) FROM {t}_attrs a WHERE a.item = o.id AND ' || c || ')') s (q),
    LATERAL same_answers(q);
DROP FUNCTION value_of(text);
DROP TABLE deep, heap_t, column_t, heap_rates, heap_t_o, heap_t_attrs, column_t_o, column_t_attrs, heap_p, p CASCADE;
