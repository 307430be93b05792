-- Options are in force when rows are written, whichever statement writes them.
SET colonnade.stripe_threshold_rows = 0;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION stripes(t regclass) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(row_count::text, ' ' ORDER BY first_row) FROM engine.colcompress_stripes WHERE table_name = t $$;
CREATE FUNCTION bytes(t regclass) RETURNS numeric LANGUAGE sql AS
$$ SELECT sum(byte_length) FROM engine.colcompress_stripes WHERE table_name = t $$;
CREATE FUNCTION numbers(int) RETURNS TABLE (i int, t text) LANGUAGE sql AS
$$ SELECT (g * 7919) % 10007, repeat('some text ', 5) || g FROM generate_series(1, $1) g $$;

-- CREATE TABLE AS, and every way to rewrite what it made
CREATE TABLE a USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000, orderby = 'i desc') AS SELECT * FROM numbers(4000);
SELECT stripes('a');
-- a load is sorted as a whole
SELECT count(*) FROM (SELECT i, lag(i) OVER () AS before FROM a) s WHERE before < i;
ALTER TABLE a ALTER i TYPE bigint, SET (stripe_row_limit = 2000, orderby = 'i');
SELECT stripes('a');
SELECT count(*) FROM (SELECT i, lag(i) OVER () AS before FROM a) s WHERE before > i;
ALTER TABLE a SET (stripe_row_limit = 4000);
SELECT stripes('a');
VACUUM FULL a;
SELECT stripes('a');
SELECT count(*) FROM (SELECT i, lag(i) OVER () AS before FROM a) s WHERE before > i;
ALTER TABLE a SET (orderby = 'i desc nulls last');
SELECT engine.colcompress_merge('a');
SELECT stripes('a'), (SELECT count(*) FROM (SELECT i, lag(i) OVER () AS before FROM a) s WHERE before < i);
-- a rolled-back change leaves the old option and the old stripes
BEGIN; ALTER TABLE a ALTER i TYPE int, SET (stripe_row_limit = 1000); SELECT stripes('a'); ROLLBACK;
SELECT stripes('a'), engine.colcompress_option('a', 'stripe_row_limit');

-- from heap and back
CREATE TABLE h AS SELECT * FROM numbers(3000);
ALTER TABLE h SET ACCESS METHOD colcompress, SET (stripe_row_limit = 1000, chunk_group_row_limit = 1000);
SELECT stripes('h'), count(*), sum(i) FROM h;
ALTER TABLE h SET ACCESS METHOD heap;
SELECT stripes('h'), (SELECT reloptions FROM pg_class WHERE relname = 'h'), count(*), sum(i) FROM h;

-- materialized views keep theirs through REFRESH
CREATE MATERIALIZED VIEW m USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000) AS SELECT * FROM numbers(2000);
SELECT stripes('m');
ALTER MATERIALIZED VIEW m SET (stripe_row_limit = 2000);
REFRESH MATERIALIZED VIEW m;
SELECT stripes('m');

-- EXPLAIN ANALYZE of a creating statement writes by them too
DO $$ BEGIN EXECUTE
    'EXPLAIN ANALYZE CREATE TABLE x USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000) AS SELECT * FROM numbers(2000)';
END $$;
SELECT stripes('x');

-- codecs and levels
CREATE TABLE n USING colcompress WITH (compression = none) AS SELECT * FROM numbers(5000);
CREATE TABLE z USING colcompress WITH (compression = zstd, compression_level = 9) AS SELECT * FROM numbers(5000);
SELECT bytes('z') <= bytes('n') AS no_larger FROM (SELECT 1) s;
-- settings stand in for what is not set, at the moment of writing
SET colonnade.stripe_row_limit = 1000; SET colonnade.chunk_group_row_limit = 1000;
CREATE TABLE d (i int, t text) USING colcompress;
INSERT INTO d SELECT * FROM numbers(2000);
SET colonnade.stripe_row_limit = 2000;
INSERT INTO d SELECT * FROM numbers(2000);
SELECT stripes('d');

-- columns dropped, renamed, retyped under orderby: the next load still sorts by what is left
CREATE TABLE o (a int, b int, c int) USING colcompress WITH (orderby = 'a, b, c desc');
ALTER TABLE o DROP COLUMN a CASCADE;
ALTER TABLE o RENAME b TO bb;
ALTER TABLE o ALTER bb TYPE text;
INSERT INTO o SELECT g % 50, g FROM generate_series(1, 2000) g;
SELECT count(*) FROM (SELECT bb, c, lag(bb) OVER () AS b0, lag(c) OVER () AS c0 FROM o) s WHERE bb < b0 OR (bb = b0 AND c > c0);
-- an operator class that is gone ends the order with a warning; the rows are kept
-- What is said of a type's first function differs from version to version.
SET client_min_messages = warning;
CREATE TYPE od; CREATE FUNCTION od_in(cstring) RETURNS od IMMUTABLE STRICT LANGUAGE internal AS 'int4in';
CREATE FUNCTION od_out(od) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out';
CREATE TYPE od (INPUT = od_in, OUTPUT = od_out, LIKE = int4);
RESET client_min_messages;
CREATE FUNCTION od_lt(od, od) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4lt';
CREATE FUNCTION od_le(od, od) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4le';
CREATE FUNCTION od_eq(od, od) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4eq';
CREATE FUNCTION od_ge(od, od) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4ge';
CREATE FUNCTION od_gt(od, od) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4gt';
CREATE FUNCTION od_cmp(od, od) RETURNS int IMMUTABLE STRICT LANGUAGE internal AS 'btint4cmp';
CREATE OPERATOR < (LEFTARG = od, RIGHTARG = od, FUNCTION = od_lt); CREATE OPERATOR <= (LEFTARG = od, RIGHTARG = od, FUNCTION = od_le);
CREATE OPERATOR = (LEFTARG = od, RIGHTARG = od, FUNCTION = od_eq);
CREATE OPERATOR >= (LEFTARG = od, RIGHTARG = od, FUNCTION = od_ge); CREATE OPERATOR > (LEFTARG = od, RIGHTARG = od, FUNCTION = od_gt);
CREATE TABLE u (k od, v int) USING colcompress WITH (orderby = 'k');
CREATE OPERATOR CLASS od_ops DEFAULT FOR TYPE od USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 od_cmp(od, od);
CREATE TABLE u (k od, v int) USING colcompress WITH (orderby = 'k desc');
INSERT INTO u SELECT (g * 7919 % 1009)::text::od, g FROM generate_series(1, 1500) g;
SELECT count(*) FROM (SELECT k, lag(k) OVER () AS before FROM u) s WHERE before < k;
DROP OPERATOR CLASS od_ops USING btree;
DROP OPERATOR FAMILY od_ops USING btree;
\c
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO u SELECT g::text::od, g FROM generate_series(1, 1500) g;
SELECT count(*), sum(v), stripes('u') FROM u;
