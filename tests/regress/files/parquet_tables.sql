-- Foreign tables that read Parquet files: answers beside heap, pruning, plans, options, errors, rights.
SELECT current_setting('data_directory') || '/t.parquet' AS file, current_setting('data_directory') || '/u.parquet' AS other \gset
-- Says how a statement ends, without the folder in its words.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
    EXECUTE format(statement, current_setting('data_directory') || '/t.parquet', current_setting('data_directory') || '/none.parquet');
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN replace(concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(hint, '')), current_setting('data_directory') || '/', '');
END $$;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line !~ 'Memory|Bytes|Parquet File' THEN RETURN NEXT regexp_replace(line, 'actual rows=(\d+)(\.00)? loops', 'rows=\1 loops'); END IF;
    END LOOP;
END $$;
CREATE TABLE h (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(12,3), b bool, d date, ti time, ts timestamp, tz timestamptz, u uuid, t text, v varchar, bytes bytea, z engine.uint8, "Odd name" int);
INSERT INTO h SELECT g % 1000, g, g * 10000000000, g / 3.0, g / 7.0, g / 8.0, g % 2 = 0, date '2000-01-01' + g / 10, time '00:00' + g * interval '1 us', timestamp '1999-12-31' + g * interval '1 hour',
    timestamptz '2020-01-01 00:00+00' - g * interval '1 day', md5(g::text)::uuid, 'text ' || g % 100, 'v' || g % 10, decode(md5(g::text), 'hex'), '18446744073709551615', g
FROM generate_series(1, 50000) g;
INSERT INTO h SELECT FROM generate_series(1, 10);
INSERT INTO h (i2, i4, i8, f4, f8, t, v, bytes, tz, n, d, z) VALUES (-32768, -2147483648, -9223372036854775808, '-Infinity', 'NaN', '', 'ü€😀', '', '0044-03-15 12:00:00+00 BC', -0.001, '4713-01-01 BC', '0');
COPY h TO :'file' (FORMAT parquet, compression 'zstd', row_group_size 20000);
CREATE SERVER pq FOREIGN DATA WRAPPER parquet_fdw;
CREATE FOREIGN TABLE p (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(12,3), b bool, d date, ti time, ts timestamp, tz timestamptz, u uuid, t text, v varchar, bytes bytea, z engine.uint8, "Odd name" int)
    SERVER pq OPTIONS (filename :'file');
