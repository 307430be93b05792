-- What a vectorised query may take: temp_file_limit ends it as it ends heap's, temporary files are counted
-- and gone afterwards. Six chunks: of up to three threads one sees a second chunk, whose groups find its
-- memory full.
CREATE TABLE t (id int, k int, s text) USING colcompress;
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO t SELECT g, (g::bigint * 7919) % 30011, md5(g::text) FROM generate_series(1, 60000) g;
CREATE TABLE h AS SELECT * FROM t;
ANALYZE t, h;
SET colonnade.vectorised_min_rows = 0;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text;
BEGIN
    EXECUTE query;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    RETURN state || ' ' || message;
END $$;
CREATE TABLE asked (name text, query text) USING heap;
INSERT INTO asked VALUES
    ('aggregate', 'SELECT max(c) FROM (SELECT s, count(*) AS c FROM {rows} GROUP BY s) x'),
    ('join', 'SELECT count(a.s) FROM {rows} a JOIN {rows} b ON a.s = b.s'),
    ('sort', 'SELECT count(*) FROM (SELECT s, id FROM {rows} ORDER BY s, id OFFSET 10) x'),
    ('distinct', 'SELECT count(DISTINCT s) FROM {rows}');
SELECT name, outcome(replace(query, '{rows}', 't')) AS ours, outcome(replace(query, '{rows}', 'h')) AS heaps FROM asked;
SET temp_file_limit = '200kB';
SELECT name, outcome(replace(query, '{rows}', 't')) AS ours, outcome(replace(query, '{rows}', 'h')) AS heaps FROM asked;
RESET temp_file_limit;
SELECT count(*) AS files_left FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';
EXPLAIN (COSTS OFF) SELECT max(c) FROM (SELECT s, count(*) AS c FROM t GROUP BY s) x;

-- Long values that an expression makes are not all there at a time, in a session that has done nothing else:
-- heap's takes 3 MB.
CREATE TABLE short (k int, v int) USING colcompress;
INSERT INTO short SELECT g % 100, g FROM generate_series(1, 30000) g;
\c -
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT sum(length(repeat(v::text, 40000))) FROM short;
SELECT sum(length(repeat(v::text, 40000))) FROM short;
SELECT count(*) FROM short WHERE lpad(v::text, 60000) < '!' AND k < 50;
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+) kB')::int < 500000 AS little_memory;
