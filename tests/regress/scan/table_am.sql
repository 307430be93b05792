-- The access method's callbacks over a table with hot and cold rows, each answer compared with a heap twin's.
-- (The scan node is off: plain scans, index fetches, bitmaps, TIDs, samples and rewrites are what is tested.)
CREATE EXTENSION IF NOT EXISTS colonnade;
SET colonnade.enable_scan = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE h (id int, k int, s text, n numeric, d date);
INSERT INTO h SELECT g, g % 97, 'row ' || g, g * 1.25, date '2020-01-01' + g % 1000 FROM generate_series(1, 20000) g;
CREATE TABLE c (LIKE h) USING colcompress;
INSERT INTO c SELECT * FROM h;
INSERT INTO h SELECT -g, g, 'hot ' || g, g, NULL FROM generate_series(1, 300) g;
INSERT INTO c SELECT -g, g, 'hot ' || g, g, NULL FROM generate_series(1, 300) g;
\set heap h
\set columns c
\i include/answers.sql
-- The premise: rows of both kinds.
SELECT count(*) FILTER (WHERE (ctid::text::point)[0] >= 2147483648) AS cold,
    count(*) FILTER (WHERE (ctid::text::point)[0] < 2147483648) AS hot FROM c;

-- Sequential, either way round.
SELECT same('SELECT * FROM {t}');
BEGIN;
DECLARE x SCROLL CURSOR FOR SELECT id FROM c;
MOVE FORWARD 298 IN x;
FETCH 4 FROM x;
FETCH BACKWARD 4 FROM x;
FETCH 3 FROM x;
MOVE LAST IN x;
FETCH 1 FROM x;
FETCH BACKWARD 2 FROM x;
FETCH FIRST FROM x;
FETCH BACKWARD 1 FROM x;
FETCH ABSOLUTE 300 FROM x;
FETCH RELATIVE 1 FROM x;
FETCH RELATIVE -1 FROM x;
COMMIT;

-- Indexes: built over both kinds, and fed by rows that come later.
CREATE UNIQUE INDEX c_id ON c (id);
CREATE INDEX c_hash ON c USING hash (s);
CREATE INDEX c_expression ON c ((n * 2)) WHERE k % 2 = 0;
CREATE INDEX CONCURRENTLY c_k ON c (k);
REINDEX INDEX CONCURRENTLY c_id;
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid = 'c'::regclass ORDER BY 1;
INSERT INTO h SELECT g, g % 97, 'late ' || g, g, NULL FROM generate_series(50001, 65000) g;
INSERT INTO c SELECT g, g % 97, 'late ' || g, g, NULL FROM generate_series(50001, 65000) g;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT same('SELECT * FROM {t} WHERE id BETWEEN -5 AND 3000');
SELECT same('SELECT * FROM {t} WHERE id IN (-300, -1, 1, 256, 257, 20000, 50001, 62000, 65000, 65001)');
SELECT same('SELECT * FROM {t} WHERE s IN (''row 5'', ''late 64000'', ''hot 7'', ''none'')');
SELECT same('SELECT * FROM {t} WHERE n * 2 = 240 AND k % 2 = 0');
SELECT same('SELECT id, s FROM (SELECT * FROM {t} WHERE id > 10000 ORDER BY id DESC LIMIT 2000) x');
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT same('SELECT * FROM {t} WHERE k = 13');
SELECT same('SELECT * FROM {t} WHERE k BETWEEN 3 AND 60 AND id > 10000');
SET work_mem = '64kB';
SELECT same('SELECT * FROM {t} WHERE k IN (1, 50, 77) OR id BETWEEN 100 AND 30000');
RESET work_mem;
RESET enable_seqscan;
RESET enable_indexscan;
INSERT INTO c VALUES (20000, 0, 'duplicate', 0, NULL);
INSERT INTO c VALUES (60000, 0, 'duplicate', 0, NULL);
INSERT INTO c VALUES (-7, 0, 'duplicate', 0, NULL);
INSERT INTO c VALUES (20000, 0, 'duplicate', 0, NULL) ON CONFLICT DO NOTHING;
INSERT INTO c SELECT g, 0, 'x', 0, NULL::date FROM generate_series(80001, 100000) g UNION ALL SELECT 77, 0, 'x', 0, NULL::date;
SELECT same('SELECT * FROM {t}');
CREATE INDEX ON c USING brin (id);