-- all rows, as rows and in the vectorised executor
SELECT count(*) FROM ((TABLE h EXCEPT ALL TABLE p) UNION ALL (TABLE p EXCEPT ALL TABLE h)) x;
SET colonnade.enable_vectorised = off;
SELECT count(*) FROM ((TABLE h EXCEPT ALL TABLE p) UNION ALL (TABLE p EXCEPT ALL TABLE h)) x;
RESET colonnade.enable_vectorised;
-- what row groups are left out, and what their statistics answer
SELECT * FROM plan('SELECT count(*) FROM p');
SELECT * FROM plan('SELECT count(i4), count(*) FROM p WHERE i4 > 45000');
SELECT * FROM plan('SELECT sum(n) FROM p WHERE d < ''2001-01-01'' AND b');
SELECT * FROM plan('SELECT t, count(*) FROM p WHERE u = md5(''77'')::uuid GROUP BY t');
-- what bloom filters and page indexes leave out
COPY (SELECT * FROM h ORDER BY i4) TO :'other' (FORMAT parquet, row_group_size 20000, bloom_filter_columns (u, bytes, i8));
CREATE FOREIGN TABLE q () SERVER pq OPTIONS (filename :'other');
SELECT * FROM plan('SELECT t FROM q WHERE u = md5(''none'')::uuid');
SELECT * FROM plan('SELECT t FROM q WHERE u IN (md5(''none'')::uuid, md5(''45000'')::uuid)');
SELECT * FROM plan('SELECT max(t) FROM q JOIN (VALUES (decode(md5(''none''), ''hex'')), (decode(md5(''30''), ''hex''))) x (bytes) USING (bytes)');
SELECT * FROM plan('SELECT t FROM q WHERE i4 = 19000');
SELECT * FROM plan('SELECT t FROM q WHERE i4 < 5000 OR u = md5(''30000'')::uuid');
SELECT count(*), max(i4) FROM q WHERE u IN (md5('none')::uuid, md5('45000')::uuid);
SELECT i4, t FROM q WHERE u = md5('30000')::uuid OR bytes = decode(md5('30'), 'hex') OR i8 = 10000000000 ORDER BY i4;
SELECT * FROM plan('SELECT i4, t FROM q WHERE u = md5(''none'')::uuid ORDER BY i4 LIMIT 3');
DROP FOREIGN TABLE q;
-- conditions of every type beside heap
DO $$
DECLARE condition text; found text[];
BEGIN
    FOREACH condition IN ARRAY ARRAY['i2 = 77', 'i4 BETWEEN 100 AND 200', 'i4 > 49990', 'i8 < 0', 'i8 IN (10000000000, 70000000000, 5)', 'f4 < 3', 'f8 > 7000', 'f8 = ''NaN''', 'f8 >= ''Infinity''', 'f8 < -1', 'n = 12.5', 'n < 0', 'b', 'NOT b', 'b IS NULL',
        'd = ''2005-05-05''', 'd < ''1999-01-01''', 'd IS NOT NULL', 'ti < ''00:00:00.0005''', 'ts >= ''2005-01-01'' AND ts < ''2005-01-03''', 'tz < ''1900-01-01''', 'tz > ''2019-12-20''', 'u = md5(''4000'')::uuid', 'u IS NULL', 't = ''text 7''', 't LIKE ''text 9%''', 't IN (''text 1'', ''none'')', 't = ''''',
        'v > ''v8''', 'v = ''ü€😀''', 'bytes = ''''', 'z = 0', 'z > 5', '"Odd name" = 5', 'i4 = 5 OR t = ''text 5''', 'i4 < 100 AND (f8 > 3 OR t IS NULL)', 'i4 IS NULL', 'false', 'i4 % 7 = 3 AND i2 < 100'] LOOP
        SELECT array_agg(s) INTO found FROM (SELECT unnest(ARRAY['h', 'p']) AS name) names,
            LATERAL (SELECT query_to_xml(format('SELECT count(*) AS c, sum(i4) AS i, min(d) AS d, max(v) AS v, sum(hashtext(p::text)) AS s FROM %s p WHERE %s', name, condition), true, true, '')::text AS s) answers;
        IF found[1] <> found[2] THEN RAISE WARNING '%: % %', condition, found[1], found[2]; END IF;
    END LOOP;
END $$;
-- groups, joins with tables of other kinds, sorts, limits, cursors that go back, rescans
CREATE TABLE c USING colcompress AS SELECT * FROM h WHERE i4 % 3 = 0;
SELECT v, count(*), sum(i8), avg(f4), min(ts), max(u::text), sum(n) FROM p GROUP BY v ORDER BY v;
SELECT (SELECT array_agg(x ORDER BY x) FROM (SELECT p.t, count(*), sum(c.i4) FROM p JOIN c ON p.i4 = c.i4 JOIN h ON h.i4 = p.i4 WHERE p.i2 < 500 GROUP BY 1) x) IS NOT DISTINCT FROM
    (SELECT array_agg(x ORDER BY x) FROM (SELECT p.t, count(*), sum(c.i4) FROM h p JOIN c ON p.i4 = c.i4 JOIN h ON h.i4 = p.i4 WHERE p.i2 < 500 GROUP BY 1) x);
