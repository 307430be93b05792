-- orderby that is set on rows that are there: the NOTICE, what engine.storage_health says, and what packing
-- makes of it. Beside others: tests/isolation/packing/sorts_stripes.spec.
\i include/packing.sql
CREATE FUNCTION health(t regclass, OUT stripes bigint, OUT overlapping bigint, OUT unsorted bigint, OUT advice text) LANGUAGE sql AS $$
  SELECT stripes, overlapping_stripes, unsorted_stripes, (SELECT string_agg(a, '; ') FROM unnest(string_to_array(advice, '; ')) a WHERE a ~ 'engine')
  FROM engine.storage_health(t) $$;
CREATE FUNCTION chunks(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
    IF line ~ 'Chunks:' THEN RETURN NEXT trim(line); END IF;
  END LOOP;
END $$;
-- Row numbers by stripe, and how many rows come before the row before them in their stripe.
CREATE FUNCTION breaks(t regclass, ord text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  EXECUTE format($q$
    WITH r AS (SELECT r.*, (ctid::text::point)[0]::int8 * 256 + (ctid::text::point)[1]::int8 - 1 - 2147483648 * 256 AS place
               FROM %s r WHERE ctid >= '(2147483648,0)'),
         s AS (SELECT r.*, s.first_row, row_number() OVER (PARTITION BY s.first_row ORDER BY %s) AS wanted,
                      row_number() OVER (PARTITION BY s.first_row ORDER BY place) AS is_at
               FROM r JOIN engine.colcompress_stripes s ON s.table_name = %L::regclass AND place >= s.first_row AND place < s.first_row + s.row_count)
    SELECT count(*) FROM (SELECT rank() OVER (PARTITION BY first_row ORDER BY %s) AS wanted_rank, is_at,
                                 count(*) OVER (PARTITION BY first_row ORDER BY %s) AS last FROM s) x
    WHERE is_at NOT BETWEEN wanted_rank AND last $q$, t, ord, t, ord, ord) INTO n;
  RETURN n;
END $$;
CREATE FUNCTION shuffled(n int) RETURNS SETOF int LANGUAGE sql AS 'SELECT ((g::bigint * 7919) % n)::int FROM generate_series(1, n) g';
CREATE PROCEDURE load(t regclass, expressions text) LANGUAGE plpgsql AS $$BEGIN
  FOR load IN 0..2 LOOP EXECUTE format('INSERT INTO %s SELECT %s FROM shuffled(5003) g, (SELECT %s AS load) l', t, expressions, load); COMMIT; END LOOP;
END$$;

-- One key, one stripe of 15 chunks.
CREATE TABLE t (ts timestamp, v int) USING colcompress WITH (stripe_row_limit = 15000, chunk_group_row_limit = 1000);
INSERT INTO t SELECT timestamp '2024-01-01' + g * interval '2 minutes', g FROM shuffled(15000) g;
ALTER TABLE t SET (orderby = 'ts');
SELECT * FROM health('t');
SELECT chunks($$SELECT sum(v) FROM t WHERE ts >= '2024-01-01' AND ts < '2024-01-02'$$);
CALL repack('t');
SELECT * FROM health('t');
SELECT chunks($$SELECT sum(v) FROM t WHERE ts >= '2024-01-01' AND ts < '2024-01-02'$$);
SELECT breaks('t', 'ts'), count(*), sum(v) FROM t;
-- It ends: nothing is written any more.
SELECT min(first_row) AS place FROM engine.colcompress_stripes WHERE table_name = 't'::regclass \gset
CALL repack('t');
SELECT min(first_row) = :place AS stays FROM engine.colcompress_stripes WHERE table_name = 't'::regclass;
-- Back and forth: rows are as they were sorted last.
ALTER TABLE t SET (orderby = 'v DESC');
ALTER TABLE t SET (orderby = 'ts');
SELECT * FROM health('t');
ALTER TABLE t RESET (orderby);
SELECT * FROM health('t');
SELECT engine.alter_colcompress_table_set('t', orderby => 'ts DESC');
SELECT engine.colcompress_merge('t');
ALTER TABLE t SET (orderby = 'ts DESC NULLS LAST'), SET (packing = off);
SELECT breaks('t', 'ts DESC'), h.* FROM health('t') h;
-- Another type of the same column: the table is rewritten, in its order. One that needs no rewriting, but
-- sorts otherwise, is not known.
ALTER TABLE t ALTER ts TYPE text COLLATE "C" USING ts::text;
SELECT breaks('t', 'ts DESC'), h.* FROM health('t') h;
ALTER TABLE t ALTER ts TYPE varchar COLLATE "C";
SELECT * FROM health('t');
ALTER TABLE t ALTER ts TYPE varchar COLLATE "POSIX";
SELECT * FROM health('t');
DROP TABLE t;
-- In a transaction of its own, with what it has loaded.
BEGIN;
CREATE TABLE t (k int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
INSERT INTO t SELECT shuffled(9000);
ALTER TABLE t SET (orderby = 'k');
ROLLBACK;

-- Several keys, up and down, NULLs at both ends; several stripes that overlap.
CREATE TABLE two (a int, b date, c int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CALL load('two', 'nullif(g % 5, 4), CASE WHEN g % 3 > 0 THEN date ''2024-01-01'' + g % 700 END, g');
ALTER TABLE two SET (orderby = 'a DESC NULLS LAST, b NULLS FIRST');
SELECT * FROM health('two');
SELECT chunks('SELECT count(c) FROM two WHERE a = 2 AND b = ''2024-05-01''');
CALL repack('two');
SELECT * FROM health('two');
SELECT chunks('SELECT count(c) FROM two WHERE a = 2 AND b = ''2024-05-01''');
SELECT breaks('two', 'a DESC NULLS LAST, b NULLS FIRST'), count(*), sum(c) FROM two;
-- By the first of them they are sorted, too; by the second they are not.
ALTER TABLE two SET (orderby = 'a DESC NULLS LAST');
SELECT * FROM health('two');
ALTER TABLE two SET (orderby = 'b NULLS FIRST');
CALL repack('two');
SELECT breaks('two', 'b NULLS FIRST'), h.* FROM health('two') h;
-- A number is never used again, a column that is gone leaves no order behind.
ALTER TABLE two DROP COLUMN b CASCADE;
ALTER TABLE two ADD COLUMN b date;
ALTER TABLE two SET (orderby = 'c');
CALL repack('two');
SELECT breaks('two', 'c'), h.* FROM health('two') h;

-- Other types with statistics in order.
CREATE TABLE num (k numeric, v int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CALL load('num', 'CASE WHEN g % 1000 = 7 THEN ''NaN'' ELSE (g + load / 10.0) / 7 END, g');
ALTER TABLE num SET (orderby = 'k');
CALL repack('num');
SELECT breaks('num', 'k'), h.* FROM health('num') h;
SELECT chunks('SELECT sum(v) FROM num WHERE k BETWEEN 100 AND 110');
CREATE TABLE id (k uuid, v int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CALL load('id', 'md5(g || ''/'' || load)::uuid, g');
ALTER TABLE id SET (orderby = 'k DESC');
CALL repack('id');
SELECT breaks('id', 'k DESC'), h.* FROM health('id') h;
SELECT chunks('SELECT sum(v) FROM id WHERE k = md5(''77/1'')::uuid');
-- Text: by bytes, with values that are cut in the statistics; by a collation; by another, then.
CREATE TABLE txt (k text COLLATE "C", v int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CALL load('txt', 'repeat(md5((g / 3)::text), 3) || g || load, g');
ALTER TABLE txt SET (orderby = 'k');
CALL repack('txt');
SELECT breaks('txt', 'k'), h.* FROM health('txt') h;
SELECT chunks('SELECT sum(v) FROM txt WHERE k > ''a'' AND k < ''a8''');
ALTER TABLE txt ALTER k TYPE text COLLATE "en-x-icu";
SELECT * FROM health('txt');
CALL repack('txt');
SELECT breaks('txt', 'k'), h.* FROM health('txt') h;
CREATE TABLE words (k text COLLATE "en-x-icu", v int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CALL load('words', 'CASE WHEN g % 2 = 0 THEN ''Word'' ELSE ''word'' END || (g * 17) % 5003 || load, g');
ALTER TABLE words SET (orderby = 'k');
SELECT * FROM health('words');
CALL repack('words');
SELECT breaks('words', 'k'), (SELECT count(*) FROM words), (SELECT sum(v) FROM words), h.* FROM health('words') h;
-- Rewriting keeps the order; CLUSTER has its own.
VACUUM FULL words;
SELECT breaks('words', 'k'), h.* FROM health('words') h;
CREATE INDEX words_v ON words (v);
CLUSTER words USING words_v;
SELECT * FROM health('words');
CALL repack('words');
SELECT breaks('words', 'k'), count(*), sum(v) FROM words;
SELECT * FROM health('words');
-- Without statistics; what turns out to be in order is marked and stays where it is.
CREATE TABLE arr (k int[], v int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CALL load('arr', 'ARRAY[g % 100, g, load], g');
ALTER TABLE arr SET (orderby = 'k DESC');
SELECT * FROM health('arr');
CALL repack('arr');
SELECT breaks('arr', 'k DESC'), (SELECT count(*) FROM arr), (SELECT sum(v) FROM arr), h.* FROM health('arr') h;
CREATE TABLE fine (k interval, v int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
INSERT INTO fine SELECT g * interval '1 hour', g FROM generate_series(1, 10000) g;
ALTER TABLE fine SET (orderby = 'k');
SELECT min(first_row) AS place FROM engine.colcompress_stripes WHERE table_name = 'fine'::regclass \gset
CALL repack('fine');
SELECT min(first_row) = :place AS stays FROM engine.colcompress_stripes WHERE table_name = 'fine'::regclass;
SELECT * FROM health('fine');
SELECT count(*), sum(v) FROM fine;
SELECT count(*) AS faults FROM engine.verify('fine');
-- One value, and NULLs only.
CREATE TABLE same (k int, a int[], v int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CALL load('same', '7, NULL::int[], g');
ALTER TABLE same SET (orderby = 'k, a');
CALL repack('same');
SELECT min(first_row) AS place FROM engine.colcompress_stripes WHERE table_name = 'same'::regclass \gset
CALL repack('same');
SELECT (SELECT min(first_row) FROM engine.colcompress_stripes WHERE table_name = 'same'::regclass) = :place AS stays, h.* FROM health('same') h;
-- What an order by composite values is, is up to the type.
CREATE TYPE pair AS (a int, b int);
CREATE TABLE composite (k pair) USING colcompress WITH (orderby = 'k', stripe_row_limit = 4000, chunk_group_row_limit = 1000);
INSERT INTO composite SELECT ROW(g / 100, -g)::pair FROM shuffled(8000) g;
SELECT * FROM health('composite');
ALTER TYPE pair DROP ATTRIBUTE a;
SELECT unsorted FROM health('composite');
CALL repack('composite');
SELECT breaks('composite', 'k'), unsorted FROM health('composite');
-- A table with an index: rows are loaded as they come. Only what is out of order is sorted.
CREATE TABLE keyed (k int PRIMARY KEY, v text) USING colcompress WITH (orderby = 'k', stripe_row_limit = 4000, chunk_group_row_limit = 1000);
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO keyed SELECT g, 'v' FROM generate_series(1, 8000) g;
SELECT unsorted FROM health('keyed');
INSERT INTO keyed SELECT 10000 + g, 'v' FROM shuffled(4001) g;
SELECT unsorted, advice FROM health('keyed');
RESET colonnade.stripe_threshold_rows;
UPDATE keyed SET v = 'w' WHERE k % 1000 = 5;
DELETE FROM keyed WHERE k % 1000 = 6;
CALL repack('keyed');
SELECT unsorted, advice FROM health('keyed');
SET enable_seqscan = off; SET colonnade.enable_scan = off;
SELECT count(*), sum(k), count(*) FILTER (WHERE v = 'w') FROM keyed WHERE k > 0;
RESET enable_seqscan; RESET colonnade.enable_scan;
SELECT * FROM engine.verify('keyed') WHERE kind <> 'unclaimed';
-- Partitions, one by one.
CREATE TABLE parted (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (3000) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (3000) TO (9000) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO parted SELECT g, -g FROM shuffled(9000) g;
SET colonnade.packing = on;
SELECT engine.alter_colcompress_table_set('parted', orderby => 'v');
RESET colonnade.packing;
RESET colonnade.stripe_threshold_rows;
CALL repack('parted');
SELECT unsorted_stripes, overlapping_stripes FROM engine.storage_health('parted_1') UNION ALL SELECT unsorted_stripes, overlapping_stripes
    FROM engine.storage_health('parted_2');
-- A table that packing leaves alone.
CREATE TABLE excluded (k int) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000);
INSERT INTO excluded SELECT shuffled(8000);
ALTER TABLE excluded ADD EXCLUDE USING btree (k WITH =);
ALTER TABLE excluded SET (orderby = 'k');
SELECT unsorted_stripes, needed FROM engine.storage_health('excluded');
SELECT engine.colcompress_merge('excluded');
SELECT unsorted_stripes, needed FROM engine.storage_health('excluded');
DROP TABLE parted, excluded;
-- The same bytes as another type, which orders them otherwise.
CREATE TABLE sign (k int) USING colcompress WITH (orderby = 'k', stripe_row_limit = 4000, chunk_group_row_limit = 1000);
INSERT INTO sign SELECT g - 2000 FROM shuffled(8000) g;
SELECT breaks('sign', 'k'), unsorted FROM health('sign');
SELECT engine.colcompress_relation_storageid('sign') AS id \gset
ALTER TABLE sign ALTER k TYPE oid;
SELECT engine.colcompress_relation_storageid('sign') = :id AS same_file, breaks('sign', 'k') > 0 AS breaks, unsorted FROM health('sign');
-- Twice: stripes are sorted over each other only once every snapshot sees that they are sorted.
CALL repack('sign');
CALL repack('sign');
SELECT breaks('sign', 'k'), h.* FROM health('sign') h;
DROP TABLE sign, two, num, id, txt, words, arr, fine, same, composite, keyed;
DROP TYPE pair;
