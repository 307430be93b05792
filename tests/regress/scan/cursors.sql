-- Cursors move both ways over a columnar table as over heap, declared with SCROLL or without: the same rows
-- for the same moves.
SET colonnade.stripe_threshold_rows = 500;
CREATE TABLE h (k int, s text, n numeric);
CREATE TABLE c (k int, s text, n numeric) USING colcompress WITH (stripe_row_limit = 2500, chunk_group_row_limit = 1000);
CREATE FUNCTION fill(t regclass, low int, high int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO %s SELECT g, CASE WHEN g %% 7 > 0 THEN ''s'' || g %% 90 END, g / 8.0 FROM generate_series(%s, %s) g', t, low, high);
END $$;
SELECT fill('h', 1, 6200), fill('h', 6201, 6300);
SELECT fill('c', 1, 6200), fill('c', 6201, 6300);
CREATE TABLE h_cold AS TABLE h LIMIT 6200;
CREATE TABLE c_cold USING colcompress WITH (stripe_row_limit = 2500, chunk_group_row_limit = 1000) AS TABLE c LIMIT 6200;
CREATE TABLE h_none (LIKE h);
CREATE TABLE c_none (LIKE c) USING colcompress;
-- A walk of random moves; what every FETCH finds, as one text.
CREATE FUNCTION walk(query text, seed float8, steps int, scroll bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  c refcursor;
  r record;
  trace text := '';
  n int;
BEGIN
  PERFORM setseed(seed);
  IF scroll THEN OPEN c SCROLL FOR EXECUTE query; ELSE OPEN c FOR EXECUTE query; END IF;
  FOR step IN 1 .. steps LOOP
    n := (random() ^ 3 * 3000)::int;
    CASE (random() * 11)::int
      WHEN 0 THEN MOVE FORWARD n FROM c;
      WHEN 1 THEN MOVE BACKWARD n FROM c;
      WHEN 2 THEN FETCH NEXT FROM c INTO r;
      WHEN 3 THEN FETCH PRIOR FROM c INTO r;
      WHEN 4 THEN FETCH RELATIVE n FROM c INTO r;
      WHEN 5 THEN FETCH RELATIVE -n FROM c INTO r;
      WHEN 6 THEN FETCH ABSOLUTE n * 3 FROM c INTO r;
      WHEN 7 THEN IF random() < 0.3 THEN FETCH LAST FROM c INTO r; END IF;
      WHEN 8 THEN IF random() < 0.3 THEN FETCH FIRST FROM c INTO r; END IF;
      WHEN 9 THEN IF random() < 0.3 THEN MOVE FORWARD ALL FROM c; FETCH PRIOR FROM c INTO r; END IF;
      WHEN 10 THEN IF random() < 0.3 THEN MOVE BACKWARD ALL FROM c; FETCH NEXT FROM c INTO r; END IF;
      ELSE FETCH RELATIVE 0 FROM c INTO r;
    END CASE;
    trace := trace || coalesce(r::text, '-') || ';';
  END LOOP;
  CLOSE c;
  RETURN trace;
END $$;
CREATE TABLE queries (id int, query text);
INSERT INTO queries VALUES
  (1, 'SELECT * FROM %s'),
  (2, 'SELECT k, s FROM %s WHERE k BETWEEN 900 AND 3100'),
  (3, 'SELECT k FROM %s WHERE s LIKE ''s1%%'''),
  (4, 'SELECT n * 2 AS twice, upper(s) FROM %s WHERE k %% 13 = 5'),
  (5, 'SELECT k FROM %s WHERE s IS NULL AND k > 6000'),
  (6, 'SELECT k FROM %s WHERE k < 0'),
  (7, 'SELECT 1 AS one FROM %s'),
  (8, 'SELECT k FROM %s WHERE length(s) = 2 LIMIT 400'),
  (9, 'SELECT s, k FROM %s ORDER BY s NULLS FIRST, k DESC'),
  (10, 'SELECT k, s FROM %s WHERE k > 6190');
CREATE FUNCTION compare() RETURNS TABLE (query int, tables text, walks bigint, equal bigint) LANGUAGE sql AS $$
  SELECT q.id, t, count(*), count(*) FILTER (WHERE walk(format(q.query, 'c' || t), seed / 20.0, 60, seed % 2 = 0) = walk(format(q.query, 'h' || t),
      seed / 20.0, 60, seed % 2 = 0))
  FROM queries q, unnest(ARRAY['', '_cold', '_none']) t, generate_series(1, 6) seed GROUP BY q.id, t ORDER BY q.id, t $$;
SET colonnade.enable_vectorised = off;
EXPLAIN (COSTS OFF) SELECT k, s FROM c WHERE k BETWEEN 900 AND 3100;
SELECT * FROM compare();
SET colonnade.enable_vectorised = on;
SELECT query, tables, walks - equal AS different FROM compare() WHERE walks <> equal;
-- In SQL, with the statements that need no SCROLL on heap.
SET colonnade.enable_vectorised = off;
BEGIN;
DECLARE d CURSOR FOR SELECT k, ctid >= '(2147483648,0)' AS cold FROM c WHERE k IN (1, 2, 3000, 6199, 6250, 6300);
FETCH 3 FROM d;
FETCH BACKWARD 2 FROM d;
FETCH ALL FROM d;
FETCH BACKWARD ALL FROM d;
FETCH LAST FROM d;
MOVE BACKWARD 3 IN d;
FETCH NEXT FROM d;
CLOSE d;
-- A cursor that stands on a row can change it, whichever way it came there.
DECLARE e CURSOR FOR SELECT * FROM c WHERE k > 6290;
MOVE LAST IN e;
FETCH PRIOR FROM e;
UPDATE c SET s = 'changed' WHERE CURRENT OF e;
SELECT k FROM c WHERE s = 'changed';
ROLLBACK;
-- Declared without moving back, there is none.
BEGIN;
DECLARE f NO SCROLL CURSOR FOR SELECT k FROM c;
MOVE 10 IN f;
FETCH PRIOR FROM f;
ROLLBACK;

-- EXPLAIN shows the columns of the node that keeps a vectorised plan's rows for reading backwards
-- (auto_explain does so at CLOSE).
SET colonnade.enable_vectorised = on;
SET colonnade.vectorised_min_rows = 0;
EXPLAIN (VERBOSE, COSTS OFF) DECLARE d SCROLL CURSOR FOR SELECT s, k, 7 AS seven, n * 2 AS twice FROM c ORDER BY s NULLS FIRST, k DESC;
EXPLAIN (VERBOSE, COSTS OFF) DECLARE d SCROLL CURSOR WITH HOLD FOR SELECT s, count(*), sum(k) FROM c GROUP BY s ORDER BY 2, 1;
BEGIN;
DECLARE d SCROLL CURSOR FOR SELECT s, k, 7 AS seven, n * 2 AS twice FROM c ORDER BY s NULLS FIRST, k DESC;
FETCH 2 FROM d;
FETCH BACKWARD 1 FROM d;
COMMIT;
