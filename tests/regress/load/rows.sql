-- Loads: which rows become stripes, what other statements see of them, and what rollback leaves.
-- A heap twin holds the right answer; agree() compares every row of both tables.
\i include/agree.sql
CREATE VIEW stripes AS
SELECT row_number() OVER (PARTITION BY storage_id ORDER BY first_row) AS n, row_count, state
FROM engine.stripe ORDER BY storage_id, first_row;
SET colonnade.stripe_threshold_rows = 1000;

CREATE TABLE c (a int, b text, d numeric, t timestamptz, j jsonb, x int[]) USING colcompress WITH (stripe_row_limit = 2000, chunk_group_row_limit = 1000);
CREATE TABLE h (LIKE c) USING heap;
CREATE FUNCTION fill(first int, last int) RETURNS SETOF h LANGUAGE sql AS $$
  SELECT g, CASE WHEN g % 7 <> 0 THEN 'value ' || g END, g / 3.0, timestamptz '2024-01-01 UTC' + g * interval '1 min',
         jsonb_build_object('g', g, 'list', ARRAY[g, g + 1]), CASE WHEN g % 5 = 0 THEN NULL ELSE ARRAY[g, NULL, -g] END
  FROM generate_series(first, last) g $$;

-- Few rows stay in the heap.
INSERT INTO c SELECT * FROM fill(1, 999);
INSERT INTO h SELECT * FROM fill(1, 999);
SELECT agree('c', 'h'), (SELECT count(*) FROM stripes) AS stripes;
-- Many go to stripes; a tail worth a stripe is one, a short one stays hot.
INSERT INTO c SELECT * FROM fill(1000, 6000);
INSERT INTO h SELECT * FROM fill(1000, 6000);
INSERT INTO c SELECT * FROM fill(6001, 8100);
INSERT INTO h SELECT * FROM fill(6001, 8100);
SELECT agree('c', 'h');
SELECT n, row_count, state FROM stripes;
-- Few rows with much in them are many.
SET colonnade.stripe_threshold_memory = '64kB';
CREATE TABLE big (a int, b text) USING colcompress;
CREATE TABLE bigh (LIKE big) USING heap;
INSERT INTO big SELECT g, repeat(md5(g::text), 1000) FROM generate_series(1, 10) g;
INSERT INTO bigh SELECT g, repeat(md5(g::text), 1000) FROM generate_series(1, 10) g;
SELECT agree('big', 'bigh'), (SELECT count(*) FROM stripes) AS stripes;
INSERT INTO big VALUES (11, repeat('x', 3000000));
INSERT INTO bigh VALUES (11, repeat('x', 3000000));
SELECT agree('big', 'bigh');
RESET colonnade.stripe_threshold_memory;
DROP TABLE big, bigh;

-- COPY both ways.
TRUNCATE c, h;
INSERT INTO h SELECT * FROM fill(1, 5000);
\copy h TO 'copied.csv' CSV
\copy c FROM 'copied.csv' CSV
SELECT agree('c', 'h'), (SELECT count(*) FROM stripes) AS stripes;
-- An error in the middle leaves nothing.
\! printf 'not,a,row\n' >> copied.csv
\copy c FROM 'copied.csv' CSV
SELECT agree('c', 'h'), (SELECT count(*) FROM stripes) AS stripes;
\! rm copied.csv

-- A command does not see its own rows, the next one does.
TRUNCATE c, h;
INSERT INTO c SELECT * FROM fill(1, 1500);
INSERT INTO c SELECT * FROM c;
SELECT count(*) FROM c;
BEGIN;
INSERT INTO c SELECT * FROM fill(1, 1500);
SELECT count(*) FROM c;
DECLARE before CURSOR FOR SELECT count(*) FROM c;
INSERT INTO c SELECT * FROM fill(1, 1500);
FETCH before;
SELECT count(*) FROM c;
ROLLBACK;
SELECT count(*), (SELECT count(*) FROM stripes) AS stripes FROM c;

-- Savepoints.
TRUNCATE c;
BEGIN;
INSERT INTO c SELECT * FROM fill(1, 1500);
SAVEPOINT one;
INSERT INTO c SELECT * FROM fill(2001, 3500);
SAVEPOINT two;
INSERT INTO c SELECT * FROM fill(4001, 4010);
ROLLBACK TO two;
SELECT count(*), min(a), max(a) FROM c;
ROLLBACK TO one;
SELECT count(*), min(a), max(a) FROM c;
INSERT INTO c SELECT * FROM fill(5001, 6500);
RELEASE one;
COMMIT;
SELECT count(*), min(a), max(a) FROM c;

-- Exceptions in PL/pgSQL.
TRUNCATE c;
DO $$
BEGIN
  INSERT INTO c SELECT * FROM fill(1, 1200);
  BEGIN
    INSERT INTO c SELECT * FROM fill(2001, 3200);
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO c SELECT * FROM fill(4001, 4005);
  END;
  INSERT INTO c SELECT * FROM fill(5001, 6200);
