-- CLUSTER orders the whole table: rows in stripes by the index's own order, expressions and NULLs included,
-- and hot rows.
SET colonnade.stripe_threshold_rows = 1000;
CREATE TABLE c (id int, s text COLLATE "C", n numeric) USING colcompress WITH (stripe_row_limit = 5000);
-- How many rows are not where the order says, and which rows there are; cold and hot ones are ordered apart.
CREATE FUNCTION misplaced(wanted text) RETURNS TABLE (cold bool, rows bigint, misplaced bigint, digest numeric) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format($q$
    WITH r AS (SELECT c, id, s, n, ctid >= '(2147483648,0)' AS cold, row_number() OVER (PARTITION BY ctid >= '(2147483648,0)' ORDER BY ctid) AS at FROM c),
         k AS (SELECT *, rank() OVER w AS first, count(*) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS last
               FROM r WINDOW w AS (PARTITION BY cold ORDER BY %s))
    SELECT k.cold, count(*), count(*) FILTER (WHERE k.at NOT BETWEEN k.first AND k.last), sum(hashtextextended(k.c::text, 0))
    FROM k GROUP BY k.cold ORDER BY k.cold $q$, wanted);
END $$;
INSERT INTO c SELECT g::bigint * 7919 % 20011, CASE WHEN g % 10 > 0 THEN md5((g % 999)::text) END, g / 7.0 FROM generate_series(1, 20000) g;
INSERT INTO c SELECT 30000 - g, 'hot', -g FROM generate_series(1, 300) g;
SELECT cold, rows, misplaced > 100 AS unordered, digest FROM misplaced('id');
CREATE INDEX c_id ON c (id);
CREATE INDEX c_mixed ON c (s DESC NULLS LAST, n);
CREATE INDEX c_expression ON c ((id % 100), lower(s) NULLS FIRST);
CLUSTER c USING c_id;
SELECT * FROM misplaced('id');
CLUSTER c USING c_mixed;
SELECT * FROM misplaced('s DESC NULLS LAST, n');
CLUSTER c USING c_expression;
SELECT * FROM misplaced('id % 100, lower(s) NULLS FIRST');
-- Sorting on disk; a column that is younger than the stripes; a dropped one.
SET maintenance_work_mem = '1MB';
ALTER TABLE c DROP COLUMN n;
ALTER TABLE c ADD COLUMN n text DEFAULT 'late';
CLUSTER c USING c_id;
RESET maintenance_work_mem;
SELECT * FROM misplaced('id');
SELECT n, count(*) FROM c GROUP BY n ORDER BY n LIMIT 3;
-- Bare CLUSTER remembers the index; rows added since are put in order, too. Indexes follow.
SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'c'::regclass;
INSERT INTO c (id, s) SELECT g % 101 * 3, 'again' FROM generate_series(1, 6000) g;
CLUSTER c;
-- (Rows that some older transaction, an ANALYZE perhaps, may not see are put in order apart: one break at
-- most.)
SELECT cold, count(*), count(*) FILTER (WHERE before > id) <= 1 AS ordered
FROM (SELECT ctid >= '(2147483648,0)' AS cold, id, lag(id) OVER (PARTITION BY ctid >= '(2147483648,0)' ORDER BY ctid) AS before FROM c) r
    GROUP BY cold ORDER BY cold;
SET enable_seqscan = off;
SET colonnade.enable_scan = off;
SELECT count(*), min(s), max(s) FROM c WHERE id = 15;
RESET enable_seqscan;
RESET colonnade.enable_scan;
-- In a transaction that loaded rows itself, and took others back.
BEGIN;
INSERT INTO c (id, s) SELECT g % 77, 'mine' FROM generate_series(1, 3000) g;
SAVEPOINT a;
INSERT INTO c (id, s) SELECT g % 77, 'not' FROM generate_series(1, 3000) g;
ROLLBACK TO a;
CLUSTER c USING c_id;
SELECT count(*) FILTER (WHERE s = 'mine') AS mine, count(*) FILTER (WHERE s = 'not') AS not FROM c;
ROLLBACK;
SELECT count(*) FILTER (WHERE s = 'mine') AS mine, count(*) FROM c;
