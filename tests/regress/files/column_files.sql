-- Foreign tables over column files: loads, answers, transactions, changes of the table.
SET colonnade.vectorised_min_rows = 0;
SET max_parallel_workers_per_gather = 0;
CREATE SERVER cstore_server FOREIGN DATA WRAPPER cstore_fdw;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        RETURN NEXT regexp_replace(regexp_replace(regexp_replace(line, 'cstore_fdw/\d+/\d+', 'FILE'), 'decoded \d+kB', 'decoded N'), 'actual rows=(\d+)(\.00)?', 'actual rows=\1');
    END LOOP;
END $$;
-- options
CREATE FOREIGN TABLE bad (a int) SERVER cstore_server OPTIONS (compresion 'zstd');
CREATE FOREIGN TABLE bad (a int) SERVER cstore_server OPTIONS (compression 'lzma');
CREATE FOREIGN TABLE bad (a int) SERVER cstore_server OPTIONS (stripe_row_count '999');
CREATE FOREIGN TABLE bad (a int) SERVER cstore_server OPTIONS (block_row_count '100001');
CREATE FOREIGN TABLE bad (a int) SERVER cstore_server OPTIONS (compression_level '20');
CREATE FOREIGN TABLE bad (a int) SERVER cstore_server OPTIONS (filename 'relative');
CREATE FOREIGN TABLE bad (a int) SERVER cstore_server OPTIONS (orderby 'a sideways');
CREATE SERVER bad FOREIGN DATA WRAPPER cstore_fdw OPTIONS (host 'x');
-- a table that was never loaded
CREATE FOREIGN TABLE t (a int NOT NULL, b text, c numeric(10,2), d date, e int[], f float8, g jsonb, CHECK (a <> 13)) SERVER cstore_server OPTIONS (compression 'zstd', stripe_row_count '20000', block_row_count '2000');
SELECT * FROM t;
SELECT cstore_table_size('t');
TRUNCATE t;
ANALYZE t;
-- the same rows in a heap table
CREATE TABLE h (LIKE t INCLUDING CONSTRAINTS);
INSERT INTO h SELECT g, CASE g % 7 WHEN 0 THEN NULL ELSE 'text ' || g % 50 END, g / 4.0, date '2020-01-01' + g % 1000,
    ARRAY[g, NULL, g % 3], CASE g % 11 WHEN 0 THEN 'NaN' ELSE g * 0.5 END, jsonb_build_object('n', g % 5, 'a', ARRAY[g])
