-- Options of colcompress tables: every way to write them, what is refused, and what other commands do to
-- them.
CREATE FUNCTION opts(t regclass) RETURNS text LANGUAGE sql AS
$$ SELECT array_to_string(reloptions, ' | ') FROM pg_class WHERE oid = t $$;

-- ---- CREATE TABLE
CREATE TABLE a (i int, t text, "We, ""x" int, j json) USING colcompress
    WITH (compression = LZ4, compression_level = 7, stripe_row_limit = 20000, chunk_group_row_limit = '2000',
          orderby = 'i desc, "We, ""x" nulls first, T asc nulls last', index_scan, fillfactor = 50);
SELECT opts('a');
SELECT * FROM engine.colcompress_options;
SELECT reloptions FROM pg_class WHERE relname = 'a';
-- a key in its default form is stored in its default form
CREATE TABLE b (i int, t text) USING colcompress WITH (orderby = '  i  ASC NULLS LAST,t DESC NULLS FIRST ');
SELECT opts('b');
SELECT * FROM engine.colcompress_options WHERE table_name = 'b';
DROP TABLE b;

-- ---- refused at CREATE
CREATE TABLE z (i int) USING colcompress WITH (compression = brotli);
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE z (i int) USING colcompress WITH (stripe_row_limits = 1);
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE z (i int) USING colcompress WITH (compression);
CREATE TABLE z (i int) USING colcompress WITH (compression_level = 0);
CREATE TABLE z (i int) USING colcompress WITH (compression_level = 20);
CREATE TABLE z (i int) USING colcompress WITH (compression_level = 3.5);
CREATE TABLE z (i int) USING colcompress WITH (compression_level = 'x');
CREATE TABLE z (i int) USING colcompress WITH (stripe_row_limit = 999);
CREATE TABLE z (i int) USING colcompress WITH (stripe_row_limit = 10000001);
CREATE TABLE z (i int) USING colcompress WITH (stripe_row_limit = 99999999999);
CREATE TABLE z (i int) USING colcompress WITH (chunk_group_row_limit = -1);
CREATE TABLE z (i int) USING colcompress WITH (stripe_row_limit = 5000, chunk_group_row_limit = 6000);
CREATE TABLE z (i int) USING colcompress WITH (index_scan = maybe);
CREATE TABLE z (i int) USING colcompress WITH (compression = none, compression = none);
CREATE TABLE z (i int) USING colcompress WITH ("ORDERBY" = 'i');
CREATE TABLE z (i int, t text) USING colcompress WITH (toast.compression = 'none');
CREATE TABLE z (i int) USING colcompress WITH (fillfactor = 5, compression = none);
CREATE TABLE z (i int) USING colcompress WITH (fastupdate = on);
CREATE TABLE z (i int) USING heap WITH (compression = none);
CREATE TABLE z (i int) USING nosuch WITH (compression = none);
-- Versions differ in what they say of a partitioned table's options.
DO $$ BEGIN
    CREATE TABLE z (i int) PARTITION BY RANGE (i) WITH (compression = none, fillfactor = 50);
EXCEPTION WHEN invalid_parameter_value OR wrong_object_type THEN RAISE NOTICE 'refused';
END $$;
SELECT relname FROM pg_class WHERE relname = 'z';
-- orderby takes columns, nothing else
CREATE TABLE z (i int, j json, p point) USING colcompress WITH (orderby = 'nosuch');
CREATE TABLE z (i int, j json, p point) USING colcompress WITH (orderby = 'ctid');
CREATE TABLE z (i int, j json, p point) USING colcompress WITH (orderby = 'j');
CREATE TABLE z (i int, j json, p point[]) USING colcompress WITH (orderby = 'p');
CREATE TABLE z (i int) USING colcompress WITH (orderby = ''); DROP TABLE z;
CREATE TABLE z (i int) USING colcompress WITH (orderby);
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i,');
CREATE TABLE z (i int) USING colcompress WITH (orderby = ',i');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i, i desc');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'I, "i"');
CREATE TABLE z (i int) USING colcompress WITH (orderby = '"I"');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i nulls');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i asc desc');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i nulls first asc');
CREATE TABLE z (i int) USING colcompress WITH (orderby = '"i');
CREATE TABLE z (i int) USING colcompress WITH (orderby = '""');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i + 1');
CREATE TABLE z (i int) USING colcompress WITH (orderby = '-i');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'z.i');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i using <');
CREATE TABLE z (i text) USING colcompress WITH (orderby = 'i collate "C"');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i; DROP TABLE a');
CREATE TABLE z (i int) USING colcompress WITH (orderby = 'i -- comment');
CREATE TABLE z (i int) USING colcompress WITH (orderby = '1');
SELECT relname FROM pg_class WHERE relname = 'z';
-- names like the words of the syntax, and names in other letters
CREATE TABLE z ("desc" int, "nulls" int, "Größe" int, größe int, "a=b" int, "x,y" int, "q""q" int) USING colcompress
    WITH (orderby = '"desc" desc, "nulls" nulls first, GRößE, "Größe", "a=b", "x,y", "q""q"');
