-- The server multiplies what it expects of each column of a join. A unique index of all of them tells more.
SET max_parallel_workers_per_gather = 0;
SET colonnade.vectorised_min_rows = 0;
CREATE FUNCTION expected(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan #>> '{0,Plan,Plan Rows}';
END $$;
CREATE PROCEDURE make(method text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE offers (part int, supplier int, cost int, PRIMARY KEY (part, supplier)) USING %s', method);
    EXECUTE format('CREATE TABLE lines (id int, part int, supplier int, amount int) USING %s', method);
    ALTER TABLE offers SET (autovacuum_enabled = off);
    ALTER TABLE lines SET (autovacuum_enabled = off);
    INSERT INTO offers SELECT p, (p * 7 + s * 101) % 1000, p % 50 + s FROM generate_series(1, 2000) p, generate_series(1, 10) s;
    INSERT INTO lines SELECT l, p, (p * 7 + (l % 10 + 1) * 101) % 1000, l % 13 FROM generate_series(1, 100000) l, LATERAL (SELECT l * 31 % 2000 + 1) x (p);
END $$;
CALL make('colcompress');
\i include/key_joins.sql
CALL make('rowcompress');
\i include/key_joins.sql
CALL make('heap');
CALL harness.settle();
CREATE INDEX ON offers USING columnstore (part, supplier, cost);
CREATE INDEX ON lines USING columnstore (id, part, supplier, amount);
\i include/key_joins.sql
-- heap without copies is the server's business
CALL make('heap');
VACUUM ANALYZE lines, offers;
SELECT expected('SELECT * FROM lines JOIN offers USING (part, supplier)') < 5000 AS few;
DROP TABLE lines, offers;
