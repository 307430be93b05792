-- Loads at the edges: no columns, many columns, huge values, odd constraints, other ways to insert.
SET colonnade.stripe_threshold_rows = 1000;
CREATE FUNCTION cold(t regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN EXECUTE format('SELECT count(*) FROM %s WHERE ctid >= ''(2147483648,0)''', t) INTO n; RETURN n; END $$;

-- No columns at all, or only dropped ones.
CREATE TABLE nothing () USING colcompress;
INSERT INTO nothing SELECT FROM generate_series(1, 3000);
SELECT count(*), cold('nothing') FROM nothing;
ALTER TABLE nothing ADD COLUMN a int DEFAULT 3;
INSERT INTO nothing SELECT 4 FROM generate_series(1, 2000);
SELECT a, count(*) FROM nothing GROUP BY a ORDER BY a;
ALTER TABLE nothing DROP COLUMN a;
INSERT INTO nothing SELECT FROM generate_series(1, 2000);
SELECT count(*), cold('nothing') FROM nothing;
DROP TABLE nothing;

-- 1,600 columns.
DO $$ BEGIN
  EXECUTE 'CREATE TABLE wide (' || (SELECT string_agg('c' || i || ' int', ', ') FROM generate_series(1, 1600) i) || ') USING colcompress';
  EXECUTE 'INSERT INTO wide SELECT ' || (SELECT string_agg('g + ' || i, ', ') FROM generate_series(1, 1600) i) || ' FROM generate_series(1, 1200) g';
END $$;
SELECT count(*), sum(c1), sum(c800), sum(c1600), cold('wide') FROM wide;
DROP TABLE wide;

-- Values of many megabytes among small ones.
CREATE TABLE huge (a int, b text, c bytea) USING colcompress;
INSERT INTO huge SELECT g, CASE WHEN g % 500 = 0 THEN repeat(md5(g::text), 400000) ELSE 'small' END FROM generate_series(1, 2000) g;
SELECT count(*), sum(length(b)), count(DISTINCT md5(b)), cold('huge') FROM huge;
INSERT INTO huge VALUES (0, repeat('0123456789', 12000000), decode(repeat('ab', 20000000), 'hex'));
SELECT length(b), length(c), right(b, 3) FROM huge WHERE a = 0;
DROP TABLE huge;

-- A deferred unique constraint is checked again when all rows are there.
CREATE TABLE later (a int UNIQUE DEFERRABLE INITIALLY DEFERRED) USING colcompress;
INSERT INTO later SELECT g FROM generate_series(1, 3000) g;
INSERT INTO later SELECT CASE g WHEN 3000 THEN 4500 ELSE g + 3000 END FROM generate_series(1, 3000) g;
BEGIN;
INSERT INTO later SELECT generate_series(2999, 5000);
SELECT count(*) FROM later;
COMMIT;
SELECT count(*) FROM later;
DROP TABLE later;

-- Exclusion constraints compare values, so their tables stay hot.
CREATE TABLE apart (r int4range, EXCLUDE USING gist (r WITH &&)) USING colcompress;
INSERT INTO apart SELECT int4range(g * 2, g * 2 + 1) FROM generate_series(1, 2500) g;
SELECT count(*), cold('apart') FROM apart;
INSERT INTO apart SELECT int4range(g * 2, g * 2 + 1) FROM generate_series(2500, 5000) g;
DROP TABLE apart;

-- Partial and expression indexes, hash and GIN.
CREATE TABLE indexed (a int, b text, t text[]) USING colcompress;
CREATE UNIQUE INDEX ON indexed (a) WHERE a % 2 = 0;
CREATE INDEX ON indexed (lower(b));
CREATE INDEX ON indexed USING hash (b);
CREATE INDEX ON indexed USING gin (t);
INSERT INTO indexed SELECT g, 'B' || g, ARRAY['t' || g % 10, 'u' || g] FROM generate_series(1, 4000) g;
INSERT INTO indexed SELECT 3999, 'twice is fine', NULL FROM generate_series(1, 1500);
INSERT INTO indexed SELECT CASE g WHEN 1400 THEN 4000 ELSE 10000 + g END FROM generate_series(1, 1500) g;
SET enable_seqscan = off;
SELECT count(*) FROM indexed WHERE a = 3999;
SELECT a FROM indexed WHERE lower(b) = 'b3500';
SELECT a FROM indexed WHERE b = 'B2';
SELECT count(*) FROM indexed WHERE t @> '{t3}';
RESET enable_seqscan;
SELECT count(*), cold('indexed') FROM indexed;
DROP TABLE indexed;

-- Generated columns, identity, defaults, checks.
CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY, a int CHECK (a < 5000), twice int GENERATED ALWAYS AS (a * 2) STORED, d text DEFAULT 'def')
    USING colcompress;
