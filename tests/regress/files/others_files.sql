-- Foreign tables over column files that they did not write: another table's file. The same answers as the
-- table's own, no change, and nothing of it where types, columns or rights do not allow it.
SET client_min_messages = warning;
SELECT current_setting('data_directory') AS folder \gset
SELECT :'folder' || '/cold.col' AS file, :'folder' || '/in_path.col' AS in_path \gset
CREATE SERVER cs FOREIGN DATA WRAPPER cstore_fdw;
-- Says how a statement ends, without the folder in its words.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
    EXECUTE replace(statement, '%f', current_setting('data_directory') || '/cold.col');
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN replace(concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(hint, '')), current_setting('data_directory') || '/', '');
END $$;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line !~ 'Memory|Bytes|CStore File' THEN RETURN NEXT regexp_replace(line, 'actual rows=(\d+)(\.00)? loops', 'rows=\1 loops'); END IF;
    END LOOP;
END $$;
CREATE FOREIGN TABLE a (i2 int2, i4 int4, gone int, i8 int8, f4 float4, f8 float8, n numeric(12,3), nu numeric, b bool, d date, ti time, ts timestamp(3), tz timestamptz, u uuid, t text, v varchar(20), c char(5), bytes bytea, z engine.uint8,
    j jsonb, ar int[]) SERVER cs OPTIONS (filename :'file', compression 'zstd', stripe_row_count '5000', block_row_count '1000');
INSERT INTO a SELECT g % 1000, g, g, g * 10000000000, g / 3.0, g / 7.0, g / 8.0, g * 1.5, g % 2 = 0, date '2000-01-01' + g / 10, time '00:00' + g * interval '1 us', timestamp '1999-12-31' + g * interval '1 hour',
    timestamptz '2020-01-01 00:00+00' - g * interval '1 day', md5(g::text)::uuid, 'text ü ' || g % 100, 'v' || g % 10, 'c' || g % 7, decode(md5(g::text), 'hex'), '18446744073709551615', jsonb_build_object('g', g), ARRAY[g]
