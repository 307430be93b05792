-- Functions over a partitioned table go over its columnar partitions.
CREATE EXTENSION IF NOT EXISTS colonnade;
SET colonnade.stripe_threshold_rows = 1000;
CREATE TABLE p (id int, ts int) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000) USING colcompress;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (ts);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES FROM (1000) TO (1500) USING colcompress;
CREATE TABLE p22 PARTITION OF p2 FOR VALUES FROM (1500) TO (2000);
INSERT INTO p SELECT g, (g * 7919) % 2000 FROM generate_series(1, 20000) g;
-- options
SELECT engine.alter_colcompress_table_set('p', orderby => 'ts', compression => 'lz4');
SELECT table_name, orderby, compression FROM engine.colcompress_options ORDER BY 1;
SELECT engine.alter_colcompress_table_reset('p', compression => true);
SELECT table_name, orderby, compression FROM engine.colcompress_options ORDER BY 1;
-- heap rows, packed
INSERT INTO p SELECT g, g FROM generate_series(1, 1999, 3) g;
SELECT table_name, hot_rows > 0 AS hot FROM engine.storage_health ORDER BY 1;
-- (rows that a snapshot of another test does not see stay hot)
DO $$
BEGIN
    FOR turn IN 1..100 LOOP
        CALL engine.colcompress_repack('p');
        EXIT WHEN (SELECT sum(hot_rows) FROM engine.storage_health) = 0;
        PERFORM pg_sleep(0.1);
        COMMIT;
    END LOOP;
END $$;
SELECT table_name, hot_rows, cold_rows FROM engine.storage_health ORDER BY 1;
SELECT count(*), sum(id), sum(ts) FROM p;
-- merged, checked, unpacked
SELECT engine.colcompress_merge('p');
SELECT kind, detail FROM engine.verify('p') WHERE kind <> 'unclaimed';
SELECT table_name, hot_rows + cold_rows - dead_rows AS rows FROM engine.storage_health ORDER BY 1;
SELECT engine.unpack('p');
SELECT table_name, hot_rows, cold_rows FROM engine.storage_health ORDER BY 1;
SELECT count(*), sum(id), sum(ts) FROM p;
-- one row is about one table
SELECT engine.storage_health('p');
-- no columnar partition, not the owner
CREATE TABLE none (a int) PARTITION BY LIST (a);
CREATE TABLE none_1 PARTITION OF none DEFAULT;
SELECT engine.colcompress_merge('none');
CALL engine.colcompress_repack('none');
SELECT engine.alter_colcompress_table_set('none', orderby => 'a');
SELECT * FROM engine.verify('none');
CREATE ROLE partition_stranger;
SET ROLE partition_stranger;
SELECT engine.colcompress_merge('p');
SELECT engine.alter_colcompress_table_set('p', orderby => 'ts');
SELECT * FROM engine.verify('p');
RESET ROLE;
DROP ROLE partition_stranger;
DROP TABLE p, none;
