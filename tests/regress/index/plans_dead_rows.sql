-- Beside dead rows in stripes a look-up of one key, a foreign key's check for one, goes by its index,
-- whatever ANALYZE and VACUUM have counted.
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE child (id int, parent int, v text) USING colcompress WITH (packing = off, autovacuum_enabled = off, stripe_row_limit = 50000);
INSERT INTO child SELECT g, g, 'v' || g FROM generate_series(1, 200000) g;
CREATE INDEX ON child (parent);
VACUUM ANALYZE child;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL plan_cache_mode = force_generic_plan;
    EXECUTE 'PREPARE planned(int) AS ' || query;
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) EXECUTE planned(5)';
    DEALLOCATE planned;
END $$;
CREATE FUNCTION plans() RETURNS SETOF text LANGUAGE sql
AS $$ SELECT plan('SELECT 1 FROM ONLY child x WHERE parent = $1 FOR KEY SHARE OF x') UNION ALL SELECT '--' UNION ALL
    SELECT plan('SELECT sum(parent + $1) FROM child') $$;
SELECT plans();
DELETE FROM child WHERE id % 20000 <> 7;
SELECT plans();
ANALYZE child;
SELECT reltuples FROM pg_class WHERE relname = 'child';
SELECT plans();
VACUUM child;
SELECT plans();
-- Without the index the stripes are read.
DROP INDEX child_parent_idx;
SELECT plans();
DROP TABLE child;
DROP FUNCTION plan, plans;
