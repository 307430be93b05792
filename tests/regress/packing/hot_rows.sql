-- CALL engine.colcompress_repack(table): hot rows become sorted stripes, with all they have; what is refused;
-- and what the table's own indexes, constraints and old snapshots make of it. Beside others:
-- tests/isolation/twins/packing*.spec, tests/crash/cold_changes.py, tests/packing.py.
\i include/packing.sql

-- Every kind of column: dropped, added with a default, generated, long, NULL; expressions and predicates in
-- indexes.
CREATE TABLE t (gone int, k int PRIMARY KEY, n numeric, long text, tags int[], twice numeric GENERATED ALWAYS AS (n * 2) STORED) USING colcompress
    WITH (orderby = 'n DESC NULLS LAST, k', stripe_row_limit = 1000);
ALTER TABLE t ALTER COLUMN long SET STORAGE EXTERNAL;
INSERT INTO t (gone, k, n, long, tags) SELECT 7, g, CASE WHEN g % 10 > 0 THEN g % 97 END, CASE WHEN g % 500 = 0 THEN repeat(g::text, 3000)
    ELSE 'text ' || g END, ARRAY[g, g % 5] FROM generate_series(1, 2500) g;
ALTER TABLE t DROP COLUMN gone, ADD COLUMN later text DEFAULT 'added';
ALTER TABLE t ALTER COLUMN later SET DEFAULT 'other';
INSERT INTO t (k, n, long) VALUES (2501, 3, 'new');
UPDATE t SET long = long || '!' WHERE k % 100 = 1;
DELETE FROM t WHERE k % 100 = 2;
CREATE INDEX by_expression ON t (lower(long)) WHERE n > 50;
CREATE INDEX by_tag ON t USING gin (tags);
CREATE INDEX by_hash ON t USING hash (n);
CREATE UNIQUE INDEX included ON t (k, n) INCLUDE (later);
SELECT count(*) AS hot FROM t WHERE ctid < '(2147483648,0)';
CREATE TABLE before USING heap AS SELECT t.* FROM t;
CALL repack('t');
SELECT count(*) AS hot FROM t WHERE ctid < '(2147483648,0)';
SELECT * FROM stripes('t');
SELECT count(*) AS different FROM (TABLE before EXCEPT TABLE t UNION ALL (TABLE t EXCEPT TABLE before)) d;
SELECT * FROM engine.verify('t');
-- Each stripe is sorted.
SELECT count(*) AS rows, count(*) FILTER (WHERE s.first_row = s.before AND (n, -k) > (n0, -k0)) AS out_of_order
FROM (SELECT *, lag(n) OVER w AS n0, lag(k) OVER w AS k0, lag(first_row) OVER w AS before
      FROM (SELECT t.n, t.k, (ctid::text::point)[0]::int8 * 256 + (ctid::text::point)[1]::int8 AS place FROM t) t
      JOIN stripes('t') s ON place - 1 - 2147483648 * 256 BETWEEN s.first_row AND s.first_row + s.row_count - 1
      WINDOW w AS (ORDER BY place)) s;
SET enable_seqscan = off; SET colonnade.enable_scan = off;
SELECT k, n, later, twice FROM t WHERE lower(long) = 'text 155' AND n > 50;
SELECT count(*) FROM t WHERE tags @> '{3}';
SELECT count(*) FROM t WHERE n = 13;
EXPLAIN (COSTS OFF) SELECT k, n, later FROM t WHERE k = 77;
SELECT k, n, later FROM t WHERE k = 77;
INSERT INTO t (k) VALUES (77);
INSERT INTO t (k, n) VALUES (77, 1) ON CONFLICT (k) DO UPDATE SET later = 'conflict' RETURNING k, n, later;
RESET enable_seqscan; RESET colonnade.enable_scan;
-- Once more: what is hot now, which includes what a cold row became, and then the last two stripes as one.
CALL repack('t');
SELECT * FROM stripes('t');
SELECT k, n, later FROM t WHERE k = 77;
VACUUM t;
SELECT * FROM engine.verify('t');

-- A stripe holds no more than its cap in bytes: the rest makes further ones.
CREATE TABLE wide (k int, v text) USING colcompress;
SET colonnade.stripe_threshold_memory = '1GB';
INSERT INTO wide SELECT g, repeat(md5(g::text), 600) FROM generate_series(1, 1050) g;
INSERT INTO wide SELECT g, repeat(md5(g::text), 600) FROM generate_series(1051, 2100) g;
INSERT INTO wide SELECT g, repeat(md5(g::text), 600) FROM generate_series(2101, 3150) g;
INSERT INTO wide SELECT g, repeat(md5(g::text), 600) FROM generate_series(3151, 4200) g;
SELECT count(*) AS hot FROM wide WHERE ctid < '(2147483648,0)';
CALL repack('wide');
SELECT count(*) > 1 AS several, sum(row_count) FROM stripes('wide');
SELECT count(*), count(DISTINCT k), sum(length(v)) FROM wide;
DROP TABLE wide;

