-- EXPLAIN tells which column no columnstore index of a heap table has, where the table is therefore read from the heap.
SET colonnade.vectorised_min_rows = 0;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE t (a int, b text, c numeric, "Odd one" int, other int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, 'b' || g % 100, g, g, g FROM generate_series(1, 20000) g;
CREATE TABLE u (a int, z int) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT g, g FROM generate_series(1, 20000) g;
CALL harness.settle();
CREATE INDEX ON t USING columnstore (a, b);
CREATE INDEX ON t USING columnstore (c);
CREATE INDEX ON u USING columnstore (a);
VACUUM ANALYZE t, u;
-- The plan's last lines alone: how the rest looks is not the point.
CREATE FUNCTION told(statement text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, statement) LOOP
        IF line ~ 'Columnstore' THEN RETURN NEXT line; END IF;
    END LOOP;
END $$;
EXPLAIN (COSTS OFF) SELECT sum(other) FROM t;
EXPLAIN (COSTS OFF) SELECT other FROM t WHERE "Odd one" > 3;
SELECT told('SELECT b, sum(c) FROM t GROUP BY b');
SELECT told('SELECT a, "Odd one", other, c FROM t');
SELECT told('SELECT * FROM t JOIN u USING (a)');
SELECT told('SELECT b, z FROM t JOIN u USING (a)');
SELECT told('SELECT count(*) FROM t x, t y WHERE x.other = y.other');
SELECT told('SELECT count(*) FROM t WHERE other IN (SELECT z FROM u)');
SELECT told('CREATE TABLE made AS SELECT other FROM t');
SELECT told('SELECT sum(other) FROM t', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
-- A statement within is planned on its own: at planning time, and while the outer one runs.
CREATE FUNCTION inner_one() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN (SELECT count(*) FROM u WHERE z > 3); END $$;
SELECT told('SELECT b FROM t WHERE a = inner_one()');
SELECT told('SELECT other FROM t WHERE a <> inner_one() LIMIT 1', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
SELECT told('SELECT count(*), (SELECT string_agg(line, '';'') FROM told(''SELECT z FROM u'') line) FROM t WHERE other > 0',
            'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF');
-- An ERROR of the planner leaves nothing behind.
EXPLAIN SELECT other FROM t WHERE a = 1 / (a - a + 0 * length('x')) AND b = 'x' || (1 / 0)::text;
SELECT told('SELECT b FROM t');
-- Other formats have the plan alone.
SELECT told('SELECT sum(other) FROM t', 'COSTS OFF, FORMAT JSON');
-- Nothing is told of changes and locks, which are the heap's, of tables without such an index, and where the indexes are not asked.
SELECT told('UPDATE t SET other = 1');
SELECT told('SELECT other FROM t FOR UPDATE');
SET colonnade.enable_columnstore_index = off;
SELECT told('SELECT sum(other) FROM t');
RESET colonnade.enable_columnstore_index;
-- Many partitions are one line.
CREATE TABLE parted (k int, v int, w int) PARTITION BY LIST (k);
SELECT format('CREATE TABLE part_%s PARTITION OF parted FOR VALUES IN (%s)', n, n) FROM generate_series(1, 5) n \gexec
CREATE INDEX ON parted USING columnstore (k, v);
INSERT INTO parted SELECT 1 + g % 5, g, g FROM generate_series(1, 20000) g;
SELECT told('SELECT sum(w) FROM parted');
SELECT told('SELECT sum(w) FROM parted WHERE k < 3');
DROP TABLE parted, t, u;