SELECT opts('z');
DROP TABLE z;
-- nothing is checked if nothing is created
CREATE TABLE IF NOT EXISTS a (i int) USING colcompress WITH (orderby = 'nosuch');
SELECT opts('a');

-- ---- ALTER TABLE
ALTER TABLE a SET (fillfactor = 60);
SELECT opts('a');
ALTER TABLE a RESET (fillfactor);
SELECT opts('a');
ALTER TABLE a SET (compression = 'none', autovacuum_enabled = off, stripe_row_limit = 30000);
ALTER TABLE a RESET (index_scan, compression_level, autovacuum_enabled);
SELECT opts('a');
ALTER TABLE a SET (compression = zstd), RESET (stripe_row_limit), SET (fillfactor = 70), SET (compression_level = 9);
SELECT opts('a');
ALTER TABLE a SET (toast.autovacuum_enabled = off, compression_level = 8);
SELECT opts('a'), (SELECT reloptions FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'a'));
ALTER TABLE a RESET (nosuch);
ALTER TABLE a SET (compression = brotli);
ALTER TABLE a SET (nosuch = 1);
ALTER TABLE a SET (fillfactor = 5);
ALTER TABLE a SET (compression = pglz, compression = lz4);
ALTER TABLE a SET (chunk_group_row_limit = 5000), SET (stripe_row_limit = 4000);
ALTER TABLE a SET (stripe_row_limit = 1500);
ALTER TABLE a RESET (compression = pglz);
ALTER TABLE a SET (orderby = 'j');
ALTER TABLE nosuch SET (compression = none);
ALTER TABLE IF EXISTS nosuch SET (compression = none);
SELECT opts('a');
ALTER TABLE a RESET (compression, compression_level, stripe_row_limit, chunk_group_row_limit, orderby, index_scan, fillfactor);
SELECT opts('a') IS NULL;
SELECT * FROM engine.colcompress_options;

-- ---- transactions
BEGIN;
ALTER TABLE a SET (compression = none);
SAVEPOINT s;
ALTER TABLE a SET (compression = lz4, orderby = 'i');
SELECT opts('a');
ROLLBACK TO s;
SELECT opts('a');
ALTER TABLE a SET (compression_level = 2);
COMMIT;
SELECT opts('a');
BEGIN;
ALTER TABLE a SET (orderby = 't');
ROLLBACK;
SELECT opts('a');
-- an error in a block leaves nothing behind for the next statement
DO $$
BEGIN
    BEGIN
        CREATE TABLE e (i int) USING colcompress WITH (compression = pglz, orderby = 'nosuch');
    EXCEPTION WHEN undefined_column THEN RAISE NOTICE 'refused: %', SQLERRM;
    END;
    CREATE TABLE e (i int) USING colcompress;
    BEGIN
        ALTER TABLE e SET (compression = pglz), ADD CHECK (i / 0 > 0), ALTER i TYPE int USING 1 / 0;
    EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'refused: %', SQLERRM;
    END;
    ALTER TABLE e SET (fillfactor = 90);
END $$;
SELECT opts('e');
-- cached statements run again and again
CREATE PROCEDURE again() LANGUAGE plpgsql AS $$
BEGIN
    DROP TABLE IF EXISTS e;
    CREATE TABLE e (i int) USING colcompress WITH (compression = none, fillfactor = 90, orderby = 'i');
    ALTER TABLE e SET (compression = pglz, fillfactor = 80);
END $$;
CALL again(); CALL again(); CALL again();
SELECT opts('e');
CREATE PROCEDURE with_commit() LANGUAGE plpgsql AS $$
BEGIN
    ALTER TABLE e SET (compression = lz4);
    COMMIT;
    ALTER TABLE e SET (orderby = 'i desc');
    ROLLBACK;
    ALTER TABLE e SET (compression_level = 4);
