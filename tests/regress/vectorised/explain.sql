-- What EXPLAIN tells of vectorised operators: keys, conditions and calls in the server's words, in every
-- format, and the same with ANALYZE.
\i include/plan.sql
SET colonnade.stripe_threshold_rows = 0;
SET colonnade.vectorised_min_rows = 0;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE orders (id int, customer int, day date, amount numeric(10, 2), note text, tags text[], doc jsonb) USING colcompress;
INSERT INTO orders SELECT g, g % 50, '2024-01-01'::date + g % 90, g % 700 / 4.0, 'note ' || g % 13, ARRAY['t' || g % 5],
    jsonb_build_object('a', g % 7) FROM generate_series(1, 30000) g;
CREATE TABLE customers (id int, name text, "Odd Name" int) USING colcompress;
INSERT INTO customers SELECT g, 'customer ' || g, g % 3 FROM generate_series(0, 49) g;
ANALYZE orders, customers;

-- One table: names without a prefix.
EXPLAIN (COSTS OFF) SELECT customer, count(*), sum(amount), count(DISTINCT note) FILTER (WHERE amount > 10) FROM orders
 WHERE upper(note) LIKE 'NOTE 1%' AND amount * 2 < 300 OR note IS NULL GROUP BY customer HAVING count(*) > 3 ORDER BY sum(amount) DESC NULLS LAST,
     customer LIMIT 5;
-- Several: with their aliases.
EXPLAIN (COSTS OFF) SELECT c."Odd Name", avg(o.amount + 1) FROM orders o JOIN customers c ON c.id = o.customer AND c."Odd Name" + o.id > 7
 WHERE o.day >= '2024-02-01' GROUP BY 1;
EXPLAIN (COSTS OFF) SELECT c.name FROM customers c WHERE NOT EXISTS (SELECT FROM orders WHERE orders.customer = c.id AND orders.amount > 170);
EXPLAIN (COSTS OFF) SELECT x.n, count(*) FROM (SELECT customer AS k, count(*) AS n FROM orders GROUP BY 1) x JOIN customers ON customers.id = x.k GROUP BY x.n;
-- What comes after the node is shown as ever: here the parameters of a nested loop.
CREATE TABLE rates (day date PRIMARY KEY, rate numeric) USING heap;
INSERT INTO rates SELECT '2023-01-01'::date + g, g FROM generate_series(1, 10000) g; ANALYZE rates;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT x.day, x.n, r.rate FROM (SELECT day, count(*) AS n FROM orders GROUP BY 1) x
  LEFT JOIN LATERAL (SELECT rate FROM rates WHERE rates.day <= x.day + x.n::int ORDER BY rates.day DESC LIMIT 1) r ON true;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_memoize;
-- Functions of the server's own, lists, documents and arrays.
EXPLAIN (COSTS OFF) SELECT count(*), string_agg(note, ',' ORDER BY id DESC), percentile_cont(0.25) WITHIN GROUP (ORDER BY amount::float8) FROM orders
 WHERE md5(note) < '8' AND note NOT IN ('note 1', 'note 2') AND tags @> '{t1}' AND doc ->> 'a' = '3' AND CASE WHEN customer > 3
     THEN extract(month FROM day) = 2 ELSE true END;
-- Sets, windows and set operations.
EXPLAIN (COSTS OFF) SELECT customer, note, count(*) FROM orders GROUP BY GROUPING SETS ((customer, note), (note), ());
EXPLAIN (COSTS OFF) SELECT id, rank() OVER w, sum(amount) OVER w FROM orders WINDOW w AS (PARTITION BY customer ORDER BY day DESC, id);
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (customer) customer, id FROM orders ORDER BY customer, id DESC;
EXPLAIN (COSTS OFF) SELECT customer FROM orders EXCEPT SELECT id FROM customers;
-- Values that are not known yet.
PREPARE asked(int, text[]) AS SELECT note, count(*) FROM orders WHERE customer + 1 > $1 AND note = ANY ($2) GROUP BY note;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE asked(3, '{note 1}');
RESET plan_cache_mode;
SELECT plan($$SELECT count(*) FROM orders WHERE amount + 1 > (SELECT avg(amount) FROM orders)$$);
-- What nested loops pass to their inner sides, in columns that come from there.
EXPLAIN (COSTS OFF, VERBOSE) SELECT s1, s2, sm FROM generate_series(1, 3) s1,
  LATERAL (SELECT s2, sum(s1 + s2) AS sm FROM generate_series(1, 3) s2 GROUP BY s2) ss ORDER BY 1, 2;
