-- Columns that a condition or the first key of a top-N sort does not read are decoded for the rows that pass
-- only.
SET max_parallel_workers_per_gather = 0;
CREATE TABLE late (id int, word text, place int, wide text) USING colcompress WITH (orderby = 'id', chunk_group_row_limit = 1000);
INSERT INTO late SELECT n, 'word ' || n % 1000, n * 7919 % 30011, repeat(md5(n::text), 4) FROM generate_series(1, 6000) n;
-- Stripes without a column, and rows of the heap.
ALTER TABLE late ADD COLUMN later int DEFAULT 5;
INSERT INTO late SELECT n, 'word ' || n % 1000, n * 7919 % 30011, repeat(md5(n::text), 4), n FROM generate_series(6001, 12000) n;
INSERT INTO late VALUES (12001, 'word 77', -1, 'hot', NULL), (12002, NULL, NULL, 'hot', 1), (12003, 'word 7', 30020, 'hot', 0);
CREATE TABLE twin AS SELECT * FROM late;
ANALYZE late;

-- Bytes that were decoded, in hundreds of kilobytes, and rows that left the scan.
CREATE FUNCTION scanned(query text) RETURNS TABLE (what text) LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line ~ 'Vectorised' THEN what := 'vectorised'; RETURN NEXT; END IF;
        IF line ~ 'decoded' THEN what := 'decoded: ' || substring(line FROM 'decoded (\d+)kB')::int / 100; RETURN NEXT; END IF;
        IF line ~ ' Scan 1' THEN what := 'rows: ' || substring(line FROM 'rows=(\d+)'); RETURN NEXT; END IF;
    END LOOP;
END $$;

-- The wide column is 128 bytes a row: 1,500 kB of it, if all were decoded.
SELECT * FROM scanned($$ SELECT count(*), min(wide) FROM late WHERE word LIKE '%d 77' $$);
SELECT count(*), min(wide) FROM late WHERE word LIKE '%d 77';
SELECT count(*), min(wide) FROM twin WHERE word LIKE '%d 77';
-- Without a condition that is the source's the bound is the only thing that leaves rows out.
SELECT what FROM scanned($$ SELECT * FROM late ORDER BY place LIMIT 3 $$) WHERE what !~ 'rows';
SELECT id, word, place, later FROM late ORDER BY place LIMIT 3;
SELECT id, word, place, later FROM late WHERE word LIKE 'word 7%' AND later <> 3 ORDER BY place DESC NULLS LAST, id LIMIT 4;
SELECT id, word, place, later FROM twin WHERE word LIKE 'word 7%' AND later <> 3 ORDER BY place DESC NULLS LAST, id LIMIT 4;

-- Every order of every first key, with and without NULLs, texts and a limit that rows have to be thinned out
-- for, gives heap's rows.
CREATE FUNCTION differs(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE ours text[]; heaps text[];
BEGIN
    EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', replace(query, '{t}', 'late')) INTO ours;
    EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', replace(query, '{t}', 'twin')) INTO heaps;
    RETURN CASE WHEN ours IS NOT DISTINCT FROM heaps THEN 'same' ELSE query END;
END $$;
SELECT differs(format('SELECT %s FROM {t} WHERE %s ORDER BY %s %s NULLS %s, id LIMIT %s', columns, condition, key, direction, nulls, rows)), count(*)
FROM unnest(ARRAY['*', 'place + 1, id']) columns,
     unnest(ARRAY['true', 'word LIKE ''%77%''', 'word LIKE ''%7%'' AND later IS NOT NULL AND length(wide) > 3', 'word IS NULL OR place % 2 = 0']) condition,
     unnest(ARRAY['place', 'word', 'later', 'wide', 'place % 100']) key, unnest(ARRAY['ASC', 'DESC']) direction, unnest(ARRAY['FIRST', 'LAST']) nulls,
     unnest(ARRAY[1, 700]) rows GROUP BY 1;
SET max_parallel_workers_per_gather = 1;
SELECT differs(format('SELECT * FROM {t} WHERE word LIKE ''%%7%%'' ORDER BY %s %s, id LIMIT %s', key, direction, rows)), count(*)
FROM unnest(ARRAY['place', 'word', 'later']) key, unnest(ARRAY['ASC', 'DESC']) direction, unnest(ARRAY[1, 100]) rows GROUP BY 1;

-- Rows that a sort does not need still end the query where a condition or an output column fails for them.
SELECT id FROM late WHERE 100 / (id - 11999) > -1000 ORDER BY place LIMIT 1;
SELECT 100 / (id - 11999) FROM late WHERE word LIKE 'word%' ORDER BY place LIMIT 1;
-- Conditions keep their order: the second would fail for rows that the first leaves out.
SELECT count(wide) FROM late WHERE word LIKE 'word 1%' AND CASE WHEN word LIKE 'word 1%' THEN true ELSE 1 / (id - id) = 1 END;

-- Where keys follow each other one by one, the rows that a join wants are computed: bytes decoded are those
-- of rows that have a partner.
CREATE TABLE stored (id bigint, v int) USING colcompress WITH (chunk_group_row_limit = 10000);
INSERT INTO stored SELECT n, n % 100 FROM generate_series(-60000, 60000) n;
CREATE TABLE stored_twin AS SELECT * FROM stored;
CREATE TABLE wanted AS SELECT (n * 1237 % 150000 - 75000)::bigint k FROM generate_series(1, 300) n UNION ALL VALUES (NULL), (-60000), (60000),
    (60001), (9999), (10000);
ANALYZE stored, stored_twin, wanted;
SET enable_nestloop = off;
SELECT * FROM scanned($$ SELECT count(*), sum(v) FROM stored JOIN wanted ON id = k $$);
CREATE FUNCTION joins() RETURNS TABLE (rows text, found text) LANGUAGE sql AS $$
    SELECT 'stored', (SELECT count(*) || ' ' || sum(id * v) || ' ' || sum(k) FROM stored JOIN wanted ON id = k) || ' ' || (SELECT count(*)
        FROM stored s WHERE id IN (SELECT k FROM wanted) AND v < 50) || ' ' || (SELECT count(*) FROM wanted LEFT JOIN stored ON id = k)
    UNION ALL
    SELECT 'twin', (SELECT count(*) || ' ' || sum(id * v) || ' ' || sum(k) FROM stored_twin JOIN wanted ON id = k) || ' ' || (SELECT count(*)
        FROM stored_twin s WHERE id IN (SELECT k FROM wanted) AND v < 50) || ' ' || (SELECT count(*) FROM wanted LEFT JOIN stored_twin ON id = k)
$$;
SELECT * FROM joins();
DELETE FROM stored WHERE v = 17 OR id BETWEEN 5000 AND 6000;
DELETE FROM stored_twin WHERE v = 17 OR id BETWEEN 5000 AND 6000;
UPDATE stored SET v = v + 1 WHERE v % 10 = 3;
UPDATE stored_twin SET v = v + 1 WHERE v % 10 = 3;
SELECT * FROM joins();