END $$;
CALL with_commit();
SELECT opts('e');
BEGIN READ ONLY;
ALTER TABLE e SET (compression = none);
ROLLBACK;
BEGIN READ ONLY;
SELECT engine.alter_colcompress_table_set('e', compression => 'none');
ROLLBACK;
DROP TABLE e;

-- ---- CREATE TABLE AS and its relatives
CREATE TABLE c1 (x, y) USING colcompress WITH (compression = none, orderby = 'y desc', fillfactor = 90) AS SELECT g, -g FROM generate_series(1, 10) g;
CREATE TABLE c2 USING colcompress WITH (orderby = 'x') AS SELECT 1 AS x WITH NO DATA;
CREATE MATERIALIZED VIEW c3 USING colcompress WITH (compression = lz4, orderby = 'x') AS SELECT 1 AS x;
PREPARE q AS SELECT 1 AS x, 2 AS y;
CREATE TABLE c4 USING colcompress WITH (orderby = 'y') AS EXECUTE q;
DO $$ BEGIN
    EXECUTE 'EXPLAIN ANALYZE CREATE TABLE c5 USING colcompress WITH (compression_level = 5) AS SELECT 1 AS x';
    EXECUTE 'EXPLAIN ANALYZE CREATE TABLE c6 USING colcompress WITH (compression_level = 6) AS EXECUTE q';
END $$;
EXPLAIN (COSTS OFF) CREATE TABLE c7 USING colcompress WITH (compression = none) AS SELECT 1 AS x;
CREATE SCHEMA sub CREATE TABLE c8 (i int) USING colcompress WITH (orderby = 'i');
SET default_table_access_method = colcompress;
CREATE TABLE c9 (i int) WITH (compression = none);
CREATE TABLE c10 WITH (compression = pglz) AS SELECT 1 AS x;
SELECT 1 AS x INTO c11;
CREATE TABLE c12 (i int) USING heap WITH (compression = none);
CREATE MATERIALIZED VIEW c13 WITH (orderby = 'x') AS SELECT 1 AS x;
RESET default_table_access_method;
CREATE TEMP TABLE c14 (i int) USING colcompress WITH (orderby = 'i') ON COMMIT DELETE ROWS;
CREATE TEMP TABLE pg_temp.c15 (i int) USING colcompress WITH (orderby = 'i');
CREATE UNLOGGED TABLE c16 (i serial, j text) USING colcompress WITH (orderby = 'i');
CREATE TABLE public.c17 (LIKE c1 INCLUDING ALL) USING colcompress WITH (orderby = 'x');
CREATE TABLE c18 USING colcompress WITH (orderby = 'nosuch') AS SELECT 1 AS x;
CREATE TABLE IF NOT EXISTS c1 USING colcompress WITH (orderby = 'nosuch') AS SELECT 1 AS x;
SELECT relname, relkind, opts(oid) FROM pg_class WHERE relname ~ '^c\d+$' ORDER BY length(relname), relname;
SELECT * FROM c1 ORDER BY x LIMIT 2;
REFRESH MATERIALIZED VIEW c3;
ALTER MATERIALIZED VIEW c3 SET (compression = none, fillfactor = 80);
ALTER MATERIALIZED VIEW c3 RENAME COLUMN x TO "X";
SELECT opts('c3');
DROP TABLE c1, c2, c4, c5, c6, sub.c8, c9, c10, c11, c14, c15, c16, c17;
DROP MATERIALIZED VIEW c3, c13;
-- a statement inside the creating one does not take its options
CREATE SCHEMA sly;
CREATE FUNCTION sly.twin() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass('sly.twin') IS NULL THEN CREATE TABLE sly.twin (i int) USING colcompress; END IF;
END $$;
CREATE EVENT TRIGGER opt_sly ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION sly.twin();
CREATE TABLE twin USING colcompress WITH (compression = none) AS SELECT 1 AS i;
DROP EVENT TRIGGER opt_sly;
SELECT opts('twin'), opts('sly.twin');
DROP TABLE twin, sly.twin;

