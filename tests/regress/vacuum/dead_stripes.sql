-- VACUUM frees stripes of which every row is dead, without packing's help. Beside others:
-- tests/isolation/vacuum/dead_stripes.spec.
CREATE FUNCTION stripe_count(t regclass) RETURNS bigint LANGUAGE sql AS 'SELECT stripes FROM engine.storage_health(t)';
\i include/packing.sql
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE t (id int PRIMARY KEY, day date, v text) USING colcompress WITH (packing = off, stripe_row_limit = 1000, chunk_group_row_limit = 1000);
CREATE INDEX ON t (day);
INSERT INTO t SELECT g, '2024-01-01'::date + g / 100, repeat(md5(g::text), 20) FROM generate_series(1, 5000) g;
CALL harness.settle();
SELECT stripe_count('t');
-- Retention: two stripes have no row left, one has some.
DELETE FROM t WHERE id <= 2500;
CALL harness.settle();
VACUUM t;
SELECT stripe_count('t'), (SELECT dead_bytes FROM engine.storage_health('t'));
SELECT count(*), min(id), max(id), min(day) FROM t;
SELECT kind, detail FROM engine.verify('t');
-- One by one, by an index, also by UPDATE, whose new versions are rows of the heap.
SET enable_seqscan = off; SET colonnade.enable_scan = off;
DO $$ BEGIN FOR i IN 2501..3000 LOOP DELETE FROM t WHERE id = i; END LOOP; END $$;
UPDATE t SET v = 'new' WHERE id BETWEEN 3001 AND 4000;
RESET enable_seqscan; RESET colonnade.enable_scan;
CALL harness.settle();
-- What is kept from VACUUM keeps nothing else: in a transaction it is refused, and FULL does it its own way.
BEGIN; VACUUM t; ROLLBACK;
SELECT stripe_count('t');
CREATE ROLE vacuum_stranger;
SET ROLE vacuum_stranger;
-- It warns, in words that depend on the version.
\set VERBOSITY sqlstate
VACUUM t;
\set VERBOSITY default
RESET ROLE;
SELECT stripe_count('t');
SET default_transaction_isolation = 'serializable';
VACUUM (ANALYZE, SKIP_LOCKED) t;
RESET default_transaction_isolation;
SELECT stripe_count('t'), (SELECT count(*) FROM t), (SELECT sum(id) FROM t WHERE v = 'new');
SELECT kind, detail FROM engine.verify('t');
-- The end of the file is cut off when the last stripes go.
DELETE FROM t;
CALL harness.settle();
VACUUM t;
SELECT stripe_count('t'), pg_relation_size('t') <= 8192 AS is_cut, (SELECT count(*) FROM t);
INSERT INTO t SELECT g, '2025-01-01', 'again' FROM generate_series(1, 1000) g;
SELECT stripe_count('t'), count(*) FROM t;

-- A partitioned table, a list, a temporary table; a materialized view and a heap table are nothing to it.
CREATE TABLE parent (id int) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF parent FOR VALUES FROM (0) TO (1000) USING colcompress WITH (packing = off);
CREATE TABLE part_2 PARTITION OF parent FOR VALUES FROM (1000) TO (2000) USING colcompress WITH (packing = off);
CREATE TABLE part_3 PARTITION OF parent FOR VALUES FROM (2000) TO (3000) USING heap;
CREATE TEMPORARY TABLE short (id int) USING colcompress;
INSERT INTO parent SELECT g FROM generate_series(0, 2999) g;
INSERT INTO short SELECT g FROM generate_series(1, 3000) g;
SELECT stripe_count('part_1'), stripe_count('part_2'), stripe_count('short');
DELETE FROM parent WHERE id <> 1500; DELETE FROM short;
CALL harness.settle();
VACUUM parent, short, t;
SELECT stripe_count('part_1'), stripe_count('part_2'), stripe_count('short'), stripe_count('t'), (SELECT count(*) FROM parent);
-- Without a name it is all tables.
DELETE FROM t; DELETE FROM parent;
CALL harness.settle();
VACUUM;
SELECT stripe_count('part_2'), stripe_count('t');
-- Of the catalogs nothing is left that speaks of such rows, once they are gone.
VACUUM t;
SELECT count(*) FROM engine.row_proxy WHERE storage_id = engine.colcompress_relation_storageid('t');
SELECT count(*) FROM engine.delete_bitmap WHERE storage_id = engine.colcompress_relation_storageid('t');
-- An exclusion constraint keeps packing away, not this.
CREATE TABLE excluded (r int4range, EXCLUDE USING gist (r WITH &&)) USING colcompress;
INSERT INTO excluded SELECT int4range(g, g + 1) FROM generate_series(1, 1000) g;
DELETE FROM excluded;
CALL harness.settle();
VACUUM excluded;
SELECT stripe_count('excluded');
INSERT INTO excluded VALUES ('[1,5)'); INSERT INTO excluded VALUES ('[4,5)');
DROP TABLE t, parent, short, excluded;
DROP ROLE vacuum_stranger;
DROP FUNCTION stripes; DROP PROCEDURE settle;
