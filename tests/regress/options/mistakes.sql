-- The first mistakes with options say what is missing, before anything is rewritten.
CREATE EXTENSION IF NOT EXISTS colonnade;
SET client_min_messages = notice;
-- USING is forgotten
CREATE TABLE forgotten (a int) WITH (orderby = 'a');
CREATE TABLE forgotten USING heap WITH (compression = 'zstd') AS SELECT 1 AS a;
CREATE MATERIALIZED VIEW forgotten WITH (packing = off) AS SELECT 1 AS a;
CREATE TABLE heap_table (a int, b int) WITH (fillfactor = 90);
ALTER TABLE heap_table SET (packing = off);
ALTER TABLE heap_table SET (fillfactor = 80, orderby = 'a');
ALTER TABLE heap_table RESET (orderby);
-- the method goes, and an option is set
CREATE TABLE leaving (a int) USING colcompress WITH (orderby = 'a');
ALTER TABLE leaving SET ACCESS METHOD heap, SET (compression = 'zstd');
ALTER TABLE leaving SET ACCESS METHOD heap;
-- quotes around several columns are forgotten
CREATE TABLE quotes (ts int, id int) USING colcompress WITH (orderby = ts, id);
ALTER TABLE heap_table SET ACCESS METHOD colcompress, SET (orderby = a, b);
CREATE TABLE quotes (ts int, id int) USING colcompress WITH (id, orderby = ts);
-- an empty order is none
CREATE TABLE unordered (a int) USING colcompress WITH (orderby = '');
SELECT reloptions FROM pg_class WHERE relname = 'unordered';
ALTER TABLE unordered SET (orderby = 'a');
ALTER TABLE unordered SET (orderby = '  ', packing = off);
SELECT reloptions FROM pg_class WHERE relname = 'unordered';
SELECT engine.alter_colcompress_table_set('unordered', orderby => 'a');
SELECT engine.alter_colcompress_table_set('unordered', orderby => '');
SELECT reloptions FROM pg_class WHERE relname = 'unordered';
-- chunks larger than stripes
CREATE TABLE limits (a int) USING colcompress WITH (chunk_group_row_limit = 500000);
ALTER TABLE limits SET (stripe_row_limit = 1000);
ALTER TABLE limits SET (stripe_row_limit = 1000, chunk_group_row_limit = 1000);
SET client_min_messages = warning;

-- An order that is wrong ends the statement before a row is copied: a row that cannot be would say so.
CREATE FUNCTION loud(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'a row is copied'; RETURN i; END $$;
CREATE TABLE large (a int, j json);
INSERT INTO large VALUES (1, '1'), (2, '2');
ALTER TABLE large ALTER COLUMN a TYPE int USING loud(a), SET ACCESS METHOD colcompress, SET (orderby = 'nope');
ALTER TABLE large ALTER COLUMN a TYPE int USING loud(a), SET ACCESS METHOD colcompress, SET (orderby = 'j');
ALTER TABLE large ALTER COLUMN a TYPE int USING loud(a), SET ACCESS METHOD colcompress, SET (stripe_row_limit = 1);
-- what the statement itself makes of a column counts
ALTER TABLE large ALTER COLUMN a TYPE json USING to_json(loud(a)), SET ACCESS METHOD colcompress, SET (orderby = 'a');
ALTER TABLE large ALTER COLUMN a TYPE int USING loud(a), DROP COLUMN a, SET ACCESS METHOD colcompress, SET (orderby = 'a');
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'large';
ALTER TABLE large ALTER COLUMN j TYPE text USING j::text, ADD COLUMN k int DEFAULT 7, SET ACCESS METHOD colcompress, SET (orderby = 'j, k DESC');
SELECT amname, reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'large';
TABLE large;
