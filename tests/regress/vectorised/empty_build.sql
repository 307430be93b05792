-- A join that lets no row through, below one that keeps rows without a match: those still come.
SET colonnade.stripe_threshold_rows = 0; SET colonnade.vectorised_min_rows = 0; SET enable_mergejoin = off;
CREATE TABLE probed (k int) USING colcompress;
INSERT INTO probed SELECT g % 50 FROM generate_series(1, 2000) g;
CREATE TABLE none_left (k int);
INSERT INTO none_left SELECT g % 4 FROM generate_series(1, 147) g;
CREATE TABLE kept (k int) USING colcompress;
INSERT INTO kept SELECT 20 + g % 3 FROM generate_series(1, 12) g;
ANALYZE probed, none_left, kept;
\i include/node.sql
SELECT node('SELECT count(*), count(kept.k) FROM probed p JOIN none_left n ON p.k = n.k AND n.k IN (30, 29, 32) FULL JOIN kept ON p.k = kept.k');
SELECT count(*), count(kept.k) FROM probed p JOIN none_left n ON p.k = n.k AND n.k IN (30, 29, 32) FULL JOIN kept ON p.k = kept.k;
SELECT kept.k FROM probed p JOIN none_left n ON p.k = n.k AND n.k IN (30, 29, 32) FULL JOIN kept ON p.k = kept.k ORDER BY 1 LIMIT 5;
SET colonnade.enable_vectorised = off;
SELECT count(*), count(kept.k) FROM probed p JOIN none_left n ON p.k = n.k AND n.k IN (30, 29, 32) FULL JOIN kept ON p.k = kept.k;
