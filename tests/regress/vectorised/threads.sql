-- A small query stays on one thread, as starting another takes longer than it has to do; a large one gets as
-- many as it may have.
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE small (id int, k int) USING colcompress;
INSERT INTO small SELECT g, g % 100 FROM generate_series(1, 20000) g;
CREATE TABLE large (LIKE small) USING colcompress;
INSERT INTO large SELECT g, g % 100 FROM generate_series(1, 300000) g;
ANALYZE small, large;
CREATE FUNCTION threads(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; vectorised bool := false; threads text := '1';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        vectorised := vectorised OR line ~ 'Colonnade Vectorised';
        threads := coalesce(substring(line FROM 'Threads: (\d+)'), threads);
    END LOOP;
    RETURN CASE WHEN vectorised THEN threads ELSE 'not vectorised' END;
END $$;
CREATE TABLE asked (name text, query text) USING heap;
INSERT INTO asked SELECT x || q[1], format(q[2], x) FROM unnest(ARRAY['small', 'large']) x, (VALUES
    (ARRAY[': groups', 'SELECT k, sum(id) FROM %s GROUP BY k']), (ARRAY[': join', 'SELECT count(*) FROM %1$s a JOIN small b ON a.id = b.id WHERE b.k < 3']),
    (ARRAY[': condition', 'SELECT max(id) FROM %s WHERE k <> 7'])) v(q);
SET max_parallel_workers_per_gather = 1;
SELECT name, threads(query) FROM asked ORDER BY name DESC;
-- Settings allow none, one, or two more.
SET max_parallel_workers_per_gather = 0;
SELECT DISTINCT threads(query) FROM asked;
SET max_parallel_workers_per_gather = 2;
SELECT threads(query), count(*) FROM asked GROUP BY 1 ORDER BY 1;
SET colonnade.max_threads = 2;
SELECT threads(query), count(*) FROM asked GROUP BY 1 ORDER BY 1;
-- What a query has to do is held against the rows for which vectors are worth it.
SET colonnade.vectorised_min_rows = 20;
SELECT threads(query), count(*) FROM asked GROUP BY 1 ORDER BY 1;
SET colonnade.vectorised_min_rows = 20000;
SELECT name, threads(query) FROM asked WHERE name LIKE 'large: groups%';
-- Nobody gets more than the server may have processes.
RESET colonnade.vectorised_min_rows;
SET max_parallel_workers = 1024;
SET max_parallel_workers_per_gather = 1024;
SET colonnade.max_threads = 256;
SELECT threads(query)::int BETWEEN 2 AND 1 + current_setting('max_worker_processes')::int AS bounded FROM asked WHERE name LIKE 'large: groups%';
