-- Errors that a load's own expressions catch while its rows wait in memory, and parallel queries in the
-- middle of a load: no row may go missing, whatever happens.
\set VERBOSITY terse
SET colonnade.stripe_threshold_rows = 10000;

-- Rows that the heap refuses ("row is too big") but a stripe takes. Looking at the table in the middle of the
-- load tries to write them as hot rows; that fails, and the function catches the error. The rows are tried
-- again, so the load fails as on heap.
DO $$ BEGIN
    EXECUTE (SELECT 'CREATE TABLE wide (' || string_agg(format('c%s bigint', n), ', ') || ') USING colcompress' FROM generate_series(1, 1100) n);
END $$;
CREATE FUNCTION read_wide(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    IF i = 500 THEN
        BEGIN
            PERFORM count(*) FROM wide;
            RAISE NOTICE 'the premise is gone: the heap took the rows';
        EXCEPTION WHEN program_limit_exceeded THEN
            RAISE NOTICE 'caught: %', regexp_replace(sqlerrm, '\d+', 'N', 'g');
        END;
    END IF;
    RETURN i;
END $$;
DO $$ BEGIN
    EXECUTE (SELECT 'INSERT INTO wide SELECT read_wide(i), ' || string_agg('i', ', ') || ' FROM generate_series(1, 12000) i' FROM generate_series(2, 1100));
END $$;
SELECT count(*), count(DISTINCT c1), sum(c1), sum(c1100) FROM wide;

-- A parallel query over rows that are still in this backend's memory: workers that look them up themselves,
-- and nobody else does.
CREATE TABLE loading (k int PRIMARY KEY, v text) USING colcompress;
CREATE TABLE big (k int);
INSERT INTO big SELECT g FROM generate_series(1, 50000) g;
ANALYZE big;
CREATE FUNCTION ask(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
    IF i IN (15000, 30000) THEN
        EXECUTE 'SELECT count(*) FROM big JOIN loading USING (k)' INTO n;
        RAISE NOTICE 'after % rows of this command a query sees %', i - 1, n;
    END IF;
    RETURN i;
END $$;
-- the server's own parallel plans
SET colonnade.enable_vectorised = off;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_leader_participation = off;
INSERT INTO loading SELECT g, 'before' FROM generate_series(50001, 70000) g;
ANALYZE loading;
-- By an index ...
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = on;
SET colonnade.enable_scan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big JOIN loading USING (k);
BEGIN;
INSERT INTO loading SELECT ask(g), 'v' || g FROM generate_series(1, 40000) g;
SELECT count(*), count(DISTINCT k), sum(k) FROM loading;
ROLLBACK;
-- ... by a scan that every worker makes for itself ...
RESET enable_hashjoin;
SET enable_parallel_hash = off;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big JOIN loading USING (k);
BEGIN;
INSERT INTO loading SELECT ask(g), 'v' || g FROM generate_series(1, 40000) g;
SELECT count(*), count(DISTINCT k), sum(k) FROM loading;
ROLLBACK;
-- ... and by one that they share.
RESET colonnade.enable_scan;
RESET enable_parallel_hash;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big JOIN loading USING (k);
BEGIN;
INSERT INTO loading SELECT ask(g), 'v' || g FROM generate_series(1, 40000) g;
SELECT count(*), count(DISTINCT k), sum(k) FROM loading;
SET LOCAL colonnade.enable_scan = off;
SELECT count(*), count(DISTINCT k), sum(k) FROM loading;
COMMIT;
SELECT count(*), count(DISTINCT k), sum(k) FROM loading;
RESET enable_indexscan;
SET enable_seqscan = off;
SET colonnade.enable_scan = off;
SELECT count(*) FROM loading WHERE k BETWEEN 1 AND 40000;
