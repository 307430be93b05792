-- Window functions on vectors: the same answers and errors as on heap.
\i include/scan_twins.sql
\set ECHO none
-- How a query over {t} of the columnar table ran: whether a window is in the vectorised plan, and why it fell
-- back.
CREATE FUNCTION ran(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    windows int := 0;
    reason text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || replace(query, '{t}', 'column_rows') LOOP
        IF line ~ '->  Window \(|Operators: Window \(' THEN windows := windows + 1; END IF;
        IF line ~ 'Fell Back' THEN reason := ', ' || trim(line); END IF;
    END LOOP;
    RETURN windows || reason;
END $$;
CREATE FUNCTION all_ran(queries text[]) RETURNS TABLE (ran text, queries bigint) LANGUAGE sql AS $$
    SELECT ran(q), count(*) FROM unnest(queries) q GROUP BY 1 ORDER BY 1 $$;
CREATE VIEW frames AS SELECT f, row_number() OVER () AS n FROM unnest(ARRAY[
    '', 'ROWS UNBOUNDED PRECEDING', 'ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING', 'ROWS BETWEEN 3 PRECEDING AND CURRENT ROW',
    'ROWS BETWEEN 2 PRECEDING AND 4 FOLLOWING', 'ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING', 'ROWS BETWEEN 2 FOLLOWING AND 5 FOLLOWING',
    'ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING', 'ROWS BETWEEN 9223372036854775807 PRECEDING AND 9223372036854775807 FOLLOWING',
    'ROWS BETWEEN 9223372036854775807 FOLLOWING AND UNBOUNDED FOLLOWING', 'RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING',
    'RANGE BETWEEN CURRENT ROW AND CURRENT ROW', 'GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING', 'GROUPS BETWEEN 3 PRECEDING AND 1 PRECEDING',
    'GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING', 'GROUPS BETWEEN CURRENT ROW AND 9223372036854775807 FOLLOWING']) f;
\set ECHO all
-- premise: large enough to be taken
EXPLAIN (COSTS OFF) SELECT id, row_number() OVER (PARTITION BY few ORDER BY id), sum(i4) OVER (PARTITION BY few ORDER BY id),
    rank() OVER (ORDER BY b) FROM column_rows;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT id, few, row_number() OVER (PARTITION BY few ORDER BY id) AS rn FROM column_rows) x WHERE rn <= 3 ORDER BY id LIMIT 5;
