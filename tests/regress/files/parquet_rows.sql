-- COPY FROM a Parquet file into tables that only take rows, beside the same with a condition, which the
-- server's own COPY reads as text: the same rows, or the same error, in tables of each kind.
SELECT current_setting('data_directory') || '/rows.parquet' AS file \gset
CREATE TABLE s (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(12,3), b bool, d date, ti time, ts timestamp, tz timestamptz, u uuid, t text, bytes bytea);
INSERT INTO s SELECT g % 1000, g, g * 10000000000, g / 3.0, g / 7.0, g / 8.0, g % 2 = 0, date '2000-01-01' - g, time '00:00' + g * interval '1 us', timestamp '1999-12-31' + g * interval '1 hour',
    timestamptz '2020-01-01 00:00+00' - g * interval '1 day', md5(g::text)::uuid, repeat('x', g % 5) || E' \t\\' || g % 3, decode(md5(g::text), 'hex')
FROM generate_series(1, 40000) g;
INSERT INTO s DEFAULT VALUES;
INSERT INTO s (i2, i4, i8, f4, f8, t, bytes, tz, n, d, ti) VALUES (-32768, -2147483648, -9223372036854775808, '-Infinity', 'NaN', '', '', '0044-03-15 12:00:00+00 BC', -0.001, '4713-01-01 BC', '24:00'),
    (1, 2, 3, -0.0, -0.0, repeat('wide', 300000), repeat('wide', 300000)::bytea, NULL, 1, '5874897-12-31', '00:00');
COPY s TO :'file' (FORMAT parquet, row_group_size 17000);
-- Says how a statement ends, and where.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; context text;
BEGIN
    EXECUTE format(statement, current_setting('data_directory') || '/rows.parquet');
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
    RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(left(detail, 60), ''), substring(context FROM '^COPY [^:\n]*'));
