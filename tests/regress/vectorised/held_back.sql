-- ERRORs that the vectorised node holds back until it knows that the query meets them: nothing of what the
-- function held stays behind, no function of a user's is among them, and rights are those of who began the
-- query. Each query stops before the row that fails.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 1;
CREATE TABLE few (id int);
INSERT INTO few SELECT g FROM generate_series(1, 9999) g;
CREATE TABLE c (id int, t text) USING colcompress;
INSERT INTO c SELECT g, 'b' FROM generate_series(1, 20000) g;
ANALYZE few, c;
-- {t} is the text, 'b' but in row 500, where it is {bad}.
CREATE FUNCTION first_rows(condition text, bad text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE ids int[]; plan text; line text; at text;
BEGIN
  condition := replace(condition, '{t}', format('CASE x.id WHEN 500 THEN %L ELSE x.t END', bad));
  condition := format('SELECT x.id FROM c x JOIN (SELECT id FROM few WHERE id < 10000) y USING (id) WHERE %s LIMIT 3', condition);
  FOR line IN EXECUTE 'EXPLAIN ' || condition LOOP plan := concat(plan, line); END LOOP;
  EXECUTE format('SELECT array_agg(id) FROM (%s) q', condition) INTO ids;
  RETURN CASE WHEN plan LIKE '%Colonnade Query%' OR plan LIKE '%Vectorised%' THEN '' ELSE 'not vectorised: ' END || ids::text;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
EXPLAIN (COSTS OFF) SELECT x.id FROM c x JOIN (SELECT id FROM few WHERE id < 10000) y USING (id)
    WHERE COALESCE(to_regtype(x.t)::oid::int8, 0) IS NOT NULL LIMIT 3;

-- What a failed function held: entries of caches. A WARNING of the server's would tell.
SELECT first_rows('COALESCE(to_regtype({t})::oid::int8, 0) IS NOT NULL', 'int4(5)');
SELECT first_rows('pg_get_functiondef(CASE x.id WHEN 500 THEN 2108 ELSE 1299 END) IS NOT NULL');
SELECT x.id FROM c x JOIN (SELECT id FROM few WHERE id < 10000) y USING (id)
    WHERE COALESCE(to_regtype(CASE x.id WHEN 500 THEN 'int4(5)' ELSE x.t END)::oid::int8, 0) IS NOT NULL LIMIT 3;

-- Enums, whose functions are built in; names of schemas and databases.
CREATE TYPE letter AS ENUM ('a', 'b');
SELECT first_rows('({t})::letter <> ''a''', 'zzz');
SELECT first_rows('(''{'' || {t} || ''}'')::letter[] IS NOT NULL', 'zzz');
SELECT first_rows('(CASE x.id WHEN 500 THEN ''nowhere.y'' ELSE ''pg_class'' END)::regclass IS NOT NULL');
SELECT first_rows('has_database_privilege(CASE x.id WHEN 500 THEN ''nowhere'' ELSE current_database() END, ''connect'')');
SET plan_cache_mode = force_generic_plan;
PREPARE named(text) AS SELECT count(*) FROM c WHERE id < 0 AND id = $1::regclass::oid::int;
EXECUTE named('nowhere.t');
PREPARE lettered(text) AS SELECT count(*) FROM c WHERE id < 0 AND t = $1::letter::text;
EXECUTE lettered('zzz');
RESET plan_cache_mode;

-- An order of a user's: what built-in functions of arrays, ranges and rows call runs queries. Such parts are
-- the server's executor's, which stops before the row that fails.
-- What is said of a type's first function differs from version to version.
SET client_min_messages = warning;
CREATE TYPE number;
CREATE FUNCTION number_in(cstring) RETURNS number AS 'int4in' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION number_out(number) RETURNS cstring AS 'int4out' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE number (INPUT = number_in, OUTPUT = number_out, LIKE = int4);
RESET client_min_messages;
CREATE CAST (int AS number) WITHOUT FUNCTION;
CREATE CAST (number AS int) WITHOUT FUNCTION;
CREATE FUNCTION compared(a number, b number) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE r text;
BEGIN
  IF 500 IN (a::int, b::int) THEN
    PERFORM set_config('work_mem', '123MB', false);
    SELECT repeat('x', 1 / (relpages - relpages)) INTO r FROM pg_class WHERE relname = 'pg_class';
  END IF;
  RETURN btint4cmp(a::int, b::int);
END $$;
CREATE FUNCTION less(number, number) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN RETURN compared($1, $2) < 0; END $$;
CREATE FUNCTION less_or_same(number, number) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN RETURN compared($1, $2) <= 0; END $$;
CREATE FUNCTION equal(number, number) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN RETURN compared($1, $2) = 0; END $$;
CREATE FUNCTION more_or_same(number, number) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN RETURN compared($1, $2) >= 0; END $$;
CREATE FUNCTION more(number, number) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN RETURN compared($1, $2) > 0; END $$;
CREATE OPERATOR < (LEFTARG = number, RIGHTARG = number, FUNCTION = less, COMMUTATOR = >, NEGATOR = >=);
CREATE OPERATOR <= (LEFTARG = number, RIGHTARG = number, FUNCTION = less_or_same, COMMUTATOR = >=, NEGATOR = >);
CREATE OPERATOR = (LEFTARG = number, RIGHTARG = number, FUNCTION = equal, COMMUTATOR = =);
CREATE OPERATOR >= (LEFTARG = number, RIGHTARG = number, FUNCTION = more_or_same, COMMUTATOR = <=, NEGATOR = <);
CREATE OPERATOR > (LEFTARG = number, RIGHTARG = number, FUNCTION = more, COMMUTATOR = <, NEGATOR = <=);
CREATE OPERATOR CLASS number_order DEFAULT FOR TYPE number USING btree AS
  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared(number, number);
CREATE TYPE number_range AS RANGE (SUBTYPE = number);
CREATE TABLE numbers (id int, n number, a number[], r number_range) USING colcompress;
INSERT INTO numbers SELECT g, n::number, ARRAY[n::number], '[1,400]' FROM (SELECT g, CASE g WHEN 500 THEN 500 ELSE 1 END AS n
    FROM generate_series(1, 20000) g) s;
ANALYZE numbers (id);
CREATE FUNCTION first_numbers(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
  EXECUTE
      format('SELECT string_agg(q.id::text, '','') FROM (SELECT x.id FROM numbers x JOIN (SELECT id FROM few WHERE id < 10000) y USING (id) '
      'WHERE %s LIMIT 3) q', condition) INTO found;
  RETURN found;
EXCEPTION WHEN division_by_zero THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE TABLE conditions (condition text);
INSERT INTO conditions VALUES ('array_position(a, n) IS NOT NULL'), ('(r @> n) IS NOT NULL'), ('(ROW(a, 1) <= ROW(a, 2)) IS NOT NULL'),
    ('GREATEST(n, 1::number) IS NOT NULL'),
  ('array_remove(a, n) IS NOT NULL'), ('(a && ARRAY[n]) IS NOT NULL'), ('(x.* IS NOT DISTINCT FROM x.*) IS NOT NULL'), ('(x.* < x.*) IS NOT NULL');
SELECT condition, first_numbers(condition), current_setting('work_mem') FROM conditions;
SET colonnade.enable_vectorised = off;
SELECT condition, first_numbers(condition) FROM conditions;
RESET colonnade.enable_vectorised;

-- Other ways to a user's functions: a type as a value, an operator class that an operator does not show, the
-- order of a range, the key of partitions.
CREATE FUNCTION fails_at_500(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE r text;
BEGIN
  IF i = 500 THEN
    PERFORM set_config('work_mem', '123MB', false);
    SELECT repeat('x', 1 / (relpages - relpages)) INTO r FROM pg_class WHERE relname = 'pg_class';
  END IF;
  RETURN i;
END $$;
CREATE DOMAIN checked AS int CHECK (fails_at_500(VALUE) = VALUE);
CREATE FUNCTION hash_vector(v tsvector) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN RETURN fails_at_500(substr(v::text, 3,
    length(v::text) - 3)::int); END $$;
CREATE OPERATOR CLASS vector_hash FOR TYPE tsvector USING hash AS OPERATOR 1 =, FUNCTION 1 hash_vector(tsvector);
CREATE FUNCTION compare_boxes(a box, b box) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN RETURN fails_at_500(area(a)::int)
    - area(b)::int; END $$;
CREATE OPERATOR CLASS box_order FOR TYPE box USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 compare_boxes(box, box);
CREATE FUNCTION compare_ints(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN RETURN btint4cmp(fails_at_500(a),
    fails_at_500(b)); END $$;
CREATE OPERATOR CLASS int_order FOR TYPE int4 USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 compare_ints(int4, int4);
CREATE TYPE ordered_range AS RANGE (SUBTYPE = int4, SUBTYPE_OPCLASS = int_order);
CREATE TABLE ranges (id int, r ordered_range) USING colcompress;
INSERT INTO ranges SELECT g, '[1,400]' FROM generate_series(1, 20000) g;
ANALYZE ranges (id);
CREATE FUNCTION hash_int(i int4, seed int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN RETURN
    hashint4extended(fails_at_500(i), seed); END $$;
CREATE OPERATOR CLASS int_hash FOR TYPE int4 USING hash AS OPERATOR 1 =, FUNCTION 2 hash_int(int4, int8);
CREATE TABLE by_own_hash (k int) PARTITION BY HASH (k int_hash);
CREATE FUNCTION first_three(relation text, condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE k refcursor; r int; ids text;
BEGIN
  OPEN k FOR EXECUTE format('SELECT x.id FROM %I x JOIN (SELECT id FROM few WHERE id < 10000) y USING (id) WHERE (%s) IS NOT NULL LIMIT 3', relation,
      condition);
  LOOP FETCH k INTO r; EXIT WHEN NOT FOUND; ids := concat_ws(',', ids, r); END LOOP;
  RETURN ids;
EXCEPTION WHEN division_by_zero THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
TRUNCATE conditions;
ALTER TABLE conditions ADD relation text;
INSERT INTO conditions VALUES ('domain_in(textout(x.id::text), ''checked''::regtype, -1)', 'c'),
    ('array_in(textout(concat(''{'', x.id, ''}'')), ''checked''::regtype, -1)', 'c'),
  ('array_to_tsvector(ARRAY[''x'' || x.id]) = ANY (ARRAY[''x1'',''x2'',''x3'',''x4'',''x5'',''x6'',''x7'',''x8'',''x9'',''x10'']::tsvector[])', 'c'),
  ('ROW(box(point(0, 0), point(1, x.id)), 1) < ROW(box(point(0, 0), point(1, 1)), 2)', 'c'), ('x.r @> x.id', 'ranges'),
      ('satisfies_hash_partition(''by_own_hash''::regclass, 2, 0, x.id)', 'c');
-- The last one is built in, and not known to call the key's: the query ends.
SELECT relation, condition, first_three(relation, condition), current_setting('work_mem') FROM conditions;
SET colonnade.enable_vectorised = off;
SELECT relation, condition, first_three(relation, condition) FROM conditions;
RESET colonnade.enable_vectorised;

-- Rights are those of who began the query, where it goes on as another user.
CREATE ROLE held_back_reader;
CREATE FUNCTION kept_back_stable(n int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN n; END $$;
REVOKE EXECUTE ON FUNCTION kept_back_stable(int) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION to_number(text, text) FROM PUBLIC;
CREATE TABLE sums (id int, n numeric) USING colcompress;
INSERT INTO sums SELECT g, CASE g WHEN 700 THEN repeat('9', 61)::numeric ELSE g END FROM generate_series(1, 5000) g;
ANALYZE sums;
BEGIN;
-- The kept subtree is started at the first row,
DECLARE k CURSOR FOR SELECT sum(b.n) FROM sums a JOIN sums b USING (id) WHERE kept_back_stable(a.id) > 0;
-- a value is computed,
DECLARE l CURSOR FOR SELECT b.id FROM sums a JOIN sums b USING (id) ORDER BY b.id LIMIT kept_back_stable(2);
-- an expression of the server's is asked.
DECLARE m CURSOR FOR SELECT sum(to_number(a.id::text, '99999')) FROM sums a JOIN sums b USING (id);
SET LOCAL ROLE held_back_reader;
FETCH k;
FETCH 3 FROM l;
FETCH m;
-- Who has not the right does not get it.
SAVEPOINT before;
SELECT kept_back_stable(1);
ROLLBACK TO before;
SELECT current_user;
COMMIT;
GRANT EXECUTE ON FUNCTION to_number(text, text) TO PUBLIC;
DROP ROLE held_back_reader;
-- What runs is the user's who fetches, as on heap.
CREATE ROLE held_back_fetcher;
CREATE FUNCTION who(int) RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN current_user; END $$;
BEGIN;
DECLARE k CURSOR FOR SELECT count(*), max(current_user::text) FROM sums a JOIN sums b USING (id) WHERE who(1) <> current_user || 'x';
SET LOCAL ROLE held_back_fetcher;
FETCH k;
COMMIT;
DROP ROLE held_back_fetcher;
-- A function that becomes another user stays it.
CREATE ROLE held_back_other;
CREATE FUNCTION become(r text) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM set_config('role', r, false); RETURN 1; END $$;
SELECT max(s) FROM (SELECT sum(id) OVER (ORDER BY id ROWS become('held_back_other') PRECEDING) s FROM c) q;
SELECT current_user, current_setting('role');
RESET ROLE;
DROP ROLE held_back_other;

-- A built-in function finds a function of a user's by a type: an ERROR before it begins hands over, and
-- nothing of it stays behind (a setting, a connection to SPI).
CREATE TEXT SEARCH CONFIGURATION gone_later (COPY = simple);
CREATE FUNCTION with_settings(l letter) RETURNS json LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET work_mem = '123MB'
    SET default_text_search_config = 'public.gone_later' AS $$ SELECT to_json('x'::text) $$;
CREATE CAST (letter AS json) WITH FUNCTION with_settings(letter);
DROP TEXT SEARCH CONFIGURATION gone_later;
CREATE TYPE other_letter AS ENUM ('a', 'b');
CREATE FUNCTION polymorphic(l anyenum) RETURNS json LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN RETURN to_json(l::text); END $$;
CREATE CAST (other_letter AS json) WITH FUNCTION polymorphic(anyenum);
CREATE TABLE documents (k int, t text, e letter, o other_letter) USING colcompress;
INSERT INTO documents SELECT g / 20, g::text, CASE WHEN g > 1000 THEN 'b' END::letter, CASE WHEN g > 1000 THEN 'b' END::other_letter
    FROM generate_series(1, 20000) g;
ANALYZE documents;
CREATE FUNCTION first_document(expression text) RETURNS text LANGUAGE plpgsql SET enable_hashagg = off AS $$
DECLARE found text;
BEGIN
  EXECUTE format('SELECT max(j) FROM (SELECT left(%s::text, 20) AS j FROM documents GROUP BY k ORDER BY k LIMIT 1) z', expression) INTO found;
  RETURN found;
END $$;
SELECT expression, first_document(expression), current_setting('work_mem')
    FROM unnest(ARRAY['jsonb_object_agg(t, e)', 'jsonb_object_agg(t, o)', 'json_object_agg(t, o)', 'jsonb_agg(o)']) expression;
SET colonnade.enable_vectorised = off;
SELECT expression, first_document(expression) FROM unnest(ARRAY['jsonb_object_agg(t, e)', 'jsonb_object_agg(t, o)', 'json_object_agg(t, o)',
    'jsonb_agg(o)']) expression;
RESET colonnade.enable_vectorised;
-- Where the query meets it, the ERROR is that of the function.
SELECT count(j) FROM (SELECT jsonb_object_agg(t, o) AS j FROM documents GROUP BY k) z;

-- Messages about values whatever they say of where they are, and SQLSTATEs that few functions raise.
SELECT first_rows('(CASE x.id WHEN 500 THEN E''"a\\\\\nb"'' ELSE ''1'' END)::json IS NOT NULL');
SELECT first_rows('(CASE x.id WHEN 500 THEN E''{"a":\n x}'' ELSE ''1'' END)::jsonb IS NOT NULL');
SELECT first_rows('jsonb_path_query_first((CASE x.id WHEN 500 THEN ''"a"'' ELSE ''"2020-01-01"'' END)::jsonb, ''$.datetime()'') IS NOT NULL');
ALTER TYPE letter ADD VALUE 'c';
BEGIN;
ALTER TYPE letter ADD VALUE 'd';
SELECT first_rows('({t})::letter <> ''a''', 'd');
ROLLBACK;

-- Literals without a type compare nothing, and XML is built without functions of users.
EXPLAIN (COSTS OFF) SELECT k, max(concat('a', t, 'b')), max(format('%s-%s', t, 'x')) FROM documents GROUP BY k;
SELECT first_rows('XMLPARSE(DOCUMENT CASE x.id WHEN 500 THEN ''<a'' ELSE ''<a/>'' END) IS NOT NULL');

-- Handing over starts from the beginning: LIMIT and TABLESAMPLE of what changes with each call are not part
-- of it.
CREATE SEQUENCE calls;
CREATE TABLE nines (id int, n numeric) USING colcompress;
INSERT INTO nines SELECT g, CASE g WHEN 1 THEN repeat('9', 61)::numeric ELSE 1 END FROM generate_series(1, 5000) g;
ANALYZE nines;
SELECT setval('calls', 10, false);
SELECT sum(x.n), count(*) FROM nines x JOIN (SELECT id FROM few LIMIT nextval('calls')) y USING (id);
SELECT sum(x.n) > 1, count(*) > 0 FROM nines x JOIN (SELECT id FROM few TABLESAMPLE SYSTEM (nextval('calls') * 9) REPEATABLE (1)) y USING (id);
SELECT currval('calls');

-- A heap table's rows are read ahead of the reader: where one of them may raise an ERROR and the reader may
-- stop before it, the server reads them.
CREATE TABLE ahead (id int, t text) USING heap;
INSERT INTO ahead SELECT g, 'a' || g FROM generate_series(1, 30000) g;
ANALYZE ahead;
SELECT a.id FROM ahead a JOIN c USING (id) WHERE 10 / (a.id - 500) < 100 LIMIT 3;
SELECT EXISTS (SELECT FROM ahead a JOIN c USING (id) WHERE 10 / (a.id - 500) < 100);
WITH divided AS MATERIALIZED (SELECT id, 10 / (id - 500) AS d FROM ahead) SELECT divided.id FROM divided JOIN c USING (id) WHERE d < 100 LIMIT 3;
EXPLAIN (COSTS OFF) SELECT a.id FROM ahead a JOIN c USING (id) WHERE 10 / (a.id - 500) < 100 LIMIT 3;
SET plan_cache_mode = force_generic_plan;
PREPARE divides(int) AS SELECT a.id FROM ahead a JOIN c USING (id) WHERE a.id < 50 OR 1 / $1 > 0 LIMIT 1;
EXECUTE divides(0);
RESET plan_cache_mode;
-- No ERROR is possible, or all rows are asked for.
EXPLAIN (COSTS OFF) SELECT a.id FROM ahead a JOIN c USING (id) WHERE a.id > 7 LIMIT 3;
EXPLAIN (COSTS OFF) SELECT a.id FROM ahead a JOIN c USING (id) WHERE 10 / (a.id - 50000) < 100 ORDER BY a.id LIMIT 3;
-- CTEs that read the one before twice are looked through once.
SET statement_timeout = '20s';
SELECT 'WITH c0 AS MATERIALIZED (SELECT id FROM ahead WHERE id < 5), '
    || string_agg(format('c%s AS MATERIALIZED (SELECT a.id FROM c%s a JOIN c%s b USING (id))', g, g - 1, g - 1), ', ' ORDER BY g)
    || ' SELECT count(*) FROM (SELECT c30.id FROM c30 JOIN c USING (id) LIMIT 3) x' AS chain FROM generate_series(1, 30) g \gset
:chain;
RESET statement_timeout;
