-- Rows of heap pages become vectors page by page: values point into pages, so a page must be held until they
-- are copied. Small pages' worth of rows, rows that fill a page, few that pass on each page, and rescans.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
SET colonnade.stripe_threshold_rows = 1000000;
SET colonnade.stripe_threshold_memory = '1GB';
CREATE TABLE hot (id int, name text, n numeric, wide text) USING colcompress WITH (packing = false);
INSERT INTO hot SELECT g, 'name ' || g, g / 3.0, CASE WHEN g % 50 < 25 THEN repeat('w' || g, 1 + g % 400) END FROM generate_series(1, 6000) g;
INSERT INTO hot SELECT g, NULL, NULL, repeat('x', 7000 + g % 900) FROM generate_series(6001, 6060) g;
INSERT INTO hot SELECT g, 'tiny' FROM generate_series(6061, 9000) g;
SELECT count(*) FILTER (WHERE ctid < '(2147483648,1)') AS hot, count(*) FROM hot;
CREATE FUNCTION both_ways(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    asked text := format('SELECT count(*) || '' rows '' || coalesce(sum(hashtextextended(r::text, 0)), 0) FROM (%s) r', query);
    vectors text;
    rows text;
BEGIN
    PERFORM set_config('colonnade.enable_vectorised', 'on', true);
    EXECUTE asked INTO vectors;
    PERFORM set_config('colonnade.enable_vectorised', 'off', true);
    PERFORM set_config('colonnade.enable_scan', 'off', true);
    EXECUTE asked INTO rows;
    PERFORM set_config('colonnade.enable_scan', 'on', true);
    RETURN CASE WHEN vectors = rows THEN split_part(rows, ' rows', 1) || ' rows' ELSE 'DIFFERENT ' || vectors || ' and ' || rows END;
END $$;
SELECT both_ways('SELECT max(name), sum(n), count(wide), sum(length(wide)), max(wide) FROM hot');
SELECT both_ways('SELECT name, n, count(*), max(wide) FROM hot GROUP BY name, n');
SELECT both_ways('SELECT name, max(wide) FROM hot WHERE id % 61 = 7 GROUP BY name');
SELECT both_ways('SELECT wide, count(*) FROM hot WHERE name LIKE ''%9'' GROUP BY wide');
SELECT both_ways('SELECT max(wide), min(name) FROM hot WHERE id = 6030 OR id = 1 OR id = 9000');
SELECT both_ways('SELECT name FROM hot WHERE name > ''name 5'' ORDER BY n DESC LIMIT 20');
SELECT both_ways('SELECT a.name, count(*), max(b.wide) FROM hot a JOIN hot b ON a.id = b.id + 1 WHERE a.id % 7 = 3 GROUP BY a.name');
SELECT both_ways('SELECT k, (SELECT max(wide) FROM hot WHERE id BETWEEN k * 100 AND k * 100 + 70) FROM generate_series(0, 20) k');
UPDATE hot SET name = name || '!' WHERE id % 3 = 0;
DELETE FROM hot WHERE id % 5 = 0;
SELECT both_ways('SELECT name, n, count(*), max(wide) FROM hot GROUP BY name, n');
DROP TABLE hot;
