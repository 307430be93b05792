-- A vectorised plan that gives up after it has started: bitmap scans in the server's plan, which starts late,
-- do not prefetch.
\set VERBOSITY terse
SET colonnade.stripe_threshold_rows = 0; SET colonnade.vectorised_min_rows = 0;
\i include/plan.sql
CREATE TABLE many (k int, v int) USING colcompress;
CREATE INDEX ON many (k);
INSERT INTO many SELECT g % 300, g FROM generate_series(1, 3000) g;
CREATE TABLE few (k int) USING colcompress;
INSERT INTO few SELECT g FROM generate_series(1, 100) g;
ANALYZE many, few;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_indexscan = off; SET max_parallel_workers_per_gather = 0;
-- premise: a sum that vectors have no room for falls back, and what takes over has a bitmap scan that runs
CREATE FUNCTION ran(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text; fell_back bool := false;
BEGIN
    FOR line IN SELECT plan(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') LOOP
        -- The last plan told is the one that took over.
        fell_back := fell_back OR line ~ 'Fell Back';
        IF line ~ 'Colonnade Vectorised|Fell Back|^  ->' OR fell_back AND line ~ 'Bitmap Heap Scan' THEN
            RETURN NEXT trim(line, ' ->');
        END IF;
    END LOOP;
END $$;
SELECT ran('SELECT sum(many.v * 1e37) FROM few JOIN many ON many.k = few.k');
SELECT sum(many.v * 1e37) FROM few JOIN many ON many.k = few.k;
-- an ERROR is the server's: the vectorised node gives up at the row that divides by zero, and the server
-- comes to it
SELECT plan($$SELECT few.k, many.v, 1 / (many.v - 2701) AS inverse FROM few JOIN many ON many.k = few.k ORDER BY inverse, many.v LIMIT 3$$);
SELECT few.k, many.v, 1 / (many.v - 2701) AS inverse FROM few JOIN many ON many.k = few.k ORDER BY inverse, many.v LIMIT 3;
SELECT plan($$SELECT sum(1 / (many.v - 2701)) FROM few JOIN many ON many.k = few.k$$);
SELECT sum(1 / (many.v - 2701)) FROM few JOIN many ON many.k = few.k;
SET colonnade.enable_vectorised = off;
SELECT sum(1 / (many.v - 2701)) FROM few JOIN many ON many.k = few.k;
SELECT sum(many.v * 1e37) FROM few JOIN many ON many.k = few.k;