-- TIDs.
SET enable_seqscan = off;
SELECT ctid, id FROM c WHERE ctid IN ('(2147483648,1)', '(2147483648,0)', '(2147483648,257)', '(2147483726,32)', '(1,1)', '(4294967294,1)') ORDER BY 1;
SELECT count(*), min(id), max(id) FROM c WHERE ctid >= '(2147483650,5)' AND ctid < '(2147483652,5)';
SELECT count(*), min(id), max(id) FROM c WHERE ctid < '(2,1)' OR ctid > '(2147483725,250)' AND ctid < '(2147483727,1)';
SELECT count(*) FROM c WHERE ctid <= '(2147483648,1)';
RESET enable_seqscan;
SELECT id, xmin, cmin, xmax, cmax, tableoid::regclass FROM c WHERE id = 5;
SELECT c FROM c WHERE id = 5;

-- Samples. Every row has its chance: all or none at the extremes, near the share between them, the same when
-- repeated.
SELECT count(*) = 0 AS none FROM c TABLESAMPLE SYSTEM (0);
SELECT same('SELECT * FROM {t} TABLESAMPLE SYSTEM (100)'), same('SELECT * FROM {t} TABLESAMPLE BERNOULLI (100)');
-- Of what an aggregation does not read nothing is decoded.
SELECT same('SELECT count(*) FROM {t} TABLESAMPLE SYSTEM (100)'),
    same('SELECT k, max(s), sum(n) FROM {t} TABLESAMPLE BERNOULLI (100) WHERE d > ''2021-01-01'' GROUP BY k HAVING min(id) > 0');
SELECT same('SELECT k, d, count(DISTINCT s) FILTER (WHERE n > 7) FROM {t} TABLESAMPLE SYSTEM (100) GROUP BY ROLLUP (k, d)'),
    same('SELECT count(x), max(x::text) FROM {t} x TABLESAMPLE SYSTEM (100)');
SELECT abs(count(*) - 3530.0) < 700 AS near FROM c TABLESAMPLE BERNOULLI (10) REPEATABLE (3);
SELECT abs(count(*) - 17650.0) < 6000 AS near FROM c TABLESAMPLE SYSTEM (50) REPEATABLE (3);
SELECT (SELECT sum(id) FROM c TABLESAMPLE SYSTEM (30) REPEATABLE (9)) = (SELECT sum(id) FROM c TABLESAMPLE SYSTEM (30) REPEATABLE (9)) AS repeats;

-- Statistics and VACUUM.
VACUUM c;
SELECT reltuples FROM pg_class WHERE oid = 'c'::regclass;
ANALYZE c;
SELECT reltuples FROM pg_class WHERE oid = 'c'::regclass;
SELECT attname, null_frac < 0.5 AS nulls, n_distinct BETWEEN -1 AND -0.99 AS is_unique FROM pg_stats WHERE tablename = 'c' AND attname IN ('id', 'd')
    ORDER BY 1;
-- Trailing stripe pages stay, whatever VACUUM is told.
CREATE TEMP TABLE size AS SELECT pg_relation_size('c') AS bytes;
ALTER TABLE c SET (vacuum_truncate = on);
VACUUM (TRUNCATE true, FREEZE) c;
SELECT pg_relation_size('c') = bytes AS kept FROM size;
SELECT same('SELECT * FROM {t}');

