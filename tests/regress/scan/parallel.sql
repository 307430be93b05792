-- Parallel scans: every row once, whoever reads it; counters of all participants; rescans; no workers to be
-- had.
\i include/scan_twins.sql
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
-- hot rows in many pages too
CREATE TABLE mixed (id int, t text) USING colcompress WITH (stripe_row_limit = 2000, chunk_group_row_limit = 1000);
INSERT INTO mixed SELECT g, 'row ' || g FROM generate_series(1, 9000) g;
DO $$ BEGIN FOR i IN 9001..10000 LOOP INSERT INTO mixed VALUES (i, repeat('hot ', 20) || i); END LOOP; END $$;
ANALYZE mixed;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id), mode() WITHIN GROUP (ORDER BY t) FROM mixed WHERE t LIKE '%1%';
SELECT count(*), sum(id) FROM mixed;
SELECT count(*), sum(id), sum(length(t)) FROM mixed WHERE id % 3 = 0;
SET parallel_leader_participation = off;
SELECT count(*), sum(id) FROM mixed;
SELECT count(*), sum(id), sum(length(t)) FROM mixed WHERE id > 3000 AND t LIKE '%0';
SELECT scans('SELECT * FROM mixed WHERE id > 5000 AND t LIKE ''%0''', 'Stripes', 'Chunks', 'Hot Rows');
RESET parallel_leader_participation;
SELECT scans('SELECT * FROM mixed WHERE id > 5000 AND t LIKE ''%0''', 'Stripes', 'Chunks', 'Hot Rows');
SELECT * FROM differences(ARRAY[
    'SELECT count(*), sum(id), sum(i8::numeric), min(t), max(d) FROM {t}', 'SELECT few, count(*), sum(num2) FROM {t} GROUP BY 1',
    'SELECT count(*) FROM {t} a JOIN {t} b USING (id) WHERE a.few = ''red''', 'SELECT id, t FROM {t} WHERE f8 > 100 OR num = 2.5',
    'SELECT id FROM {t} ORDER BY id LIMIT 7', 'SELECT count(*) FROM {t} WHERE id IN (SELECT id FROM {t} WHERE b)']);
-- a Gather that is run again
SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT v.x, s.* FROM (VALUES (1), (2), (3)) v (x), LATERAL (SELECT count(*), sum(id) FROM mixed WHERE id % 10 = v.x) s;
SELECT v.x, s.* FROM (VALUES (1), (2), (3)) v (x), LATERAL (SELECT count(*), sum(id) FROM mixed WHERE id % 10 = v.x) s ORDER BY 1;
SELECT v.x, (SELECT count(*) FROM mixed WHERE length(t) > 20), (SELECT sum(id) FROM mixed WHERE id < v.x) FROM (VALUES (1), (3), (5000)) v (x) ORDER BY 1;
RESET enable_material; RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_memoize;
-- no worker starts
SET max_parallel_workers = 0;
SELECT count(*), sum(id) FROM mixed;
RESET max_parallel_workers;
-- own rows, still in memory when the query is planned
BEGIN;
INSERT INTO mixed SELECT g, 'new ' || g FROM generate_series(10001, 15000) g;
SELECT count(*), sum(id) FROM mixed;
INSERT INTO mixed VALUES (0, 'one more');
SELECT count(*), sum(id) FROM mixed;
CREATE TEMP TABLE copied AS SELECT * FROM mixed WHERE id > 9000;
SELECT count(*), sum(id) FROM copied;
ROLLBACK;
-- everything in a worker; the setting has another name from 16 on
SELECT set_config(name, 'regress', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT count(*), sum(id) FROM mixed WHERE id > 8000;
SELECT * FROM mixed WHERE id = 4711;

-- Leader and workers share out rows alike where no column is wanted, whatever part of the plan a worker is
-- given.
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET enable_material = off; SET colonnade.stripe_threshold_rows = 0; SET colonnade.enable_vectorised = off;
CREATE TABLE few (id int) USING colcompress; INSERT INTO few SELECT g FROM generate_series(1, 8) g; ANALYZE few;
EXPLAIN (COSTS OFF) SELECT pg_sleep(0.001) FROM few;
SELECT count(*) FROM (SELECT pg_sleep(0.001) FROM few OFFSET 0) x;
SELECT count(*) FROM (SELECT d.id FROM mixed d CROSS JOIN few OFFSET 0) x;
DROP TABLE few; RESET ALL;
