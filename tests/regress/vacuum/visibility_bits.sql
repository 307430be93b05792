-- The visibility map of a table is thrown away: VACUUM gives stripe pages their bits back, and still finds
-- the pages of a load that was rolled back.
CREATE EXTENSION pg_visibility;
CREATE TABLE t (id int, s text) USING colcompress;
INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
INSERT INTO t VALUES (0, 'hot');
BEGIN;
INSERT INTO t SELECT g, md5(g::text) FROM generate_series(20001, 40000) g;
ROLLBACK;
INSERT INTO t SELECT g, md5(g::text) FROM generate_series(40001, 60000) g;
CREATE TABLE before AS SELECT pg_relation_size('t') AS bytes;
CREATE VIEW unmarked AS
SELECT count(*) AS stripe_pages, count(*) FILTER (WHERE NOT (all_visible AND all_frozen)) AS unmarked
FROM engine.colcompress_stripes s, generate_series(s.first_block, s.first_block + s.block_count - 1) b, pg_visibility('t', b)
WHERE s.table_name = 't'::regclass;
-- The premise: stripes, all marked, and then none.
SELECT stripe_pages > 50 AS many, unmarked FROM unmarked;
SELECT pg_truncate_visibility_map('t');
SELECT stripe_pages = unmarked AS all_unmarked FROM unmarked;
VACUUM t;
SELECT stripe_pages > 50 AS many, unmarked FROM unmarked;
-- The lost pages take new rows; the file does not grow.
INSERT INTO t SELECT g, md5(g::text) FROM generate_series(80001, 83000) g;
SELECT pg_relation_size('t') = bytes AS same_size FROM before;
SELECT count(*), sum(id), count(DISTINCT s) FROM t;
SELECT * FROM pg_check_visible('t');
SELECT * FROM pg_check_frozen('t');