FROM generate_series(20, 50019) g;
INSERT INTO t SELECT * FROM h;
SELECT count(*) FROM ((TABLE t EXCEPT ALL TABLE h) UNION ALL (TABLE h EXCEPT ALL TABLE t)) x;
SELECT cstore_table_size('t') BETWEEN 100000 AND 3000000;
SELECT plan('SELECT d, sum(c), max(f) FROM t WHERE a BETWEEN 1000 AND 3000 GROUP BY d');
SELECT plan('SELECT * FROM t WHERE a = 30000');
SELECT * FROM t WHERE a = 30000;
SELECT b, count(*), sum(c), max(f), min(g::text) FROM t GROUP BY b EXCEPT SELECT b, count(*), sum(c), max(f), min(g::text) FROM h GROUP BY b;
SELECT t.b, sum(h.c) FROM t JOIN h USING (a) WHERE t.a < 30 GROUP BY 1 ORDER BY 1;
SELECT t FROM t WHERE a = 21;
SELECT tableoid::regclass, count(*) FROM t GROUP BY 1;
SELECT a FROM t WHERE a < 22 FOR UPDATE;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT a FROM t WHERE a > 50000;
FETCH LAST FROM c; FETCH BACKWARD 2 FROM c; FETCH FIRST FROM c;
CLOSE c;
-- constraints hold, and nothing of a statement that fails is there
INSERT INTO t (a) VALUES (1), (NULL);
INSERT INTO t (a) SELECT g FROM generate_series(1, 20) g;
\set VERBOSITY terse
COPY t (a) FROM stdin;
1
13
\.
\set VERBOSITY default
SELECT count(*) FROM t WHERE a < 20;
-- rows one by one, columns left out, and COPY
INSERT INTO t (a, b) VALUES (1, 'one'), (2, 'two') RETURNING a, b, c;
COPY t (b, a) FROM stdin;
three	3
four	4
\.
COPY (SELECT a, b, c FROM t WHERE a < 20 ORDER BY a) TO stdout;
INSERT INTO t SELECT a + 100000 FROM t WHERE a < 20;
SELECT count(*), max(a) FROM t WHERE a < 20 OR a > 100000;
-- what cannot be
UPDATE t SET a = 1;
DELETE FROM t WHERE a = 1;
INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING;
CREATE INDEX ON t (a);
-- transactions
BEGIN;
INSERT INTO t (a) VALUES (-1);
SAVEPOINT s;
INSERT INTO t (a) VALUES (-2);
SELECT a FROM t WHERE a < 0 ORDER BY 1;
ROLLBACK TO s;
INSERT INTO t (a) VALUES (-3);
SELECT a FROM t WHERE a < 0 ORDER BY 1;
COMMIT;
SELECT a FROM t WHERE a < 0 ORDER BY 1;
BEGIN;
INSERT INTO t (a) VALUES (-4);
TRUNCATE t;
INSERT INTO t (a) VALUES (-5);
SELECT a FROM t;
ROLLBACK;
SELECT count(*) FROM t WHERE a < 0;
BEGIN;
INSERT INTO t (a) VALUES (-6);
PREPARE TRANSACTION 'file';
SELECT count(*) FROM t WHERE a = -6;
COMMIT PREPARED 'file';
SELECT count(*) FROM t WHERE a = -6;
DO $$ BEGIN
    INSERT INTO t (a) VALUES (-7);
    BEGIN
        INSERT INTO t (a) VALUES (-8);
        PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
END $$;
SELECT a FROM t WHERE a < -6;
-- statistics
ANALYZE t;
SELECT reltuples, relpages > 0 FROM pg_class WHERE oid = 't'::regclass;
SELECT attname, null_frac > 0.1 AS nulls, n_distinct > 45 AS many FROM pg_stats WHERE tablename = 't' AND attname IN ('b', 'd') ORDER BY 1;
-- columns that come and go
ALTER FOREIGN TABLE t DROP COLUMN e, ADD COLUMN e text DEFAULT 'it''s new', ADD COLUMN i int, ADD COLUMN j timestamptz DEFAULT '2020-02-02 12:00+00';
ALTER TABLE t ADD COLUMN k int[] DEFAULT '{1,2}', ALTER COLUMN e SET DEFAULT 'other';
SELECT column_number, value FROM engine.column_file_default WHERE table_oid = 't'::regclass::oid::int8 ORDER BY 1;
ALTER TABLE t RENAME COLUMN b TO bb;
SELECT a, bb, e, i, j, k FROM t WHERE a BETWEEN -5 AND 4 ORDER BY a;
INSERT INTO t (a, i) VALUES (-9, 5);
SET timezone = 'America/New_York'; SET datestyle = 'German';
SELECT a, bb, e, i, j, k FROM t WHERE a IN (-9, 4) ORDER BY a;
RESET timezone; RESET datestyle;
SELECT e, count(*), min(j) FROM t GROUP BY e ORDER BY e;
SELECT count(*) FROM t WHERE e = 'it''s new' AND k @> '{2}';
ALTER TABLE t ADD COLUMN l float8 DEFAULT random();
ALTER TABLE t ADD COLUMN l int GENERATED ALWAYS AS (a + 1) STORED;
ALTER TABLE t ALTER COLUMN a TYPE bigint;
ALTER TABLE t ALTER COLUMN c TYPE numeric(5,1);
ALTER TABLE t ALTER COLUMN c TYPE numeric, ALTER COLUMN bb TYPE varchar;
SELECT a, bb, c FROM t WHERE a = 21;
-- names that a default has may change; what NULL is not for
CREATE TYPE mood AS ENUM ('happy', 'sad');
CREATE DOMAIN no_null AS int NOT NULL;
CREATE FOREIGN TABLE young (a int) SERVER cstore_server;
INSERT INTO young VALUES (1), (2);
ALTER TABLE young ADD m mood DEFAULT 'happy', ADD r regclass DEFAULT 'young'::regclass, ADD u uuid DEFAULT '11111111-2222-3333-4444-555555555555', ADD n name DEFAULT 'a name',
    ADD f float8 DEFAULT 'NaN', ADD big text DEFAULT repeat('long ', 10000), ADD i interval DEFAULT '1 mon 2 days', ADD o oid DEFAULT 4000000000, ADD x "char" DEFAULT 'x', ADD k bigint DEFAULT -5;
