-- Full stripes of a load are encoded by a thread while the next rows are read: the same rows, whatever
-- happens meanwhile.
\set VERBOSITY terse
CREATE FUNCTION threads() RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT count(*)::int FROM pg_ls_dir('/proc/self/task') $$;
-- Once they have ended: the system lists a thread for a moment after it was joined.
CREATE FUNCTION threads_left() RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN FOR i IN 1..200 LOOP EXIT WHEN threads() = 1;
PERFORM pg_sleep(0.005); END LOOP; RETURN threads(); END $$;
\i include/agree.sql
SET colonnade.stripe_threshold_rows = 1000;

-- 4,000 rows take more than the megabyte from which on a thread is worth it.
CREATE TABLE h (a int, b text, d numeric, j jsonb) USING heap;
INSERT INTO h SELECT g, encode(sha512(g::text::bytea), 'base64') || encode(sha512((-g)::text::bytea), 'base64') || ' and more',
                     g / 8.0, jsonb_build_object('g', g, 'list', ARRAY[g, g + 1])
  FROM generate_series(1, 20000) g;
CREATE TABLE c (LIKE h) USING colcompress WITH (stripe_row_limit = 4000, compression = 'zstd', compression_level = 19);
CREATE TABLE seen (n int) USING heap;
-- Notes how many threads there are at every 20th row.
CREATE FUNCTION note_threads(a int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF a % 20 = 0 THEN INSERT INTO seen SELECT threads(); END IF;
  RETURN a;
END $$;
CREATE FUNCTION most() RETURNS int LANGUAGE sql AS $$ WITH gone AS (DELETE FROM seen RETURNING n) SELECT max(n) FROM gone $$;

INSERT INTO c SELECT note_threads(a), b, d, j FROM h;
SELECT agree('c', 'h'), most() AS threads, threads_left() AS afterwards;
SELECT row_count, count(*) FROM engine.stripe GROUP BY row_count ORDER BY 1 DESC;

-- Without it; with pglz, which only the backend's own thread may call; and a load that is small.
TRUNCATE c;
SET colonnade.encode_in_background = off;
INSERT INTO c SELECT note_threads(a), b, d, j FROM h;
SELECT agree('c', 'h'), most() AS threads;
RESET colonnade.encode_in_background;
TRUNCATE c;
ALTER TABLE c SET (compression = 'pglz');
INSERT INTO c SELECT note_threads(a), b, d, j FROM h;
SELECT agree('c', 'h'), most() AS threads;
ALTER TABLE c SET (compression = 'zstd');
CREATE TABLE small (LIKE c) USING colcompress WITH (stripe_row_limit = 1000);
INSERT INTO small SELECT note_threads(a), b, d, j FROM h;
SELECT agree('small', 'h'), most() AS threads;

-- Numbered rows: an index gives them away at once; and a table that is sorted while it is loaded.
CREATE TABLE keyed (a int PRIMARY KEY, b text, d numeric, j jsonb) USING colcompress WITH (stripe_row_limit = 4000, compression_level = 19);
INSERT INTO keyed SELECT note_threads(a), b, d, j FROM h;
SELECT agree('keyed', 'h'), most() AS threads;
SET enable_seqscan = off;
SET colonnade.enable_scan = off;
SELECT count(*), sum(d) FROM keyed WHERE a BETWEEN 2500 AND 9500;
RESET enable_seqscan;
RESET colonnade.enable_scan;
CREATE TABLE sorted (LIKE h) USING colcompress WITH (stripe_row_limit = 4000, orderby = 'd');
INSERT INTO sorted SELECT * FROM h ORDER BY a <= 9000 DESC, b;
SELECT agree('sorted', 'h'), (SELECT array_agg(d) = (SELECT array_agg(d ORDER BY d) FROM h) FROM sorted) AS in_order;

-- Looking at the table in the middle of its load, with a stripe in the thread's hands: by this command, and
-- by one in a subtransaction that fails afterwards. Rows of the running command are not seen, and none goes
-- missing.
CREATE FUNCTION interfere(a int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  IF a IN (4001, 9002) THEN
    SELECT count(*) INTO n FROM c;
    RAISE NOTICE 'after % rows: % are seen', a - 1, n;
  ELSIF a IN (8001, 12050) THEN
    BEGIN
      SELECT count(*) INTO n FROM c;
      PERFORM 1 / (n - n);
    EXCEPTION WHEN division_by_zero THEN
      RAISE NOTICE 'caught';
    END;
  END IF;
  RETURN a;
END $$;
TRUNCATE c;
INSERT INTO c SELECT interfere(a), b, d, j FROM h;
SELECT agree('c', 'h');

-- An error right after a stripe was handed over; the transaction goes on, or does not.
TRUNCATE c;
INSERT INTO c SELECT a / (a - 4005), b, d, j FROM h;
SELECT threads_left(), (SELECT count(*) FROM c) AS rows;
BEGIN;
INSERT INTO c SELECT * FROM h WHERE a <= 7000;
SAVEPOINT s;
INSERT INTO c SELECT a / (a - 12005), b, d, j FROM h WHERE a > 7000;
ROLLBACK TO s;
SELECT threads_left(), count(*) FROM c;
SAVEPOINT s;
INSERT INTO c SELECT * FROM h WHERE a > 7000;
ROLLBACK TO s;
INSERT INTO c SELECT * FROM h WHERE a > 7000;
COMMIT;
SELECT agree('c', 'h'), threads_left();
DO $$ BEGIN
  TRUNCATE c;
  BEGIN
    INSERT INTO c SELECT a / (a - 8005), b, d, j FROM h;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO c SELECT * FROM h;
  END;
END $$;
SELECT agree('c', 'h'), threads_left();

-- Cancelled while a stripe is encoded, which takes this one many seconds: by the thread, or by the backend
-- itself.
CREATE TABLE slow (t text, u text, v text, w text, x text, y text, z text) USING colcompress WITH (compression_level = 19);
CREATE TEMP TABLE long USING heap AS
  SELECT string_agg(h.b, ' ') AS t FROM h, generate_series(1, 12) n GROUP BY h.a % 4000;
SELECT clock_timestamp() AS before \gset
SET statement_timeout = '2s';
INSERT INTO slow SELECT t, t, t, t, t, t, t FROM long;
SELECT clock_timestamp() < :'before'::timestamptz + interval '5 s' AS at_once, threads_left(), count(*) FROM slow;
SET colonnade.encode_in_background = off;
SELECT clock_timestamp() AS before \gset
INSERT INTO slow SELECT t, t, t, t, t, t, t FROM long;
RESET statement_timeout;
SELECT clock_timestamp() < :'before'::timestamptz + interval '5 s' AS at_once, threads_left(), count(*) FROM slow;
