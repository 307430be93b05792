-- What becomes of plans that are vectorised: cached, copied, scrolled, restarted, explained, secured; and
-- what is left alone.
SET max_parallel_workers_per_gather = 0;
\i include/plan.sql
-- The nodes of a plan, what they give and what they keep, without what a vectorised node tells about itself.
CREATE FUNCTION shape(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN SELECT plan(query, options) LOOP
        IF line ~ '->|^[A-Z]|^ *(CTE|InitPlan|SubPlan|Output:|Filter:|Chunk Filter:|Not Vectorised:)' THEN
            RETURN NEXT line;
        END IF;
    END LOOP;
END $$;
CREATE TABLE sales (id int, shop text, amount numeric(10,2), day date, kind char(3), qty int) USING colcompress;
INSERT INTO sales SELECT g, 'shop ' || g % 7, g / 100.0, date '2024-01-01' + g % 100, 'k' || g % 3, CASE WHEN g % 10 = 0 THEN NULL ELSE g % 1000 END
FROM generate_series(1, 40000) g;
CREATE TABLE shops (name text, town text, size int) USING colcompress;
INSERT INTO shops SELECT 'shop ' || g, 'town ' || g % 3, g FROM generate_series(1, 10) g;
CREATE TABLE small (id int) USING colcompress;
INSERT INTO small SELECT g FROM generate_series(1, 1000) g;
CREATE TABLE parts (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10000) USING colcompress;
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10000) TO (20000) USING colcompress;
INSERT INTO parts SELECT g, g % 100 FROM generate_series(0, 19999) g;
ANALYZE sales, shops, small, parts;
-- EXPLAIN names what stands above and inside
SELECT shape('SELECT shop, count(*), sum(amount) * 2 FROM sales WHERE qty > 10 AND amount * 2 > 5 GROUP BY shop HAVING count(*) > 5', 'COSTS OFF, VERBOSE');
SELECT
    shape('SELECT * FROM (SELECT s.town, max(amount) AS most FROM sales JOIN shops s ON shop = name GROUP BY s.town) x, generate_series(1, 2) g '
    'WHERE most > g', 'COSTS OFF, VERBOSE');
CREATE FUNCTION as_json(query text) RETURNS json LANGUAGE plpgsql AS $$ DECLARE plan json;
BEGIN EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan; RETURN plan; END $$;
SELECT plan->'Node Type' AS node, plan->'Plans'->0->'Relation Name' AS below
    FROM (SELECT as_json('SELECT kind, avg(amount) FROM sales GROUP BY kind ORDER BY kind DESC LIMIT 2')->0->'Plan' AS plan) p;
