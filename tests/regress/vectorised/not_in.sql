-- NOT IN over columns that may be NULL: a null-aware anti join in place of the server's hashed sub-plan, with
-- its rules for NULLs.
SET max_parallel_workers_per_gather = 0; SET colonnade.vectorised_min_rows = 0;
CREATE TABLE heap_outer (id int, k int, t text, vc varchar(10), n numeric) USING heap;
INSERT INTO heap_outer SELECT g, CASE WHEN g % 13 = 0 THEN NULL ELSE g % 500 END, nullif('t' || g % 40, 't7'), left('v' || g % 30, 10), g % 25 / 2.0
    FROM generate_series(1, 5000) g;
CREATE TABLE heap_inner (id int, k bigint, t text, vc varchar(20), n numeric) USING heap;
INSERT INTO heap_inner SELECT g, g * 3, 't' || g * 3, 'v' || g * 2, g / 2.00 FROM generate_series(1, 100) g;
INSERT INTO heap_inner VALUES (-1, NULL, NULL, NULL, NULL);
CREATE TABLE column_outer (LIKE heap_outer) USING colcompress WITH (stripe_row_limit = 2000, chunk_group_row_limit = 1000);
CREATE TABLE column_inner (LIKE heap_inner) USING colcompress;
INSERT INTO column_outer SELECT * FROM heap_outer;
INSERT INTO column_inner SELECT * FROM heap_inner;
ANALYZE heap_outer, heap_inner, column_outer, column_inner;
\set plan_lines 'Hash Join|Not Vectorised'
\i include/join_answers.sql
CREATE TABLE asked (number serial, query text);
INSERT INTO asked (query) VALUES
    -- a NULL among the values: no row
    ('SELECT id FROM {t}_outer WHERE k NOT IN (SELECT k FROM {t}_inner)'),
    -- none: rows whose own value is NULL do not come
    ('SELECT id FROM {t}_outer WHERE k NOT IN (SELECT k FROM {t}_inner WHERE id > 0)'),
    -- no value at all: every row comes
    ('SELECT id FROM {t}_outer WHERE k NOT IN (SELECT k FROM {t}_inner WHERE id > 1000)'),
    ('SELECT id FROM {t}_outer WHERE NOT k IN (SELECT k FROM {t}_inner WHERE id < 0)'),
    ('SELECT count(*), sum(id) FROM {t}_outer WHERE t NOT IN (SELECT t FROM {t}_inner WHERE id > 0)'),
    ('SELECT vc, count(*) FROM {t}_outer WHERE vc NOT IN (SELECT vc FROM {t}_inner WHERE id > 0) GROUP BY vc'),
    ('SELECT n, count(*) FROM {t}_outer WHERE n NOT IN (SELECT n FROM {t}_inner WHERE id > 0) GROUP BY n'),
    -- of an expression (which the server computes where it may raise an error), beside other conditions, two
    -- of them, above a join, from a grouped subquery, in a subquery itself
    ('SELECT id FROM {t}_outer WHERE k + 1 NOT IN (SELECT k FROM {t}_inner WHERE id > 0) AND id % 2 = 0'),
    ('SELECT id FROM {t}_outer WHERE abs(k) NOT IN (SELECT k FROM {t}_inner WHERE id > 50)'),
    ('SELECT id FROM {t}_outer WHERE k NOT IN (SELECT k FROM {t}_inner WHERE id > 0) AND t NOT IN (SELECT t FROM {t}_inner WHERE id BETWEEN 0 AND 5)'),
    ('SELECT o.id FROM {t}_outer o JOIN {t}_inner i ON o.k = i.k WHERE coalesce(o.k, i.id) NOT IN (SELECT k FROM {t}_inner WHERE id > 50)'),
    ('SELECT id FROM {t}_outer WHERE k NOT IN (SELECT max(k) FROM {t}_outer WHERE k IS NOT NULL GROUP BY t)'),
    ('SELECT t, count(*) FROM {t}_outer WHERE t NOT IN (SELECT t FROM {t}_inner WHERE k NOT IN (SELECT k FROM {t}_outer WHERE k < 60)) GROUP BY t'),
    ('SELECT id FROM {t}_outer WHERE k NOT IN (SELECT k FROM {t}_inner WHERE id > (SELECT min(id) + 10 FROM {t}_inner))'),
    -- several columns: none is NULL, some are on either side, all are, none there
    ('SELECT id FROM {t}_outer WHERE (k, t) NOT IN (SELECT k, t FROM {t}_inner WHERE id > 0)'),
    ('SELECT id FROM {t}_outer WHERE (k, t) NOT IN (SELECT k, t FROM {t}_inner)'),
    ('SELECT id FROM {t}_outer WHERE (k, t) NOT IN (SELECT nullif(k, 30), nullif(t, ''t9'') FROM {t}_inner WHERE id > 0)'),
    ('SELECT id FROM {t}_outer WHERE (t, k) NOT IN (SELECT t, CASE WHEN id % 3 = 0 THEN k END FROM {t}_inner WHERE id > 20)'),
    ('SELECT id FROM {t}_outer WHERE (k, t, n) NOT IN (SELECT CASE WHEN id % 2 = 0 THEN k END, CASE WHEN id % 3 = 0 THEN t END, CASE '
        'WHEN id % 5 = 0 THEN n END FROM {t}_inner WHERE id BETWEEN 1 AND 25)'),
    ('SELECT id FROM {t}_outer WHERE (k, t) NOT IN (SELECT k, t FROM {t}_inner WHERE id > 1000)'),
    ('SELECT id FROM {t}_outer WHERE (k, vc) NOT IN (SELECT NULL::int, vc FROM {t}_inner WHERE id BETWEEN 1 AND 9)'),
    ('SELECT id FROM {t}_outer WHERE NOT (n, k) IN (SELECT n, k FROM {t}_inner WHERE id > 0) AND id % 3 = 0');