INSERT INTO made (a) SELECT generate_series(1, 3000);
SELECT count(*), sum(id), sum(twice), min(d), cold('made') FROM made;
INSERT INTO made (a) SELECT generate_series(3001, 6000);
SELECT count(*) FROM made;
DROP TABLE made;

-- Partitions of both kinds; a move of many rows between them; MERGE.
CREATE TABLE parts (k int, a int) PARTITION BY LIST (k);
CREATE TABLE parts_heap PARTITION OF parts FOR VALUES IN (0) USING heap;
CREATE TABLE parts_c1 PARTITION OF parts FOR VALUES IN (1) USING colcompress;
CREATE TABLE parts_c2 PARTITION OF parts FOR VALUES IN (2) USING colcompress;
INSERT INTO parts SELECT g % 3, g FROM generate_series(1, 9000) g;
SELECT tableoid::regclass, count(*) FROM parts GROUP BY 1 ORDER BY 1;
UPDATE parts SET k = 1 WHERE k = 0;
SELECT tableoid::regclass, count(*), sum(a) FROM parts GROUP BY 1 ORDER BY 1;
SELECT cold('parts_c1') > 3000 AS moved_into_stripes;
MERGE INTO parts_heap USING generate_series(1, 10) s ON false WHEN NOT MATCHED THEN INSERT VALUES (0, s);
MERGE INTO parts_c2 USING generate_series(1, 3000) s ON false WHEN NOT MATCHED THEN INSERT VALUES (2, -s);
SELECT tableoid::regclass, count(*), sum(a) FROM parts GROUP BY 1 ORDER BY 1;
DROP TABLE parts;

-- A failing expression, a failing index entry and a cancelled load leave nothing behind, and the next load
-- works.
CREATE TABLE fails (a int, b text) USING colcompress;
INSERT INTO fails SELECT 1 / (g - 2500) FROM generate_series(1, 3000) g;
SELECT count(*) FROM fails;
CREATE INDEX fails_b ON fails (b);
INSERT INTO fails SELECT g, CASE WHEN g = 2900 THEN (SELECT string_agg(md5(k::text), '') FROM generate_series(1, 400) k) ELSE 'x'
    END FROM generate_series(1, 3000) g;
SELECT count(*) FROM fails;
SET statement_timeout = '300ms';
INSERT INTO fails SELECT g, 'y' FROM generate_series(1, 100000000) g;
RESET statement_timeout;
SELECT count(*) FROM fails;
INSERT INTO fails SELECT g, 'z' FROM generate_series(1, 3000) g;
SELECT count(*), cold('fails') FROM fails;
SELECT count(*) FROM engine.stripe WHERE state = 'r';
DROP TABLE fails;

-- Two cursors, a prepared statement, SQL and PL functions, EXPLAIN ANALYZE.
CREATE TABLE ways (a int) USING colcompress;
PREPARE many(int) AS INSERT INTO ways SELECT generate_series(1, $1);
EXECUTE many(2000);
EXECUTE many(5);
CREATE FUNCTION by_sql(int) RETURNS void LANGUAGE sql AS 'INSERT INTO ways SELECT generate_series(1, $1); INSERT INTO ways SELECT count(*) FROM ways';
SELECT by_sql(2000);
SELECT max(a), count(*), cold('ways') FROM ways;
\o /dev/null
EXPLAIN (ANALYZE) INSERT INTO ways SELECT generate_series(1, 2000);
\o
SELECT count(*), cold('ways') FROM ways;
BEGIN;
DECLARE one CURSOR FOR SELECT count(*) FROM ways;
INSERT INTO ways SELECT generate_series(1, 2000);
DECLARE two CURSOR WITH HOLD FOR SELECT count(*) FROM ways;
INSERT INTO ways SELECT generate_series(1, 2000);
FETCH one;
COMMIT;
FETCH two;
CLOSE two;
-- A procedure that commits in the middle.
CREATE PROCEDURE in_steps() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ways SELECT generate_series(1, 2000);
  COMMIT;
  INSERT INTO ways SELECT generate_series(1, 2000);
  ROLLBACK;
  INSERT INTO ways SELECT generate_series(1, 7);
