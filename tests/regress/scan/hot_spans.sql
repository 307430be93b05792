-- Four spans of hot rows, with stripes between them: read both ways, by bitmaps, in samples and by
-- ANALYZE. Later versions of the server read pages ahead, and each way has to end and begin with its span.
SET colonnade.stripe_threshold_rows = 500;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE h (k int, s text) WITH (fillfactor = 20);
CREATE TABLE c (k int, s text) USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000, fillfactor = 20);
-- Hot rows come one by one, so that each goes to the last page.
DO $$
DECLARE part int;
BEGIN
    FOR part IN 0..3 LOOP
        INSERT INTO c SELECT g, 'cold ' || g FROM generate_series(part * 10000 + 1, part * 10000 + 1700) g;
        EXIT WHEN part = 3;
        FOR g IN part * 10000 + 5001 .. part * 10000 + 5600 LOOP
            INSERT INTO c VALUES (g, repeat('hot ', 10) || g);
        END LOOP;
    END LOOP;
END $$;
INSERT INTO h SELECT * FROM c;
CREATE FUNCTION hot(place tid) RETURNS bool LANGUAGE sql AS $$ SELECT place < '(2147483648,0)' $$;
-- The premise: four spans of many pages.
SET colonnade.enable_scan = off;
SELECT count(*) FILTER (WHERE page - 1 IS DISTINCT FROM before) AS spans, count(*) > 150 AS pages
FROM (SELECT page, lag(page) OVER (ORDER BY page) AS before FROM (SELECT DISTINCT (ctid::text::point)[0] AS page FROM c WHERE hot(ctid)) p) p;
SELECT count(*) FILTER (WHERE hot(ctid)) AS hot_rows, count(*) AS rows FROM c;
\set heap h
\set columns c
\i include/answers.sql
SELECT same('SELECT * FROM {t}');
-- A cursor goes to where a page or a stripe begins, and turns there and nearby. How often it found another row
-- than the one that a scan forwards has at that place.
CREATE FUNCTION turns(query text) RETURNS TABLE (rows int, places int, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
    c refcursor; r record; there int[]; place int; at int; turn int; stops int[];
BEGIN
    EXECUTE format('SELECT array_agg(k) FROM (%s) x', query) INTO there;
    EXECUTE format('SELECT array_agg(n) FROM (SELECT row_number() OVER () AS n, ctid, lag(ctid) OVER () AS before FROM (%s) x) x
                    WHERE n = 1 OR hot(ctid) IS DISTINCT FROM hot(before) OR hot(ctid) AND (ctid::text::point)[0] <> (before::text::point)[0]', query) INTO stops;
    rows := cardinality(there); places := cardinality(stops); wrong := 0;
    OPEN c SCROLL FOR EXECUTE query;
    FOREACH place IN ARRAY stops || rows LOOP
        -- Forwards to it, then backwards to it from behind.
        FOREACH at IN ARRAY ARRAY[place - 1, place, least(place + 3, rows)] LOOP
            MOVE ABSOLUTE at FROM c;
            FOREACH turn IN ARRAY ARRAY[1, -1, -1, 1, 1, 1, -1, -1, -1, -1, 1, 1] LOOP
                at := greatest(least(at + turn, rows + 1), 0);
                IF turn > 0 THEN FETCH NEXT FROM c INTO r; ELSE FETCH PRIOR FROM c INTO r; END IF;
                IF r.k IS DISTINCT FROM there[at] THEN wrong := wrong + 1; END IF;
            END LOOP;
        END LOOP;
    END LOOP;
    -- From one stop to the next but three, in long strides both ways.
    FOR i IN 1 .. places - 3 LOOP
        FETCH ABSOLUTE stops[i] FROM c INTO r;
        IF r.k IS DISTINCT FROM there[stops[i]] THEN wrong := wrong + 1; END IF;
        FETCH RELATIVE stops[i + 3] - stops[i] FROM c INTO r;
        IF r.k IS DISTINCT FROM there[stops[i + 3]] THEN wrong := wrong + 1; END IF;
        FETCH RELATIVE stops[i + 1] - stops[i + 3] FROM c INTO r;
        IF r.k IS DISTINCT FROM there[stops[i + 1]] THEN wrong := wrong + 1; END IF;
    END LOOP;
    -- All of it, from the end.
    MOVE FORWARD ALL FROM c;
    FOR i IN REVERSE rows .. 1 LOOP
        FETCH PRIOR FROM c INTO r;
        IF r.k IS DISTINCT FROM there[i] THEN wrong := wrong + 1; END IF;
    END LOOP;
    FETCH PRIOR FROM c INTO r;
    IF r.k IS NOT NULL THEN wrong := wrong + 1; END IF;
    CLOSE c;
    RETURN NEXT;
END $$;
SET colonnade.enable_vectorised = off;
EXPLAIN (COSTS OFF) SELECT k, ctid FROM c;
SELECT rows, places > 100 AS places, wrong FROM turns('SELECT k, ctid FROM c');
SELECT rows, wrong FROM turns('SELECT k, ctid FROM c WHERE k % 10000 > 1690');
SET colonnade.enable_scan = on;
EXPLAIN (COSTS OFF) SELECT k, ctid FROM c;
SELECT rows, places > 100 AS places, wrong FROM turns('SELECT k, ctid FROM c');
SELECT rows, wrong FROM turns('SELECT k, ctid FROM c WHERE k BETWEEN 5300 AND 25100');
-- In SQL: several rows at once, across the edges of spans.
BEGIN;
DECLARE d SCROLL CURSOR FOR SELECT k FROM c WHERE k % 10000 IN (1, 1700, 5001, 5002, 5599, 5600);
FETCH FORWARD 7 FROM d;
FETCH BACKWARD 4 FROM d;
FETCH FORWARD 2 FROM d;
FETCH BACKWARD ALL FROM d;
FETCH FORWARD 13 FROM d;
FETCH LAST FROM d;
FETCH BACKWARD 3 FROM d;
COMMIT;

-- Changes leave dead rows in the pages, and newer ones elsewhere. An index that is made after them might not be
-- used while others have older snapshots.
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['h', 'c'] LOOP
        EXECUTE format('CREATE INDEX ON %s (k)', t);
        EXECUTE format('DELETE FROM %s WHERE k %% 7 = 3', t);
        EXECUTE format('UPDATE %s SET s = ''changed'' WHERE k %% 11 = 5', t);
    END LOOP;
END $$;
-- Bitmaps, exact and lossy, by one process, by several, begun again and again, and in a transaction that
-- watches what it reads.
SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET colonnade.enable_scan = off;
\i include/plan.sql
CREATE FUNCTION heap_blocks(query text, OUT exact bool, OUT lossy bool) LANGUAGE plpgsql AS $$
DECLARE plan text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
    exact := plan ~ '"Exact Heap Blocks": [1-9]'; lossy := plan ~ '"Lossy Heap Blocks": [1-9]';
END $$;
SELECT plan('SELECT count(*) FROM c WHERE k BETWEEN 1500 AND 25300');
SELECT * FROM heap_blocks('SELECT count(*) FROM c WHERE k BETWEEN 1500 AND 25300');
SELECT same('SELECT * FROM {t} WHERE k BETWEEN 1500 AND 25300');
SELECT same('SELECT * FROM {t} WHERE k BETWEEN 5590 AND 5610 OR k BETWEEN 15100 AND 15200 OR k < 20');
CREATE FUNCTION rescans() RETURNS TABLE (query text) LANGUAGE sql AS $$ SELECT * FROM unnest(ARRAY[
    'SELECT x, (SELECT count(*) FROM {t} WHERE k BETWEEN x * 1000 AND x * 1000 + 700) FROM generate_series(0, 31) x',
    'SELECT x, k IS NULL FROM generate_series(0, 31) x LEFT JOIN LATERAL (SELECT * FROM {t} WHERE k BETWEEN x * 1000 AND x * 1000 + 700 LIMIT 1) y ON true',
    'SELECT x, count(*), sum(k) FROM generate_series(0, 9) x JOIN {t} ON k BETWEEN x * 1000 AND 25000 - x * 1000 GROUP BY x']) $$;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
SELECT same(query) FROM rescans();
SET work_mem = '64kB';
-- Enough pages that they do not all have room.
SET colonnade.stripe_threshold_rows = 100000;
INSERT INTO c SELECT g, repeat('more ', 60) || g FROM generate_series(40001, 48000) g;
INSERT INTO h SELECT g, repeat('more ', 60) || g FROM generate_series(40001, 48000) g;
DELETE FROM c WHERE k > 40000 AND k % 5 = 0;
DELETE FROM h WHERE k > 40000 AND k % 5 = 0;
SELECT lossy FROM heap_blocks('SELECT count(*) FROM c WHERE k > 5300');
SELECT same('SELECT * FROM {t} WHERE k > 5300');
SELECT same('SELECT * FROM {t} WHERE (k > 5300 OR k < 1000) AND s LIKE ''%7''');
SELECT same(query) FROM rescans();
SELECT same('SELECT x, count(*), sum(k) FROM generate_series(0, 5) x JOIN {t} ON k > x * 1000 GROUP BY x');
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material; RESET enable_memoize;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT same('SELECT * FROM {t} WHERE k > 5300');
SELECT relation::regclass, count(*) > 0 AS watched FROM pg_locks WHERE mode = 'SIReadLock' AND relation IN ('h'::regclass, 'c'::regclass) GROUP BY 1 ORDER BY 1;
COMMIT;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
SELECT plan('SELECT count(*) FROM c WHERE k > 5300');
SELECT same('SELECT count(*), sum(k), min(s), max(s) FROM {t} WHERE k > 5300'), same('SELECT * FROM {t} WHERE k > 5300');
RESET work_mem;
SELECT same('SELECT count(*), sum(k), min(s), max(s) FROM {t} WHERE k > 5300'), same('SELECT * FROM {t} WHERE k BETWEEN 1500 AND 25300');
SET parallel_leader_participation = off;
SELECT same('SELECT count(*), sum(k), min(s), max(s) FROM {t} WHERE k > 5300');
RESET parallel_leader_participation; SET max_parallel_workers_per_gather = 0;
RESET enable_seqscan; RESET enable_indexscan; RESET enable_indexonlyscan; RESET colonnade.enable_scan;

-- Samples see every span, and so do the counts of ANALYZE.
SELECT same('SELECT * FROM {t} TABLESAMPLE SYSTEM (100)'), same('SELECT * FROM {t} TABLESAMPLE BERNOULLI (100)');
SELECT count(DISTINCT k / 10000) AS parts, count(DISTINCT k / 10000) FILTER (WHERE hot(ctid)) AS hot_parts FROM c TABLESAMPLE SYSTEM (40) REPEATABLE (1);
SELECT count(DISTINCT k / 10000) AS parts, count(DISTINCT k / 10000) FILTER (WHERE hot(ctid)) AS hot_parts FROM c TABLESAMPLE BERNOULLI (20) REPEATABLE (1);
-- What the session has counted goes out first: after ANALYZE it would be added.
\o /dev/null
SELECT pg_stat_force_next_flush();
\o
ANALYZE h, c;
SELECT relname, reltuples, (SELECT count(*) FROM c) AS rows, n_live_tup FROM pg_class JOIN pg_stat_user_tables USING (relname) WHERE relname IN ('h', 'c') ORDER BY 1;
SELECT n_distinct, abs(correlation) > 0.2 AS ordered FROM pg_stats WHERE tablename = 'c' AND attname = 'k';