EXPLAIN (COSTS OFF, VERBOSE) SELECT * FROM generate_series(1, 3) a, LATERAL (SELECT b, c.* FROM generate_series(1, a) b,
  LATERAL (SELECT c, sum(a * b + c) FROM generate_series(1, b) c GROUP BY c) c) x ORDER BY 1, 2, 3;
-- The other formats.
SELECT plan($$SELECT customer, sum(amount) FROM orders WHERE amount + 0 < 100 GROUP BY customer$$, 'COSTS OFF, FORMAT JSON');
SELECT plan($$SELECT customer, sum(amount) FROM orders WHERE amount + 0 < 100 GROUP BY customer$$, 'COSTS OFF, FORMAT YAML');
SELECT plan($$SELECT customer, sum(amount) FROM orders WHERE amount + 0 < 100 GROUP BY customer$$, 'COSTS OFF, FORMAT XML');
EXPLAIN (COSTS OFF, VERBOSE) SELECT customer, sum(amount + 1) FROM orders WHERE amount + 0 < 100 GROUP BY customer;
-- With ANALYZE: rows, and nothing that differs from run to run where TIMING is off.
SELECT plan($$SELECT c.name, sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer
    WHERE o.amount + o.id < 1000 GROUP BY c.name$$, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT plan($$SELECT customer, sum(amount) FROM orders WHERE amount + id < 100 GROUP BY customer$$, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON');

-- What ANALYZE adds with TIMING is there, in every format, and is well-formed.
CREATE FUNCTION explained(options text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (' || options || ') ' || query LOOP
        lines := lines || line || E'\n';
    END LOOP;
    RETURN lines;
END $$;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
\set spills '$$SELECT id, note, count(*), max(amount), count(tags), count(doc) FROM orders GROUP BY id, note ORDER BY note, id$$'
SELECT explained('ANALYZE, BUFFERS', :spills) ~ 'Buffers:[^\n]* temp read=[1-9][0-9]+ written=[1-9][0-9]+' AS blocks;
SELECT explained('ANALYZE, BUFFERS', :spills) ~ 'Hash Aggregate \(rows=30000 own time=[0-9.]+ ms memory=[0-9]+kB spilled=[0-9]+kB files=[0-9]+\)' AS text;
SELECT bool_and(o ? 'Own Time' AND (o ->> 'Peak Memory Usage')::int > 0 AND (o ->> 'Disk Usage')::int > 0 AND (o ->> 'Spill Files')::int > 0) AS json
  FROM jsonb_path_query(explained('ANALYZE, BUFFERS, FORMAT JSON', :spills)::jsonb, '$.**.Operators[*] ? (@.Operator == "Hash Aggregate")') o;
SELECT xpath_exists('//e:Operator/e:Peak-Memory-Usage', explained('ANALYZE, BUFFERS, FORMAT XML', :spills)::xml,
    '{{e,http://www.postgresql.org/2009/explain}}') AS xml;
SELECT explained('ANALYZE, BUFFERS, FORMAT YAML', :spills) ~ 'Peak Memory Usage: [1-9]' AS yaml;
RESET work_mem;
-- The plan is the same with ANALYZE as without.
SELECT explained('COSTS OFF', q) = regexp_replace(regexp_replace(explained('ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF', q),
    ' \((actual )?rows=[^)]*\)', '', 'g'),
    '\n *(Rows Removed|Stripes:|Chunks:|Bytes:|Rows from|Buckets:|Sort Method)[^\n]*', '', 'g') AS same
  FROM unnest(ARRAY['SELECT customer, sum(amount) FROM orders WHERE amount + 0 < 100 GROUP BY customer',
                    'SELECT c.name, count(*) FROM orders o JOIN customers c ON c.id = o.customer GROUP BY 1 ORDER BY 2 LIMIT 3']) q;
-- What comes of an InitPlan has one name, whoever writes it: later versions of the server name it otherwise.
SELECT e ~ '\$0' <> (e ~ '\(InitPlan 1\)\.col1') AS one_name
  FROM explained('COSTS OFF', 'SELECT count(*) FROM orders WHERE amount + 1 > (SELECT avg(amount) FROM orders)') e;