ALTER TYPE mood RENAME VALUE 'happy' TO 'glad';
ALTER TABLE young RENAME TO older;
SET intervalstyle = 'iso_8601';
SELECT a, m, r, u, n, f, length(big), i, o, x, k FROM older;
RESET intervalstyle;
SELECT m, sum(k), max(u::text) FROM older GROUP BY m;
ANALYZE older;
ALTER TABLE older ADD d no_null;
ALTER TABLE older ADD d no_null DEFAULT 5;
ALTER TABLE older ADD e int NOT NULL;
ALTER TABLE older ADD s serial;
ALTER TABLE older ADD g int GENERATED ALWAYS AS IDENTITY;
ALTER TABLE older ADD CHECK (a > 0), ADD e int DEFAULT 6 CHECK (e > 5);
SELECT d, e FROM older;
-- what a stored expression has given stays (from 17 on it can be changed)
CREATE FOREIGN TABLE made (a int, b int GENERATED ALWAYS AS (a * 2) STORED) SERVER cstore_server;
INSERT INTO made VALUES (1), (2);
DO $$
BEGIN
    IF current_setting('server_version_num')::int >= 170000 THEN
        EXECUTE 'ALTER TABLE made ALTER b SET EXPRESSION AS (a * 3)';
    ELSE
        RAISE feature_not_supported;
    END IF;
