-- colonnade.orderby: the order of tables that are created without one.
CREATE EXTENSION IF NOT EXISTS colonnade;
SET default_table_access_method = colcompress;
SET colonnade.orderby = 'ts DESC, device';
CREATE FUNCTION orders() RETURNS TABLE (name name, options text[]) LANGUAGE sql AS
    $$ SELECT relname, reloptions FROM pg_class WHERE relname ~ '^o_' AND relkind IN ('r', 'm') ORDER BY 1 $$;
CREATE TABLE o_both (device int, ts timestamptz);
CREATE TABLE o_one (id int, device int) WITH (compression = 'lz4');
CREATE TABLE o_none (id int);
CREATE TABLE o_own (device int, ts timestamptz) WITH (orderby = 'device');
CREATE TABLE o_unordered (device int, ts timestamptz) WITH (orderby = '');
CREATE TABLE o_heap (device int, ts timestamptz) USING heap;
CREATE TABLE o_json (device json, ts timestamptz);
CREATE TABLE o_as AS SELECT g AS device, now() AS ts FROM generate_series(1, 10) g;
CREATE MATERIALIZED VIEW o_view AS SELECT 1 AS device;
SELECT 1 AS device INTO o_into;
CREATE TEMP TABLE o_temp (LIKE o_both);
CREATE TABLE o_parent (device int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE o_part PARTITION OF o_parent FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
SELECT * FROM orders();
-- it is the table's own
SET colonnade.orderby = 'device';
SELECT engine.colcompress_option('o_both', 'orderby');
-- rows of a load obey it
CREATE TABLE o_loaded AS SELECT (g * 7919) % 20000 AS device FROM generate_series(1, 20000) g;
SELECT count(*) FILTER (WHERE device < before) AS out_of_order FROM (SELECT device, lag(device) OVER (ORDER BY ctid) AS before FROM o_loaded) l;
-- what cannot be read is told, and no order
SET colonnade.orderby = 'device +';
CREATE TABLE o_wrong (device int);
SELECT options FROM orders() WHERE name = 'o_wrong';
RESET colonnade.orderby;
ALTER TABLE o_both SET ACCESS METHOD heap;
SET colonnade.orderby = 'ts';
ALTER TABLE o_both SET ACCESS METHOD colcompress;
SELECT options FROM orders() WHERE name = 'o_both';
