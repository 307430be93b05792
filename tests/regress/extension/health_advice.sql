-- engine.storage_health: figures that are there from the beginning, and advice that goes away when it was
-- followed.
CREATE VIEW health AS SELECT table_name, hot_rows, cold_rows, dead_rows, stripes, small_stripes, overlapping_stripes, needed, possible, advice
    FROM engine.storage_health;
CREATE FUNCTION told(t regclass, OUT hot bigint, OUT cold bigint, OUT needed text, OUT possible text) LANGUAGE sql AS $$
  SELECT hot_rows, cold_rows, regexp_replace(needed, '\d\d\d\d+', 'N', 'g'), regexp_replace(possible, '\d\d\d\d+', 'N', 'g') FROM engine.storage_health(t)
$$;
\i include/packing.sql
-- No figure is ever NULL: an empty table, one just loaded by single rows, one merged, unpacked, truncated.
CREATE TABLE t (k int, v text) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000, orderby = 'k');
SELECT * FROM told('t');
INSERT INTO t SELECT g, 'v' FROM generate_series(1, 900) g;
SELECT * FROM told('t');
INSERT INTO t SELECT g, 'v' FROM generate_series(901, 20900) g;
SELECT * FROM told('t');
BEGIN;
INSERT INTO t SELECT g, 'v' FROM generate_series(30001, 30050) g;
DELETE FROM t WHERE k <= 100;
SELECT * FROM told('t');
ROLLBACK;
SELECT * FROM told('t');
SELECT engine.colcompress_merge('t');
SELECT * FROM told('t');
SELECT engine.unpack('t');
CALL harness.settle();
SELECT hot, cold, needed ~ 'put some N heap rows' AS advised FROM told('t');
CALL engine.colcompress_repack('t');
SELECT hot, cold, needed IS NULL OR needed ~ '^VACUUM' AS packed FROM told('t');
CALL harness.settle();
VACUUM t;
SELECT * FROM told('t');
TRUNCATE t;
SELECT * FROM told('t');
-- Rows of stripes that died are no heap rows, whatever pg_class says.
INSERT INTO t SELECT g, 'v' FROM generate_series(1, 20000) g;
VACUUM ANALYZE t;
DELETE FROM t WHERE k % 10 = 0;
SELECT * FROM told('t');
CALL harness.settle();
VACUUM t;
SELECT * FROM told('t');
ANALYZE t;
SELECT * FROM told('t');
-- Of more than 2,048 heap pages a sample is counted.
CREATE TABLE many (k int, v text) USING colcompress;
ALTER TABLE many ALTER v SET STORAGE plain;
INSERT INTO many SELECT g, repeat('x', 1900) FROM generate_series(1, 12000) g;
SELECT engine.unpack('many');
DELETE FROM many WHERE k % 4 = 0;
SELECT pg_relation_size('many') / 8192 > 2900 AS pages, hot_rows BETWEEN 8700 AND 9300 AS about FROM health WHERE table_name = 'many'::regclass;
-- Three stripes that overlap: packing in the background waits for a fourth, so it is possible; who asks for
-- it gets it.
CREATE TABLE o (k int) USING colcompress WITH (stripe_row_limit = 1000, orderby = 'k');
DO $$BEGIN
  FOR load IN 0..2 LOOP INSERT INTO o SELECT g * 3 + load FROM generate_series(1, 1000) g; COMMIT; END LOOP;
END$$;
SELECT overlapping_stripes, needed, possible FROM health WHERE table_name = 'o'::regclass;
SET colonnade.packing = on;
SELECT overlapping_stripes, needed, possible FROM health WHERE table_name = 'o'::regclass;
ALTER TABLE o SET (packing = off);
SELECT overlapping_stripes, needed, possible FROM health WHERE table_name = 'o'::regclass;
ALTER TABLE o RESET (packing);
CALL harness.settle();
CALL engine.colcompress_repack('o');
CALL harness.settle();
VACUUM o;
SELECT overlapping_stripes, needed, possible FROM health WHERE table_name = 'o'::regclass;
RESET colonnade.packing;
-- A stripe of one value lies across no other.
CREATE TABLE one (k int) USING colcompress WITH (stripe_row_limit = 1000, orderby = 'k');
DO $$BEGIN
  FOR load IN 0..4 LOOP INSERT INTO one SELECT 7 FROM generate_series(1, 1000) g; COMMIT; END LOOP;
END$$;
SELECT overlapping_stripes, advice FROM health WHERE table_name = 'one'::regclass;
-- Stripes that are full in bytes are not to be joined, however few rows they have.
CREATE TABLE wide (k int, v text) USING colcompress WITH (stripe_row_limit = 100000);
DO $$BEGIN
  FOR load IN 0..3 LOOP INSERT INTO wide SELECT g, repeat('x', 40000) FROM generate_series(1, 1000) g; COMMIT; END LOOP;
END$$;
SELECT stripes, small_stripes, advice FROM health WHERE table_name = 'wide'::regclass;
-- An order that statistics do not know: the stripes' first and last rows say how far they reach.
CREATE TABLE w (k text) USING colcompress WITH (stripe_row_limit = 1000, orderby = 'k');
DO $$BEGIN
  FOR load IN 0..3 LOOP INSERT INTO w SELECT md5(g::text) FROM generate_series(1, 1000) g; COMMIT; END LOOP;
END$$;
SELECT needed, possible FROM health WHERE table_name = 'w'::regclass;
SELECT engine.colcompress_merge('w');
SELECT needed, possible FROM health WHERE table_name = 'w'::regclass;
-- The view that was there before version 0.2 still serves what is built on it.
CREATE SCHEMA old;
CREATE FUNCTION old.storage_health(table_name regclass, OUT hot_rows bigint, OUT cold_rows bigint, OUT dead_rows bigint, OUT stripes bigint,
    OUT small_stripes bigint,
    OUT overlapping_stripes bigint, OUT file_bytes bigint, OUT stripe_bytes bigint, OUT dead_bytes bigint, OUT advice text)
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS '$libdir/colonnade', 'colonnade_storage_health';
SELECT hot_rows, cold_rows, advice FROM old.storage_health('t');
SELECT o.cold_rows = n.cold_rows AND o.file_bytes = n.file_bytes AND o.advice IS NOT DISTINCT FROM n.advice AS same FROM old.storage_health('o') o,
    engine.storage_health('o') n;
DROP EXTENSION colonnade CASCADE;
CREATE EXTENSION colonnade VERSION '0.1';
CREATE TABLE t (k int) USING colcompress;
INSERT INTO t SELECT generate_series(1, 900);
CREATE VIEW built AS SELECT table_name, hot_rows, advice FROM engine.storage_health;
SELECT * FROM built;
ALTER EXTENSION colonnade UPDATE TO '0.2';
SELECT * FROM built;
SELECT hot_rows, needed, possible FROM engine.storage_health;