END $$;
SELECT count(*), min(a), max(a), count(*) FILTER (WHERE a BETWEEN 2001 AND 3200) AS undone FROM c;

-- A function that the statement calls looks at the table and writes into it, within a subtransaction that is
-- undone, while the statement's own rows wait in memory.
TRUNCATE c;
CREATE FUNCTION meddle(g int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE seen bigint;
BEGIN
  IF g IN (700, 1900, 4100) THEN
    BEGIN
      INSERT INTO c(a) VALUES (-g);
      SELECT count(*) INTO seen FROM c;
      RAISE NOTICE 'at % there are % rows', g, seen;
      IF g <> 4100 THEN RAISE division_by_zero; END IF;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    SELECT count(*) INTO seen FROM c;
    RAISE NOTICE 'then %', seen;
  END IF;
  RETURN g;
END $$;
INSERT INTO c(a, b) SELECT meddle(g), 'x' FROM generate_series(1, 5000) g;
SELECT count(*), count(DISTINCT a), min(a), max(a) FROM c;
-- The same with TIDs handed out.
TRUNCATE c;
CREATE INDEX c_a ON c (a);
INSERT INTO c(a, b) SELECT meddle(g), 'x' FROM generate_series(1, 5000) g;
SELECT count(*), count(DISTINCT a), min(a), max(a) FROM c;
SET enable_seqscan = off;
SELECT a, b FROM c WHERE a IN (-4100, -1900, 1, 700, 999, 1000, 1001, 4999, 5000) ORDER BY a;
RESET enable_seqscan;
DROP INDEX c_a;

-- Triggers: statement triggers see the rows, row triggers get each of them.
TRUNCATE c;
CREATE TABLE log (what text, n bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_LEVEL = 'ROW' THEN
    IF NEW.a % 1000 = 0 THEN INSERT INTO log VALUES (TG_WHEN || ' row', NEW.a); END IF;
    RETURN NEW;
  END IF;
  INSERT INTO log SELECT TG_WHEN || ' statement', count(*) FROM c;
  RETURN NULL;
END $$;
CREATE TRIGGER s1 BEFORE INSERT ON c FOR EACH STATEMENT EXECUTE FUNCTION note();
CREATE TRIGGER s2 AFTER INSERT ON c FOR EACH STATEMENT EXECUTE FUNCTION note();
INSERT INTO c SELECT * FROM fill(1, 2500);
CREATE TRIGGER r1 BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO c SELECT * FROM fill(2501, 4500);
CREATE TRIGGER r2 AFTER INSERT ON c FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO c SELECT * FROM fill(4501, 7000);
TABLE log;
SELECT n, row_count, state FROM stripes;
DROP TRIGGER s1 ON c; DROP TRIGGER s2 ON c; DROP TRIGGER r1 ON c; DROP TRIGGER r2 ON c;

-- RETURNING, system columns included.
TRUNCATE c;
WITH new AS (INSERT INTO c(a) SELECT g FROM generate_series(1, 3000) g RETURNING a, ctid, xmin, cmin, tableoid)
SELECT count(*), sum(a), count(DISTINCT ctid), count(DISTINCT xmin::text), count(DISTINCT cmin::text), min(tableoid::regclass::text) FROM new;
SELECT count(*), sum(a) FROM c;
SELECT count(*) FROM c WHERE ctid IN (SELECT ctid FROM c WHERE a IN (1, 999, 1000, 1001, 3000));

-- A data-modifying WITH query that nobody reads runs last.
TRUNCATE c;
WITH new AS (INSERT INTO c(a) SELECT g FROM generate_series(1, 1500) g) SELECT count(*) FROM c;
SELECT count(*) FROM c;

-- Unique violations, within a load and against rows loaded before.
CREATE TABLE u (a int PRIMARY KEY, b text) USING colcompress;
INSERT INTO u SELECT g, 'first' FROM generate_series(1, 3000) g;
INSERT INTO u SELECT CASE g WHEN 2900 THEN 5000 ELSE g + 3000 END, 'cold twice' FROM generate_series(1, 2900) g;
INSERT INTO u SELECT CASE g WHEN 2900 THEN 3500 ELSE g + 3000 END, 'hot and cold' FROM generate_series(1, 2900) g;
INSERT INTO u VALUES (2999, 'cold');
INSERT INTO u VALUES (5, 'hot');
SELECT count(*), max(a) FROM u;
INSERT INTO u SELECT g, 'conflict' FROM generate_series(2000, 4000) g ON CONFLICT DO NOTHING;
SELECT b, count(*), min(a), max(a) FROM u GROUP BY b ORDER BY b;
BEGIN;
INSERT INTO u SELECT g, 'undone' FROM generate_series(5001, 8000) g;
ROLLBACK;
INSERT INTO u SELECT g, 'redone' FROM generate_series(5001, 8000) g;
SELECT b, count(*), min(a), max(a) FROM u GROUP BY b ORDER BY b;
-- A foreign key looks each row up again after the load.
CREATE TABLE parent (a int PRIMARY KEY) USING heap;
INSERT INTO parent SELECT generate_series(1, 5000);
CREATE TABLE child (id int, u int REFERENCES parent) USING colcompress;
INSERT INTO child SELECT g, g FROM generate_series(1, 3000) g;
INSERT INTO child SELECT g, g + 2500 FROM generate_series(1, 3000) g;
SELECT count(*), max(u) FROM child;
DROP TABLE child, u, parent;

-- Two-phase commit.
TRUNCATE c;
BEGIN;
INSERT INTO c SELECT * FROM fill(1, 2500);
PREPARE TRANSACTION 'load';
SELECT count(*) FROM c;
COMMIT PREPARED 'load';
SELECT count(*) FROM c;
BEGIN;
INSERT INTO c SELECT * FROM fill(1, 2500);
PREPARE TRANSACTION 'load';
ROLLBACK PREPARED 'load';
SELECT count(*) FROM c;

-- Many relations at once, with little memory.
SET colonnade.load_memory = '1MB';
CREATE TABLE p (a int, b text) PARTITION BY LIST (a);
DO $$ BEGIN
  FOR i IN 0..49 LOOP
    EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES IN (%s) USING colcompress', i, i);
  END LOOP;
END $$;
INSERT INTO p SELECT g % 50, md5(g::text) FROM generate_series(1, 60000) g;
SELECT count(*), sum(hashtext(b)::bigint) = (SELECT sum(hashtext(md5(g::text))::bigint) FROM generate_series(1, 60000) g) AS same FROM p;
COPY p FROM PROGRAM 'seq 1 60000 | while read g; do echo "$((g % 50)),v$g"; done' CSV;
SELECT count(*), count(DISTINCT b) FROM p;
DROP TABLE p;
RESET colonnade.load_memory;

-- CREATE TABLE AS, materialized views, rewrites.
CREATE TABLE cta USING colcompress AS SELECT * FROM fill(1, 3000);
CREATE TABLE ctah USING heap AS SELECT * FROM fill(1, 3000);
SELECT agree('cta', 'ctah');
ALTER TABLE cta ADD COLUMN extra int DEFAULT 7, ADD COLUMN volatile float8 DEFAULT random();
ALTER TABLE cta ALTER COLUMN a TYPE bigint;
ALTER TABLE cta DROP COLUMN volatile, DROP COLUMN b;
ALTER TABLE ctah ADD COLUMN extra int DEFAULT 7, ALTER COLUMN a TYPE bigint, DROP COLUMN b;
SELECT agree('cta', 'ctah');
ALTER TABLE cta ADD COLUMN late text DEFAULT 'missing in old stripes';
ALTER TABLE ctah ADD COLUMN late text DEFAULT 'missing in old stripes';
SELECT agree('cta', 'ctah');
INSERT INTO cta SELECT a, d, t, j, x, 8, NULL FROM fill(1, 2000);
INSERT INTO ctah SELECT a, d, t, j, x, 8, NULL FROM fill(1, 2000);
SELECT agree('cta', 'ctah');
ALTER TABLE cta SET ACCESS METHOD heap;
SELECT agree('cta', 'ctah');
ALTER TABLE cta SET ACCESS METHOD colcompress;
SELECT agree('cta', 'ctah');
CREATE MATERIALIZED VIEW mv USING colcompress AS SELECT * FROM ctah;
SELECT agree('mv', 'ctah');
REFRESH MATERIALIZED VIEW mv;
SELECT agree('mv', 'ctah');
DROP MATERIALIZED VIEW mv;
DROP TABLE cta, ctah;

-- COPY FREEZE.
BEGIN;
TRUNCATE c;
COPY c (a) FROM PROGRAM 'seq 1 3000' (FREEZE);
COMMIT;
SELECT count(*), sum(a) FROM c;

-- Temporary and unlogged tables.
CREATE TEMP TABLE ct USING colcompress AS SELECT * FROM fill(1, 3000);
CREATE TEMP TABLE hp AS SELECT * FROM fill(1, 3000);
SELECT agree('ct', 'hp');
CREATE UNLOGGED TABLE cu USING colcompress AS SELECT * FROM fill(1, 3000);
SELECT agree('cu', 'hp');
CREATE TEMP TABLE gone (a int) USING colcompress ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO gone SELECT generate_series(1, 3000);
SELECT count(*) FROM gone;
COMMIT;
SELECT count(*) FROM gone;
DROP TABLE cu;

-- Published tables keep their rows hot.
CREATE TABLE pub (a int PRIMARY KEY) USING colcompress;
CREATE PUBLICATION pub_all FOR TABLE pub;
INSERT INTO pub SELECT generate_series(1, 3000);
SELECT count(*) FROM pub WHERE ctid >= '(2147483648,0)';
SELECT engine.colcompress_merge('pub');
DROP PUBLICATION pub_all;
SELECT engine.colcompress_merge('pub');
SELECT count(*) FROM pub WHERE ctid >= '(2147483648,0)';
DROP TABLE pub;
