-- The traps of the design's list that one session can show, each by its number. The others:
-- docs/internals/columnstore.md.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
SET enable_seqscan = off;
\i include/with_and_without.sql
CREATE TABLE t (a int PRIMARY KEY, b text, c int) WITH (fillfactor = 70, autovacuum_enabled = off);
-- 8: CREATE INDEX in the transaction that loads; nobody else sees the rows yet
BEGIN;
CREATE TABLE same_transaction (a int) WITH (autovacuum_enabled = off);
INSERT INTO same_transaction SELECT generate_series(1, 1000);
CREATE INDEX st ON same_transaction USING columnstore (a);
SELECT * FROM compared('SELECT count(*), sum(a) FROM same_transaction');
INSERT INTO same_transaction SELECT generate_series(1001, 2000);
SAVEPOINT s;
DELETE FROM same_transaction WHERE a < 500;
SELECT * FROM compared('SELECT count(*), sum(a) FROM same_transaction');
ROLLBACK TO s;
COMMIT;
SELECT * FROM compared('SELECT count(*), sum(a) FROM same_transaction');
CALL harness.settle();
CALL engine.columnstore_refresh('st');
SELECT * FROM compared('SELECT count(*), sum(a) FROM same_transaction');
-- 8: a build that fails leaves an index that is not used
CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE ''not this''; END';
CREATE INDEX CONCURRENTLY ON same_transaction (fails(a));
SELECT * FROM compared('SELECT count(*), sum(a) FROM same_transaction');
-- 7: savepoints, inserts that lose, and a violation of a unique index that comes after ours
INSERT INTO t SELECT g, 'b' || g, g % 10 FROM generate_series(1, 5000) g;
CALL harness.settle();
CREATE INDEX t_copy ON t USING columnstore (a, b, c);
CREATE UNIQUE INDEX t_later ON t (b);
INSERT INTO t VALUES (6000, 'b1', 1);
BEGIN;
SAVEPOINT s;
INSERT INTO t SELECT g, 'b' || g, 1 FROM generate_series(5001, 5100) g;
ROLLBACK TO s;
INSERT INTO t VALUES (7000, 'kept', 1);
COMMIT;
INSERT INTO t VALUES (7001, 'kept', 1), (7002, 'new', 1) ON CONFLICT DO NOTHING;
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM t');
-- 4, 24: VACUUM and refresh, then a row that comes into a block of old
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM t');
INSERT INTO t SELECT g, 'again' || g, 1 FROM generate_series(8001, 8040) g;
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM t');
-- 5: an update within one block, one that is HOT of no column of the index, and one of such a column
ALTER TABLE t ADD COLUMN other int;
UPDATE t SET other = 1 WHERE a % 1000 = 1;
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM t');
UPDATE t SET c = c + 1 WHERE a % 1000 = 2;
UPDATE t SET a = a + 100000 WHERE a % 1000 = 3;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
-- 6: a cursor that outlives its transaction
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT a FROM t WHERE a <= 4;
COMMIT;
DELETE FROM t WHERE a = 2;
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON) t;
FETCH ALL FROM held;
CLOSE held;
-- 6: a function in the query changes the table
CREATE FUNCTION deletes(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM t WHERE a = $1; RETURN $1; END';
SELECT count(*), sum(a), sum(CASE WHEN a = 5 THEN deletes(6) END) FROM t WHERE a < 10;
SELECT * FROM compared('SELECT count(*), sum(a) FROM t WHERE a < 10');
-- 9: TRUNCATE in the transaction that has created it
BEGIN;
CREATE TABLE emptied (a int) WITH (autovacuum_enabled = off);
CREATE INDEX em ON emptied USING columnstore (a);
INSERT INTO emptied SELECT generate_series(1, 100);
SELECT * FROM compared('SELECT count(*), sum(a) FROM emptied');
TRUNCATE emptied;
INSERT INTO emptied SELECT generate_series(1, 50);
SELECT * FROM compared('SELECT count(*), sum(a) FROM emptied');
COMMIT;
SELECT * FROM compared('SELECT count(*), sum(a) FROM emptied');
-- 10: the end is cut off and filled again; INDEX_CLEANUP off; several passes over the indexes
DELETE FROM t WHERE a > 2000;
CALL harness.settle();
VACUUM (TRUNCATE ON, INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
INSERT INTO t SELECT g, 'filled' || g, 1 FROM generate_series(20001, 24000) g;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
DELETE FROM t WHERE a % 7 = 0;
CALL harness.settle();
VACUUM (INDEX_CLEANUP OFF) t;
SELECT same FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
SET maintenance_work_mem = '1MB';
VACUUM (INDEX_CLEANUP ON, PARALLEL 2) t;
RESET maintenance_work_mem;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
-- 17: rows are counted; no rows; blocks without rows
SELECT (SELECT reltuples FROM pg_class WHERE relname = 't_copy') = (SELECT count(*) FROM t) AS counted;
CREATE TABLE holes (a int, b text) WITH (autovacuum_enabled = off);
INSERT INTO holes SELECT g, repeat('x', 500) FROM generate_series(1, 3000) g;
DELETE FROM holes WHERE a BETWEEN 500 AND 2500;
CALL harness.settle();
VACUUM (TRUNCATE OFF) holes;
CREATE INDEX holes_copy ON holes USING columnstore (a, b);
SELECT * FROM compared('SELECT count(*), sum(a) FROM holes');
SELECT relname, reltuples FROM pg_class WHERE relname = 'holes_copy';
-- 18: the index has the columns in another order, in two indexes, beside dropped ones
CREATE TABLE shuffled (gone1 int, a int, gone2 text, b text, c numeric) WITH (autovacuum_enabled = off);
ALTER TABLE shuffled DROP COLUMN gone1, DROP COLUMN gone2;
INSERT INTO shuffled SELECT g, 'b' || g, g / 3.0 FROM generate_series(1, 1000) g;
CALL harness.settle();
CREATE INDEX ON shuffled USING columnstore (c, b, a);
CREATE INDEX ON shuffled USING columnstore (b, c);
ALTER TABLE shuffled ADD COLUMN d int DEFAULT 7;
SELECT * FROM compared('SELECT sum(a), max(b), sum(c) FROM shuffled WHERE c > 100 AND b LIKE ''b%''');
SELECT * FROM compared('SELECT sum(c) FROM shuffled WHERE b < ''b5''');
SELECT * FROM compared('SELECT sum(d) FROM shuffled');
-- 21: row security and rights are the table's
CREATE ROLE trap_reader;
GRANT SELECT (a, b) ON t TO trap_reader;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON t TO trap_reader USING (a < 100);
SET ROLE trap_reader;
SELECT count(*), max(a) FROM t;
SELECT sum(c) FROM t;
SELECT * FROM compared('SELECT count(*), max(a) FROM t');
CALL engine.columnstore_refresh('t_copy');
SELECT * FROM engine.columnstore_verify('t_copy');
RESET ROLE;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
DROP OWNED BY trap_reader;
DROP ROLE trap_reader;
-- 22: options are changed, the file is moved
ALTER INDEX t_copy SET (compression_type = none, chunk_group_row_limit = 1000);
INSERT INTO t SELECT g, 'options' || g, 1 FROM generate_series(30001, 32000) g;
CALL harness.settle();
VACUUM t;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
-- 23: triggers and rules are off for a replica; the index is told all the same
SET session_replication_role = replica;
DELETE FROM t WHERE a = 10;
UPDATE t SET b = 'by replica' WHERE a = 11;
INSERT INTO t VALUES (40000, 'by replica too', 1);
RESET session_replication_role;
SELECT same FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON) t;
SELECT * FROM compared('SELECT count(*), sum(a), sum(c), max(b) FROM t');
-- 27: a temporary table is refreshed in a transaction that has a cursor open
CREATE TEMP TABLE temporary (a int, b text);
CREATE INDEX tc ON temporary USING columnstore (a, b);
INSERT INTO temporary SELECT g, 'b' || g FROM generate_series(1, 3000) g;
CALL engine.columnstore_refresh('tc');
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM temporary');
BEGIN;
DECLARE c CURSOR FOR SELECT a FROM temporary WHERE a IN (1, 1000, 2000, 3000);
FETCH 1 FROM c;
DELETE FROM temporary WHERE a >= 1000;
CALL engine.columnstore_refresh('tc');
FETCH ALL FROM c;
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM temporary');
COMMIT;
CALL engine.columnstore_refresh('tc');
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM temporary');
-- nothing was missed
SELECT index_name, v.* FROM engine.columnstore_indexes, engine.columnstore_verify(index_name) v;
DROP TABLE t, holes, shuffled, emptied, same_transaction;
-- 19: the visibility map is thrown away
CREATE EXTENSION pg_visibility;
CREATE TABLE unmapped (a int) WITH (autovacuum_enabled = off);
INSERT INTO unmapped SELECT generate_series(1, 5000);
CALL harness.settle();
CREATE INDEX um ON unmapped USING columnstore (a);
SELECT * FROM compared('SELECT count(*), sum(a) FROM unmapped');
SELECT pg_truncate_visibility_map('unmapped');
SELECT * FROM compared('SELECT count(*), sum(a) FROM unmapped');
CALL engine.columnstore_refresh('um');
SELECT * FROM compared('SELECT count(*), sum(a) FROM unmapped');
DROP TABLE unmapped;
-- VACUUM gives up copies of dead rows alone: those of blocks with HOT updates stay, and nothing is copied anew
CREATE TABLE kept (a int, b text, other int) WITH (fillfactor = 70, autovacuum_enabled = off);
INSERT INTO kept SELECT g, 'b' || g, 0 FROM generate_series(1, 5000) g;
CALL harness.settle();
CREATE INDEX kept_copy ON kept USING columnstore (a, b) WITH (refresh = off);
UPDATE kept SET other = a WHERE a % 100 = 1;
UPDATE kept SET other = -a WHERE a % 100 = 1;
DELETE FROM kept WHERE a IN (1001, 1002, 4998);
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM kept');
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) kept;
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM kept');
SELECT * FROM engine.columnstore_verify('kept_copy');
INSERT INTO kept SELECT g, 'new', 0 FROM generate_series(6001, 6003) g;
SELECT * FROM compared('SELECT count(*), sum(a), max(b) FROM kept');
SELECT clean_blocks + checked_blocks + not_visible_blocks + not_copied_blocks = heap_blocks AS all_are, copies, v.* FROM engine.columnstore_indexes LEFT JOIN engine.columnstore_verify(index_name) v ON true WHERE index_name = 'kept_copy'::regclass;
DROP TABLE kept;

-- places of rows that are stored as codes of a dictionary: few, and in no order that is shorter
CREATE TABLE sparse (a int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO sparse SELECT g, repeat('f', 350) FROM generate_series(1, 42000) g;
DELETE FROM sparse WHERE (ctid::text::point)[1]::int <> (ARRAY[1, 8, 20])[2 + hashint4((ctid::text::point)[0]::int) % 2];
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) sparse;
CREATE INDEX sparse_copy ON sparse USING columnstore (a);
SET colonnade.vectorised_min_rows = 0;
DELETE FROM sparse WHERE a % 10 = 7;
SELECT * FROM compared('SELECT count(*), sum(a) FROM sparse');
SELECT * FROM engine.columnstore_verify('sparse_copy');
CALL harness.settle();
VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) sparse;
SELECT * FROM compared('SELECT count(*), sum(a) FROM sparse');
SELECT * FROM engine.columnstore_verify('sparse_copy');
DROP TABLE sparse;
