-- engine.verify: a healthy table gives no row, whatever it has been through; what is broken on purpose is
-- found. (Broken pages: tests/crash/verify_damage.py.)
SET colonnade.stripe_threshold_rows = 1000;
CREATE TABLE t (id int, v text, n numeric(12, 3), d date, doc jsonb, tags text[], big int8) USING colcompress
    WITH (chunk_group_row_limit = 1000, stripe_row_limit = 3000);
SELECT * FROM engine.verify('t');
INSERT INTO t SELECT g, CASE WHEN g % 5 > 0 THEN 'word ' || g % 40 END, CASE WHEN g % 97 = 0 THEN 'NaN' ELSE g / 7.0 END, date '2024-01-01' + g / 100,
    jsonb_build_object('a', g % 9, 'b', 'x' || g), ARRAY['t' || g % 3], -g FROM generate_series(1, 10000) g;
INSERT INTO t VALUES (-1, 'hot', 1, '2020-01-01', '{}', '{}', 0), (-2, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE UNIQUE INDEX t_id ON t (id);
CREATE INDEX t_v ON t (v, n DESC) INCLUDE (d);
CREATE INDEX t_lower ON t (lower(v)) WHERE id % 2 = 0;
CREATE INDEX t_name ON t ((v::name));
CREATE INDEX t_hash ON t USING hash (v);
CREATE INDEX t_gin ON t USING gin (tags);
CREATE INDEX t_doc ON t USING gin (doc);
CREATE INDEX t_gist ON t USING gist (daterange(d, d + 1));
CREATE INDEX t_spgist ON t USING spgist (v);
SELECT (SELECT count(*) FROM t) AS rows, sum(row_count) AS cold FROM engine.colcompress_stripes WHERE table_name = 't'::regclass;
SELECT * FROM engine.verify('t');

-- Hot rows that change, chains of them, aborted loads, savepoints, dropped and added columns.
UPDATE t SET v = 'hotter', n = 2 WHERE id = -1;
UPDATE t SET big = 7 WHERE id = -1;
UPDATE t SET big = 8 WHERE id = -1;
DELETE FROM t WHERE id = -2;
BEGIN;
INSERT INTO t SELECT g, 'lost', g, NULL, NULL, NULL, 0 FROM generate_series(20001, 25000) g;
SELECT * FROM engine.verify('t');
ROLLBACK;
SELECT * FROM engine.verify('t');
ALTER TABLE t DROP COLUMN big;
ALTER TABLE t ADD COLUMN late text DEFAULT 'later';
CREATE INDEX t_late ON t (late);
SELECT * FROM engine.verify('t');
VACUUM t;
SELECT * FROM engine.verify('t');
-- What a savepoint leaves belongs to nobody until VACUUM comes.
BEGIN;
SAVEPOINT s;
INSERT INTO t SELECT g, 'lost' FROM generate_series(30001, 35000) g;
ROLLBACK TO s;
INSERT INTO t VALUES (-3);
COMMIT;
SELECT kind, count(*) FROM engine.verify('t') GROUP BY kind;
VACUUM t;
SELECT * FROM engine.verify('t');
SELECT engine.colcompress_merge('t');
SELECT * FROM engine.verify('t');

-- Indexes that lie. The catalog is changed behind the server's back, so that existing entries no longer fit.
CREATE FUNCTION shift(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE TABLE lie (id int) USING colcompress;
INSERT INTO lie SELECT g FROM generate_series(1, 5000) g;
CREATE INDEX lie_shift ON lie (shift(id));
CREATE INDEX lie_part ON lie (id) WHERE shift(id) > 4990;
SELECT * FROM engine.verify('lie');
CREATE OR REPLACE FUNCTION shift(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
    'BEGIN RETURN CASE WHEN $1 = 42 THEN 0 WHEN $1 = 4995 THEN -1 WHEN $1 = 77 THEN 4991 ELSE $1 END; END';
SELECT kind, tid, detail FROM engine.verify('lie') ORDER BY detail COLLATE "C", tid;
DROP TABLE lie;
-- An index that missed what was written while it was not told of.
CREATE TABLE missed (id int, v text) USING colcompress;
INSERT INTO missed SELECT g, 'x' FROM generate_series(1, 2000) g;
CREATE INDEX missed_id ON missed (id);
CREATE INDEX missed_gin ON missed USING gin (to_tsvector('simple', v));
UPDATE pg_index SET indisready = false WHERE indexrelid IN ('missed_id'::regclass, 'missed_gin'::regclass);
INSERT INTO missed VALUES (2001, 'one');
INSERT INTO missed SELECT g, 'many' FROM generate_series(2002, 4000) g;
UPDATE pg_index SET indisready = true WHERE indexrelid IN ('missed_id'::regclass, 'missed_gin'::regclass);
SELECT kind, detail, count(*), min(tid) FROM engine.verify('missed') GROUP BY 1, 2 ORDER BY 2;
REINDEX TABLE missed;
SELECT * FROM engine.verify('missed');
DROP TABLE missed;

-- A directory that lies.
CREATE TABLE dir (id int) USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000);
INSERT INTO dir SELECT g FROM generate_series(1, 4000) g;
CREATE INDEX dir_id ON dir (id);
SELECT engine.colcompress_relation_storageid('dir') AS storage_id \gset
BEGIN;
UPDATE engine.stripe SET row_count = 1001 WHERE storage_id = :storage_id AND first_row IN (0, 3000);
SELECT kind, stripe, detail FROM engine.verify('dir') ORDER BY 2, 3;
ROLLBACK;
BEGIN;
UPDATE engine.stripe SET first_block = first_block + 1 WHERE storage_id = :storage_id AND first_row = 1000;
SELECT kind, stripe, detail FROM engine.verify('dir') ORDER BY 1, 2, 3;
ROLLBACK;
BEGIN;
UPDATE engine.stripe SET byte_length = 100000, block_count = 1000 WHERE storage_id = :storage_id AND first_row = 3000;
SELECT kind, stripe, detail FROM engine.verify('dir') ORDER BY 1, 2, 3;
ROLLBACK;
BEGIN;
UPDATE engine.stripe a SET summary = (SELECT summary FROM engine.stripe b WHERE b.storage_id = a.storage_id AND b.first_row = 0)
    WHERE storage_id = :storage_id AND first_row = 3000;
SELECT kind, stripe, detail FROM engine.verify('dir') ORDER BY 1, 2, 3;
ROLLBACK;
SELECT * FROM engine.verify('dir');
-- A row of it that is gone.
DELETE FROM engine.stripe WHERE storage_id = :storage_id AND first_row = 2000;
VACUUM engine.stripe;
SELECT kind, stripe, block, regexp_replace(detail, 'transaction \d+', 'transaction N') AS detail FROM engine.verify('dir');
DROP TABLE dir;

-- Who may, and what it is not for.
SELECT * FROM engine.verify('pg_class');
CREATE ROLE verify_nobody;
SET ROLE verify_nobody;
SELECT * FROM engine.verify('t');
RESET ROLE;
DROP ROLE verify_nobody;
CREATE TEMP TABLE temporary (id int) USING colcompress;
INSERT INTO temporary SELECT generate_series(1, 3000);
CREATE INDEX ON temporary (id);
SELECT * FROM engine.verify('temporary');
CREATE UNLOGGED TABLE unlogged (id int) USING colcompress;
INSERT INTO unlogged SELECT generate_series(1, 3000);
SELECT * FROM engine.verify('unlogged');

-- engine.unpack: all rows become heap rows, in one transaction, and can be changed and published.
CREATE TABLE u (id int PRIMARY KEY, v text, late int) USING colcompress WITH (orderby = 'id');
ALTER TABLE u DROP COLUMN late;
INSERT INTO u SELECT g, CASE WHEN g = 17 THEN repeat('long ', 100000) ELSE 'v' || g END FROM generate_series(1, 5000) g;
ALTER TABLE u ADD COLUMN added int DEFAULT 5;
CREATE TABLE before AS SELECT * FROM u;
CREATE PUBLICATION u_publication FOR TABLE u;
BEGIN;
SELECT engine.unpack('u');
SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'u'::regclass;
ROLLBACK;
SELECT sum(row_count) FROM engine.colcompress_stripes WHERE table_name = 'u'::regclass;
SELECT engine.unpack('u');
SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'u'::regclass;
SELECT count(*), count(DISTINCT id) FROM (TABLE before INTERSECT ALL TABLE u) same;
SELECT * FROM engine.verify('u');
UPDATE u SET v = 'changed' WHERE id = 3;
CREATE PUBLICATION u_publication FOR TABLE u;
SELECT engine.unpack('u');
DROP PUBLICATION u_publication;
CALL harness.settle();
SELECT engine.colcompress_merge('u');
SELECT sum(row_count) FROM engine.colcompress_stripes WHERE table_name = 'u'::regclass;
SELECT * FROM engine.verify('u');
SELECT engine.unpack(NULL);

\i include/packing.sql
CREATE TABLE h (id int, k int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000, orderby = 'k');
SELECT * FROM engine.storage_health('h');
INSERT INTO h SELECT g, g % 977 FROM generate_series(1, 8000) g;
DO $$ BEGIN FOR i IN 1..6 LOOP INSERT INTO h SELECT g, g * i % 977 FROM generate_series(1, 500) g; END LOOP; END $$;
CALL harness.settle();
SELECT hot_rows, cold_rows, stripes, small_stripes, overlapping_stripes, advice FROM engine.storage_health('h');
SET colonnade.stripe_threshold_rows = 1;
DO $$ BEGIN FOR i IN 1..6 LOOP INSERT INTO h SELECT g, g * i % 977 FROM generate_series(1, 500) g; END LOOP; END $$;
SET colonnade.stripe_threshold_rows = 1000;
ANALYZE h;
CALL harness.settle();
SELECT hot_rows, cold_rows, stripes, small_stripes, overlapping_stripes, advice FROM engine.storage_health('h');
BEGIN;
INSERT INTO h SELECT g, g FROM generate_series(1, 40000) g;
ROLLBACK;
CALL harness.settle();
SELECT dead_bytes > 50000 AS dead, stripe_bytes + dead_bytes < file_bytes AS less, advice FROM engine.storage_health('h');
VACUUM h;
SELECT engine.colcompress_merge('h');
ANALYZE h;
SELECT hot_rows, cold_rows, stripes, small_stripes, overlapping_stripes, dead_bytes, advice FROM engine.storage_health WHERE table_name = 'h'::regclass;
SELECT count(*) > 3 AS several FROM engine.storage_health;
CREATE ROLE health_nobody;
GRANT SELECT ON u TO health_nobody;
ALTER TABLE u ENABLE ROW LEVEL SECURITY;
SET ROLE health_nobody;
SELECT * FROM engine.storage_health;
SELECT * FROM engine.storage_health('h');
SELECT * FROM engine.storage_health('u');
RESET ROLE;
REVOKE ALL ON u FROM health_nobody;
DROP ROLE health_nobody;
SELECT * FROM engine.storage_health('pg_class');