-- Without an order of the table's own: by the column that grows as rows arrive, here four sessions' side by
-- side; where there is none rows stay as they lie.
CREATE TABLE arrived (noise int, id int, at timestamptz, v text) USING colcompress;
INSERT INTO arrived SELECT (b * 50 + j) * 7919 % 10007, ((b / 4) * 50 + j) * 4 + b % 4,
    timestamptz '2026-01-01' + interval '1 s' * (((b / 4) * 50 + j) * 4 + b % 4), 'row'
    FROM generate_series(0, 39) b, generate_series(0, 49) j ORDER BY b, j;
CREATE TABLE kept USING colcompress AS SELECT noise FROM arrived;
SELECT array_agg(noise ORDER BY ctid) AS order_before FROM kept \gset
SELECT count(*) FILTER (WHERE id < before) > 0 AS mixed FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS before FROM arrived) a;
CALL repack('arrived'); CALL repack('kept');
SELECT * FROM stripes('arrived'); SELECT * FROM stripes('kept');
SELECT count(*) FILTER (WHERE id < before) > 0 AS mixed FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS before FROM arrived) a;
SELECT array_agg(noise ORDER BY ctid) = :'order_before' AS kept FROM kept;
DROP TABLE arrived, kept;

-- What is refused.
BEGIN; CALL engine.colcompress_repack('t'); ROLLBACK;
DO $$BEGIN CALL engine.colcompress_repack('before'); END$$;
CALL engine.colcompress_repack(NULL);
CREATE TABLE excluded (r int4range, EXCLUDE USING gist (r WITH &&)) USING colcompress;
CALL engine.colcompress_repack('excluded');
CREATE PUBLICATION packing_published FOR TABLE excluded;
CALL engine.colcompress_repack('excluded');
DROP TABLE excluded; DROP PUBLICATION packing_published;
CREATE ROLE packing_stranger;
SET SESSION AUTHORIZATION packing_stranger;
CALL engine.colcompress_repack('t');
RESET SESSION AUTHORIZATION;
DROP ROLE packing_stranger;

-- An index expression runs as the owner, where it can do no harm; its ERROR leaves the rows where they were.
CREATE ROLE packing_owner;
CREATE TABLE whose (who text);
CREATE FUNCTION fail_for_owner(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN IF current_user = 'packing_owner'
    THEN RAISE EXCEPTION 'runs as %, search_path %', current_user, current_setting('search_path'); END IF; RETURN $1; END$$;
CREATE TABLE owned (k int) USING colcompress;
INSERT INTO owned SELECT generate_series(1, 10);
CREATE INDEX ON owned (fail_for_owner(k));
ALTER TABLE owned OWNER TO packing_owner;
CALL repack('owned');
SELECT current_user = session_user AS myself, current_setting('search_path') AS path;
SELECT count(*) FROM owned;
SELECT * FROM stripes('owned');
DROP TABLE owned, whose; DROP ROLE packing_owner;

-- Unlogged and temporary tables, partitions, materialized views.
CREATE UNLOGGED TABLE u (k int PRIMARY KEY) USING colcompress;
CREATE TEMP TABLE tmp (k int PRIMARY KEY) USING colcompress;
CREATE MATERIALIZED VIEW m USING colcompress AS SELECT g AS k FROM generate_series(1, 50) g;
INSERT INTO u SELECT generate_series(1, 50); INSERT INTO tmp SELECT generate_series(1, 50);
CALL repack('u'); CALL repack('tmp'); CALL repack('m');
SELECT * FROM stripes('u'); SELECT * FROM stripes('tmp'); SELECT * FROM stripes('m');
UPDATE u SET k = k + 100 WHERE k <= 3; DELETE FROM tmp WHERE k > 45;
SELECT (SELECT sum(k) FROM u), (SELECT sum(k) FROM tmp), (SELECT sum(k) FROM m);

-- The entries of engine.row_move go with the next batch (once every snapshot sees the last one's), and with
-- the table.
CALL repack('t'); CALL repack('u'); CALL repack('tmp'); CALL repack('m');
CALL repack('t'); CALL repack('u'); CALL repack('tmp'); CALL repack('m');
SELECT count(*) FROM engine.row_move;
INSERT INTO u SELECT generate_series(1000, 1010);
CALL repack('u');
DROP TABLE t, u, tmp; DROP MATERIALIZED VIEW m;
SELECT count(*) FROM engine.row_move;
