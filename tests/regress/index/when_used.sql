-- When an index is used: cold rows are dear to fetch one by one unless the table says otherwise; hot rows are
-- not.
SET max_parallel_workers_per_gather = 0;
-- the scan node on its own
SET colonnade.enable_vectorised = off;
CREATE TABLE looked_up (id int, user_id int, amount numeric, note text) USING colcompress;
INSERT INTO looked_up SELECT g, g % 1000, g / 100.0, 'note ' || g FROM generate_series(1, 60000) g;
ALTER TABLE looked_up ADD PRIMARY KEY (id);
CREATE INDEX ON looked_up (user_id);
CREATE TABLE hot_only (id int PRIMARY KEY, note text) USING colcompress;
DO $$ BEGIN FOR i IN 1..3000 LOOP INSERT INTO hot_only VALUES (i, repeat('x', 500)); END LOOP; END $$;
CREATE TABLE keys AS SELECT g * 50 AS id FROM generate_series(1, 5) g;
CREATE TABLE many_keys AS SELECT g AS id FROM generate_series(1, 20000) g;
VACUUM ANALYZE looked_up, hot_only, keys, many_keys;
-- premise: all rows of one table are cold, all of the other hot
SELECT count(*) FILTER (WHERE (ctid::text::point)[0] >= 2147483648) AS cold, count(*) FROM looked_up;
SELECT count(*) FILTER (WHERE (ctid::text::point)[0] >= 2147483648) AS cold, count(*) FROM hot_only;
-- few rows: the index; many: the stripes
EXPLAIN (COSTS OFF) SELECT l.amount FROM keys k JOIN looked_up l USING (id);
EXPLAIN (COSTS OFF) SELECT sum(l.amount) FROM many_keys k JOIN looked_up l USING (id);
EXPLAIN (COSTS OFF) SELECT sum(amount) FROM looked_up WHERE user_id BETWEEN 100 AND 160;
EXPLAIN (COSTS OFF) SELECT * FROM hot_only WHERE id = 17;
-- what the option adds to a path, for each row it expects
CREATE FUNCTION plan_of(query text, OUT node text, OUT rows numeric, OUT cost numeric) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    plan := plan -> 0 -> 'Plan';
    node := plan ->> 'Node Type'; rows := (plan ->> 'Plan Rows')::numeric; cost := (plan ->> 'Total Cost')::numeric;
END $$;
CREATE FUNCTION added(query text, relation regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    dear record; cheap record;
BEGIN
    EXECUTE format('ALTER TABLE %s SET (index_scan = false)', relation);
    dear := plan_of(query);
    EXECUTE format('ALTER TABLE %s SET (index_scan = true)', relation);
    cheap := plan_of(query);
    EXECUTE format('ALTER TABLE %s RESET (index_scan)', relation);
    RETURN format('%s: %s a row', dear.node, round((dear.cost - cheap.cost) / dear.rows, 1));
END $$;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT added('SELECT * FROM looked_up WHERE user_id BETWEEN 100 AND 160', 'looked_up');
SELECT added('SELECT id FROM looked_up WHERE id BETWEEN 100 AND 1600', 'looked_up');
SELECT added('SELECT * FROM hot_only WHERE id BETWEEN 100 AND 160', 'hot_only');
RESET enable_bitmapscan; SET enable_indexscan = off; SET enable_indexonlyscan = off;
SELECT added('SELECT * FROM looked_up WHERE user_id BETWEEN 100 AND 160', 'looked_up');
RESET ALL;
-- GiST and SP-GiST do not answer without rows, which may be packed and vacuumed while the scan is under way;
-- a btree does
CREATE TABLE places (at point, net inet, id int) USING colcompress;
INSERT INTO places SELECT point(g, g), ('10.0.0.' || g)::inet, g FROM generate_series(1, 200) g;
CREATE INDEX ON places USING gist (at);
CREATE INDEX ON places USING spgist (net);
CREATE INDEX ON places (id);
VACUUM ANALYZE places;
CREATE TABLE heap_places (LIKE places) USING heap;
INSERT INTO heap_places SELECT * FROM places;
CREATE INDEX ON heap_places USING gist (at);
VACUUM ANALYZE heap_places;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET colonnade.enable_scan = off;
EXPLAIN (COSTS OFF) SELECT at FROM heap_places WHERE at <@ box '(3,3),(5,5)';
EXPLAIN (COSTS OFF) SELECT at FROM places WHERE at <@ box '(3,3),(5,5)';
EXPLAIN (COSTS OFF) SELECT net FROM places WHERE net = '10.0.0.7';
EXPLAIN (COSTS OFF) SELECT id FROM places WHERE id = 7;
SELECT at FROM places WHERE at <@ box '(3,3),(5,5)' ORDER BY at[0];
SELECT net FROM places WHERE net = '10.0.0.7';
RESET ALL;
-- what is fetched to find out that a row is there already is not kept to the end of the statement: the
-- process does not grow with each row
CREATE FUNCTION most_memory() RETURNS int LANGUAGE sql AS $$ SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+) kB')::int $$;
CREATE TABLE probed (id int PRIMARY KEY, a text, b numeric, c timestamptz, d float8) USING colcompress;
INSERT INTO probed SELECT g, 'row ' || g, g / 10.0, now(), g FROM generate_series(1, 40000) g;
SELECT count(*) AS cold FROM probed WHERE ctid >= '(2147483648,1)';
INSERT INTO probed SELECT * FROM probed WHERE id <= 1000 ON CONFLICT DO NOTHING;
SELECT most_memory() AS before \gset
INSERT INTO probed SELECT * FROM probed ON CONFLICT DO NOTHING;
SELECT most_memory() - :before < 60000 AS bounded;
