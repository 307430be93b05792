-- Partitions that values of now leave out: the vectorised Append reads those that heap's reads, and no row of
-- another one can end the query.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 1;
SET plan_cache_mode = force_generic_plan;
\i include/plan.sql
-- {t} stands for h, the heap twin, or c.
-- The rows of a query as one text, or its error.
CREATE FUNCTION rows_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; found text[] := '{}';
BEGIN
    FOR r IN EXECUTE query LOOP found := found || r::text; END LOOP;
    IF query !~ '^EXECUTE ordered' THEN SELECT array_agg(x ORDER BY x COLLATE "C") INTO found FROM unnest(found) x; END IF;
    RETURN coalesce(cardinality(found) || ' rows, ' || left(md5(found::text), 8), 'no rows');
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
-- How many scans of partitions a plan has, how many of them ran, and how many were removed.
CREATE FUNCTION scans(query text, OUT scans int, OUT ran int, OUT removed int, OUT nodes text) LANGUAGE plpgsql AS $$
DECLARE line text; plain text[] := '{}'; analysed text[] := '{}';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ ' on \w*_p|Removed:|Fell Back|Not Vectorised' THEN plain := plain || trim(line, ' ->'); END IF;
    END LOOP;
    scans := 0; ran := 0; removed := 0;
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        IF line ~ ' on \w*_p|Removed:|Fell Back|Not Vectorised' THEN analysed := analysed || trim(regexp_replace(line, ' \((actual|never).*', ''),
            ' ->'); END IF;
        IF line ~ 'Scan.* on \w*_p' THEN
            scans := scans + 1;
            IF line !~ 'never executed' THEN ran := ran + 1; END IF;
        END IF;
        IF line ~ 'Subplans Removed' THEN removed := removed + substring(line from '\d+')::int; END IF;
        IF line ~ 'Custom Scan \(Colonnade Vectorised\)$|Colonnade Vectorised\) \(' OR line ~ 'Operators:' THEN nodes := 'vectorised'; END IF;
        IF line ~ 'Fell Back' THEN nodes := trim(line); END IF;
    END LOOP;
    IF plain <> analysed AND nodes !~ 'Fell Back' THEN nodes := format('EXPLAIN %s, ANALYZE %s', plain, analysed); END IF;
END $$;
-- Asks both twins; the statements were prepared as NAME_c and NAME_h. Of their plans: how many scans of
-- partitions ran, are in the plan and were removed.
CREATE FUNCTION twins(VARIADIC calls text[], OUT call text, OUT same bool, OUT answer text, OUT heap text, OUT columns text,
    OUT node text) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE other text; h record; c record;
BEGIN
    FOREACH call IN ARRAY calls LOOP
        answer := rows_of('EXECUTE ' || replace(call, '#', 'h'));
        other := rows_of('EXECUTE ' || replace(call, '#', 'c'));
        same := answer = other;
        IF NOT same THEN answer := answer || ' / ' || other; END IF;
        heap := 'error'; columns := 'error'; node := NULL;
        BEGIN
            SELECT * INTO h FROM scans('EXECUTE ' || replace(call, '#', 'h'));
            heap := format('%s of %s, %s removed', h.ran, h.scans, h.removed);
        EXCEPTION WHEN OTHERS THEN
        END;
        BEGIN
            SELECT * INTO c FROM scans('EXECUTE ' || replace(call, '#', 'c'));
            columns := format('%s of %s, %s removed', c.ran, c.scans, c.removed);
            node := c.nodes;
        EXCEPTION WHEN OTHERS THEN
        END;
        RETURN NEXT;
    END LOOP;