-- ---- columns that orderby names
CREATE TABLE k (a int, b int, c int, "d d" text) USING colcompress WITH (orderby = 'a, b desc, "d d"', fillfactor = 70);
ALTER TABLE k RENAME a TO "A";
ALTER TABLE k RENAME COLUMN "d d" TO "d,""d";
ALTER TABLE k RENAME c TO cc;
ALTER TABLE k RENAME TO kk;
SELECT opts('kk');
ALTER TABLE kk DROP COLUMN b;
ALTER TABLE kk DROP COLUMN cc;
ALTER TABLE kk DROP COLUMN b CASCADE;
SELECT opts('kk');
ALTER TABLE kk DROP COLUMN "A", SET (orderby = '"d,""d" desc');
SELECT opts('kk');
ALTER TABLE kk ALTER "d,""d" TYPE json USING NULL;
ALTER TABLE kk ALTER "d,""d" TYPE json USING NULL, RESET (orderby);
SELECT opts('kk');
ALTER TABLE kk ADD COLUMN e int, SET (orderby = 'e');
ALTER TABLE kk DROP COLUMN e CASCADE, SET (compression = none);
SELECT opts('kk');
ALTER TABLE kk ADD COLUMN e int, ADD COLUMN f int, SET (orderby = 'f, e desc');
ALTER TABLE kk DROP COLUMN e CASCADE, SET (compression = lz4);
SELECT opts('kk');
DROP TABLE kk;
-- the hint is a statement that works
CREATE TABLE "Odd t" ("x y" int, b int) USING colcompress WITH (orderby = '"x y"');
ALTER TABLE "Odd t" DROP COLUMN "x y";
DROP TABLE "Odd t";
-- by way of a type, a parent, a typed table
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE m (i int, m mood, j int) USING colcompress WITH (orderby = 'm, i');
DROP TYPE mood;
DROP TYPE mood CASCADE;
SELECT opts('m');
CREATE TABLE parent (i int, j int);
CREATE TABLE child () INHERITS (parent) USING colcompress WITH (orderby = 'i, j');
ALTER TABLE parent RENAME i TO ii;
SELECT opts('child');
ALTER TABLE parent DROP COLUMN ii;
ALTER TABLE parent DROP COLUMN ii CASCADE;
SELECT opts('child');
CREATE TYPE pair AS (x int, y int);
CREATE TABLE typed OF pair USING colcompress WITH (orderby = 'y');
ALTER TYPE pair RENAME ATTRIBUTE y TO z CASCADE;
SELECT opts('typed');
DROP TABLE m, child, parent, typed;
-- partitions
CREATE TABLE p (i int, j int) PARTITION BY RANGE (i);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) USING colcompress WITH (orderby = 'j', compression = none);
SET default_table_access_method = colcompress;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) WITH (orderby = 'i, j');
RESET default_table_access_method;
ALTER TABLE p RENAME j TO jj;
SELECT opts('p1'), opts('p2');
DO $$ BEGIN
    ALTER TABLE p SET (compression = none, fillfactor = 50);
EXCEPTION WHEN invalid_parameter_value OR wrong_object_type THEN RAISE NOTICE 'refused';
END $$;
DROP TABLE p;

-- ---- access methods change
CREATE TABLE w (i int, t text) WITH (fillfactor = 40);
ALTER TABLE w SET (compression = none);
ALTER TABLE w SET ACCESS METHOD colcompress, SET (compression = none, orderby = 'i');
SELECT opts('w');
ALTER TABLE w SET ACCESS METHOD colcompress;
SELECT opts('w');
ALTER TABLE w SET ACCESS METHOD heap, SET (compression = none);
ALTER TABLE w SET ACCESS METHOD heap, SET (fillfactor = 50);
SELECT opts('w');
ALTER TABLE w SET (fillfactor = 60);
CREATE INDEX w_brin ON w USING brin (i);
ALTER TABLE w SET ACCESS METHOD colcompress;
DROP INDEX w_brin;
ALTER TABLE w SET ACCESS METHOD colcompress;
CREATE INDEX ON w USING brin (i);
CREATE INDEX CONCURRENTLY ON w USING brin (i);
ALTER TABLE w RENAME TO "odd W";
CREATE INDEX ON "odd W" USING brin (i);
DROP TABLE "odd W";

-- ---- functions
SELECT engine.alter_colcompress_table_set('a', chunk_group_row_limit => 3000, stripe_row_limit => 9000,
    compression => 'lz4', compression_level => 5, orderby => 't desc', index_scan => true);