-- left alone: small tables, plans that only pass rows on, rows that are locked or changed
SELECT shape('SELECT count(*) FROM small');
SELECT shape('SELECT id FROM sales WHERE qty = 3');
CREATE SEQUENCE counted;
SELECT shape('SELECT max(nextval(''counted'')) FROM sales');
SET colonnade.enable_vectorised = off;
SELECT shape('SELECT count(*) FROM sales');
RESET colonnade.enable_vectorised;
-- the whole of other statements
SELECT shape('INSERT INTO shops SELECT shop, kind, count(*) FROM sales GROUP BY shop, kind');
SELECT shape('CREATE TABLE copied AS SELECT shop, count(*) FROM sales GROUP BY shop');
SELECT shape('SELECT v, count(*) FROM parts GROUP BY v');
-- prepared: custom and generic plans, and after the tables changed
PREPARE by_shop (text, int) AS SELECT kind, count(*), sum(amount) FROM sales WHERE shop = $1 AND qty < $2 GROUP BY kind ORDER BY kind LIMIT $2;
EXECUTE by_shop ('shop 1', 500);
EXECUTE by_shop ('shop 2', 2);
EXECUTE by_shop ('shop 3', 0);
EXECUTE by_shop ('shop 3', NULL);
EXECUTE by_shop (NULL, 7);
SET plan_cache_mode = force_generic_plan;
EXECUTE by_shop ('shop 1', 500);
EXECUTE by_shop ('shop 1', -1);
SELECT shape('EXECUTE by_shop (''shop 1'', 500)');
ALTER TABLE sales ADD COLUMN note text;
EXECUTE by_shop ('shop 1', 500);
SET colonnade.enable_vectorised = off;
EXECUTE by_shop ('shop 1', 500);
RESET colonnade.enable_vectorised;
RESET plan_cache_mode;
-- cursors
BEGIN;
DECLARE sorted CURSOR FOR SELECT id FROM sales ORDER BY amount DESC, id;
FETCH 2 FROM sorted; FETCH BACKWARD 1 FROM sorted; FETCH LAST FROM sorted; FETCH FIRST FROM sorted;
DECLARE scrolled SCROLL CURSOR FOR SELECT shop, count(*) FROM sales GROUP BY shop ORDER BY shop;
FETCH 2 FROM scrolled; FETCH BACKWARD 1 FROM scrolled; FETCH ABSOLUTE 7 FROM scrolled; FETCH NEXT FROM scrolled; FETCH PRIOR FROM scrolled;
DECLARE held CURSOR WITH HOLD FOR SELECT kind, count(*) FROM sales GROUP BY kind ORDER BY kind;
COMMIT;
FETCH ALL FROM held;
CLOSE held;
-- PL/pgSQL, SQL functions, views, CTEs
CREATE FUNCTION total(which text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    found numeric;
BEGIN
    SELECT sum(amount) INTO found FROM sales WHERE shop = which;
    RETURN found;
END $$;
SELECT total('shop ' || g) FROM generate_series(0, 7) g;
CREATE FUNCTION per_kind() RETURNS TABLE (k char(3), n bigint) LANGUAGE sql STABLE AS 'SELECT kind, count(*) FROM sales GROUP BY kind';
SELECT * FROM per_kind() ORDER BY 1;
CREATE VIEW per_shop AS SELECT shop, sum(qty) AS qty, count(*) AS n FROM sales GROUP BY shop;
SELECT s.town, sum(p.qty) FROM per_shop p JOIN shops s ON s.name = p.shop GROUP BY s.town ORDER BY 1;
WITH a AS MATERIALIZED (SELECT shop, count(*) n FROM sales GROUP BY shop) SELECT sum(x.n), count(*) FROM a x JOIN a y ON x.n = y.n;
WITH RECURSIVE r AS (SELECT max(id) AS m FROM sales UNION ALL SELECT m - 1 FROM r WHERE m > 39998) SELECT * FROM r;
-- init plans, their values inside and outside, and correlated sub-plans, which are restarted with each row
SELECT count(*) FROM sales WHERE amount > (SELECT avg(amount) FROM sales) AND qty < (SELECT max(size) FROM shops);
SELECT (SELECT min(amount) FROM sales), count(*) FROM sales WHERE id < (SELECT max(id) / 2 FROM sales);
SELECT name, (SELECT count(*) FROM sales WHERE shop = name), (SELECT sum(amount) FROM sales WHERE shop = name AND qty > size) FROM shops ORDER BY name;
SELECT s.name, x.* FROM shops s CROSS JOIN LATERAL (SELECT kind, max(amount) FROM sales WHERE shop = s.name GROUP BY kind ORDER BY kind LIMIT 1) x ORDER BY 1;
-- errors are the server's, and only where a row reaches them
SELECT sum(100 / (qty - 1)) FROM sales WHERE qty < 3;
SELECT sum(100 / qty) FROM sales WHERE qty BETWEEN 1 AND 3;
SELECT sum(CASE WHEN qty <> 1 THEN 100 / (qty - 1) END) FROM sales;
SELECT sum(qty * 1000000000) FROM sales;
SELECT count(*) FROM sales WHERE qty < 0 GROUP BY to_char('2024-01-01'::timestamptz, 'Mon')::bool OR qty > 3;
SELECT sum((qty + 32000)::int2) FROM sales;
-- row security: what a policy hides is seen by nobody's functions
CREATE ROLE clerk;
\i include/leak.sql
ALTER TABLE sales ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON sales USING (shop = 'shop 3' AND id < 40);
GRANT SELECT ON sales TO clerk;
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM sales WHERE shop = 'shop 4' AND id < 20;
GRANT SELECT ON guarded TO clerk;
SET ROLE clerk;
SELECT count(*), sum(amount) FROM sales WHERE leak(shop);
SELECT shop, count(*) FROM sales WHERE leak(shop) GROUP BY shop;
SELECT count(*), sum(amount) FROM guarded WHERE leak(shop);
SELECT sum(1 / (id - 100)) FROM sales;
SELECT shape('SELECT kind, sum(amount) FROM sales WHERE amount * 2 > 1 GROUP BY kind');
RESET ROLE;
DROP VIEW guarded;
DROP POLICY own ON sales;
ALTER TABLE sales DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON sales FROM clerk;
DROP ROLE clerk;
-- correlated aggregates and NOT IN as joins, where that is the same
CREATE TABLE lots (id int NOT NULL, shop text NOT NULL, amount numeric NOT NULL) USING colcompress;
INSERT INTO lots SELECT g, 'shop ' || g % 9, g % 50 FROM generate_series(1, 60000) g;
ANALYZE lots;
SELECT shape('SELECT count(*) FROM lots l WHERE amount > (SELECT 0.5 * avg(x.amount) FROM lots x WHERE x.id = l.id)');
SELECT shape('SELECT count(*) FROM lots l WHERE id NOT IN (SELECT x.id FROM lots x WHERE x.amount > 40)');
-- not the same: count, expressions that may fail, columns that may be NULL
SELECT shape('SELECT count(*) FROM lots l WHERE 1 > (SELECT count(*) FROM lots x WHERE x.id = l.id)');
SELECT shape('SELECT count(*) FROM lots l WHERE amount > (SELECT max(1 / x.amount) FROM lots x WHERE x.id = l.id)');
SELECT shape('SELECT count(*) FROM lots l WHERE id NOT IN (SELECT s.qty FROM sales s)');
SELECT count(*) FROM lots l WHERE amount > (SELECT 0.5 * avg(x.amount) FROM lots x WHERE x.id = l.id);
SELECT count(*) FROM lots l WHERE id NOT IN (SELECT x.id FROM lots x WHERE x.amount > 40);
SELECT count(*) FROM lots l WHERE id NOT IN (SELECT s.qty FROM sales s WHERE s.id < 5);
SELECT count(*) FROM lots l WHERE id NOT IN (SELECT s.qty FROM sales s);
-- how many different keys a function gives the server guesses: 200, or as many as there are where that is
-- less; where it may be five times as many a join is the safer choice
CREATE TABLE keyed (id int NOT NULL, v int) USING colcompress WITH (index_scan = on);
INSERT INTO keyed SELECT g, g % 50 FROM generate_series(1, 150000) g;
CREATE INDEX ON keyed (id);
ANALYZE keyed;
SET random_page_cost = 1.2;
SELECT shape('SELECT count(*), sum(v) FROM keyed WHERE id IN (SELECT (s * 50)::int FROM generate_series(1, 20) s)');
SELECT shape('SELECT count(*), sum(v) FROM keyed WHERE id IN (SELECT (s * 50)::int FROM generate_series(1, 1000) s)');
SELECT count(*), sum(v) FROM keyed WHERE id IN (SELECT (s * 49)::int FROM generate_series(1, 1000) s);
RESET random_page_cost;
-- parallel plans of the server's own are compared with ours
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT shape('SELECT shop, count(*) FROM sales GROUP BY shop');
SELECT shop, count(*) FROM sales GROUP BY shop ORDER BY shop;
