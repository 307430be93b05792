-- Groups by columns that a condition holds to one value. From 16 on the server groups by none of them, and still no
-- rows make no group.
SET colonnade.stripe_threshold_rows = 0;
SET colonnade.vectorised_min_rows = 0;
CREATE TABLE g (id bigint PRIMARY KEY, k int, t text) USING colcompress;
INSERT INTO g SELECT i, i % 7, 'text ' || i % 3 FROM generate_series(1, 10000) i;
ANALYZE g;
SELECT k, count(*) FROM g WHERE k = 77 GROUP BY k;
SELECT k, count(*), sum(id), min(t) FROM g WHERE k = 3 GROUP BY k HAVING count(*) > 3;
SELECT k, count(*) FROM g WHERE k = 3 GROUP BY k HAVING count(*) > 3000;
SELECT k FROM g WHERE k = 77 GROUP BY k;
SELECT k FROM g WHERE k = 3 GROUP BY k;
SELECT k, t, count(*) FROM g WHERE k = 3 AND t = 'text 1' GROUP BY k, t;
SELECT k, t, count(*) FROM g WHERE k = 3 AND t = 'none' GROUP BY t, k;
SELECT count(*) FROM (SELECT k, count(DISTINCT t) FROM g WHERE k = 77 GROUP BY k) x;
SELECT k, count(DISTINCT t), string_agg(DISTINCT t, ',' ORDER BY t) FROM g WHERE k = 5 GROUP BY k;
-- No group at all of no rows, one of no rows.
SELECT count(*) FROM g WHERE k = 77 GROUP BY ();
SELECT count(*), sum(k) FROM g WHERE k = 77;
SELECT k, count(*) FROM g WHERE k = 77 GROUP BY GROUPING SETS ((k), ());
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT b.id FROM g a JOIN g b ON a.id = b.id + 1 WHERE b.id = 935644109 GROUP BY b.id;
SELECT b.id, count(*) FROM g a JOIN g b ON a.id = b.id + 1 WHERE b.id = 93 GROUP BY b.id;
SET enable_hashagg = off;
SELECT k, count(*) FROM g WHERE k = 77 GROUP BY k;
SELECT k, count(*) FROM g WHERE k = 3 GROUP BY k;
DROP TABLE g;