SELECT i4, t FROM p ORDER BY i4 DESC NULLS LAST LIMIT 3;
SELECT i4, t FROM p ORDER BY ts, i4 OFFSET 20000 LIMIT 2;
SELECT g, x.i4, x.t FROM generate_series(19999, 20002) g, LATERAL (SELECT * FROM p WHERE p.i4 = g OFFSET 0) x;
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT i4, t FROM p WHERE i4 > 19990;
MOVE 30000 IN back;
FETCH BACKWARD 2 FROM back;
MOVE BACKWARD 29990 IN back;
FETCH 2 FROM back;
FETCH BACKWARD 3 FROM back;
MOVE LAST IN back;
FETCH PRIOR FROM back;
COMMIT;
PREPARE one(int) AS SELECT t, d FROM p WHERE i4 = $1;
EXECUTE one(5);
EXECUTE one(40005);
-- some of the columns, in another order, as wider types
CREATE FOREIGN TABLE w (t varchar, i2 bigint, f4 float8, n numeric, i4 int, gone int) SERVER pq OPTIONS (filename :'file');
ALTER FOREIGN TABLE w DROP COLUMN gone;
SELECT count(*), count(t), sum(i2), sum(n), sum(i4), sum(f4) = (SELECT sum(f4::float8) FROM h WHERE i2 > 10) FROM w WHERE i2 > 10;
SELECT pg_typeof(i2), t, n FROM w WHERE i4 = 7;
ALTER FOREIGN TABLE w ADD COLUMN missing int;
SELECT try('SELECT count(*) FROM w');
ALTER FOREIGN TABLE w RENAME missing TO i8;
SELECT try('SELECT count(*) FROM w');
ALTER FOREIGN TABLE w ALTER i8 TYPE int8;
SELECT max(i8) FROM w;
-- types that the file's do not fit into
SELECT type, try(format('CREATE FOREIGN TABLE f (%s) SERVER pq OPTIONS (filename %%1$L)', type)), try('SELECT count(*) FROM f'), try('DROP FOREIGN TABLE f')
FROM unnest(ARRAY['i4 int2', 'i4 text', 't int', 'n numeric(12,2)', 'n numeric(5,3)', 'd timestamp', 'ts timestamptz', 'ts timestamp(0)', 't varchar(3)', 't char(9)', 'i8 oid', 'u text', 't jsonb', 'i4 int[]', 'f8 float4', 'b int']) type;
-- ANALYZE, inheritance, partitions, views, privileges of columns
ANALYZE p;
SELECT attname, null_frac < 0.01 AS few_nulls, n_distinct BETWEEN 9 AND 12 OR n_distinct < -0.9 AS known FROM pg_stats WHERE tablename = 'p' AND attname IN ('i4', 'v') ORDER BY 1;
CREATE TABLE parts (k int, t text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
INSERT INTO parts SELECT g, 'text ' || g FROM generate_series(0, 99) g;
COPY (SELECT g AS k, 'text ' || g AS t FROM generate_series(100, 299) g) TO :'other' (FORMAT parquet);
CREATE FOREIGN TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (300) SERVER pq OPTIONS (filename :'other');
SELECT count(*), sum(k) FROM parts;
SELECT * FROM plan('SELECT t FROM parts WHERE k = 150');
SELECT try('INSERT INTO parts VALUES (200)');
SELECT try('UPDATE p SET i4 = 0'), try('DELETE FROM p'), try('INSERT INTO p (i4) VALUES (1)'), try('TRUNCATE p'), try('COPY p FROM %L (FORMAT parquet)');
CREATE ROLE parquet_reader;
GRANT pg_read_all_settings TO parquet_reader;
GRANT SELECT (i4) ON p TO parquet_reader;
GRANT USAGE ON FOREIGN SERVER pq TO parquet_reader;
GRANT CREATE ON SCHEMA public TO parquet_reader;
SET ROLE parquet_reader;
SELECT sum(i4) FROM p WHERE i4 < 10;
SELECT try('SELECT t FROM p');
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq OPTIONS (filename %L)');
RESET ROLE;
GRANT pg_read_server_files TO parquet_reader;
SET ROLE parquet_reader;
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq OPTIONS (filename %L)'), try('DROP FOREIGN TABLE f');
RESET ROLE;
DROP OWNED BY parquet_reader;
DROP ROLE parquet_reader;
-- options and files
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq');
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq OPTIONS (filename ''t.parquet'')');
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq OPTIONS (filename %L, compression ''zstd'')');
SELECT try('CREATE SERVER other FOREIGN DATA WRAPPER parquet_fdw OPTIONS (filename %L)');
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq OPTIONS (filename %2$L)'), try('SELECT count(*) FROM f'), try('DROP FOREIGN TABLE f');
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq OPTIONS (filename ''/dev'')'), try('SELECT count(*) FROM f'), try('DROP FOREIGN TABLE f');
SELECT try('CREATE FOREIGN TABLE f (i4 int) SERVER pq OPTIONS (filename ''/etc/passwd'')'), try('SELECT count(*) FROM f'), try('DROP FOREIGN TABLE f');
-- a file that is written anew, without rows, and of rows with NULL alone
COPY (SELECT 1 AS k, 'one' AS t WHERE false) TO :'other' (FORMAT parquet);
SELECT count(*), max(t) FROM parts_2;
COPY (SELECT 7 AS k, NULL::text AS t FROM generate_series(1, 5)) TO :'other' (FORMAT parquet);
SELECT count(*), count(t), max(k), max(t) FROM parts_2 WHERE t IS NULL;
SELECT count(*) FROM parts_2 WHERE t = 'one';
SELECT * FROM plan('SELECT count(*) FROM parts_2 WHERE t IS NOT NULL');
DROP FOREIGN TABLE p, w;
DROP TABLE parts, c, h;
DROP SERVER pq;
DROP FUNCTION plan, try;
