-- engine.colcompress_stripes shows the stripes of a table to those who may read all of it, and to nobody
-- else.
\i include/leak.sql
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE secret (id int, v text) USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000);
INSERT INTO secret SELECT g, g FROM generate_series(1, 3000) g;
CREATE TABLE policed (id int) USING colcompress;
INSERT INTO policed SELECT g FROM generate_series(1, 70) g;
CREATE TABLE nothing (id int) USING colcompress;
CREATE TABLE heap_table AS SELECT 1 AS id;
SELECT table_name, row_count FROM engine.colcompress_stripes ORDER BY table_name::text, first_row;
SELECT first_row, row_count, first_block > 0 AS placed, block_count > 0 AS has_pages, byte_length > 0 AS has_bytes
FROM engine.colcompress_stripes WHERE table_name = 'secret'::regclass ORDER BY first_row;
SELECT engine.colcompress_relation_storageid('secret') > 0, engine.colcompress_relation_storageid('nothing') IS NULL,
       engine.colcompress_relation_storageid('heap_table') IS NULL, engine.colcompress_relation_storageid(0) IS NULL;
-- a transaction sees its own, others do not, a rollback takes them away
BEGIN;
INSERT INTO secret SELECT g, g FROM generate_series(1, 500) g;
SELECT count(*), sum(row_count) FROM engine.colcompress_stripes WHERE table_name = 'secret'::regclass;
ROLLBACK;
SELECT count(*), sum(row_count) FROM engine.colcompress_stripes WHERE table_name = 'secret'::regclass;

CREATE ROLE stripes_reader;
CREATE ROLE stripes_stranger;
GRANT SELECT ON secret, policed TO stripes_reader;
GRANT SELECT (id) ON secret TO stripes_stranger;
ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON policed TO stripes_reader USING (id < 3);
SET ROLE stripes_reader;
SELECT count(*) FROM policed;
SELECT table_name, sum(row_count) FROM engine.colcompress_stripes GROUP BY 1 ORDER BY 1;
SELECT * FROM engine.stripe;
SET ROLE stripes_stranger;
SELECT count(id) FROM secret;
SELECT table_name, sum(row_count) FROM engine.colcompress_stripes GROUP BY 1 ORDER BY 1;
SELECT * FROM engine.stripe;
-- a function that tells what it is shown is not shown rows it must not see
SELECT * FROM engine.colcompress_stripes WHERE leak(row_count);
RESET ROLE;
SELECT table_name, sum(row_count) FROM engine.colcompress_stripes GROUP BY 1 ORDER BY 1;
TRUNCATE secret;
SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'secret'::regclass;
DROP TABLE secret, policed, nothing, heap_table;
SELECT count(*) FROM engine.colcompress_stripes;
DROP OWNED BY stripes_reader, stripes_stranger;
DROP ROLE stripes_reader, stripes_stranger;