END $$;
-- A statement over either twin.
CREATE FUNCTION prepare(name text, parameters text, query text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('PREPARE %s_h %s AS %s', name, parameters, replace(query, '{t}', 'h'));
    EXECUTE format('PREPARE %s_c %s AS %s', name, parameters, replace(query, '{t}', 'c'));
END $$;
-- Tables: partitioned by hash, list and range; of each a twin of heap tables, and one whose partitions are
-- columnar but for some.
CREATE FUNCTION part(parent text, name text, bounds text, kind text DEFAULT 'colcompress') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE h_%s PARTITION OF h_%s %s USING heap', name, parent, bounds);
    EXECUTE format('CREATE TABLE c_%s PARTITION OF c_%s %s USING %s', name, parent, bounds, kind);
END $$;
CREATE TABLE h_hash (k int, v int, t text) PARTITION BY HASH (k);
CREATE TABLE c_hash (LIKE h_hash) PARTITION BY HASH (k);
SELECT part('hash', 'p_hash' || g, format('FOR VALUES WITH (MODULUS 8, REMAINDER %s)', g)) FROM generate_series(0, 7) g;
INSERT INTO h_hash SELECT g % 100, g, 'row ' || g % 13 FROM generate_series(1, 4000) g;
INSERT INTO h_hash VALUES (NULL, 1, 'null'), (NULL, 2, 'null');
INSERT INTO c_hash SELECT * FROM h_hash;
-- Three of the list's partitions are heaps; two of them have rows that a division fails on. One has its
-- columns in another order, one has partitions of its own.
CREATE TABLE h_list (k int, v int, d date, t text) PARTITION BY LIST (k);
CREATE TABLE c_list (LIKE h_list) PARTITION BY LIST (k);
SELECT part('list', 'p_1', 'FOR VALUES IN (1)'), part('list', 'p_2', 'FOR VALUES IN (2, NULL)', 'heap'), part('list', 'p_default', 'DEFAULT', 'heap');
CREATE TABLE h_p_3 (t text, d date, k int, v int) USING heap;
CREATE TABLE c_p_3 (t text, gone int, d date, k int, v int) USING colcompress;
ALTER TABLE c_p_3 DROP COLUMN gone;
ALTER TABLE h_list ATTACH PARTITION h_p_3 FOR VALUES IN (3);
ALTER TABLE c_list ATTACH PARTITION c_p_3 FOR VALUES IN (3);
CREATE TABLE h_4 PARTITION OF h_list FOR VALUES IN (4, 5) PARTITION BY RANGE (d);
CREATE TABLE c_4 PARTITION OF c_list FOR VALUES IN (4, 5) PARTITION BY RANGE (d);
SELECT part('4', 'p_4_1', 'FOR VALUES FROM (MINVALUE) TO (''2024-02-01'')'), part('4', 'p_4_2', 'FOR VALUES FROM (''2024-02-01'') TO (''2024-03-01'')', 'heap'),
       part('4', 'p_4_3', 'FOR VALUES FROM (''2024-03-01'') TO (MAXVALUE)');
INSERT INTO h_list (k, v, d, t) SELECT CASE WHEN g % 7 = 6 THEN NULL ELSE g % 7 END, CASE WHEN g % 7 = 2 THEN g % 5 ELSE 1 + g % 5 END,
    date '2024-01-01' + g % 90, 'row ' || g % 3 FROM generate_series(1, 2100) g;
INSERT INTO c_list SELECT * FROM h_list;
UPDATE h_p_4_2 SET v = 0; UPDATE c_p_4_2 SET v = 0;
CREATE TABLE h_range (d date, k int, v int) PARTITION BY RANGE (d, k);
CREATE TABLE c_range (LIKE h_range) PARTITION BY RANGE (d, k);
SELECT part('range', 'p_r' || g, format('FOR VALUES FROM (%L, 10) TO (%L, 10)', date '2024-01-01' + 10 * g, date '2024-01-01' + 10 * g + 10),
    CASE WHEN g = 2 THEN 'heap' ELSE 'colcompress' END)
FROM generate_series(0, 5) g;
INSERT INTO h_range SELECT date '2024-01-02' + g % 59, g % 20, g FROM generate_series(1, 3000) g;
INSERT INTO c_range SELECT * FROM h_range;
CREATE TABLE asked (n int, k int, d date) USING heap;
INSERT INTO asked VALUES (1, 1, '2024-01-15'), (2, 3, '2024-02-20'), (3, NULL, NULL), (4, 4, '2024-01-20'), (5, 77, '2024-03-20'),
    (6, 5, '2024-03-05'), (7, 1, '2024-01-15');
ANALYZE h_hash, c_hash, h_list, c_list, h_range, c_range, asked;
-- Parameters: known when the statement starts
SELECT prepare('hash', '(int)', 'SELECT t, count(*), sum(v) FROM {t}_hash WHERE k = $1 GROUP BY t');
SELECT * FROM twins('hash_#(1)', 'hash_#(2)', 'hash_#(42)', 'hash_#(99)', 'hash_#(1000)', 'hash_#(NULL)');
SELECT prepare('hash_any', '(int, int)', 'SELECT k, count(*), max(t) FROM {t}_hash WHERE k = ANY (ARRAY[$1, $2]) GROUP BY k');
SELECT * FROM twins('hash_any_#(1, 1)', 'hash_any_#(1, 2)', 'hash_any_#(7, NULL)', 'hash_any_#(NULL, NULL)');
SELECT prepare('hash_null', '(int, int)', 'SELECT count(*), sum(v) FROM {t}_hash WHERE (k = $1 OR k IS NULL) AND v < $2');
SELECT * FROM twins('hash_null_#(5, 3000)', 'hash_null_#(NULL, 3000)');
SELECT prepare('list', '(int)', 'SELECT t, count(*), sum(100 / v), min(d) FROM {t}_list WHERE 100 / v > 1 AND k BETWEEN $1 + 0 AND $1 + 0 GROUP BY t');
SELECT * FROM twins('list_#(1)', 'list_#(3)', 'list_#(5)', 'list_#(2)', 'list_#(0)', 'list_#(77)', 'list_#(NULL)');
SELECT prepare('list_below', '(int, date)', 'SELECT t, count(*), sum(100 / v) FROM {t}_list WHERE 100 / v > 1 AND k >= $1 + 0 AND d < $2 + 0 GROUP BY t');
SELECT * FROM twins('list_below_#(4, ''2024-01-10'')', 'list_below_#(4, ''2024-03-10'')', 'list_below_#(5, NULL)');
SELECT prepare('range', '(date, date)',
    'SELECT k, count(*), sum(1000 / (v - 1001)) FROM {t}_range WHERE 1000 / (v - 1001) < 5000 AND d BETWEEN $1 + 0 + 0 AND $2 + 0 + 0 GROUP BY k');
SELECT * FROM twins('range_#(''2024-01-03'', ''2024-01-04'')', 'range_#(''2024-02-11'', ''2024-03-11'')', 'range_#(''2024-01-20'', ''2024-01-25'')',
    'range_#(''2024-02-01'', ''2024-01-01'')', 'range_#(NULL, ''2024-01-01'')');
SELECT prepare('range_two', '(date, int)', 'SELECT count(*), avg(v) FROM {t}_range WHERE d = $1 AND k > $2');
SELECT * FROM twins('range_two_#(''2024-01-11'', 9)', 'range_two_#(''2024-01-11'', 5)', 'range_two_#(NULL, 5)');
-- Stable expressions, which may be wrong, too
CREATE FUNCTION chosen() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN current_setting('test.chosen')::int; END $$;
SET test.chosen = 3;
SELECT prepare('stable', '', 'SELECT t, count(*), sum(100 / v) FROM {t}_list WHERE 100 / v > 1 AND k = chosen() + 1 GROUP BY t');
SET test.chosen = 0; SELECT * FROM twins('stable_#');
SET test.chosen = 2; SELECT * FROM twins('stable_#');
SET test.chosen = 1; SELECT * FROM twins('stable_#');
SET test.chosen = 'none'; SELECT * FROM twins('stable_#');
SET test.chosen = 2;
CREATE ROLE pruning_reader;
GRANT SELECT ON c_list, h_list TO pruning_reader;
REVOKE EXECUTE ON FUNCTION chosen() FROM PUBLIC;
SET ROLE pruning_reader;
SELECT * FROM twins('stable_#');
SELECT call, same FROM twins('list_#(3)');
RESET ROLE;
-- In order; UNION ALL with what no value leaves out; joins; sets; windows
SELECT prepare('ordered', '(int)', 'SELECT k, v, t FROM {t}_hash WHERE k = $1 OR k = $1 + 1 ORDER BY v, k LIMIT 20');
SELECT * FROM twins('ordered_#(4)', 'ordered_#(NULL)');
SET enable_sort = off; SET enable_hashagg = off;
SELECT prepare('ordered_days', '(date)', 'SELECT d, count(*), sum(v) FROM {t}_range WHERE d >= $1 GROUP BY d ORDER BY d');
SELECT * FROM twins('ordered_days_#(''2024-02-15'')', 'ordered_days_#(''2030-01-01'')');
RESET enable_sort; RESET enable_hashagg;
CREATE TABLE h_merge (k int, v int) PARTITION BY LIST (k);
CREATE TABLE c_merge (LIKE h_merge) PARTITION BY LIST (k);
SELECT part('merge', 'p_m1', 'FOR VALUES IN (1)', 'heap'), part('merge', 'p_m2', 'FOR VALUES IN (2)', 'heap'), part('merge', 'p_m3', 'FOR VALUES IN (3, 4)');
INSERT INTO h_merge SELECT CASE WHEN g % 40 = 0 THEN 3 ELSE 1 + g % 2 END, g FROM generate_series(1, 8000) g;
INSERT INTO c_merge SELECT * FROM h_merge;
CREATE INDEX ON h_p_m1 (v); CREATE INDEX ON c_p_m1 (v); CREATE INDEX ON h_p_m2 (v); CREATE INDEX ON c_p_m2 (v);
ANALYZE h_merge, c_merge;
SELECT prepare('ordered_merge', '(int)', 'SELECT k, v FROM {t}_merge WHERE k >= $1 ORDER BY v LIMIT 3');
SELECT prepare('ordered_init', '(int)', 'SELECT k, v FROM {t}_merge WHERE k >= (SELECT k FROM asked WHERE n = $1) ORDER BY v LIMIT 3');
EXPLAIN (COSTS OFF) EXECUTE ordered_merge_h(2);
EXPLAIN (COSTS OFF) EXECUTE ordered_merge_c(2);
SELECT plan($$EXECUTE ordered_init_c(2)$$);
SELECT * FROM twins('ordered_merge_#(1)', 'ordered_merge_#(2)', 'ordered_merge_#(NULL)', 'ordered_init_#(1)', 'ordered_init_#(2)', 'ordered_init_#(3)');
SELECT prepare('union', '(int)',
    'SELECT v, count(*) FROM (SELECT k, v FROM {t}_hash UNION ALL SELECT k, 100 / v FROM {t}_list WHERE 100 / v > 1 UNION ALL SELECT k, n '
    'FROM asked) u WHERE k = $1 GROUP BY v');
SELECT * FROM twins('union_#(1)', 'union_#(4)');
SELECT prepare('joined', '(int)',
    'SELECT b.t, count(*), sum(b.v), max(a.t) FROM {t}_hash a JOIN {t}_list b ON a.v % 5 = b.v WHERE 10 / b.v > 1 AND a.k = $1 AND b.k = $1 + 1 '
    'GROUP BY b.t');
SELECT * FROM twins('joined_#(2)', 'joined_#(1)', 'joined_#(NULL)');
SELECT prepare('sides', '(int)', 'SELECT a.n, b.t, count(b.v), count(*) FROM asked a LEFT JOIN {t}_hash b ON b.k = $1 AND b.v % 7 = a.n GROUP BY a.n, b.t');
SELECT * FROM twins('sides_#(2)', 'sides_#(NULL)');
SELECT prepare('sets', '(int)', 'SELECT k, t, count(*), grouping(k, t) FROM {t}_hash WHERE k = $1 GROUP BY GROUPING SETS ((k), (t), ())');
SELECT * FROM twins('sets_#(2)', 'sets_#(NULL)');
SELECT prepare('windows', '(int)', 'SELECT k, v, rank() OVER (PARTITION BY t ORDER BY v) FROM {t}_hash WHERE k = $1');
SELECT * FROM twins('windows_#(2)', 'windows_#(NULL)');
-- The executor's parameters, known later: subqueries without and with a reference to the outer row
SELECT prepare('init', '(int)',
    'SELECT t, count(*), sum(100 / v) FROM {t}_list WHERE 100 / v > 1 AND k >= (SELECT k FROM asked WHERE n = $1) + 0 AND k <= (SELECT k FROM asked '
    'WHERE n = $1) + 0 GROUP BY t');
SELECT * FROM twins('init_#(1)', 'init_#(2)', 'init_#(3)', 'init_#(4)', 'init_#(5)', 'init_#(6)', 'init_#(8)');
SELECT prepare('init_and', '(int, int)',
    'SELECT k, count(*), sum(100 / v) FROM {t}_list WHERE 100 / v > 1 AND k > $1 + 0 AND d = (SELECT d FROM asked WHERE n = $2) + 0 GROUP BY k');
SELECT * FROM twins('init_and_#(3, 4)', 'init_and_#(3, 6)', 'init_and_#(3, 3)', 'init_and_#(3, 5)', 'init_and_#(3, 2)', 'init_and_#(1, 1)');
SELECT prepare('init_fails', '(int)', 'SELECT count(*), sum(v) FROM {t}_list WHERE 100 / v > 1 AND k = 12 / (SELECT n - 3 FROM asked WHERE n = $1)');
SELECT * FROM twins('init_fails_#(7)', 'init_fails_#(6)', 'init_fails_#(3)', 'init_fails_#(5)');
SELECT prepare('correlated', '(int[])',
    'SELECT n, (SELECT sum(100 / v) FROM {t}_list l WHERE 100 / v > 1 AND l.k BETWEEN a.k + 0 AND a.k + 0) FROM asked a WHERE n = ANY ($1)');
SELECT * FROM twins('correlated_#(''{1,2,3,7}'')', 'correlated_#(''{1,4}'')');
SELECT prepare('correlated_hash', '(int)', 'SELECT n, (SELECT count(*) || max(t) FROM {t}_hash l WHERE l.k = a.k AND v > $1) FROM asked a');
SELECT * FROM twins('correlated_hash_#(100)');
SELECT prepare('correlated_few', '(int, int[])',
    'SELECT n, (SELECT sum(100 / v) FROM {t}_list l WHERE 100 / v > 1 AND l.k > $1 + 0 AND l.d < a.d + 0 AND l.k < 6) FROM asked a '
    'WHERE n = ANY ($2)');
SELECT * FROM twins('correlated_few_#(3, ''{1,4}'')', 'correlated_few_#(2, ''{4,1}'')', 'correlated_few_#(3, ''{2}'')');
SELECT prepare('lateral', '(int)',
    'SELECT a.n, x.* FROM asked a, LATERAL (SELECT t, count(*), sum(100 / v) FROM {t}_list l WHERE 100 / v > 1 AND l.k BETWEEN a.k + 0 AND a.k + 0 '
    'GROUP BY t ORDER BY t LIMIT 2) x WHERE a.n < $1');
SELECT * FROM twins('lateral_#(4)', 'lateral_#(10)');
SELECT prepare('nested', '(int)',
    'SELECT count(*), sum(c) FROM (SELECT a.n, x.c FROM asked a LEFT JOIN LATERAL (SELECT count(*) AS c FROM {t}_hash l, {t}_range r '
    'WHERE l.k = a.k AND r.d = a.d AND r.k = l.v % 20) x ON true WHERE a.n < $1) y');
-- 18 begins one more of them.
SELECT call, same, answer, heap = columns AS alike, node FROM twins('nested_#(10)');
-- Both kinds at once, one below the other; many starts
SELECT prepare('deep', '(int)',
    'SELECT n, (SELECT count(*) || '' '' || coalesce(sum(l.v), 0) FROM {t}_list l WHERE l.k = a.k AND l.v NOT IN (SELECT v FROM {t}_hash h '
    'WHERE h.k = $1 AND v < 3)) FROM asked a');
SELECT call, same, answer FROM twins('deep_#(1)', 'deep_#(NULL)');
SELECT prepare('often', '(int)',
    'SELECT g, (SELECT count(*) || '' '' || sum(100 / v) FROM {t}_list l WHERE 100 / v > 1 AND l.k BETWEEN g % 2 + 0 AND g % 2 + 0 '
    'AND t = ''row '' || g % $1) FROM generate_series(1, 50) g');
SELECT * FROM twins('often_#(3)');
-- The key of an index that no row asks for is not computed, in the first start or a later one
SELECT prepare('keys', '(int[])',
    'SELECT n, (SELECT count(*) || '' '' || sum(v) FROM {t}_merge l WHERE l.v = 12 / (a.n - 3) AND l.k BETWEEN a.k AND a.k) FROM asked a '
    'WHERE n = ANY ($1)');
EXPLAIN (COSTS OFF) EXECUTE keys_c('{1}');
SELECT * FROM twins('keys_#(''{1,3,7}'')', 'keys_#(''{3}'')', 'keys_#(''{2,4}'')');
-- A value that cannot be computed: an error where heap comes to the partitions, none where it does not
CREATE TABLE nothing (n int, v int) USING heap;
SELECT prepare('fails', '(int[])',
    'SELECT n, (SELECT sum(100 / v) FROM {t}_list l WHERE 100 / v > 1 AND l.k = 12 / (a.n - 3)) FROM asked a WHERE n = ANY ($1)');
SELECT * FROM twins('fails_#(''{7,7}'')', 'fails_#(''{7,3}'')');
SELECT prepare('never', '(int[])',
    'SELECT n, (SELECT count(*) || '' '' || count(DISTINCT l.t) FROM {t}_hash l JOIN nothing x ON x.v = l.v WHERE l.k = 12 / (a.n - 3)) '
    'FROM asked a WHERE n = ANY ($1)');
SELECT * FROM twins('never_#(''{7,2}'')', 'never_#(''{7,3,1}'')');
CREATE FUNCTION twelfth(n int) RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RETURN 12 / n; END $$;
SELECT prepare('fails_within', '(int[])',
    'SELECT n, (SELECT sum(100 / v) FROM {t}_list l WHERE 100 / v > 1 AND l.k = twelfth(a.n - 3)) FROM asked a WHERE n = ANY ($1)');
SELECT * FROM twins('fails_within_#(''{7,7}'')', 'fails_within_#(''{7,3}'')');
-- Functions' plans, cursors, what is run many times
CREATE FUNCTION of_key(key int, heap bool) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    IF heap THEN SELECT count(*) || ' ' || sum(100 / v) INTO found FROM h_list WHERE 100 / v > 1 AND k BETWEEN key + 0 AND key + 0;
    ELSE SELECT count(*) || ' ' || sum(100 / v) INTO found FROM c_list WHERE 100 / v > 1 AND k BETWEEN key + 0 AND key + 0;
    END IF;
    RETURN found;
EXCEPTION WHEN division_by_zero THEN RETURN SQLERRM;
END $$;
SELECT k, of_key(k, false), of_key(k, true) IS NOT DISTINCT FROM of_key(k, false) AS same FROM generate_series(0, 8) k;
SELECT count(*), bool_and(of_key(g % 7, true) IS NOT DISTINCT FROM of_key(g % 7, false)) FROM generate_series(1, 30) g;
BEGIN;
DECLARE scrolled SCROLL CURSOR FOR SELECT t, count(*), sum(100 / v) FROM c_list WHERE 100 / v > 1 AND k >= (SELECT 3 + 0 * count(*)::int FROM asked)
    AND k < 4 GROUP BY t ORDER BY t;
FETCH 1 FROM scrolled;
FETCH BACKWARD 1 FROM scrolled;
FETCH 2 FROM scrolled;
ROLLBACK;
DO $$
DECLARE r record; n int := 0; c refcursor;
BEGIN
    FOR key IN 1..5 LOOP
        OPEN c FOR SELECT t, count(*) FROM c_hash WHERE k = key GROUP BY t;
        LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; n := n + r.count; END LOOP;
        CLOSE c;
    END LOOP;
    RAISE NOTICE '% rows, % of heap', n, (SELECT count(*) FROM h_hash WHERE k BETWEEN 1 AND 5);
END $$;
-- Partitions that come and go after the plan was made
ALTER TABLE c_list DETACH PARTITION c_p_3; ALTER TABLE h_list DETACH PARTITION h_p_3;
SELECT * FROM twins('list_#(3)');
ALTER TABLE c_list ATTACH PARTITION c_p_3 FOR VALUES IN (3); ALTER TABLE h_list ATTACH PARTITION h_p_3 FOR VALUES IN (3);
SELECT * FROM twins('list_#(3)');
-- The node as EXPLAIN shows it
EXPLAIN (COSTS OFF) EXECUTE hash_c(42);
EXPLAIN (COSTS OFF) EXECUTE hash_c(NULL);
SELECT plan($$EXECUTE hash_c(NULL)$$, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
EXPLAIN (COSTS OFF, VERBOSE) EXECUTE joined_c(NULL);
EXPLAIN (COSTS OFF) EXECUTE ordered_c(NULL);
SELECT plan($$EXECUTE init_c(5)$$, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
CREATE FUNCTION removed(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan; RETURN jsonb_path_query_array(plan::jsonb, 'strict $.**."Subplans Removed"'); END $$;
SELECT removed('EXECUTE hash_c(42)'), removed('EXECUTE hash_c(NULL)'), removed('EXECUTE list_below_c(3, ''2024-02-01'')');
-- Without the setting, and with workers and threads
SET enable_partition_pruning = off;
SELECT prepare('unpruned', '(int)', 'SELECT t, count(*), sum(v) FROM {t}_hash WHERE k = $1 GROUP BY t');
SELECT * FROM twins('unpruned_#(42)');
RESET enable_partition_pruning;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
DEALLOCATE ALL;
SELECT prepare('threads', '(int)', 'SELECT t, count(*), sum(v) FROM {t}_hash WHERE k = $1 GROUP BY t');
SELECT call, same, answer FROM twins('threads_#(42)', 'threads_#(NULL)');
SELECT prepare('threads_list', '(int)', 'SELECT t, count(*), sum(100 / v) FROM {t}_list WHERE 100 / v > 1 AND k BETWEEN $1 + 0 AND $1 + 0 GROUP BY t');
SELECT call, same, answer FROM twins('threads_list_#(1)', 'threads_list_#(3)', 'threads_list_#(4)', 'threads_list_#(2)');
SELECT prepare('threads_init', '(int)',
    'SELECT t, count(*), sum(100 / v) FROM {t}_list WHERE 100 / v > 1 AND k >= (SELECT k FROM asked WHERE n = $1) + 0 AND k <= (SELECT k FROM asked '
    'WHERE n = $1) + 0 GROUP BY t');
SELECT call, same, answer FROM twins('threads_init_#(1)', 'threads_init_#(2)', 'threads_init_#(3)', 'threads_init_#(4)', 'threads_init_#(5)');
SELECT prepare('threads_correlated', '(int[])',
    'SELECT n, (SELECT sum(100 / v) FROM {t}_list l WHERE 100 / v > 1 AND l.k BETWEEN a.k + 0 AND a.k + 0) FROM asked a WHERE n = ANY ($1)');
SELECT call, same, answer FROM twins('threads_correlated_#(''{1,2,3,7}'')');
DROP OWNED BY pruning_reader; DROP ROLE pruning_reader;
-- One partition of many is left by a value that comes later: what a start reads, not what the table has,
-- decides whether vectors are worth it.
RESET colonnade.vectorised_min_rows;
RESET max_parallel_workers_per_gather; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE many_list (k int, v int) PARTITION BY LIST (k);
CREATE TABLE many_hash (k int, v int) PARTITION BY HASH (k);
SELECT format('CREATE TABLE many_list_%s PARTITION OF many_list FOR VALUES IN (%1$s) USING colcompress', g) FROM generate_series(0, 19) g \gexec
SELECT format('CREATE TABLE many_hash_%s PARTITION OF many_hash FOR VALUES WITH (MODULUS 20, REMAINDER %1$s) USING colcompress', g)
    FROM generate_series(0, 19) g \gexec
INSERT INTO many_list SELECT g % 20, g FROM generate_series(1, 12000) g;
INSERT INTO many_hash SELECT g % 20, g FROM generate_series(1, 12000) g;
ANALYZE many_list, many_hash;
CREATE FUNCTION is_vectorised(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan; RETURN plan::text LIKE '%"Colonnade Vectorised"%'; END $$;
SELECT condition, is_vectorised(format('SELECT (SELECT sum(v) FROM many_list WHERE %s) FROM generate_series(0, 30) n', condition)) AS list,
       is_vectorised(format('SELECT (SELECT sum(v) FROM many_hash WHERE %s) FROM generate_series(0, 30) n', condition)) AS hash
  FROM (VALUES ('k = n'), ('k = n AND v > n'), ('k < n'), ('k = n OR k = n + 1'), ('v > n')) q (condition);
-- A part of the key leaves more than one; what stands beside partitions is always read.
CREATE TABLE many_range (k int, m int, v int) PARTITION BY RANGE (k, m);
SELECT format('CREATE TABLE many_range_%s PARTITION OF many_range FOR VALUES FROM (1, %1$s) TO (1, %2$s) USING colcompress', g, g + 1)
    FROM generate_series(0, 19) g \gexec
INSERT INTO many_range SELECT 1, g % 20, g FROM generate_series(1, 12000) g;
CREATE TABLE beside_1 (k int, v int) USING colcompress;
INSERT INTO beside_1 SELECT g % 20, g FROM generate_series(1, 4900) g;
CREATE TABLE beside_2 (LIKE beside_1) USING colcompress;
INSERT INTO beside_2 SELECT * FROM beside_1;
ANALYZE many_range, beside_1, beside_2;
SELECT query, is_vectorised(format('SELECT (SELECT sum(v) FROM %s) FROM generate_series(0, 30) n', query)) FROM (VALUES
  ('many_range WHERE k = n'), ('many_range WHERE k = n AND m = n'), ('(TABLE beside_1 UNION ALL TABLE beside_2) u WHERE k = n'),
  ('(TABLE beside_1 UNION ALL TABLE beside_2 UNION ALL TABLE many_list) u WHERE k = n'), ('(TABLE beside_1 UNION ALL TABLE many_list) u WHERE k = n'),
  ('(TABLE many_list UNION ALL TABLE many_hash) u WHERE k = n')) q (query);
DROP TABLE many_range, beside_1, beside_2;
-- Starts leave nothing behind.
SET colonnade.vectorised_min_rows = 0;
CREATE FUNCTION executor_bytes() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN RETURN (SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name IN ('ExecutorState', 'colonnade translation')); END $$;
CREATE FUNCTION grows(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE few bigint; many bigint;
BEGIN
  query := 'SELECT executor_bytes() + 0 * c FROM (SELECT count((' || query || ')) AS c FROM generate_series(1, %s) n) q';
  EXECUTE format(query, 50) INTO few; EXECUTE format(query, 550) INTO many;
  -- The rows of generate_series take some, too.
  RETURN CASE WHEN many - few < 500 * 64 THEN 'no' ELSE format('%s bytes a start', (many - few) / 500) END;
END $$;
SELECT query, is_vectorised(format('SELECT (%s) FROM generate_series(1, 3) n', query)), grows(query) FROM (VALUES
  ('SELECT sum(v) FROM many_list WHERE k < n'), ('SELECT count(*) FROM many_list_1 a JOIN many_list_2 b USING (v) WHERE a.v > n'),
  ('SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY k ORDER BY v) AS r FROM many_list_1 WHERE v > n) s'),
  ('SELECT sum(v) FROM many_list_1 WHERE reverse(v::text) > n::text'),
  ('SELECT max(c) FROM (SELECT k, count(*) AS c FROM many_list_1 WHERE v > n GROUP BY ROLLUP (k, v)) s'),
  ('SELECT count(*) FROM many_list_1 WHERE v NOT IN (SELECT v FROM many_list_2 WHERE v > n)'),
  ('SELECT array_agg(v)::text FROM many_list_1 WHERE v > n')) q (query);
DROP TABLE many_list, many_hash;