-- every function over every frame; ties in the order where that makes no difference, else none
SELECT
    array_agg(format('SELECT id, count(*) OVER w, count(i4) OVER w, sum(i2) OVER w, sum(i4) OVER w, sum(i8) OVER w, sum(num2) OVER w, '
    'avg(i4) OVER w, avg(i8) OVER w, avg(num2) OVER w,
    min(i4) OVER w, max(i8) OVER w, min(num2) OVER w, max(f8) OVER w, min(f4) OVER w, max(t) OVER w, min(tc) OVER w, max(ch) OVER w, min(d) OVER w, '
        'max(tstz) OVER w,
    bool_and(b) OVER w, bool_or(b) OVER w, every(b) OVER w, variance(i2) OVER w, stddev_pop(num2) OVER w, var_pop(i4) OVER w, '
        'count(*) FILTER (WHERE b) OVER w, sum(i4) FILTER (WHERE i2 > 0) OVER w,
    rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w
    FROM {t} WINDOW w AS (PARTITION BY i4 %% 40 ORDER BY %s %s %s)', o, f, e)) AS ties
FROM frames, unnest(ARRAY['d', 'b DESC, few']) o, unnest(ARRAY['', 'EXCLUDE GROUP', 'EXCLUDE TIES']) e
WHERE (n % 3 = 0) = (e <> '') AND f !~ '^ROWS' AND (e = '' OR f <> '') \gset
SELECT * FROM differences(:'ties');
SELECT * FROM all_ran(:'ties');
SELECT
    array_agg(format('SELECT id, sum(i4) OVER w, avg(num2) OVER w, max(num2) OVER w, min(t) OVER w, sum((id %% 100)::float8 / 7) OVER w, '
    'avg((id %% 10)::float4) OVER w, stddev((id %% 77)::float8) OVER w,
    sum((id %% 100)::float4 / 3) OVER w, string_agg(few, '','') OVER w, string_agg(tc, few) FILTER (WHERE b) OVER w, variance(i2) OVER w,
    first_value(t) OVER w, last_value(num2) OVER w, nth_value(i4, 3) OVER w, nth_value(ch, (abs(id) %% 5 + 1)::int) OVER w, first_value(j) OVER w, '
        'last_value(arr) OVER w, lag(i4) OVER w, lead(few, 2) OVER w, row_number() OVER w, ntile(7) OVER w
    FROM {t} WINDOW w AS (PARTITION BY i4 %% 40 ORDER BY %s %s %s)', o, f, e)) AS total
FROM frames, unnest(ARRAY['id', 'num2 DESC NULLS LAST, id']) o, unnest(ARRAY['', 'EXCLUDE CURRENT ROW', 'EXCLUDE GROUP', 'EXCLUDE TIES']) e
WHERE (e = '' OR (n + length(e)) % 4 = 0) AND (e = '' OR f <> '') \gset
SELECT * FROM differences(:'total');
SELECT * FROM all_ran(:'total');
-- distances
SELECT array_agg(format('SELECT id, count(*) OVER w, sum(i4) OVER w, max(t) OVER w, min(num2) OVER w, first_value(%1$s) OVER w, last_value(%1$s) OVER w
    FROM {t} WINDOW w AS (PARTITION BY few ORDER BY %1$s %2$s RANGE BETWEEN %3$s %4$s AND %3$s FOLLOWING %5$s)', k, o, d, CASE WHEN e = ''
    THEN 'PRECEDING' ELSE 'FOLLOWING' END, e)) AS distances
FROM (VALUES ('i2', '3::int2'), ('i2', '100::int4'), ('i2', '70000::int8'), ('i4', '100'), ('i4', '9223372036854775807::int8'),
    ('i8', '2000000014::int8'), ('i8', '5::int2'),
      ('num2', '2.5'), ('num2', '0.255'), ('f8', '1.5::float8'), ('f8', '''Infinity''::float8'), ('f4', '0.3::float8'),
      ('ts', 'interval ''36 hours'''), ('ts', 'interval ''1 month -3 days'''), ('tstz', 'interval ''90 minutes''')) k(k, d),
     unnest(ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']) o, unnest(ARRAY['', 'EXCLUDE TIES']) e \gset
SELECT * FROM differences(:'distances');
SELECT * FROM all_ran(:'distances');
-- infinite dates have no timestamps that could move: the server's answer, or its error
SELECT * FROM differences(ARRAY(SELECT format('SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN %s PRECEDING AND %s FOLLOWING) FROM {t}', i, i)
    FROM unnest(ARRAY['interval ''10 days''', 'interval ''1 year''', 'interval ''300000 years''']) i));
-- days and months with a time zone, and times
SELECT * FROM differences(ARRAY['SELECT id, count(*) OVER (ORDER BY tstz RANGE interval ''1 day'' PRECEDING) FROM {t}',
    'SELECT id, count(*) OVER (ORDER BY ts::time RANGE interval ''1 hour'' PRECEDING) FROM {t}']);
-- rows before and after: offsets that are NULL, negative or larger than the partition, defaults, types that
-- are only passed on
SELECT array_agg(format('SELECT id, %s OVER (PARTITION BY few ORDER BY id, i4) FROM {t}', f)) AS shifted
FROM unnest(ARRAY['lag(i4)', 'lead(i4)', 'lag(t, 3)', 'lead(num2, 2, -1.125)', 'lag(num2, i2, num2 * 1.0001)', 'lead(j, 1, ''{}'')', 'lag(arr, 0)',
    'lag(i4, NULL)', 'lag(i4, -2)', 'lead(i4, -2, 5)', 'lag(i8, 100000, 0)',
    'lead(d, i2)', 'lag(ch, 2, few)', 'lag(m, 1, ''ok'')', 'lead(id, -2147483648)', 'lag(allnull, 1, 3)', 'lag(upper(t), 2)', 'first_value(by)',
    'last_value(u)', 'nth_value(vc, NULL)', 'nth_value(dom, 100000)', 'ntile(3)', 'ntile(100000)', 'ntile(NULL)',
    'ntile(CASE WHEN id > 100 THEN 4 END)']) f \gset
SELECT * FROM differences(:'shifted');
SELECT * FROM all_ran(:'shifted');
-- partitions and peers of every type that has an equality
SELECT
    array_agg(format('SELECT id, row_number() OVER (PARTITION BY %1$s ORDER BY id, i4), rank() OVER (ORDER BY %1$s), '
    'dense_rank() OVER (ORDER BY %1$s DESC, few), count(*) OVER (PARTITION BY %1$s) FROM {t}', c)) AS keys
FROM unnest(ARRAY['i2', 'i4', 'i8', 'f4', 'f8', 'num2', 'd', 'ts', 'tstz', 'b', 'u', 't', 'tc', 'vc', 'ch', 'm', 'dom', 'lab', 'allnull', 'const',
    'few', 'i4 % 7', 'few || t']) c \gset
SELECT * FROM differences(:'keys');
SELECT * FROM all_ran(:'keys') WHERE ran !~ '^[1-9]$';
SELECT * FROM differences(ARRAY(SELECT format('SELECT id, count(*) OVER (PARTITION BY %1$s) FROM {t}', c)
    FROM unnest(ARRAY['num', 'by', 'arr', 'j', 't COLLATE "C"']) c));
-- conditions on a window's result, several windows, windows above and below other operators
SELECT array_agg(q) AS shapes FROM unnest(ARRAY[
    'SELECT * FROM (SELECT id, few, row_number() OVER (PARTITION BY few ORDER BY id, i4) AS n FROM {t}) x WHERE n <= 3',
    'SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id, i4) AS n FROM {t}) x WHERE n < 10',
    'SELECT * FROM (SELECT id, few, rank() OVER (PARTITION BY few ORDER BY d) AS n FROM {t}) x WHERE n = 2',
    'SELECT * FROM (SELECT id, count(*) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS n, sum(i4) OVER (PARTITION BY few ORDER BY id) s FROM {t}) x '
        'WHERE n <= 50 AND s > 0',
    'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY b ORDER BY id, i4) n, rank() OVER (PARTITION BY m ORDER BY d) r FROM {t}) x '
        'WHERE n <= 30 AND r <= 100',
    'SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id, i4) n, dense_rank() OVER (PARTITION BY m ORDER BY d) r FROM {t}) x WHERE n <= 300 '
        'AND r <= 10 AND n + r > 7',
    'SELECT few, b, sum(i4), rank() OVER (PARTITION BY few ORDER BY sum(i4)), sum(sum(i4)) OVER (PARTITION BY b), count(*) OVER () FROM {t} GROUP BY few, b',
    'SELECT few, count(*), max(n) FROM (SELECT few, row_number() OVER (PARTITION BY few, m ORDER BY id, i4) n FROM {t}) x GROUP BY few',
    'SELECT x.id, n, y.t FROM (SELECT id, ntile(10) OVER (ORDER BY id, i4) AS n FROM {t}) x JOIN {t} y USING (id) WHERE n = 4',
    'SELECT * FROM (SELECT id, lag(id) OVER (ORDER BY id, i4) l FROM {t}) x WHERE l IS NULL OR id - l > 1',
    'SELECT id, i4 - lag(i4) OVER w AS step, coalesce(sum(i2) OVER w, 0) + row_number() OVER w FROM {t} WINDOW w AS (ORDER BY id, i4) ORDER BY id LIMIT 20',
    'SELECT id, sum(i4) OVER () FROM {t}', 'SELECT DISTINCT few, rank() OVER (PARTITION BY b ORDER BY few) FROM {t} ORDER BY few',
    'SELECT few, max(f) FROM (SELECT few, d, first_value(id) OVER (PARTITION BY few ORDER BY id DESC) f FROM {t}) x GROUP BY few',
    'SELECT sum(x) FROM (SELECT count(*) OVER (PARTITION BY few) x FROM {t} WHERE b) y',
    'SELECT id, count(*) OVER (PARTITION BY few) FROM {t} WHERE id < 0',
    'SELECT DISTINCT few, first_value(id) OVER (PARTITION BY few ORDER BY id DESC) FROM {t}',
    'SELECT id, row_number() OVER (PARTITION BY few ORDER BY id DESC, i4), row_number() OVER (PARTITION BY few ORDER BY i4, id) FROM {t} '
        'WHERE id > 1001 ORDER BY few, id LIMIT 100 OFFSET 50']) q \gset
SELECT * FROM differences(:'shapes');
SELECT * FROM all_ran(:'shapes');
-- parameters
PREPARE frame(int, bigint) AS SELECT count(*), sum(s) FROM (SELECT sum(i4) OVER (PARTITION BY few ORDER BY id ROWS BETWEEN $1 PRECEDING
    AND $2 FOLLOWING) s FROM column_rows) x;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE frame(1, 2);
EXECUTE frame(1, 2);
EXECUTE frame(0, 0);
EXECUTE frame(-1, 2);
EXECUTE frame(1, NULL);
RESET plan_cache_mode;
SELECT count(*), sum(s) FROM (SELECT sum(i4) OVER (PARTITION BY few ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) s FROM heap_rows) x;
-- errors
SELECT q, outcome(q, 'heap_rows') AS heap, outcome(q, 'column_rows') AS columns FROM unnest(ARRAY[
    'SELECT ntile(0) OVER (ORDER BY id) FROM {t}', 'SELECT ntile((i4 - i4)::int) OVER (ORDER BY id) FROM {t}',
    'SELECT nth_value(id, 0) OVER (ORDER BY id) FROM {t}',
    'SELECT nth_value(id, (3 - id)::int) OVER (ORDER BY id) FROM {t}', 'SELECT sum(i4) OVER (ORDER BY id ROWS -1 PRECEDING) FROM {t}',
    'SELECT sum(i4) OVER (ORDER BY id ROWS NULL PRECEDING) FROM {t}',
    'SELECT sum(i4) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND -1 FOLLOWING) FROM {t}',
    'SELECT sum(i4) OVER (ORDER BY ts RANGE ''-1 day'' PRECEDING) FROM {t}',
    'SELECT sum(i4) OVER (ORDER BY tstz RANGE NULL PRECEDING) FROM {t}',
    'SELECT sum(i4) OVER (ORDER BY f8 RANGE ''NaN'' PRECEDING) FROM {t}', 'SELECT sum(1 / (i4 % 50)) OVER (ORDER BY id) FROM {t}',
    'SELECT lag(1 / (id - 6000)) OVER (ORDER BY id) FROM {t}',
    'SELECT sum(1e308::float8 + id * 1e300) OVER (ORDER BY id) FROM {t}', 'SELECT stddev(1e200 * id::float8) OVER (ORDER BY id ROWS 3 PRECEDING) FROM {t}']) q;
-- the current row outside a frame that leaves out its peers: the server counts it among the frame's rows all
-- the same
SELECT * FROM differences(ARRAY[
    'SELECT k, count(f), sum(f) FROM (SELECT id / 3 AS k, first_value(id / 3) OVER (ORDER BY id / 3 ROWS BETWEEN 1 FOLLOWING '
        'AND 4 FOLLOWING EXCLUDE TIES) f FROM {t}) s GROUP BY k ORDER BY k',
    'SELECT k, count(f), sum(f) FROM (SELECT id / 3 AS k, nth_value(id / 3, 2) OVER (ORDER BY id / 3 ROWS BETWEEN 1 FOLLOWING '
        'AND 9 FOLLOWING EXCLUDE TIES) f FROM {t}) s GROUP BY k ORDER BY k',
    'SELECT k, count(f), sum(f) FROM (SELECT id / 3 AS k, last_value(id / 3) OVER (ORDER BY id / 3 ROWS BETWEEN 3 PRECEDING '
        'AND 1 PRECEDING EXCLUDE TIES) f FROM {t}) s GROUP BY k ORDER BY k',
    'SELECT k, count(f), sum(f) FROM (SELECT id / 3 AS k, last_value(id / 3) OVER (ORDER BY id / 3 ROWS BETWEEN 3 PRECEDING '
        'AND CURRENT ROW EXCLUDE TIES) f FROM {t}) s GROUP BY k ORDER BY k',
    'SELECT k, count(f), sum(f) FROM (SELECT id / 3 AS k, sum(id / 3) OVER (ORDER BY id / 3 ROWS BETWEEN 3 PRECEDING '
        'AND 1 PRECEDING EXCLUDE TIES) f FROM {t}) s GROUP BY k ORDER BY k']);
-- little memory
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT *
    FROM
    differences(ARRAY['SELECT few, max(length(s)), count(s) FROM (SELECT few, string_agg(repeat(id::text, 20), '','') OVER (PARTITION BY few '
    'ORDER BY id) s FROM {t}) x GROUP BY few ORDER BY few']);
SELECT * FROM differences(:'shapes');
SELECT * FROM differences(ARRAY(SELECT unnest(:'total'::text[]) LIMIT 6));
SELECT * FROM all_ran(ARRAY(SELECT unnest(:'total'::text[]) LIMIT 6));
