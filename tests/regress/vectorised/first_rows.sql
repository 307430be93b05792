-- A sort that wants the first rows only is given the chunks that can come first, by their statistics; its
-- bound spares the rest. Pages of chunks that are spared are not read.
SET max_parallel_workers_per_gather = 0;
\i include/plan.sql
CREATE TABLE events (id int, ts timestamp, v int, word text COLLATE "C", wide text)
    USING colcompress WITH (orderby = 'ts', stripe_row_limit = 10000, chunk_group_row_limit = 1000);
INSERT INTO events SELECT n, '2024-01-01'::timestamp + n * interval '1 minute', n % 7, 'w' || lpad(n::text, 6, '0'), repeat(md5(n::text), 4)
    FROM generate_series(1, 60000) n;
CREATE TABLE events_twin AS SELECT * FROM events;
ANALYZE events;

-- What was read of stripes and chunks, and what was not.
CREATE FUNCTION counted(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN SELECT plan(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') LOOP
        IF line ~ '(Vectorised|Skipped by Sort|Stripes:|Chunks:|Hot Rows:)' THEN RETURN NEXT trim(line); END IF;
    END LOOP;
END $$;
CREATE FUNCTION pages(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
    RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
END $$;

SELECT counted('SELECT * FROM events ORDER BY ts DESC LIMIT 10');
SELECT counted('SELECT * FROM events ORDER BY ts LIMIT 10');
SELECT counted('SELECT * FROM events ORDER BY ts DESC, id LIMIT 10 OFFSET 1500');
SELECT counted('SELECT * FROM events WHERE v = 3 ORDER BY ts DESC LIMIT 10');
SELECT counted($$SELECT * FROM events WHERE ts < '2024-01-20' ORDER BY ts DESC LIMIT 10$$);
SELECT counted('SELECT word FROM events ORDER BY word DESC LIMIT 10');
SELECT counted('SELECT e.*, n FROM events e JOIN (VALUES (1, ''one''), (2, ''two'')) x (i, n) ON e.v = x.i ORDER BY ts DESC LIMIT 10');
SELECT pages('SELECT * FROM events ORDER BY ts DESC LIMIT 10')
    * 10 < pages('SELECT max(wide), max(id), max(ts), max(v), max(word) FROM events WHERE v >= 0') AS few_pages;
-- No statistics are in the order of another collation, and an expression is not the column: everything is
-- read.
SELECT counted('SELECT word FROM events ORDER BY word COLLATE "en-x-icu" DESC LIMIT 10');
SELECT counted('SELECT ts FROM events ORDER BY ts + interval ''1 day'' DESC LIMIT 10');
-- What may raise an error is computed for all rows.
SELECT counted('SELECT 100 / v + id FROM events WHERE v > 0 ORDER BY ts DESC LIMIT 10');
SELECT 100 / (id - 1) FROM events ORDER BY ts DESC LIMIT 1;
SELECT id FROM events WHERE 100 / (id - 1) >= 0 ORDER BY ts DESC LIMIT 1;

-- A security barrier view shows what was read of all rows: EXPLAIN must not tell of hidden ones.
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM events WHERE v < 5;
SELECT counted('SELECT * FROM barrier ORDER BY ts DESC LIMIT 10');
DROP VIEW barrier;

-- Rows come in no order, so that chunks and stripes overlap: no more chunks are read than there are rows
-- wanted.
CREATE TABLE mixed USING colcompress WITH (stripe_row_limit = 10000, chunk_group_row_limit = 1000)
    AS SELECT id, id * 7919 % 60013 AS v, id % 3 AS few, wide FROM events ORDER BY id;
ANALYZE mixed;
SELECT counted('SELECT * FROM mixed ORDER BY v DESC LIMIT 5');
-- Equal keys: the first chunk has rows enough, unless another key tells them apart.
SELECT counted('SELECT * FROM mixed ORDER BY few DESC LIMIT 5');
SELECT counted('SELECT * FROM mixed ORDER BY few DESC, v LIMIT 5');

-- Hot rows are looked at first.
INSERT INTO events SELECT 60000 + n, '2030-01-01'::timestamp + n * interval '1 minute', n % 7, 'z' || n, 'hot' FROM generate_series(1, 20) n;
INSERT INTO events_twin SELECT 60000 + n, '2030-01-01'::timestamp + n * interval '1 minute', n % 7, 'z' || n, 'hot' FROM generate_series(1, 20) n;
SELECT counted('SELECT * FROM events ORDER BY ts DESC LIMIT 10');
SELECT counted('SELECT * FROM events ORDER BY ts DESC LIMIT 30');
SELECT id FROM events ORDER BY ts DESC OFFSET 18 LIMIT 4;

-- Parameters.
SET plan_cache_mode = force_generic_plan;
PREPARE newest(int) AS SELECT id FROM events ORDER BY ts DESC LIMIT $1;
SELECT counted('EXECUTE newest(3)');
EXECUTE newest(3);
SELECT counted('EXECUTE newest(30)');
RESET plan_cache_mode;
-- Cursors.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM events ORDER BY ts DESC LIMIT 25;
FETCH 2 FROM c;
MOVE 19 IN c;
FETCH 5 FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT id FROM events ORDER BY ts DESC LIMIT 25;
FETCH LAST FROM c;
FETCH FIRST FROM c;
ROLLBACK;
-- A lateral sub-query starts again for each row, with another bound each time.
SELECT x.at, e.id FROM (VALUES (30000), (100), (59999)) x (at),
    LATERAL (SELECT id FROM events WHERE id <= x.at ORDER BY ts DESC LIMIT 2) e;

-- Other formats.
CREATE FUNCTION explained(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN plan;
END $$;
SELECT jsonb_path_query_array(plan::jsonb, 'strict $[0].Plan.Operators.**.Operator') AS operators,
    plan->0->'Plan'->'Operators'->0->'Operators'->0->>'Operator' AS nested FROM explained('SELECT * FROM events ORDER BY ts DESC LIMIT 30') plan;
SELECT scan->>'Stripes Skipped by Sort' AS stripes, scan->>'Chunks Skipped by Sort' AS chunks, scan->>'Chunks Read' AS read
    FROM (SELECT plan->0->'Plan'->'Plans'->0 FROM explained('SELECT * FROM events ORDER BY ts DESC LIMIT 30') plan) p (scan);

-- Partitions: one bound for all; the newest is read, be it in whatever place, and be one of them a heap.
CREATE TABLE months (id int, ts timestamp, v int) PARTITION BY RANGE (ts);
CREATE TABLE months_1 PARTITION OF months FOR VALUES FROM ('2024-01-01') TO ('2024-01-11') USING colcompress
    WITH (orderby = 'ts', chunk_group_row_limit = 1000);
CREATE TABLE months_2 PARTITION OF months FOR VALUES FROM ('2024-01-11') TO ('2024-01-21') USING colcompress
    WITH (orderby = 'ts', chunk_group_row_limit = 1000);
CREATE TABLE months_3 PARTITION OF months FOR VALUES FROM ('2024-01-21') TO ('2024-02-01') USING colcompress
    WITH (orderby = 'ts', chunk_group_row_limit = 1000);
INSERT INTO months SELECT id, ts, v FROM events WHERE ts < '2024-02-01';
ANALYZE months;
SELECT counted('SELECT * FROM months ORDER BY ts DESC LIMIT 10');
SELECT counted('SELECT * FROM months ORDER BY ts LIMIT 10');
SELECT counted('SELECT * FROM months WHERE v = 2 ORDER BY ts DESC, id LIMIT 10');
SELECT counted('SELECT ts, v FROM months ORDER BY ts DESC LIMIT 10 OFFSET 14500') OFFSET 1;
SELECT counted('SELECT id + 1, ts FROM months WHERE v + id > 3 ORDER BY ts DESC LIMIT 10');
CREATE TABLE months_4 PARTITION OF months FOR VALUES FROM ('2024-02-01') TO ('2024-03-01') USING heap;
INSERT INTO months SELECT id, ts, v FROM events WHERE ts >= '2024-02-01' AND ts < '2024-02-02';
ANALYZE months;
SELECT counted('SELECT * FROM months ORDER BY ts DESC LIMIT 10');
SELECT id FROM months ORDER BY ts DESC LIMIT 3;
SELECT counted('SELECT * FROM (SELECT id, ts FROM months_1 UNION ALL SELECT id, ts FROM events) u ORDER BY ts DESC LIMIT 10');

-- Every type with statistics, their special values and NULLs, in every direction, in one thread and more,
-- gives heap's keys.
CREATE TABLE kinds (id int, small smallint, big bigint, r real, d double precision, n numeric, dt date, ts timestamptz, b boolean, u uuid,
    t text COLLATE "C", l text, c char(5), y bytea, i interval)
    USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000);
CREATE FUNCTION fill(part int) RETURNS void LANGUAGE sql AS $$
INSERT INTO kinds SELECT n, n % 300 - 150, (n * 7919 % 10007)::bigint << 32, CASE n % 500 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3
    THEN '-Infinity' ELSE n::real END,
    CASE WHEN part = 2 AND n % 400 = 7 THEN 'NaN' WHEN n % 10 < 2 THEN 0 WHEN n % 10 < 4 THEN '-0' ELSE -n::float8 END,
    CASE WHEN part = 3 AND n % 400 < 2 THEN 'NaN' WHEN part = 3 AND n % 400 = 2 THEN '-Infinity' WHEN n % 700 = 3 THEN 1e60 ELSE n / 100.0 END,
    CASE n % 600 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE '2024-01-01'::date + n END,
    CASE WHEN part = 4 AND n % 50 = 1 THEN 'infinity' WHEN part = 1 AND n % 50 = 1 THEN '-infinity'
        ELSE '2024-01-01'::timestamptz + n * interval '1 second' END,
    part = 3, md5(n::text)::uuid, repeat('x', 70) || n % 1000, 'Wort ' || n, chr(97 + n % 26) || repeat(' ', n % 3), decode(md5(n::text), 'hex'),
        n * interval '1 hour'
FROM generate_series(part * 1000, part * 1000 + 999) n;
$$;
SELECT fill(part) FROM generate_series(1, 6) part;
-- A part of NULLs only, some among others, and rows of the heap.
INSERT INTO kinds (id) SELECT n FROM generate_series(8000, 8999) n;
INSERT INTO kinds SELECT id + 10000, CASE WHEN id % 3 > 0 THEN small END, CASE WHEN id % 3 > 0 THEN big END, CASE WHEN id % 3 > 0 THEN r END,
    CASE WHEN id % 3 > 0 THEN d END,
    CASE WHEN id % 3 > 0 THEN n END, CASE WHEN id % 3 > 0 THEN dt END, CASE WHEN id % 3 > 0 THEN ts END, CASE WHEN id % 3 > 0 THEN b END,
        CASE WHEN id % 3 > 0 THEN u END,
    CASE WHEN id % 3 > 0 THEN t END, l, c, y, i FROM kinds WHERE id BETWEEN 2000 AND 2999;
ALTER TABLE kinds ADD COLUMN later int DEFAULT 2500;
INSERT INTO kinds SELECT id + 20000, small, big, r, d, n, dt, ts, b, u, t, l, c, y, i, id FROM kinds WHERE id BETWEEN 1000 AND 2999;
INSERT INTO kinds SELECT id + 40000, small, big, r, d, n, dt, ts, b, u, t, l, c, y, i, id FROM kinds WHERE id IN (1500, 2500, 3500, 8500);
DELETE FROM kinds WHERE id BETWEEN 6000 AND 6999 OR id % 97 = 3;
CREATE TABLE kinds_twin AS SELECT * FROM kinds;
ANALYZE kinds;
SELECT counted('SELECT * FROM kinds ORDER BY big DESC NULLS LAST LIMIT 2');
CREATE FUNCTION differs(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE ours text[]; heaps text[];
BEGIN
    EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', replace(query, '{t}', '')) INTO ours;
    SET LOCAL colonnade.enable_vectorised = off;
    EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', replace(query, '{t}', '_twin')) INTO heaps;
    SET LOCAL colonnade.enable_vectorised = on;
    RETURN CASE WHEN ours IS NOT DISTINCT FROM heaps THEN 'same' ELSE query END;
END $$;
CREATE FUNCTION compared() RETURNS TABLE (outcome text, queries bigint) LANGUAGE sql AS $$
-- The only key: what comes out are keys (-0 equals 0).
SELECT differs(format('SELECT %s FROM kinds{t} WHERE %s ORDER BY %s %s NULLS %s LIMIT %s OFFSET %s',
    CASE WHEN key IN ('r', 'd') THEN key || ' + 0' ELSE key END, condition, key, direction, nulls, rows, skipped)), count(*)
FROM unnest('{small,big,r,d,n,dt,ts,b,u,t,l,c,y,i,later}'::text[]) key, unnest('{ASC,DESC}'::text[]) direction, unnest('{FIRST,LAST}'::text[]) nulls,
    unnest(ARRAY[1, 20, 2500]) rows, unnest(ARRAY[0, 30]) skipped, unnest(ARRAY['true', 'id % 5 = 2', 'small > 100 OR later = 2500']) condition GROUP BY 1
UNION ALL
SELECT differs(format('SELECT id, %s FROM kinds{t} WHERE %s ORDER BY %s %s NULLS %s, id %s LIMIT %s', key, condition, key, direction, nulls, second,
    rows)), count(*)
FROM unnest('{small,big,r,d,n,dt,ts,b,u,t,l,c,y,i,later}'::text[]) key, unnest('{ASC,DESC}'::text[]) direction, unnest('{FIRST,LAST}'::text[]) nulls,
    unnest('{ASC,DESC}'::text[]) second, unnest(ARRAY[1, 700]) rows, unnest(ARRAY['true', 'id % 50 = 2']) condition GROUP BY 1
$$;
SELECT * FROM compared();
SELECT differs(format('SELECT * FROM events{t} WHERE %s ORDER BY ts %s LIMIT %s', condition, direction, rows)), count(*)
FROM unnest(ARRAY['true', 'v = 3', 'wide LIKE ''%77%''', 'word > ''w05''']) condition, unnest('{ASC,DESC}'::text[]) direction,
    unnest(ARRAY[1, 25, 3000]) rows GROUP BY 1;
SET max_parallel_workers_per_gather = 2;
SELECT * FROM compared();
SELECT differs(format('SELECT * FROM events{t} WHERE %s ORDER BY ts %s LIMIT %s', condition, direction, rows)), count(*)
FROM unnest(ARRAY['true', 'v = 3', 'wide LIKE ''%77%''', 'word > ''w05''']) condition, unnest('{ASC,DESC}'::text[]) direction,
    unnest(ARRAY[1, 25, 3000]) rows GROUP BY 1;
-- Threads do not run ahead over all chunks.
SELECT bool_and(substring(line FROM 'read (\d+)')::int < 12) AS few FROM counted('SELECT * FROM events ORDER BY ts DESC LIMIT 30') line WHERE line ~ 'Chunks: ';

-- Numbers outside 128 bits have no place in the order of batches: a sort with one is the server's, wherever
-- the number comes and whichever key it is.
RESET max_parallel_workers_per_gather;
SET colonnade.vectorised_min_rows = 0;
CREATE TABLE wide_numbers (k int, n numeric) USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000);
INSERT INTO wide_numbers SELECT g, g % 5 + 0.5 FROM generate_series(1, 1000) g;
INSERT INTO wide_numbers SELECT g, CASE WHEN g = 1 THEN 1e-45 ELSE 7.5 END FROM generate_series(1, 1000) g;
INSERT INTO wide_numbers SELECT g, g % 3 FROM generate_series(1, 1000) g;
INSERT INTO wide_numbers SELECT g, CASE WHEN g = 7 THEN -1e50 WHEN g = 8 THEN 'NaN' ELSE 8.5 END FROM generate_series(1, 1000) g;
INSERT INTO wide_numbers VALUES (1, 2), (1, 3), (2, 4), (2, 4.4);
CREATE TABLE wide_numbers_twin AS SELECT * FROM wide_numbers;
CREATE TABLE heap_numbers AS SELECT 1 AS k, g % 5 + 0.5 AS n FROM generate_series(1, 5000) g;
INSERT INTO heap_numbers SELECT 1, CASE WHEN g = 1 THEN 1e-45 ELSE 7.5 END FROM generate_series(1, 1000) g;
CREATE TABLE heap_numbers_twin AS SELECT * FROM heap_numbers;
SELECT differs(format('SELECT n FROM %s{t} WHERE %s ORDER BY %s n %s NULLS %s LIMIT %s', t, condition, first, direction, nulls, rows)), count(*)
FROM unnest('{wide_numbers,heap_numbers}'::text[]) t, unnest(ARRAY['true', 'k < 600', 'n < 8']) condition, unnest(ARRAY['', 'k % 2,', 'k % 3 DESC,']) first,
    unnest('{ASC,DESC}'::text[]) direction, unnest('{FIRST,LAST}'::text[]) nulls, unnest(ARRAY[1, 3, 1200]) rows GROUP BY 1;

-- LIMIT 0 runs nothing of what it is over.
SELECT 100 / (k - 500) FROM wide_numbers ORDER BY 1 DESC NULLS LAST OFFSET 200 LIMIT 0;
SELECT 100 / (k - 500) FROM heap_numbers ORDER BY 1 LIMIT 0;
SELECT 100 / (k - 500), count(*) FROM heap_numbers GROUP BY 1 LIMIT 0;
PREPARE none AS SELECT 100 / (k - 500) FROM wide_numbers ORDER BY 1 LIMIT $1;
EXECUTE none (0);
EXECUTE none (1);
DEALLOCATE none;
RESET colonnade.vectorised_min_rows;

DROP TABLE events, events_twin, mixed, months, kinds, kinds_twin, wide_numbers, wide_numbers_twin, heap_numbers, heap_numbers_twin;
DROP FUNCTION counted, pages, explained, fill, compared, differs;
