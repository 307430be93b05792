-- What the statistics views count: a scan is one scan, and reads the rows of the chunks it looks into.
SET colonnade.stripe_threshold_rows = 500;
CREATE TABLE c (k int, s text) USING colcompress WITH (stripe_row_limit = 2000, chunk_group_row_limit = 1000);
CREATE TABLE h (k int, s text);
INSERT INTO c SELECT g, 's' || g FROM generate_series(1, 4000) g;
INSERT INTO c SELECT g, 'hot' FROM generate_series(4001, 4100) g;
INSERT INTO c SELECT g, 's' || g FROM generate_series(4101, 6100) g;
INSERT INTO c SELECT g, 'hot' FROM generate_series(6101, 6200) g;
INSERT INTO h TABLE c;
CREATE FUNCTION counted(query text) RETURNS TABLE (tables text, scans bigint, rows bigint) LANGUAGE plpgsql AS $$
DECLARE t text; s bigint; r bigint;
BEGIN
  FOREACH t IN ARRAY ARRAY['h', 'c'] LOOP
    SELECT pg_stat_get_xact_numscans(t::regclass), pg_stat_get_xact_tuples_returned(t::regclass) INTO s, r;
    EXECUTE format(query, t);
    RETURN QUERY SELECT t, pg_stat_get_xact_numscans(t::regclass) - s, pg_stat_get_xact_tuples_returned(t::regclass) - r;
  END LOOP;
END $$;
CREATE TABLE queries (id int, query text);
INSERT INTO queries VALUES (1, 'SELECT sum(k), max(s) FROM %s'), (2, 'SELECT k, s FROM %s'), (3, 'SELECT k FROM %s WHERE s LIKE ''%%99'''),
  (4, 'SELECT s FROM %s WHERE k > 0 AND k %% 2 = 0'), (5, 'SELECT x, (SELECT max(s) FROM %s WHERE k > x) FROM generate_series(5998, 6000) x'),
  (6, 'SELECT 1 FROM %s');
SET colonnade.enable_vectorised = off;
SELECT id, scans, rows, array_agg(tables) FROM queries, counted(query) GROUP BY id, scans, rows ORDER BY id, scans, rows;
SET colonnade.enable_scan = off;
SELECT id, scans, rows, array_agg(tables) FROM queries, counted(query) GROUP BY id, scans, rows ORDER BY id, scans, rows;
RESET colonnade.enable_scan;
-- Chunks that are left out are not read: two of six are.
SELECT * FROM counted('SELECT s FROM %s WHERE k BETWEEN 2500 AND 3500');
SET colonnade.enable_vectorised = on;
SELECT tables, scans, rows BETWEEN 2200 AND 6200 AS plausible FROM counted('SELECT s, count(*) FROM %s WHERE k BETWEEN 2500 AND 3500 GROUP BY s');
-- EXPLAIN estimates what pruning leaves from constants alone, and says so where it shows costs.
CREATE FUNCTION lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
    IF line ~ 'Stripes|Filter|Prune' THEN RETURN NEXT trim(replace(line, '(InitPlan 1).col1', '$0')); END IF;
  END LOOP;
END $$;
SET colonnade.enable_vectorised = off;
SELECT lines('SELECT s FROM c WHERE k BETWEEN 2500 AND 3500');
SELECT lines('SELECT s FROM c WHERE k < 0');
SELECT lines('SELECT s FROM c WHERE k = (SELECT min(k) FROM h)');
SELECT lines('SELECT s FROM c');
SELECT lines('(COSTS OFF) SELECT s FROM c WHERE k < 0');
SELECT lines('(FORMAT JSON) SELECT s FROM c WHERE k > 5000') ~ '"Estimated Stripes Read": 1,\s+"Estimated Stripes Pruned": 2' AS in_json;
RESET colonnade.enable_vectorised;

-- A sample of more rows than it keeps is put in the order of the rows' places, by which the correlation is
-- computed.
CREATE TABLE ordered (id int, shuffled int) USING colcompress;
INSERT INTO ordered SELECT g, hashint4(g) FROM generate_series(1, 50000) g;
SET default_statistics_target = 10;
ANALYZE ordered;
SELECT attname, correlation > 0.99 AS in_order FROM pg_stats WHERE tablename = 'ordered' ORDER BY 1;

-- VACUUM of rows of both kinds: an index that heap's vacuum has seen the hot entries of has as many as the
-- table has rows.
CREATE TABLE mixed (k int PRIMARY KEY, n int) USING colcompress;
INSERT INTO mixed SELECT g, g FROM generate_series(1, 20000) g;
CREATE INDEX mixed_some ON mixed (n) WHERE n < 5000;
SET colonnade.stripe_threshold_rows = 1000000;
INSERT INTO mixed SELECT g, g FROM generate_series(20001, 23000) g;
RESET colonnade.stripe_threshold_rows;
DELETE FROM mixed WHERE k > 22000;
VACUUM mixed;
SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'mixed%' ORDER BY 1;