END $$;
CREATE TABLE methods (method text);
INSERT INTO methods VALUES ('heap'), ('colcompress'), ('rowcompress');
-- Makes both tables anew, fills both, and says what differs.
CREATE FUNCTION compare(method text, columns text, statement text, also text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE direct text; server text; rows bigint; differ bigint;
BEGIN
    DROP TABLE IF EXISTS direct, server CASCADE;
    EXECUTE format('CREATE TABLE direct (%s) USING %s', columns, method);
    EXECUTE replace(also, '%t', 'direct');
    EXECUTE format('CREATE TABLE server (%s) USING %s', columns, method);
    EXECUTE replace(also, '%t', 'server');
    direct := try(replace(statement, '%t', 'direct'));
    server := try(replace(statement, '%t', 'server') || ' WHERE true');
    IF direct <> 'done' OR server <> 'done' THEN
        RETURN concat_ws(E'\n', CASE WHEN left(direct, 5) <> left(server, 5) THEN 'DIFFERS' END, direct, server);
    END IF;
    EXECUTE 'SELECT count(*) FROM direct' INTO rows;
    EXECUTE 'SELECT count(*) FROM ((TABLE direct EXCEPT ALL TABLE server) UNION ALL (TABLE server EXCEPT ALL TABLE direct)) x' INTO differ;
    RETURN rows || ' rows, ' || differ || ' differ';
END $$;
SELECT method, compare(method, 'LIKE s', 'COPY %t FROM %L') FROM methods;
-- length, precision, wider integers, defaults, order of columns, a column that was dropped
SELECT method, compare(method, 'gone int, k bigserial, x numeric, i4 int8, n numeric(8,1), t char(9), i8 numeric(30,2), c text DEFAULT ''now'', i2 int',
    'COPY %t (t, n, i2, i8, i4) FROM %L (match_by ''name'')', 'ALTER TABLE %t DROP gone; DELETE FROM s WHERE length(t) > 9; COPY s TO ''' || :'file' || '''') FROM methods;
-- errors of values, with the row
SELECT compare('heap', c, 'COPY %t FROM %L (match_by ''name'')') FROM unnest(ARRAY['i4 int2', 'i8 int4', 't varchar(6)', 't char(6)', 'n numeric(5,2)', 'i2 int NOT NULL', 'i2 int, i4 int CHECK (i4 < 30000)', 'i4 int, PRIMARY KEY (i4)',
    'i2 int, UNIQUE (i2)', 'i4 int, EXCLUDE USING btree (i4 WITH =)', 'b bool, d date, i4 int, CHECK (d > ''1900-01-01'' OR b)']) c;
SELECT method, compare(method, 'i2 int, t text', 'COPY %t FROM %L (match_by ''name'')', 'CREATE INDEX ON %t (i2, lower(t)) WHERE i2 > 500') FROM methods;
SELECT count(*), count(*) FILTER (WHERE i2 > 500 AND lower(t) LIKE 'xx%') FROM direct;
SET enable_seqscan = off;
SELECT count(*) FILTER (WHERE i2 > 500 AND lower(t) LIKE 'xx%') FROM direct WHERE i2 > 500;
RESET enable_seqscan;
SELECT method, compare(method, 'i4 int UNIQUE, i2 int', 'COPY %t FROM %L (match_by ''name'')', 'INSERT INTO %t VALUES (25000, 1)') FROM methods;
-- what the server's own COPY is needed for
CREATE TABLE known (k int PRIMARY KEY);
INSERT INTO known SELECT g FROM generate_series(0, 999) g;
SELECT c, compare('heap', c, 'COPY %t FROM %L (match_by ''name'')') FROM unnest(ARRAY['f8 float4', 'n float8', 't name', 'd text', 'ts timestamp(0)', 'd timestamp', 'i4 int, g int GENERATED ALWAYS AS (i4 % 10) STORED',
    'i4 int, UNIQUE (i4) DEFERRABLE INITIALLY DEFERRED', 'i2 int REFERENCES known']) c;
-- a partition by its own name
CREATE TABLE p (i4 int, t text) PARTITION BY RANGE (i4);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (20000);
SELECT try('COPY p1 FROM %L (match_by ''name'')'), try('COPY p1 FROM %L (match_by ''name'') WHERE true');
CREATE TABLE p2 PARTITION OF p DEFAULT;
SELECT try('COPY p FROM %L (match_by ''name'')');
SELECT tableoid::regclass, count(*) FROM p GROUP BY 1 ORDER BY 1;
-- savepoints, a table of this transaction, temporary tables, commands that count rows
CREATE TABLE c (i4 int, t text) USING colcompress;
BEGIN;
COPY c FROM :'file' (match_by 'name');
SAVEPOINT one;
COPY c FROM :'file' (match_by 'name');
SELECT count(*) FROM c;
ROLLBACK TO one;
SELECT count(*), max(i4) FROM c;
CREATE TEMP TABLE t (t text, i4 int);
COPY t FROM :'file' (match_by 'name');
TABLE t EXCEPT ALL SELECT t, i4 FROM c;
COMMIT;
SELECT count(*) FROM c;
DO $$ DECLARE n bigint; BEGIN EXECUTE format('COPY t FROM %L (match_by ''name'')', current_setting('data_directory') || '/rows.parquet'); GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '% rows', n; END $$;
BEGIN READ ONLY;
COPY t FROM :'file' (match_by 'name');
SELECT try('COPY c FROM %L (match_by ''name'')');
ROLLBACK;
-- a COPY in a default of a COPY, and one that is stopped
CREATE TABLE inner_rows (i4 int);
CREATE FUNCTION load() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('COPY inner_rows FROM %L (match_by ''name'')', current_setting('data_directory') || '/few.parquet'); RETURN 7; END $$;
SELECT current_setting('data_directory') || '/few.parquet' AS few \gset
COPY (SELECT g AS i4 FROM generate_series(1, 3) g) TO :'few';
CREATE TABLE outer_rows (i4 int, loaded int DEFAULT load());
COPY outer_rows (i4) FROM :'few';
SELECT count(*), sum(loaded), (SELECT count(*) FROM inner_rows) FROM outer_rows;
CREATE TABLE slow (i4 int, waited text DEFAULT pg_sleep(0.01)::text);
SET statement_timeout = '300ms';
DO $$ BEGIN PERFORM try('COPY slow (i4) FROM %L (match_by ''name'')'); EXCEPTION WHEN query_canceled THEN RAISE NOTICE 'stopped'; END $$;
RESET statement_timeout;
SELECT count(*) FROM slow;
