-- What is its own of the access method rowcompress: options under their names, the functions and views that
-- speak of them, and ALTER TABLE between access methods. Everything else is tested by the other files with
-- AM=rowcompress (scripts/harness/methods.py).
CREATE TABLE r (id int PRIMARY KEY, t text, "Made At" timestamp) USING rowcompress WITH (batch_size = 1000, pruning_column = 'Made At');
INSERT INTO r SELECT g, 'row ' || g % 100, timestamp '2024-01-01' + (g * 7 % 2500) * interval '1 min' FROM generate_series(1, 2500) g;
SELECT engine.rowcompress_repack('r');
SELECT first_row, row_count FROM engine.rowcompress_batches WHERE table_name = 'r'::regclass ORDER BY 1;
SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'r'::regclass;
SELECT engine.rowcompress_relation_storageid('r') = engine.colcompress_relation_storageid('r') AS same;
SELECT * FROM engine.rowcompress_options;
SELECT stripes, unsorted_stripes FROM engine.storage_health WHERE table_name = 'r'::regclass;
-- The name goes with its column; an order that is given wins.
ALTER TABLE r RENAME "Made At" TO made;
SELECT reloptions FROM pg_class WHERE oid = 'r'::regclass;
ALTER TABLE r SET (orderby = 'id DESC', pruning_column = 'made');
SELECT engine.colcompress_option('r', 'pruning_column'), engine.colcompress_option('r', 'orderby');
ALTER TABLE r RESET (pruning_column);
SELECT reloptions FROM pg_class WHERE oid = 'r'::regclass;
ALTER TABLE r SET (pruning_column = 'nowhere');
-- Functions.
SELECT engine.alter_rowcompress_table_set('r', batch_size => 2000, compression => 'lz4', compression_level => 5, pruning_column => 'id',
    index_scan => true, packing => false, packing_rows => 77);
SELECT reloptions FROM pg_class WHERE oid = 'r'::regclass;
SELECT engine.alter_rowcompress_table_reset('r', batch_size => true, compression_level => true, pruning_column => true, packing_rows => true);
SELECT * FROM engine.rowcompress_options;
-- The limits, and options of the other access method.
ALTER TABLE r SET (batch_size = 99);
ALTER TABLE r SET (batch_size = 1000, chunk_group_row_limit = 2000);
ALTER TABLE r SET (chunk_group_row_limit = 20000);
ALTER TABLE r RESET (chunk_group_row_limit);
ALTER TABLE r SET (stripe_row_limit = 1000);
CREATE TABLE c (id int) USING colcompress WITH (batch_size = 1000);
CREATE TABLE c (id int) USING colcompress WITH (stripe_row_limit = 1000);
ALTER TABLE c SET (batch_size = 1000);
SELECT engine.colcompress_option('c', 'batch_size');
SELECT engine.colcompress_option('r', 'stripe_row_limit');
SELECT engine.alter_rowcompress_table_set('c', batch_size => 1000);
SELECT engine.alter_colcompress_table_set('r', stripe_row_limit => 1000);
SET colonnade.batch_size = 500;
SELECT batch_size FROM engine.rowcompress_options;
RESET colonnade.batch_size;
-- From one access method to another: what both have stays.
SELECT sum(hashtext(r::text)::bigint) AS before FROM r \gset
ALTER TABLE r SET ACCESS METHOD colcompress;
SELECT amname, reloptions, (SELECT sum(hashtext(r::text)::bigint) FROM r) = :before AS same FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'r'::regclass;
ALTER TABLE r SET (stripe_row_limit = 1000, orderby = 'made');
ALTER TABLE r SET ACCESS METHOD rowcompress, SET (batch_size = 1200);
SELECT amname, reloptions, (SELECT sum(hashtext(r::text)::bigint) FROM r) = :before AS same FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'r'::regclass;
SELECT row_count FROM engine.rowcompress_batches WHERE table_name = 'r'::regclass ORDER BY first_row;
SELECT * FROM engine.verify('r') WHERE kind <> 'unclaimed';
ALTER TABLE r SET ACCESS METHOD heap;
SELECT amname, reloptions, (SELECT sum(hashtext(r::text)::bigint) FROM r) = :before AS same FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'r'::regclass;
ALTER TABLE r SET (batch_size = 1000);
-- Partitions of both take from their parent what they have.
CREATE TABLE p (k int) PARTITION BY RANGE (k) WITH (batch_size = 3000, stripe_row_limit = 4000, compression = 'lz4');
CREATE TABLE p_rows PARTITION OF p FOR VALUES FROM (0) TO (10) USING rowcompress;
CREATE TABLE p_columns PARTITION OF p FOR VALUES FROM (10) TO (20) USING colcompress;
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'p\_%' ORDER BY 1;
SELECT engine.alter_rowcompress_table_set('p', compression => 'none');
CREATE TABLE without_rows (k int) PARTITION BY RANGE (k);
CREATE TABLE without_rows_1 PARTITION OF without_rows FOR VALUES FROM (0) TO (10) USING colcompress;
SELECT engine.alter_rowcompress_table_set('without_rows', compression => 'none');
SELECT engine.alter_rowcompress_table_reset('without_rows', compression => true);
-- By position, as storage_engine has them: the fifth is index_scan, the sixth orderby.
CREATE TABLE placed (id int, n int) USING rowcompress WITH (index_scan = true, orderby = 'id');
SELECT engine.alter_rowcompress_table_reset('placed', false, false, false, true);
SELECT index_scan, orderby FROM engine.rowcompress_options WHERE table_name = 'placed';
DROP TABLE placed;
SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'p\_%' ORDER BY 1;
DROP TABLE p, c, r;
