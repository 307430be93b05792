-- What orderby does to a load and to a merge: stripes hold their rows in order.
SET colonnade.stripe_threshold_rows = 1000;
CREATE FUNCTION shape(t regclass, what text) RETURNS TABLE (n bigint, rows bigint, breaks bigint, low text, high text) LANGUAGE plpgsql AS $$
BEGIN
  -- ctid order within the cold rows is the order they were written in.
  RETURN QUERY EXECUTE format($q$
    WITH r AS (SELECT ctid, %2$s AS k, lag(%2$s) OVER (ORDER BY ctid) AS before FROM %1$s WHERE ctid >= '(2147483648,0)')
    SELECT 0::bigint, count(*), count(*) FILTER (WHERE before > k), min(k)::text, max(k)::text FROM r $q$, t, what);
END $$;
CREATE FUNCTION shuffled(n int) RETURNS SETOF int LANGUAGE sql AS $$
  SELECT ((g::bigint * 7919) % n)::int FROM generate_series(1, n) g $$;

CREATE TABLE o (a int, b text COLLATE "C", x numeric) USING colcompress WITH (orderby = 'a', stripe_row_limit = 2000, chunk_group_row_limit = 1000);
INSERT INTO o SELECT g, 'b' || g, g / 7.0 FROM shuffled(10007) g;
SELECT * FROM shape('o', 'a');
SELECT count(*), sum(a), count(DISTINCT b) FROM o;
-- In order from the start: nothing to sort.
TRUNCATE o;
INSERT INTO o SELECT g, 'b' || g, g FROM generate_series(1, 5000) g;
SELECT * FROM shape('o', 'a');
-- In order at first.
TRUNCATE o;
INSERT INTO o SELECT CASE WHEN g <= 5000 THEN g ELSE 15000 - g END FROM generate_series(1, 10000) g;
SELECT count(*), sum(a) FROM o;
SELECT breaks <= 1 AS nearly_sorted FROM shape('o', 'a');
-- Two columns, descending, NULLs.
ALTER TABLE o SET (orderby = 'b DESC NULLS LAST, a');
TRUNCATE o;
INSERT INTO o SELECT g, CASE WHEN g % 10 > 0 THEN chr(65 + g % 10) END FROM shuffled(6007) g;
SELECT count(*) FILTER (WHERE (b, a) IS DISTINCT FROM (wb, wa)) AS misplaced, count(*)
FROM (SELECT a, b, row_number() OVER (ORDER BY ctid) AS n FROM o WHERE ctid >= '(2147483648,0)') is_at
JOIN (SELECT a AS wa, b AS wb, row_number() OVER (ORDER BY b DESC NULLS LAST, a) AS n FROM o) belongs USING (n);
-- Few rows are not sorted into stripes, many in a small sort memory are.
SET maintenance_work_mem = '1MB';
ALTER TABLE o SET (orderby = 'x');
TRUNCATE o;
INSERT INTO o SELECT g, repeat('y', 100), g / 3.0 FROM shuffled(30011) g;
SELECT n, rows, breaks, round(low::numeric, 2) AS low, round(high::numeric, 2) AS high FROM shape('o', 'x');
RESET maintenance_work_mem;
-- Rows with TIDs are not moved.
ALTER TABLE o SET (orderby = 'a');
TRUNCATE o;
CREATE INDEX o_a ON o (a);
INSERT INTO o SELECT g FROM shuffled(6007) g;
SELECT breaks > 100 AS as_given FROM shape('o', 'a');

-- Merge: hot and cold rows, sorted as a whole; indexes follow.
INSERT INTO o SELECT g, 'hot' FROM shuffled(500) g;
SELECT count(*), sum(a) FROM o;
SELECT engine.colcompress_merge('o');
SELECT * FROM shape('o', 'a');
SELECT count(*), sum(a), count(*) FILTER (WHERE b = 'hot') AS hot FROM o;
SET enable_seqscan = off;
SELECT a, count(*) FROM o WHERE a IN (0, 499, 500, 6006) GROUP BY a ORDER BY a;
RESET enable_seqscan;
-- Again, in a transaction that is undone, then in one that is not.
BEGIN;
DELETE FROM o WHERE false;
SELECT engine.colcompress_merge('o');
INSERT INTO o VALUES (-1);
SELECT engine.colcompress_merge('o');
SELECT min(a), count(*) FROM o;
ROLLBACK;
SELECT min(a), count(*) FROM o;
BEGIN;
SAVEPOINT s;
INSERT INTO o SELECT -g FROM generate_series(1, 2000) g;
SELECT engine.colcompress_merge('o');
ROLLBACK TO s;
SELECT engine.colcompress_merge('o');
COMMIT;
SELECT min(a), count(*) FROM o;
-- Without orderby rows keep their order; an empty table stays one.
ALTER TABLE o RESET (orderby);
SELECT engine.colcompress_merge('o');
SELECT count(*), sum(a) FROM o;
TRUNCATE o;
SELECT engine.colcompress_merge('o');
SELECT count(*) FROM o;

-- Who may, and what can be merged.
CREATE TABLE plain (a int) USING heap;
SELECT engine.colcompress_merge('plain');
SELECT engine.colcompress_merge('pg_class');
SELECT engine.colcompress_merge(NULL);
CREATE ROLE load_stranger;
GRANT USAGE ON SCHEMA engine TO load_stranger;
SET ROLE load_stranger;
SELECT engine.colcompress_merge('o');
RESET ROLE;
REVOKE USAGE ON SCHEMA engine FROM load_stranger;
DROP ROLE load_stranger;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM o;
SELECT engine.colcompress_merge('o');
ROLLBACK;
DROP TABLE plain, o;

-- Heap rows that are older than a column carry its default through the sort of a merge.
CREATE TABLE older (id int, key text) USING colcompress WITH (orderby = 'key');
INSERT INTO older SELECT g, chr(97 + g * 7 % 5) FROM generate_series(1, 5) g;
ALTER TABLE older ADD COLUMN word text DEFAULT 'late', ADD COLUMN number int DEFAULT 7;
INSERT INTO older VALUES (6, 'a', 'own', 8), (7, 'c', NULL, NULL);
SELECT engine.colcompress_merge('older');
SELECT * FROM older ORDER BY id;
SELECT sum(row_count) AS cold FROM engine.colcompress_stripes WHERE table_name = 'older'::regclass;
DROP TABLE older;