-- Parallel.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM c;
SELECT same('SELECT count(*), sum(id), sum(n), min(s), max(d) FROM {t}');
SELECT same('SELECT count(*), sum(a.n) FROM {t} a JOIN {t} b USING (id) WHERE b.k = 5');
SET enable_seqscan = off;
SET min_parallel_index_scan_size = 0;
SELECT same('SELECT count(*), sum(n) FROM {t} WHERE k = 13 OR id < 700');
RESET enable_seqscan;
SET max_parallel_workers_per_gather = 0;
CREATE INDEX c_parallel ON c (d, id);
SET enable_seqscan = off;
SELECT same('SELECT * FROM {t} WHERE d = date ''2020-03-04''');
RESET enable_seqscan;

-- Rows of stripes can be changed and locked, and so can hot ones.
UPDATE c SET k = 0 WHERE id = 5;
UPDATE h SET k = 0 WHERE id = 5;
DELETE FROM c WHERE id = 6;
DELETE FROM h WHERE id = 6;
SELECT id FROM c WHERE id = 5 FOR UPDATE;
UPDATE c SET s = 'changed' WHERE id = -5;
DELETE FROM c WHERE id = -6;
UPDATE h SET s = 'changed' WHERE id = -5;
DELETE FROM h WHERE id = -6;
SELECT same('SELECT * FROM {t}');

-- Rewrites: rows, indexes and the directory go together.
ALTER TABLE c ADD COLUMN x text DEFAULT 'deflt';
ALTER TABLE h ADD COLUMN x text DEFAULT 'deflt';
SELECT same('SELECT * FROM {t}');
VACUUM FULL c;
SELECT same('SELECT * FROM {t}');
CLUSTER c USING c_id;
SELECT same('SELECT * FROM {t}');
ALTER TABLE c DROP COLUMN k;
ALTER TABLE h DROP COLUMN k;
ALTER TABLE c ALTER COLUMN n TYPE float8;
ALTER TABLE h ALTER COLUMN n TYPE float8;
SELECT same('SELECT * FROM {t}');
ALTER TABLE c SET UNLOGGED;
ALTER TABLE c SET LOGGED;
SELECT same('SELECT * FROM {t}');
SET enable_seqscan = off;
SELECT same('SELECT * FROM {t} WHERE id BETWEEN 19990 AND 50010');
RESET enable_seqscan;
SELECT count(DISTINCT storage_id) AS storages, sum(row_count) > 35000 AS rows FROM engine.stripe;

-- TRUNCATE, rolled back and not; files of temporary tables.
BEGIN;
TRUNCATE c;
SELECT count(*) FROM c;
SELECT count(*) FROM engine.stripe;
INSERT INTO c (id) SELECT g FROM generate_series(1, 15000) g;
SAVEPOINT s;
TRUNCATE c;
INSERT INTO c (id) VALUES (1);
SELECT count(*) FROM c;
ROLLBACK TO s;
SELECT count(*) FROM c;
ROLLBACK;
SELECT same('SELECT * FROM {t}');
CREATE TEMP TABLE t (id int, s text) USING colcompress ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO t SELECT g, 't' FROM generate_series(1, 20000) g;
SELECT count(*) FROM t;
COMMIT;
SELECT count(*) FROM t;
ALTER TABLE c SET ACCESS METHOD heap;
SELECT same('SELECT * FROM {t}');
SELECT count(*) FROM engine.stripe;
ALTER TABLE c SET ACCESS METHOD colcompress;
SELECT same('SELECT * FROM {t}');
DROP TABLE c;
SELECT count(*) FROM engine.stripe;

-- VACUUM takes the index entries of a load that was rolled back, and gives its pages back.
CREATE TABLE w (id int PRIMARY KEY, s text) USING colcompress;
BEGIN;
INSERT INTO w SELECT g, md5(g::text) FROM generate_series(1, 50000) g;
ROLLBACK;
CREATE EXTENSION pgstattuple;
SELECT leaf_pages > 100 AS many FROM pgstatindex('w_pkey');
VACUUM w;
SELECT leaf_pages > 100 AS many FROM pgstatindex('w_pkey');
INSERT INTO w SELECT g, md5(g::text) FROM generate_series(1, 50000) g;
SELECT count(*), count(DISTINCT s) FROM w;

