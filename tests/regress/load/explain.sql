-- EXPLAIN ANALYZE counts what a load's stripes and what bits of deaths take: WAL and pages, at the node that
-- has changed the table.
\i include/plan.sql
CREATE TABLE h (id int, v text); CREATE TABLE c (LIKE h) USING colcompress;
CREATE FUNCTION counts(query text, OUT node text, OUT wal_bytes bigint, OUT pages bigint) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING off, FORMAT json) ' || query INTO plan;
    RETURN QUERY WITH RECURSIVE nodes AS (SELECT plan #> '{0,Plan}' AS n UNION ALL SELECT json_array_elements(n -> 'Plans') FROM nodes)
        SELECT n ->> 'Node Type', (n ->> 'WAL Bytes')::bigint, (n ->> 'Shared Hit Blocks')::bigint + (n ->> 'Shared Dirtied Blocks')::bigint
            FROM nodes WHERE n ->> 'Node Type' = 'ModifyTable';
END $$;
SELECT node, wal_bytes > 20000 AS wal, pages > 5 AS pages FROM counts('INSERT INTO c SELECT g, md5(g::text) FROM generate_series(1, 30000) g');
SELECT engine.colcompress_merge('c');
-- All of it, not only what is done while rows come in: a load without a row for the heap.
SET colonnade.stripe_threshold_rows = 0;
SELECT node, wal_bytes BETWEEN 400000 AND 1500000 AS wal, pages > 5 AS pages
    FROM counts('INSERT INTO c SELECT g, md5(g::text) FROM generate_series(1, 30000) g');
SELECT node, wal_bytes BETWEEN 400000 AND 1500000 AS wal FROM
    counts('WITH w AS (INSERT INTO c SELECT g, md5(g::text) FROM generate_series(1, 30000) g RETURNING id) SELECT count(*) FROM w');
SELECT node, wal_bytes > 1000 AS wal FROM counts('DELETE FROM c WHERE id % 2 = 0');
-- Two tables: they are counted with the statement, as before.
SELECT node, wal_bytes >= 0 AS wal
    FROM counts('WITH a AS (INSERT INTO c SELECT 1, ''a'' RETURNING 1), b AS (INSERT INTO h SELECT 1, ''b'' RETURNING 1) SELECT * FROM a, b');
SELECT plan($$INSERT INTO c SELECT g, 'x' FROM generate_series(1, 30000) g$$, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT count(*) FROM c;
DROP TABLE h, c; DROP FUNCTION counts;
