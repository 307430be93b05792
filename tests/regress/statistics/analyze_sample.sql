-- ANALYZE's sample beside heap's: values that recur with a period, of tables of many sizes, with rows in
-- stripes, in heap pages, dead and updated ones. Each row is as likely to be in the sample as any other, so
-- statistics agree as far as samples of that size do.
SET default_statistics_target = 20;
SET client_min_messages = warning;
CREATE FUNCTION make(rows int, mix text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t text; cold int := CASE mix WHEN 'heap rows' THEN 0 WHEN 'half' THEN rows / 2 WHEN 'some heap rows' THEN rows * 9 / 10 ELSE rows END;
  columns text :=
      'g AS id, g % 2 AS p2, g % 3 AS p3, g % 7 AS p7, g % 10 AS p10, g % 100 AS p100, g % 256 AS p256, g % 1000 AS p1000, g % 5 = 0 AS flag, '
      'g / 100 AS grows, hashint4(g) % 5000 AS mixed, CASE WHEN g % 4 > 0 THEN (g % 6)::text END AS holes';
BEGIN
  PERFORM set_config('colonnade.stripe_threshold_rows', '1', true);
  FOREACH t IN ARRAY ARRAY['h', 'c'] LOOP
    EXECUTE 'DROP TABLE IF EXISTS ' || t;
    EXECUTE format('CREATE TABLE %s USING %s AS SELECT %s FROM generate_series(1, %s) g', t, CASE t WHEN 'h' THEN 'heap' ELSE 'colcompress' END, columns, cold);
  END LOOP;
  PERFORM set_config('colonnade.stripe_threshold_rows', '1000000', true);
  FOREACH t IN ARRAY ARRAY['h', 'c'] LOOP
    EXECUTE format('INSERT INTO %s SELECT %s FROM generate_series(%s, %s) g', t, columns, cold + 1, rows);
    IF mix = 'dead' THEN
      EXECUTE format('DELETE FROM %s WHERE id %% 8 IN (1, 2) OR id < %s', t, rows / 4);
    ELSIF mix = 'updated' THEN
      EXECUTE format('UPDATE %s SET grows = grows + 1 WHERE id %% 4 = 1 AND id > %s', t, rows / 2);
    END IF;
  END LOOP;
END $$;
CREATE FUNCTION estimate(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
  RETURN plan #>> '{0,Plan,Plan Rows}';
END $$;
-- What is out of bounds.
CREATE FUNCTION differences(rows int, mix text) RETURNS TABLE (of int, with_rows text, what text, heap text, ours text) LANGUAGE plpgsql AS $$
DECLARE there bigint; wanted bigint; condition text;
BEGIN
  SELECT count(*) INTO there FROM h;
  RETURN QUERY SELECT rows, mix, 'reltuples', there::text, reltuples::text FROM pg_class WHERE relname = 'c' AND abs(reltuples - there) > there * 0.01;
  RETURN QUERY SELECT rows, mix, 'n_distinct ' || attname, o.n_distinct::text, t.n_distinct::text FROM pg_stats o JOIN pg_stats t USING (attname)
    WHERE o.tablename = 'h' AND t.tablename = 'c' AND abs(absolute(o.n_distinct, there) - absolute(t.n_distinct, there)) > greatest(2,
        0.15 * absolute(o.n_distinct, there));
  RETURN QUERY SELECT rows, mix, 'correlation ' || attname, o.correlation::text, t.correlation::text FROM pg_stats o JOIN pg_stats t USING (attname)
    WHERE o.tablename = 'h' AND t.tablename = 'c' AND abs(o.correlation - t.correlation) > 0.12;
  RETURN QUERY SELECT rows, mix, 'null_frac ' || attname, o.null_frac::text, t.null_frac::text FROM pg_stats o JOIN pg_stats t USING (attname)
    WHERE o.tablename = 'h' AND t.tablename = 'c' AND abs(o.null_frac - t.null_frac) > 0.05;
  RETURN QUERY SELECT rows, mix, 'first frequency ' || attname, o.most_common_freqs[1]::text, t.most_common_freqs[1]::text FROM pg_stats o
      JOIN pg_stats t USING (attname)
    WHERE o.tablename = 'h' AND t.tablename = 'c' AND abs(coalesce(o.most_common_freqs[1], 0) - coalesce(t.most_common_freqs[1], 0)) > 0.05;
  FOREACH condition IN ARRAY ARRAY['p2 = 1', 'p3 = 1', 'p7 = 3', 'p10 = 9', 'flag', 'NOT flag', 'holes = ''3''', 'holes IS NULL'] LOOP
    EXECUTE 'SELECT count(*) FROM h WHERE ' || condition INTO wanted;
    RETURN QUERY SELECT rows, mix, condition, wanted::text, e::text FROM estimate('SELECT FROM c WHERE ' || condition) e
        WHERE e NOT BETWEEN wanted * 0.75 AND wanted * 1.3;
  END LOOP;
END $$;
CREATE FUNCTION absolute(n real, there bigint) RETURNS float8 LANGUAGE sql AS 'SELECT CASE WHEN n < 0 THEN -n * there ELSE n END';
CREATE TABLE found (of int, with_rows text, what text, heap text, ours text);
SELECT format($f$DO $d$BEGIN PERFORM make(%1$s, %2$L); ANALYZE h; ANALYZE c; INSERT INTO found SELECT * FROM differences(%1$s, %2$L); END$d$$f$, rows, mix)
FROM unnest(ARRAY[900, 20000, 60000, 200000]) rows, unnest(ARRAY['stripes', 'heap rows', 'half', 'some heap rows', 'dead', 'updated']) mix
\o /dev/null
\gexec
\o
SELECT * FROM found;
-- The last table, with the usual target: every value of each period is known.
SELECT make(200000, 'stripes');
RESET default_statistics_target;
ANALYZE c;
SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'c' AND attname ~ '^p|flag' ORDER BY 2, 1;
-- What CREATE STATISTICS made may ask for more rows than any column: here for all.
SET default_statistics_target = 10;
CREATE TABLE pairs (id int, pair int) USING colcompress;
INSERT INTO pairs SELECT g, g / 2 FROM generate_series(0, 59999) g;
CREATE STATISTICS pairs_statistics (ndistinct) ON id, pair FROM pairs;
ALTER STATISTICS pairs_statistics SET STATISTICS 300;
ANALYZE pairs;
SELECT attname, n_distinct, correlation FROM pg_stats WHERE tablename = 'pairs' ORDER BY 1;
SELECT n_distinct FROM pg_stats_ext WHERE statistics_name = 'pairs_statistics';
