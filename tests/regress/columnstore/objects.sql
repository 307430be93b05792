-- Columnstore indexes of every kind of table; what is refused.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
SET enable_seqscan = off;
\i include/with_and_without.sql
-- options
CREATE TABLE t (a int, b text, c int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, 'b' || g, g % 7 FROM generate_series(1, 3000) g;
CALL harness.settle();
CREATE INDEX o ON t USING columnstore (a) WITH (compression_type = 'none', compression_level = 9, chunk_group_row_limit = 1000);
SELECT reloptions FROM pg_class WHERE relname = 'o';
ALTER INDEX o SET (compression_type = zstd);
CREATE INDEX ON t USING columnstore (a) WITH (compression_type = 'pglz');
CREATE INDEX ON t USING columnstore (a) WITH (compression_level = 10);
CREATE INDEX ON t USING columnstore (a) WITH (fillfactor = 10);
DROP INDEX o;
-- refused
CREATE INDEX ON t USING columnstore (a) WHERE c = 1;
CREATE INDEX ON t USING columnstore ((a + c));
CREATE UNIQUE INDEX ON t USING columnstore (a);
CREATE INDEX ON t USING columnstore (a DESC);
CREATE INDEX ON t USING columnstore (a) INCLUDE (b);
CREATE TABLE columnar (a int) USING colcompress;
CREATE INDEX ON columnar USING columnstore (a);
CALL engine.columnstore_refresh('t');
CREATE INDEX t_a ON t (a);
CALL engine.columnstore_refresh('t_a');
-- an empty table, and one whose rows come later
CREATE TABLE empty (a int) WITH (autovacuum_enabled = off);
CALL harness.settle();
CREATE INDEX e ON empty USING columnstore (a);
SELECT * FROM compared('SELECT count(*), sum(a) FROM empty');
INSERT INTO empty SELECT generate_series(1, 1000);
SELECT * FROM compared('SELECT count(*), sum(a) FROM empty');
CALL harness.settle();
VACUUM empty;
CALL harness.settle();
CALL engine.columnstore_refresh('e');
SELECT * FROM compared('SELECT count(*), sum(a) FROM empty');
-- types
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (x int, y text);
CREATE TABLE kinds (p positive, m mood, a int[], c pair, r int4range, j json, n name, ch char(5), u engine.uint8, iv interval, b bytea, bit4 bit(4), wide text, tz timestamptz, inf numeric) WITH (autovacuum_enabled = off);
INSERT INTO kinds SELECT g, (ARRAY['sad', 'ok', 'happy']::mood[])[g % 3 + 1], ARRAY[g, g + 1], (g, 'y' || g)::pair, int4range(g, g + 3), json_build_object('g', g),
    'n' || g, 'c' || g % 10, g::text::engine.uint8, g * interval '1 minute', decode(lpad(to_hex(g), 8, '0'), 'hex'), (g % 16)::bit(4), repeat('long ' || g, CASE WHEN g % 500 = 0 THEN 20000 ELSE 1 END),
    timestamptz '2024-01-01 00:00+00' + g * interval '1 hour', CASE g % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' ELSE g / 3.0 END
FROM generate_series(1, 2000) g;
INSERT INTO kinds SELECT FROM generate_series(1, 10);
CALL harness.settle();
CREATE INDEX k ON kinds USING columnstore (p, m, a, c, r, j, n, ch, u, iv, b, bit4, wide, tz, inf);
SELECT * FROM compared('SELECT p, m, a, c, r, j, n, ch, u, iv, b, bit4, wide, tz, inf FROM kinds');
SELECT * FROM compared('SELECT m, count(*), min(inf), max(wide), sum(u) FROM kinds GROUP BY m');
-- temporary and unlogged tables
CREATE TEMP TABLE temporary (a int) ON COMMIT DELETE ROWS;
CREATE INDEX te ON temporary USING columnstore (a);
BEGIN;
INSERT INTO temporary SELECT generate_series(1, 1000);
SELECT * FROM compared('SELECT count(*), sum(a) FROM temporary');
COMMIT;
BEGIN;
INSERT INTO temporary SELECT generate_series(1, 10);
SELECT * FROM compared('SELECT count(*), sum(a) FROM temporary');
COMMIT;
CREATE UNLOGGED TABLE unlogged (a int) WITH (autovacuum_enabled = off);
INSERT INTO unlogged SELECT generate_series(1, 1000);
CALL harness.settle();
CREATE INDEX un ON unlogged USING columnstore (a);
SELECT * FROM compared('SELECT count(*), sum(a) FROM unlogged');
-- partitions: some have one, some are columnar
CREATE TABLE parts (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000) WITH (autovacuum_enabled = off);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000) WITH (autovacuum_enabled = off);
INSERT INTO parts SELECT g, g % 9 FROM generate_series(0, 1999) g;
CALL harness.settle();
CREATE INDEX parts_copy ON parts USING columnstore (a, b);
SELECT * FROM compared('SELECT b, count(*), sum(a) FROM parts GROUP BY b');
CREATE TABLE parts_3 (a int, b int) USING colcompress;
INSERT INTO parts_3 SELECT g, g % 9 FROM generate_series(2000, 2999) g;
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (2000) TO (3000);
DROP INDEX parts_copy;
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (2000) TO (3000);
CALL harness.settle();
CREATE INDEX ON parts_1 USING columnstore (a, b);
SELECT * FROM compared('SELECT b, count(*), sum(a) FROM parts GROUP BY b');
-- inserts that lose, and rows that are locked or changed
CREATE UNIQUE INDEX ON t (b);
CALL harness.settle();
CREATE INDEX tc ON t USING columnstore (a, b, c);
INSERT INTO t VALUES (1, 'b1', 1), (1, 'fresh', 1) ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (1, 'b2', 1) ON CONFLICT (b) DO UPDATE SET c = 100;
INSERT INTO t VALUES (1, 'b3', 1);
SELECT * FROM compared('SELECT sum(a), count(b), sum(c) FROM t');
SELECT a FROM t WHERE c = 100 FOR UPDATE;
UPDATE t SET c = u.p FROM kinds u WHERE u.p = t.a AND t.a < 5 RETURNING t.a, t.c;
SELECT * FROM compared('SELECT sum(a), count(b), sum(c) FROM t');
-- a serializable transaction reads the heap
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM compared('SELECT sum(a), count(b), sum(c) FROM t');
COMMIT;
-- verify finds rows that the index was not told of: for a while the server takes it for one that is not ready
CREATE TABLE untold (a int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO untold SELECT generate_series(1, 200);
CALL harness.settle();
CREATE INDEX u ON untold USING columnstore (a);
SELECT * FROM engine.columnstore_verify('u');
ALTER TABLE untold RESET (fillfactor);
UPDATE pg_index SET indisready = false WHERE indexrelid = 'u'::regclass;
INSERT INTO untold VALUES (201);
CALL harness.settle();
VACUUM untold;
UPDATE pg_index SET indisready = true WHERE indexrelid = 'u'::regclass;
SELECT * FROM engine.columnstore_verify('u');
UPDATE pg_class SET relhasindex = true WHERE relname = 'untold'; -- VACUUM saw no index
SELECT kind, block, detail, severity FROM engine.verify('untold');
REINDEX INDEX u;
SELECT * FROM engine.columnstore_verify('u');
SELECT * FROM engine.verify('untold');
SELECT * FROM engine.verify('parts');
CREATE ROLE columnstore_stranger;
SET ROLE columnstore_stranger;
SELECT * FROM engine.verify('untold');
RESET ROLE;
DROP ROLE columnstore_stranger;
-- what went is gone
DROP TABLE untold, t, empty, kinds, unlogged, parts, temporary;
-- indexes of all columns: more than one of a wide table; none of the dropped column
SELECT format('CREATE TABLE "Wide table" (%s)', string_agg(format('c%s int', n), ', ')) FROM generate_series(1, 40) n \gexec
ALTER TABLE "Wide table" DROP COLUMN c7;
INSERT INTO "Wide table" (c1, c40) SELECT g, g FROM generate_series(1, 1000) g;
CALL harness.settle();
SELECT pg_get_indexdef(i) FROM engine.columnstore_create('"Wide table"', 'lz4', 3) i;
SELECT * FROM compared('SELECT sum(c1), count(c2) FROM "Wide table"');
SELECT * FROM compared('SELECT sum(c40) FROM "Wide table"');
SELECT table_name, index_name, relation_blocks = compressed_blocks AND compressed_blocks = cache_pages_usable AS all_are FROM engine.stat_all_column_store_indexes WHERE table_name = '"Wide table"'::regclass ORDER BY 2;
SELECT engine.columnstore_create('"Wide table"', 'pglz');
SELECT engine.columnstore_create('columnar');
-- partitions are refreshed by the index of their table
CREATE TABLE parted (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000) WITH (autovacuum_enabled = off);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (2000) WITH (autovacuum_enabled = off);
CREATE INDEX parted_copy ON parted USING columnstore (a, b) WITH (refresh = off);
INSERT INTO parted SELECT g, 'b' FROM generate_series(0, 1999) g;
CALL harness.settle();
VACUUM parted;
SELECT index_name, clean_blocks > 0 AS copied FROM engine.columnstore_indexes WHERE table_name::text LIKE 'parted%' ORDER BY 1;
CALL engine.columnstore_refresh('parted_copy');
SELECT index_name, clean_blocks > 0 AS copied FROM engine.columnstore_indexes WHERE table_name::text LIKE 'parted%' ORDER BY 1;
SELECT * FROM compared('SELECT count(*), sum(a) FROM parted');
-- in a transaction block all is one transaction
INSERT INTO parted SELECT g, 'c' FROM generate_series(0, 999) g;
CALL harness.settle();
BEGIN;
CALL engine.columnstore_refresh('parted_copy', 0);
ROLLBACK;
SELECT * FROM compared('SELECT count(*), sum(a) FROM parted');
CALL engine.columnstore_refresh(NULL);
-- an index that is not valid
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'parted_1_a_b_idx'::regclass;
CALL engine.columnstore_refresh('parted_1_a_b_idx');
SELECT * FROM compared('SELECT count(*), sum(a) FROM parted_1');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'parted_1_a_b_idx'::regclass;
-- the index of a partitioned table has no file: VACUUM and REINDEX of the table see to the partitions
CREATE TABLE whole (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE whole_1 PARTITION OF whole FOR VALUES FROM (0) TO (1000) WITH (autovacuum_enabled = off);
CREATE TABLE whole_2 PARTITION OF whole FOR VALUES FROM (1000) TO (2000) WITH (autovacuum_enabled = off);
CREATE INDEX whole_copy ON whole USING columnstore (a, b);
INSERT INTO whole SELECT g, 'b' FROM generate_series(0, 1999) g;
CALL harness.settle();
VACUUM whole;
SELECT index_name, clean_blocks = heap_blocks AS all_copied FROM engine.columnstore_indexes WHERE table_name::text LIKE 'whole%' ORDER BY 1;
CALL harness.settle();
REINDEX TABLE CONCURRENTLY whole;
SELECT index_name, clean_blocks = heap_blocks AS all_copied FROM engine.columnstore_indexes WHERE table_name::text LIKE 'whole%' ORDER BY 1;
CALL harness.settle();
REINDEX INDEX CONCURRENTLY whole_copy;
SELECT index_name, clean_blocks = heap_blocks AS all_copied FROM engine.columnstore_indexes WHERE table_name::text LIKE 'whole%' ORDER BY 1;
SELECT * FROM compared('SELECT count(*), sum(a) FROM whole');
-- what comes after a refresh in a procedure has the session's own level
SET default_transaction_isolation = serializable;
DO $$
DECLARE copied bigint;
BEGIN
    CALL engine.columnstore_refresh('whole_copy', copied);
    RAISE NOTICE '%, locks on the tables: %', current_setting('transaction_isolation'), (SELECT count(*) FROM pg_locks WHERE relation = ANY ('{whole_1, whole_2}'::regclass[]::oid[]));
END $$;
RESET default_transaction_isolation;
DROP TABLE whole;