SELECT number, joins(query) FROM asked ORDER BY number;
SELECT number, answer(query, 'heap') FROM asked ORDER BY number;
SELECT number FROM asked WHERE answer(query, 'column') <> answer(query, 'heap') ORDER BY 1;
-- more values than the memory of an operator holds
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT answer('SELECT id FROM {t}_outer WHERE id NOT IN (SELECT k * 5 FROM {t}_outer WHERE k IS NOT NULL)', 'column') =
       answer('SELECT id FROM {t}_outer WHERE id NOT IN (SELECT k * 5 FROM {t}_outer WHERE k IS NOT NULL)', 'heap') AS same;
SELECT joins('SELECT id FROM {t}_outer WHERE id NOT IN (SELECT k * 5 FROM {t}_outer WHERE k IS NOT NULL)');
RESET work_mem; RESET hash_mem_multiplier;
-- left to the server: values that depend on the row, and what may raise an error where there is nothing to
-- compare with
SELECT joins('SELECT id FROM {t}_outer o WHERE k NOT IN (SELECT k FROM {t}_inner i WHERE i.id > o.id)');
SELECT joins('SELECT id FROM {t}_outer WHERE 100 / k NOT IN (SELECT k FROM {t}_inner)');
-- the same plan again and again
PREPARE without (int) AS SELECT count(*) FROM column_outer WHERE k NOT IN (SELECT k FROM column_inner WHERE id > $1);
SET plan_cache_mode = force_generic_plan;
EXECUTE without (0); EXECUTE without (-2); EXECUTE without (99); EXECUTE without (1000);
SELECT joins('EXECUTE without (0)');
-- where nothing can be NULL it is an anti join, unless a child of a table may have what its parent does not;
-- a CTE in the subquery stays the outer query's
-- From 18 on a child keeps what it inherits, and a constraint says whether it is inherited.
SELECT current_setting('server_version_num')::int >= 180000 AS since_18 \gset
\if :since_18
CREATE TABLE sure (y int NOT NULL NO INHERIT, z int NOT NULL) USING colcompress;
CREATE TABLE unsure () INHERITS (sure) USING colcompress;
\else
CREATE TABLE sure (y int NOT NULL, z int NOT NULL) USING colcompress;
CREATE TABLE unsure () INHERITS (sure) USING colcompress;
ALTER TABLE unsure ALTER y DROP NOT NULL;
\endif
CREATE TABLE asks (x int NOT NULL, w int NOT NULL) USING colcompress;
INSERT INTO sure SELECT g, g FROM generate_series(1, 100000) g;
INSERT INTO asks SELECT g, g FROM generate_series(50001, 150000) g;
ANALYZE sure, unsure, asks;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
INSERT INTO unsure VALUES (NULL, 0);
SELECT count(*) FROM asks WHERE x % 5000 = 0 AND x NOT IN (SELECT y FROM sure);
SELECT count(*) FROM asks WHERE x NOT IN (SELECT y FROM ONLY sure);
SELECT count(*) FROM asks WHERE (x, w) NOT IN (SELECT y, z FROM ONLY sure);
SELECT joins('SELECT count(*) FROM asks WHERE (x, w) NOT IN (SELECT y, z FROM ONLY sure)');
-- From 18 on NOT NULL may be declared of a column whose rows nobody has looked at: there may be NULLs.
CREATE TABLE unchecked (y int) USING colcompress;
INSERT INTO unchecked SELECT nullif(g, 500) FROM generate_series(1, 100000) g;
\if :since_18
ALTER TABLE unchecked ADD CONSTRAINT there NOT NULL y NOT VALID;
\endif
ANALYZE unchecked;
SELECT joins('SELECT count(*) FROM asks WHERE x % 5000 = 0 AND x NOT IN (SELECT y FROM unchecked)');
SELECT count(*) FROM asks WHERE x % 5000 = 0 AND x NOT IN (SELECT y FROM unchecked);
SET colonnade.enable_vectorised = off;
SELECT count(*) FROM asks WHERE x % 5000 = 0 AND x NOT IN (SELECT y FROM unchecked);
RESET colonnade.enable_vectorised;
DELETE FROM unchecked WHERE y IS NULL;
\if :since_18
ALTER TABLE unchecked VALIDATE CONSTRAINT there;
\else
ALTER TABLE unchecked ALTER y SET NOT NULL;
\endif
SELECT joins('SELECT count(*) FROM asks WHERE x % 5000 = 0 AND x NOT IN (SELECT y FROM unchecked)');
SELECT count(*) FROM asks WHERE x % 5000 = 0 AND x NOT IN (SELECT y FROM unchecked);
WITH few AS (SELECT z FROM sure GROUP BY z HAVING count(*) > 0)
SELECT count(*) FROM asks WHERE x NOT IN (SELECT y FROM ONLY sure JOIN few USING (z));
WITH few AS MATERIALIZED (SELECT z FROM sure GROUP BY z HAVING count(*) > 0)
SELECT count(*) FROM asks WHERE x NOT IN (SELECT y FROM ONLY sure JOIN few USING (z));
RESET work_mem; RESET hash_mem_multiplier;
-- many choices of known columns: more tables than the memory of the join has room for
CREATE TABLE kept AS SELECT g % 60 AS a, b.* FROM generate_series(1, 1200) g,
    LATERAL (SELECT nullif(g % 2, 0) * (g % 3) AS b1, nullif(g / 2 % 2, 0) * (g % 5) AS b2, nullif(g / 4 % 2, 0) * (g % 7) AS b3,
                    nullif(g / 8 % 2, 0) * (g % 4) AS b4, nullif(g / 16 % 2, 0) * (g % 6) AS b5, nullif(g / 32 % 2, 0) * (g % 8) AS b6) b;
CREATE TABLE column_kept (LIKE kept) USING colcompress;
INSERT INTO column_kept SELECT * FROM kept WHERE a < 50;
CREATE TABLE column_asked (LIKE kept) USING colcompress;
INSERT INTO column_asked SELECT 11 * a % 60, b2, b3, b1, b6, b4, b5 FROM kept;
ANALYZE kept, column_kept, column_asked;
SET work_mem = '128kB'; SET hash_mem_multiplier = 1;
SELECT joins('SELECT * FROM column_asked WHERE (a, b1, b2, b3, b4, b5, b6) NOT IN (SELECT * FROM column_kept)');
SELECT count(*), sum(a), count(b1), count(b6) FROM column_asked WHERE (a, b1, b2, b3, b4, b5, b6) NOT IN (SELECT * FROM column_kept);
SET colonnade.enable_vectorised = off;
SELECT count(*), sum(a), count(b1), count(b6) FROM column_asked WHERE (a, b1, b2, b3, b4, b5, b6) NOT IN (SELECT * FROM column_kept);
RESET colonnade.enable_vectorised; RESET work_mem; RESET hash_mem_multiplier;
DROP TABLE kept, column_kept, column_asked;
