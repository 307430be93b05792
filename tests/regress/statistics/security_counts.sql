-- What EXPLAIN ANALYZE counts of a scan under row security, or inside a security barrier view, does not
-- depend on values of a join or a sort above it: they would tell of rows that nobody may see.
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
CREATE TABLE salaries (id int, who name, pay numeric, other int) USING colcompress WITH (chunk_group_row_limit = 1000);
INSERT INTO salaries SELECT g, CASE WHEN g <= 200 THEN 'hidden' ELSE 'clerk' END, CASE WHEN g <= 6 THEN 777.77 ELSE g * 1.5 END, g
    FROM generate_series(1, 20000) g;
ANALYZE salaries;
CREATE ROLE clerk;
GRANT SELECT ON salaries TO clerk;
ALTER TABLE salaries ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON salaries USING (who = current_user);
CREATE VIEW shown WITH (security_barrier) AS SELECT * FROM salaries WHERE who = 'clerk';
CREATE FUNCTION counted(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN (SELECT string_agg(m.part[1], ' ') FROM regexp_matches(plan, '"((?:Custom Plan Provider|Chunks|Bytes|Rows Removed)[^,\n]*)', 'g') m(part));
END $$;
CREATE TABLE asked (name text, query text);
INSERT INTO asked VALUES ('policy', 'SELECT count(*) FROM salaries JOIN (VALUES (%s::numeric), (9999)) v(x) ON pay = x'),
    ('view', 'SELECT count(*) FROM shown JOIN (VALUES (%s::numeric), (9999)) v(x) ON pay = x');
GRANT SELECT ON asked, shown TO clerk;
SET colonnade.vectorised_min_rows = 0;
SELECT name, counted(format(query, 777.77)) = counted(format(query, 777.78)) AS same, counted(format(query, 777.77)) ~ 'Vectorised' AS vectorised
    FROM asked WHERE name = 'view';
SET ROLE clerk;
SELECT name, counted(format(query, 777.77)) = counted(format(query, 777.78)) AS same, counted(format(query, 777.77)) ~ 'Vectorised' AS vectorised
    FROM asked WHERE name = 'policy';
SELECT counted('SELECT id, pay FROM salaries ORDER BY pay LIMIT 3') ~ 'Chunk Filter": 200 ' AS hidden_rows_only;
SELECT id, pay FROM salaries ORDER BY pay LIMIT 3;
RESET ROLE;
-- Nothing is hidden from its owner: rows that the join does not want are not decoded.
SELECT name, counted(format(query, 777.77)) = counted(format(query, 777.78)) AS same FROM asked WHERE name = 'policy';
DROP OWNED BY clerk;
DROP ROLE clerk;