EXCEPTION WHEN feature_not_supported THEN RAISE NOTICE 'refused';
END $$;
SELECT * FROM made;
-- no rows, nothing to keep
TRUNCATE made;
ALTER TABLE made ADD c int NOT NULL, ADD d float8 DEFAULT random(), DROP b, ALTER a TYPE bigint;
INSERT INTO made VALUES (5000000000, 1, 2);
SELECT * FROM made;
-- wrappers without a handler are no concern of ours
CREATE FOREIGN DATA WRAPPER handless;
CREATE SERVER handless FOREIGN DATA WRAPPER handless;
CREATE FOREIGN TABLE handless (a int) SERVER handless;
ALTER FOREIGN TABLE handless ADD b int DEFAULT 5;
DROP FOREIGN TABLE handless;
DROP FOREIGN DATA WRAPPER handless CASCADE;
-- event triggers see one statement
CREATE FUNCTION nothing() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE EVENT TRIGGER nothing ON ddl_command_end EXECUTE FUNCTION nothing();
CREATE FUNCTION adds() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE older ADD late int DEFAULT 3; RETURN 1; END $$;
CREATE TABLE from_function AS SELECT adds();
DROP EVENT TRIGGER nothing;
SELECT a, late FROM older;
-- a file is not taken from a transaction that may still commit
BEGIN;
CREATE FOREIGN TABLE late (a int) SERVER cstore_server;
INSERT INTO late VALUES (1);
SELECT 'late'::regclass::oid AS late \gset
PREPARE TRANSACTION 'late';
\set VERBOSITY sqlstate
SELECT cstore_clean_table_resources(:late);
\set VERBOSITY default
COMMIT PREPARED 'late';
SELECT cstore_clean_table_resources(:late);
SELECT * FROM late;
-- partitions
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE FOREIGN TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200) SERVER cstore_server;
INSERT INTO p SELECT g, 'p' || g FROM generate_series(50, 149) g;
COPY p FROM stdin;
150	copied
1	copied
\.
SELECT tableoid::regclass, count(*), min(a), max(b) FROM p GROUP BY 1 ORDER BY 1;
SELECT * FROM p WHERE a = 150;
INSERT INTO p2 VALUES (5, 'outside');
INSERT INTO p VALUES (250, 'nowhere');
ALTER TABLE p ADD COLUMN c int DEFAULT 7;
SELECT c, count(*) FROM p GROUP BY c;
-- a trigger that moves a row out of its partition
CREATE FUNCTION moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := NEW.a + 150; RETURN NEW; END $$;
CREATE TRIGGER moves BEFORE INSERT ON p2 FOR EACH ROW EXECUTE FUNCTION moves();
INSERT INTO p VALUES (110, 'moved');
DROP TRIGGER moves ON p2;
-- triggers see the rows
CREATE TABLE seen (what text, rows bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen SELECT TG_LEVEL || ' ' || TG_WHEN, count(*) FROM p2; RETURN NEW; END $$;
CREATE TRIGGER s AFTER INSERT ON p2 FOR EACH STATEMENT EXECUTE FUNCTION note();
CREATE TRIGGER r AFTER INSERT ON p2 FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER b BEFORE INSERT ON p2 FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO p2 VALUES (160, 'x'), (161, 'y');
SELECT * FROM seen;
-- order of rows
CREATE FOREIGN TABLE o (a int, b int) SERVER cstore_server OPTIONS (orderby 'b DESC, a', stripe_row_count '1000', block_row_count '1000');
INSERT INTO o SELECT g, g % 10 FROM generate_series(1, 5000) g;
SELECT plan('SELECT a FROM o WHERE b = 3');
SELECT array_agg(a) FROM (SELECT a FROM o LIMIT 3) x;
-- a file that is named; two tables do not load one file
SELECT current_setting('data_directory') || '/named.col' AS file \gset
CREATE FOREIGN TABLE n (a int) SERVER cstore_server OPTIONS (filename :'file');
CREATE FOREIGN TABLE m (a int) SERVER cstore_server OPTIONS (filename :'file');
INSERT INTO n VALUES (1);
\set VERBOSITY terse
DO $$ BEGIN INSERT INTO m VALUES (2); EXCEPTION WHEN duplicate_file THEN RAISE NOTICE 'duplicate_file'; END $$;
\set VERBOSITY default
SELECT * FROM n;
SELECT (pg_stat_file('named.col')).size > 0;
BEGIN;
DROP FOREIGN TABLE n;
ROLLBACK;
SELECT * FROM n;
DROP FOREIGN TABLE n;
SELECT pg_stat_file('named.col', true);
INSERT INTO m VALUES (2);
SELECT * FROM m;
BEGIN;
CREATE FOREIGN TABLE never (a int) SERVER cstore_server OPTIONS (filename '/tmp/colonnade-never.col');
INSERT INTO never VALUES (1);
ROLLBACK;
SELECT pg_stat_file('/tmp/colonnade-never.col', true);
-- rights
CREATE ROLE reader;
GRANT USAGE ON FOREIGN SERVER cstore_server TO reader;
GRANT CREATE ON SCHEMA public TO reader;
SET ROLE reader;
SELECT count(*) FROM t;
SELECT * FROM engine.column_file;
CREATE FOREIGN TABLE r (a int) SERVER cstore_server OPTIONS (filename '/etc/passwd');
CREATE FOREIGN TABLE r (a int) SERVER cstore_server;
INSERT INTO r VALUES (5);
ALTER FOREIGN TABLE r OPTIONS (ADD filename '/etc/passwd');
SELECT * FROM r;
RESET ROLE;
GRANT SELECT (a) ON t TO reader;
SET ROLE reader;
SELECT count(a) FROM t;
SELECT count(bb) FROM t;
RESET ROLE;
DROP OWNED BY reader;
DROP ROLE reader;
DROP SERVER cstore_server CASCADE;
SELECT count(*) FROM engine.column_file;
SELECT count(*) FROM pg_ls_dir('cstore_fdw/' || (SELECT oid FROM pg_database WHERE datname = current_database())) x;
