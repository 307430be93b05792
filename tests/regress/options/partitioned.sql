-- Options of a partitioned table are for the partitions that are made as columnar tables later.
CREATE FUNCTION opts(t regclass) RETURNS text LANGUAGE sql AS
$$ SELECT array_to_string(reloptions, ' | ') FROM pg_class WHERE oid = t $$;

CREATE TABLE p (k int, day date, v text) PARTITION BY RANGE (k) WITH (orderby = 'day DESC, k', compression = lz4, stripe_row_limit = 5000);
SELECT opts('p');
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10000) USING colcompress;
-- what the statement says comes first
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (10000) TO (20000) USING colcompress WITH (orderby = '', compression = zstd, fillfactor = 80);
CREATE TABLE p_3 PARTITION OF p FOR VALUES FROM (20000) TO (30000) USING heap WITH (fillfactor = 70);
SET default_table_access_method = colcompress;
CREATE TABLE p_4 PARTITION OF p FOR VALUES FROM (30000) TO (40000);
RESET default_table_access_method;
-- partitions that have partitions hand on what they have
CREATE TABLE p_5 PARTITION OF p FOR VALUES FROM (40000) TO (60000) PARTITION BY LIST (v) WITH (compression_level = 9);
CREATE TABLE p_5_x PARTITION OF p_5 FOR VALUES IN ('x') USING colcompress WITH (packing = off);
SELECT name, opts(name) FROM unnest('{p_1,p_2,p_3,p_4,p_5,p_5_x}'::regclass[]) name;
-- and they are in force
INSERT INTO p SELECT g, date '2024-01-01' + g % 700, 'v' || g FROM generate_series(0, 9999) g;
SELECT count(*), min(row_count), max(row_count) FROM engine.stripe WHERE storage_id = engine.colcompress_relation_storageid('p_1');
SELECT array_agg(day ORDER BY ctid) = array_agg(day ORDER BY day DESC) FROM (SELECT day, ctid FROM p_1 ORDER BY ctid LIMIT 5000) s;

-- ---- ALTER TABLE changes it for partitions to come
ALTER TABLE p SET (compression = none, packing_rows = 500), RESET (orderby);
CREATE TABLE p_6 PARTITION OF p FOR VALUES FROM (60000) TO (70000) USING colcompress;
SELECT name, opts(name) FROM unnest('{p,p_1,p_6}'::regclass[]) name;
-- the usual order is for what names none
SET colonnade.orderby = 'v, nosuch';
CREATE TABLE p_7 PARTITION OF p FOR VALUES FROM (70000) TO (80000) USING colcompress;
CREATE TABLE q (k int, v text) PARTITION BY RANGE (k);
SELECT name, opts(name) FROM unnest('{p_7,q}'::regclass[]) name;
RESET colonnade.orderby;
-- the functions work on partitions
SELECT engine.alter_colcompress_table_set('p', compression => 'pglz');
SELECT name, opts(name) FROM unnest('{p,p_1,p_3,p_5,p_5_x,p_6}'::regclass[]) name;

-- ---- columns of the order
ALTER TABLE p SET (orderby = 'day, v');
ALTER TABLE p RENAME day TO "the day";
SELECT opts('p'), opts('p_1');
ALTER TABLE p DROP COLUMN "the day";
ALTER TABLE p DROP COLUMN "the day" CASCADE;
SELECT name, opts(name) FROM unnest('{p,p_1,p_6}'::regclass[]) name;
DROP TABLE p_5;
ALTER TABLE p ALTER v TYPE json USING to_json(v);
ALTER TABLE p SET (orderby = 'nosuch');
ALTER TABLE p SET (stripe_row_limit = 5);
ALTER TABLE p SET (chunk_group_row_limit = 9000);
ALTER TABLE p RESET (orderby);

-- ---- a partitioned table of heap has no such options, and none has the server's
DO $$ BEGIN
    EXECUTE 'CREATE TABLE z (k int) PARTITION BY RANGE (k) WITH (fillfactor = 70)';
EXCEPTION WHEN invalid_parameter_value OR wrong_object_type THEN RAISE NOTICE 'refused';
END $$;
DO $$ BEGIN
    EXECUTE 'CREATE TABLE z (k int) PARTITION BY RANGE (k) WITH (compression = zstd, fillfactor = 70)';
EXCEPTION WHEN invalid_parameter_value OR wrong_object_type THEN RAISE NOTICE 'refused';
END $$;
DO $$ BEGIN
    EXECUTE 'ALTER TABLE p SET (compression = zstd, fillfactor = 70)';
EXCEPTION WHEN invalid_parameter_value OR wrong_object_type THEN RAISE NOTICE 'refused';
END $$;
CREATE TABLE z (k int) PARTITION BY RANGE (k) USING heap WITH (compression = zstd);
CREATE TABLE z PARTITION OF p FOR VALUES FROM (90000) TO (91000) USING heap WITH (compression = zstd);
SELECT opts('p'), to_regclass('z');

-- ---- a dump does without them, if it is asked for
SELECT relname, engine.portable_options(reloptions, relam) FROM pg_class WHERE relname IN ('p', 'p_1', 'p_2', 'p_3') ORDER BY 1;
SELECT v.* FROM pg_partition_tree('p') t, engine.verify(t.relid) v WHERE t.isleaf AND t.relid <> 'p_3'::regclass;
DROP TABLE p, q;
-- where the extension is not, the server refuses them
\set before :DBNAME
CREATE DATABASE partitioned_without;
\connect partitioned_without
DO $$ BEGIN
    EXECUTE 'CREATE TABLE z (k int) PARTITION BY RANGE (k) WITH (compression = zstd)';
EXCEPTION WHEN invalid_parameter_value OR wrong_object_type THEN RAISE NOTICE 'refused';
END $$;
-- nor needs it the extension to take them away
CREATE EXTENSION colonnade;
CREATE TABLE z (k int) PARTITION BY RANGE (k) WITH (compression = zstd, orderby = 'k');
DROP EXTENSION colonnade;
ALTER TABLE z RESET (compression, orderby);
SELECT relname, reloptions FROM pg_class WHERE relname = 'z';
\connect :before
DROP DATABASE partitioned_without;