END $$;
TRUNCATE ways;
CALL in_steps();
SELECT count(*), cold('ways') FROM ways;
-- Serializable, and a read-only surprise.
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO ways SELECT generate_series(1, 2000);
SELECT count(*) FROM ways;
COMMIT;
BEGIN READ ONLY;
INSERT INTO ways SELECT generate_series(1, 2000);
ROLLBACK;
DROP TABLE ways;

-- A default that looks at the table while COPY and INSERT fill it counts every row before its own, as on
-- heap.
CREATE TABLE counting (a int, n bigint) USING colcompress;
CREATE FUNCTION rows_so_far() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM counting';
ALTER TABLE counting ALTER n SET DEFAULT rows_so_far();
COPY counting (a) FROM PROGRAM 'seq 1 1500';
SELECT count(*), count(*) FILTER (WHERE n <> a - 1) AS wrong FROM counting;
TRUNCATE counting;
INSERT INTO counting (a) SELECT generate_series(1, 3000);
SELECT count(*), count(*) FILTER (WHERE n <> a - 1) AS wrong FROM counting;
CREATE INDEX ON counting (a);
TRUNCATE counting;
INSERT INTO counting (a) SELECT generate_series(1, 3000);
SELECT count(*), count(*) FILTER (WHERE n <> a - 1) AS wrong FROM counting;
-- Transactions and subtransactions that end while a procedure or a DO block runs.
TRUNCATE counting;
ALTER TABLE counting ALTER n DROP DEFAULT;
CREATE PROCEDURE ends() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO counting SELECT generate_series(1, 2000);
  ROLLBACK;
  INSERT INTO counting SELECT generate_series(1, 2500);
  COMMIT;
  INSERT INTO counting SELECT generate_series(1, 30);
  BEGIN
    INSERT INTO counting SELECT generate_series(1, 3000);
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO counting SELECT generate_series(1, 1500);
  END;
END $$;
CALL ends();
SELECT count(*), cold('counting') FROM counting;
DROP TABLE counting;
-- A copy of the file (SET TABLESPACE) that is rolled back with what was loaded into it: the old file gives
-- the same row numbers again.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE beside LOCATION '';
CREATE TABLE moving (a int, b text) USING colcompress;
INSERT INTO moving SELECT g, 'first ' || g FROM generate_series(1, 20000) g;
BEGIN;
ALTER TABLE moving SET TABLESPACE beside;
INSERT INTO moving SELECT g, 'rolled back ' || g FROM generate_series(100001, 130000) g;
SELECT count(*), sum(a), min(b), max(b) FROM moving;
SELECT b FROM moving WHERE a = 100100;
ROLLBACK;
INSERT INTO moving SELECT g, 'second ' || g % 7 FROM generate_series(500001, 530000) g;
SELECT count(*), sum(a), min(b), max(b) FROM moving;
SET colonnade.enable_vectorised = off;
SELECT b FROM moving WHERE a = 500100;
SELECT b FROM moving m WHERE ctid = (SELECT ctid FROM moving WHERE a = 500100);
DROP TABLE moving;
DROP TABLESPACE beside;
-- What a session keeps of opened stripes is bounded in bytes: 100 stripes, each with a dictionary of 2 MB.
CREATE FUNCTION anonymous_mb() RETURNS int LANGUAGE sql VOLATILE
  AS $$ SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s+(\d+)')::int / 1024 $$;
CREATE TABLE entries AS
  SELECT v, (SELECT string_agg(md5(v::text || x), '') FROM generate_series(1, 128) x) AS t FROM generate_series(0, 499) v;
CREATE TABLE wide (n int, t text) USING colcompress WITH (stripe_row_limit = 2500, chunk_group_row_limit = 2500, compression = 'lz4');
INSERT INTO wide SELECT i * 2500 + k * 500 + v, t FROM generate_series(0, 99) i, generate_series(0, 4) k, entries ORDER BY 1;
SELECT sum(byte_length) < 150000000 AS has_dictionaries, count(*) FROM engine.stripe WHERE row_count = 2500;
\c
SELECT anonymous_mb() AS mb_before \gset
DO $$ BEGIN FOR i IN 0..99 LOOP PERFORM max(t) FROM wide WHERE n BETWEEN i * 2500 AND i * 2500 + 2499; END LOOP; END $$;
SELECT CASE WHEN taken BETWEEN 30 AND 100 THEN 'bounded' ELSE taken || ' MB' END FROM (SELECT anonymous_mb() - :mb_before AS taken) s;
DROP TABLE wide, entries;