SELECT opts('a');
SELECT engine.alter_colcompress_table_set('a');
SELECT engine.alter_colcompress_table_set('a', index_scan => false, orderby => NULL);
SELECT opts('a');
SELECT engine.alter_colcompress_table_set('a', packing => false, packing_rows => 500);
SELECT opts('a');
ALTER TABLE a SET (packing_rows = 0);
ALTER TABLE a SET (packing = maybe);
SELECT engine.alter_colcompress_table_set('a', compression => 'gzip');
SELECT engine.alter_colcompress_table_set('a', compression_level => 20);
SELECT engine.alter_colcompress_table_set('a', orderby => 'nosuch');
SELECT engine.alter_colcompress_table_set('a', orderby => '');
SELECT engine.alter_colcompress_table_set(NULL, compression_level => 2);
SELECT engine.alter_colcompress_table_set('pg_class', compression_level => 2);
SELECT engine.alter_colcompress_table_set('a_nosuch', compression_level => 2);
SELECT engine.alter_colcompress_table_set(0, compression_level => 2);
SELECT engine.alter_colcompress_table_reset('a', compression => true, orderby => true, index_scan => NULL);
SELECT opts('a');
SELECT engine.alter_colcompress_table_reset('a', true, true, true, true, true, true, true, true);
SELECT opts('a') IS NULL;
SELECT engine.alter_colcompress_table_reset(NULL, true);
CREATE SCHEMA "odd. schema" CREATE TABLE "odd.table" ("I" int) USING colcompress;
SELECT engine.alter_colcompress_table_set('"odd. schema"."odd.table"', orderby => '"I"');
SELECT * FROM engine.colcompress_options ORDER BY table_name::text;
DROP SCHEMA "odd. schema" CASCADE;

-- ---- privileges
CREATE ROLE opt_stranger;
SET ROLE opt_stranger;
ALTER TABLE a SET (compression = none);
SELECT engine.alter_colcompress_table_set('a', compression => 'none');
SELECT engine.alter_colcompress_table_reset('a', compression => true);
SELECT table_name, compression FROM engine.colcompress_options;
RESET ROLE;
DROP ROLE opt_stranger;

-- ---- event triggers see the statement, and may alter the table themselves
CREATE FUNCTION report_commands() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    FOR r IN SELECT command_tag, object_identity FROM pg_event_trigger_ddl_commands() LOOP
        RAISE NOTICE '% on %', r.command_tag, r.object_identity;
        IF r.command_tag = 'ALTER TABLE' AND pg_trigger_depth() = 0 AND current_setting('opt.nest', true) = 'on' THEN
            PERFORM set_config('opt.nest', 'off', false);
            ALTER TABLE a SET (compression_level = 11);
        END IF;
    END LOOP;
END $$;
CREATE EVENT TRIGGER opt_tell ON ddl_command_end EXECUTE FUNCTION report_commands();
ALTER TABLE a SET (compression = lz4);
SET opt.nest = on;
ALTER TABLE a SET (compression = none);
SELECT opts('a');
SELECT engine.alter_colcompress_table_set('a', compression => 'zstd');
SELECT opts('a');
DROP EVENT TRIGGER opt_tell;

-- ---- the server's own errors come through the hook whole
CREATE TABLE bad (i int, j nosuch);
CREATE TABLE once (i int);
INSERT INTO once VALUES (1), (1);
DO $$
DECLARE cons text; tab text; det text; ctx text;
BEGIN
    EXECUTE 'ALTER TABLE once ADD CONSTRAINT but_once UNIQUE (i)';
EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS cons = CONSTRAINT_NAME, tab = TABLE_NAME, det = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '% % %', tab, cons, det;
END $$;
DO $$ BEGIN EXECUTE 'DO $i$ BEGIN RAISE division_by_zero; END $i$'; EXCEPTION WHEN division_by_zero THEN
DECLARE ctx text; BEGIN GET STACKED DIAGNOSTICS ctx = PG_EXCEPTION_CONTEXT; RAISE NOTICE '%', ctx; END; END $$;
DROP TABLE once;

-- ---- settings: defaults of options that are not set
SHOW colonnade.compression; SHOW colonnade.compression_level; SHOW colonnade.stripe_row_limit; SHOW colonnade.chunk_group_row_limit;
SET colonnade.compression = 'lz4';
SET colonnade.compression_level = 19;
SET colonnade.stripe_row_limit = 3000;
ALTER TABLE a RESET (compression, compression_level), SET (chunk_group_row_limit = 20000);
-- a chunk is never larger than its stripe
SELECT * FROM engine.colcompress_options;
SET colonnade.compression = 'gzip';
SET colonnade.stripe_row_limit = 1;
SET colonnade.chunk_group_row_limit = 1000001;
SET colonnade.nosuch = 1;
DROP TABLE a;
SELECT * FROM engine.colcompress_options;