-- A published table keeps its rows hot, and one with cold rows is not published.
CREATE PUBLICATION p FOR TABLE w;
CREATE PUBLICATION p FOR ALL TABLES;
CREATE TABLE v (id int PRIMARY KEY, s text) USING colcompress;
CREATE PUBLICATION p FOR TABLE v;
INSERT INTO v SELECT g, 'published' FROM generate_series(1, 20000) g;
UPDATE v SET s = 'changed' WHERE id = 15000;
SELECT count(*) FROM v WHERE (ctid::text::point)[0] >= 2147483648;
DROP PUBLICATION p;

-- A published table that is rewritten keeps its rows hot too; so does a partition of one.
CREATE PUBLICATION p FOR TABLE v;
ALTER TABLE v ALTER id TYPE bigint;
SELECT count(*) FROM v WHERE (ctid::text::point)[0] >= 2147483648;
ALTER TABLE v SET ACCESS METHOD heap;
ALTER TABLE v SET ACCESS METHOD colcompress;
SELECT count(*), count(*) FILTER (WHERE (ctid::text::point)[0] >= 2147483648) AS cold FROM v;
CREATE TABLE vp (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE vp1 PARTITION OF vp DEFAULT USING colcompress;
ALTER PUBLICATION p SET TABLE vp;
INSERT INTO vp SELECT g, g FROM generate_series(1, 20000) g;
ALTER TABLE vp ALTER n TYPE bigint;
SELECT count(*), count(*) FILTER (WHERE (ctid::text::point)[0] >= 2147483648) AS cold FROM vp;
-- Tables come into publications by many ways; each is refused for one with cold rows.
CREATE SCHEMA published;
CREATE PUBLICATION ps FOR TABLES IN SCHEMA published;
ALTER TABLE w SET SCHEMA published;
ALTER TABLE IF EXISTS missing SET SCHEMA published;
ALTER PUBLICATION p ADD TABLE w;
ALTER PUBLICATION p SET TABLE w, v;
ALTER PUBLICATION ps ADD TABLES IN SCHEMA CURRENT_SCHEMA;
CREATE TABLE wp (LIKE w) PARTITION BY RANGE (id);
ALTER TABLE wp ATTACH PARTITION w DEFAULT;
ALTER PUBLICATION p ADD TABLE wp;
ALTER TABLE wp SET SCHEMA published;
ALTER TABLE wp DETACH PARTITION w;
CREATE PUBLICATION pt FOR TABLE w WITH (publish = 'truncate');
ALTER PUBLICATION pt SET (publish = 'truncate, insert');
DROP PUBLICATION p, ps, pt;
DROP SCHEMA published;

-- ON COMMIT DELETE ROWS of a table whose stripes have summaries in TOAST: nobody has a snapshot by then.
DO $$BEGIN
    EXECUTE (SELECT 'CREATE TEMP TABLE wide (' || string_agg(format('c%s text', n), ', ') || ') USING colcompress ON COMMIT DELETE ROWS'
             FROM generate_series(1, 400) n);
END$$;
CREATE FUNCTION pg_temp.fill() RETURNS void LANGUAGE plpgsql AS $$BEGIN
    EXECUTE (SELECT 'INSERT INTO wide SELECT ' || string_agg(format('md5(g || ''%s'')', n), ', ') || ' FROM generate_series(1, 2000) g'
             FROM generate_series(1, 400) n);
END$$;
BEGIN;
SELECT pg_temp.fill();
SELECT count(*), max(pg_column_size(summary)) > 8000 AS wide FROM engine.stripe WHERE octet_length(summary) > 8000;
SELECT count(*) FROM wide;
COMMIT;
SELECT count(*) FROM wide;
SELECT pg_temp.fill();
SELECT count(*) FROM wide;