FROM generate_series(1, 20000) g;
INSERT INTO a SELECT FROM generate_series(1, 10);
ALTER FOREIGN TABLE a DROP gone, ADD later text;
INSERT INTO a (i4, later, f8, n, d) VALUES (-1, 'now', 'NaN', 'NaN', 'infinity');
-- without a column: those of the file, but for types that only its table reads
SET client_min_messages = notice;
CREATE FOREIGN TABLE o () SERVER cs OPTIONS (filename :'file');
SET client_min_messages = warning;
SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'o'::regclass AND attnum > 0;
SELECT count(*) FROM ((SELECT i2, i4, i8, f4, f8, n, nu, b, d, ti, ts, tz, u, t, v, c, bytes, z, later FROM a EXCEPT ALL TABLE o) UNION ALL (TABLE o EXCEPT ALL SELECT i2, i4, i8, f4, f8, n, nu, b, d, ti, ts, tz, u, t, v, c, bytes, z, later FROM a)) x;
CREATE FUNCTION unequal(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE own text; other text;
BEGIN
    EXECUTE format('SELECT (count(*), count(t), sum(i4), min(d), max(v), sum(n), count(DISTINCT c), max(z))::text FROM a WHERE %s', condition) INTO own;
    EXECUTE format('SELECT (count(*), count(t), sum(i4), min(d), max(v), sum(n), count(DISTINCT c), max(z))::text FROM o WHERE %s', condition) INTO other;
    RETURN CASE WHEN own IS DISTINCT FROM other THEN condition || ': ' || own || ' and ' || other END;
END $$;
SELECT unequal(c) FROM unnest(ARRAY['true', 'i4 = 777', 'i4 BETWEEN 9000 AND 9100', 't LIKE ''%7''', 't = ''text ü 7''', 'd = ''2001-01-01''', 'n > 2000', 'f8 = ''NaN''', 'later IS NOT NULL', 'later IS NULL', 'v IN (''v1'', ''v3'')', 'c = ''c3''', 'b', 'b IS NULL',
    'u = md5(''77'')::uuid', 'z > ''5''', 'tz < ''2000-01-01''', 'bytes > ''\xf0''', 'i4 = 5 OR later = ''now''', 'd = ''infinity''']) c WHERE unequal(c) IS NOT NULL;
-- a file that was loaded with the schema of its types in the path names them without it
SET search_path = public, engine;
CREATE FOREIGN TABLE in_path (z uint8) SERVER cs OPTIONS (filename :'in_path');
INSERT INTO in_path VALUES (7);
RESET search_path;
CREATE FOREIGN TABLE of_path (z engine.uint8) SERVER cs OPTIONS (filename :'in_path');
TABLE of_path;
DROP FOREIGN TABLE of_path, in_path;
-- stripes are left out, counts come from statistics, and it is joined
SELECT plan('SELECT count(*), sum(n) FROM o WHERE i4 BETWEEN 6000 AND 6100');
SELECT plan('SELECT count(*), count(i4) FROM o');
SELECT count(*) FROM o JOIN a USING (i4) WHERE o.d < '2000-03-01';
SELECT ctid, i4 FROM o WHERE i4 IN (1, 20000);
ANALYZE o;
SELECT reltuples, (SELECT n_distinct FROM pg_stats WHERE tablename = 'o' AND attname = 'v') FROM pg_class WHERE oid = 'o'::regclass;
-- fewer columns, another order, wider text; what another load adds is there in the next query
CREATE FOREIGN TABLE few (t varchar, i4 int) SERVER cs OPTIONS (filename :'file');
SELECT count(*), max(t), sum(i4) FROM few;
BEGIN;
INSERT INTO a (i4, t) VALUES (1, 'zz');
SELECT count(*), max(t) FROM few;
COMMIT;
SELECT count(*), max(t), sum(i4) FROM few;
-- a partition, and columns that are gone in the table
CREATE TABLE parts (i4 int, t text) PARTITION BY LIST (t);
CREATE FOREIGN TABLE part1 PARTITION OF parts DEFAULT SERVER cs OPTIONS (filename :'file');
SELECT count(*) FROM parts;
ALTER FOREIGN TABLE few DROP t;
SELECT count(*), sum(i4) FROM few;
-- what is refused
SELECT try(s) FROM unnest(ARRAY['INSERT INTO few VALUES (1)', 'TRUNCATE few', 'COPY few FROM PROGRAM ''echo 1''', 'DELETE FROM few', 'UPDATE few SET i4 = 1',
    'CREATE FOREIGN TABLE x (i4 int, k int) SERVER cs OPTIONS (filename ''%f''); SELECT * FROM x', 'CREATE FOREIGN TABLE x (i4 bigint) SERVER cs OPTIONS (filename ''%f''); SELECT * FROM x',
    'CREATE FOREIGN TABLE x (n numeric(12,2)) SERVER cs OPTIONS (filename ''%f''); SELECT * FROM x', 'CREATE FOREIGN TABLE x (j jsonb) SERVER cs OPTIONS (filename ''%f''); SELECT * FROM x',
    'CREATE FOREIGN TABLE x (ar int[]) SERVER cs OPTIONS (filename ''%f''); SELECT * FROM x', 'CREATE FOREIGN TABLE x (a int) SERVER cs OPTIONS (filename ''%f.none''); SELECT * FROM x; DROP FOREIGN TABLE x',
    'CREATE FOREIGN TABLE x () SERVER cs OPTIONS (filename ''/etc/passwd'')', 'CREATE FOREIGN TABLE x (a int) SERVER cs OPTIONS (filename ''/etc/passwd''); SELECT * FROM x', 'CREATE FOREIGN TABLE x (a int) SERVER cs OPTIONS (filename ''/etc''); SELECT * FROM x',
    'ALTER FOREIGN TABLE few ADD k int; SELECT * FROM few']) s;
SELECT count(*) FROM few;
-- its drop leaves the file
DROP FOREIGN TABLE few, part1, o;
SELECT count(*) FROM a;
-- a folder
SET client_min_messages = notice;
CREATE SCHEMA imported;
SELECT format('IMPORT FOREIGN SCHEMA %I LIMIT TO (cold, other) FROM SERVER cs INTO imported', :'folder') AS import \gset
:import;
SELECT count(*), max(i4) FROM imported.cold;
-- rights
CREATE ROLE reader;
GRANT pg_read_all_settings TO reader;
GRANT USAGE ON FOREIGN SERVER cs TO reader;
GRANT CREATE ON SCHEMA public TO reader;
GRANT SELECT (i4) ON imported.cold TO reader;
GRANT USAGE ON SCHEMA imported TO reader;
SET ROLE reader;
SELECT max(i4) FROM imported.cold;
SELECT try('SELECT max(t) FROM imported.cold');
SELECT try('CREATE FOREIGN TABLE x () SERVER cs OPTIONS (filename ''%f'')');
RESET ROLE;
DROP OWNED BY reader;
DROP ROLE reader;
DROP SERVER cs CASCADE;
