-- BRIN indexes may be there, and no query uses them.
CREATE EXTENSION IF NOT EXISTS colonnade;
SET colonnade.stripe_threshold_rows = 1000;
\i include/plan.sql
CREATE TABLE h (id int, ts int);
INSERT INTO h SELECT g, g / 10 FROM generate_series(1, 20000) g;
CREATE INDEX h_brin ON h USING brin (ts) WITH (pages_per_range = 2, autosummarize = on);
-- a table that has one becomes columnar, and takes single rows and loads
ALTER TABLE h SET ACCESS METHOD colcompress, SET (orderby = 'ts');
INSERT INTO h VALUES (20001, 3000), (20002, 3001);
INSERT INTO h SELECT g, g / 10 FROM generate_series(20003, 30000) g;
SELECT count(*) FILTER (WHERE ctid >= '(2147483648,0)') > 20000 AS cold, count(*) FILTER (WHERE ctid < '(2147483648,0)') > 0 AS hot FROM h;
SET enable_seqscan = off;
SET colonnade.enable_scan = off;
SET colonnade.enable_vectorised = off;
SELECT plan($$SELECT count(*) FROM h WHERE ts = 1500$$);
SELECT count(*) FROM h WHERE ts = 1500;
SELECT count(*) FROM h WHERE ts = 3000;
RESET enable_seqscan;
RESET colonnade.enable_scan;
RESET colonnade.enable_vectorised;
-- who makes one is told; builds of every kind end soon
CREATE INDEX h_other ON h USING brin (id);
CREATE INDEX CONCURRENTLY h_third ON h USING brin (id int4_bloom_ops) WITH (pages_per_range = 1);
REINDEX INDEX h_other;
REINDEX INDEX CONCURRENTLY h_brin;
SELECT brin_summarize_new_values('h_brin') >= 0 AS summarised, brin_summarize_range('h_brin', 0) >= 0 AS one;
SELECT brin_desummarize_range('h_brin', 0);
-- changes, packing, VACUUM, and the rewrites
UPDATE h SET ts = ts + 1 WHERE id % 10 = 0;
DELETE FROM h WHERE id % 10 = 1;
CALL engine.colcompress_repack('h');
VACUUM (ANALYZE) h;
SELECT kind, detail FROM engine.verify('h') WHERE kind NOT IN ('unclaimed', 'skipped');
SELECT count(*), sum(ts) FROM h;
SELECT engine.colcompress_merge('h');
VACUUM FULL h;
CLUSTER h USING h_brin;
SELECT count(*), sum(ts) FROM h;
-- as a heap table it is used again, and right
ALTER TABLE h SET ACCESS METHOD heap;
SET enable_seqscan = off;
SELECT plan($$SELECT count(*) FROM h WHERE ts = 1500$$);
SELECT count(*) FROM h WHERE ts = 1500;
SET enable_bitmapscan = off;
SELECT count(*) FROM h WHERE ts = 1500;
RESET enable_bitmapscan;
RESET enable_seqscan;
DROP TABLE h;

-- partitions: heap and columnar ones below one parent with a BRIN index
CREATE TABLE p (id int, ts int) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) USING colcompress WITH (orderby = 'ts');
CREATE INDEX p_brin ON p USING brin (ts);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (2000) TO (3000) USING colcompress WITH (orderby = 'ts');
CREATE TABLE p4 (id int, ts int) USING colcompress;
INSERT INTO p4 SELECT g, 3000 + g % 1000 FROM generate_series(1, 5000) g;
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (3000) TO (4000);
INSERT INTO p SELECT g, g / 10 FROM generate_series(0, 29999) g;
ALTER TABLE p1 SET ACCESS METHOD colcompress, SET (orderby = 'ts');
SELECT count(*) FROM pg_index WHERE indexrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'p_brin'::regclass) AND indisvalid;
SELECT tableoid::regclass, count(*), sum(ts) FROM p WHERE ts % 1000 BETWEEN 5 AND 7 GROUP BY 1 ORDER BY 1;
VACUUM p;
DROP TABLE p;
