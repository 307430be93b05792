-- COPY TO and FROM Parquet files: values of all types come back, options, errors, rights.
SELECT current_setting('data_directory') || '/s.parquet' AS file \gset
-- Says how a statement ends, without the folder in its words.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
    EXECUTE format(statement, current_setting('data_directory') || '/s.parquet', current_setting('data_directory') || '/none.parquet');
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN replace(concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(hint, '')), current_setting('data_directory') || '/', '');
END $$;
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE s (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(12,3), nu numeric, big numeric(60,2), b bool, d date, ti time, ts timestamp, tz timestamptz,
    u uuid, t text, v varchar(20), c char(5), bytes bytea, j jsonb, a int[], iv interval, ip inet, m mood, r int4range, "Odd name" int, z engine.uint8);
INSERT INTO s SELECT g % 1000, g, g * 10000000000, g / 3.0, g / 7.0, g / 8.0, g * 1.5, g, g % 2 = 0, date '2000-01-01' - g, time '00:00' + g * interval '1 us', timestamp '1999-12-31' + g * interval '1 hour',
    timestamptz '2020-01-01 00:00+00' - g * interval '1 day', md5(g::text)::uuid, 'text ' || g || E'\t\n\r\\N ü', 'v' || g % 10, 'c' || g % 7, decode(md5(g::text), 'hex'), jsonb_build_object('g', g), ARRAY[g, NULL],
    g * interval '1 minute', ('10.0.0.' || g % 250)::inet, CASE g % 2 WHEN 0 THEN 'sad'::mood ELSE 'glad' END, int4range(g, g + 5), g, '18446744073709551615'
FROM generate_series(1, 5000) g;
INSERT INTO s DEFAULT VALUES;
INSERT INTO s (i2, i4, i8, f4, f8, t, v, bytes, tz, n, d, z) VALUES (-32768, -2147483648, -9223372036854775808, '-Infinity', 'NaN', '', E'\\.', '', '0044-03-15 12:00:00+00 BC', -0.001, '4713-01-01 BC', '0');
COPY s TO :'file' (FORMAT 'parquet', compression 'zstd', compression_level 5, row_group_size 1000);
SELECT * FROM engine.parquet_schema(:'file');
CREATE TABLE r (LIKE s);
COPY r FROM :'file' (FORMAT parquet);
SELECT count(*) FROM ((TABLE s EXCEPT ALL TABLE r) UNION ALL (TABLE r EXCEPT ALL TABLE s)) x;
-- every compression, and the format by the file's name
DO $$
DECLARE kind text; file text := current_setting('data_directory') || '/k.parquet';
BEGIN
    FOREACH kind IN ARRAY ARRAY['uncompressed', 'snappy', 'gzip', 'brotli', 'lz4', 'lz4raw', 'zstd'] LOOP
        TRUNCATE r;
        EXECUTE format('COPY (TABLE s) TO %L (compression %L, row_group_size_bytes 100000)', file, kind);
        EXECUTE format('COPY r FROM %L', file);
        IF EXISTS (TABLE s EXCEPT ALL TABLE r) THEN RAISE EXCEPTION '%', kind; END IF;
    END LOOP;
END $$;
-- into other types, by name, with conditions, defaults, constraints, triggers, partitions
CREATE TABLE p (i8 numeric, t text, d timestamp DEFAULT 'infinity', k int GENERATED ALWAYS AS IDENTITY, CHECK (i8 < 1000000000000)) PARTITION BY RANGE (i8);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (50000000000);
CREATE TABLE p2 PARTITION OF p DEFAULT;
SELECT try('COPY p (i8, t) FROM %L (FORMAT parquet, match_by ''name'')');
SELECT count(*) FROM p;
COPY p (t, i8) FROM :'file' (FORMAT parquet, match_by 'name') WHERE i8 BETWEEN 0 AND 100000000000;
SELECT tableoid::regclass, count(*), min(d), max(k) FROM p GROUP BY 1 ORDER BY 1;
CREATE TABLE col (i4 int8, n float8) USING colcompress;
COPY col FROM :'file' (FORMAT parquet, match_by 'name');
SELECT count(*), sum(i4), round(sum(n)) FROM col;
BEGIN;
COPY col FROM :'file' (FORMAT parquet, match_by 'name');
SELECT try('COPY r (t) FROM %L (FORMAT parquet)');
SELECT count(*) FROM col;
ROLLBACK;
SELECT count(*) FROM col;
-- a partitioned table, a view's query, rows that a statement returns
SELECT try('COPY p TO %L (FORMAT parquet)');
ALTER TABLE p ALTER d DROP DEFAULT;
UPDATE p SET d = NULL;
SELECT try('COPY p TO %L (FORMAT parquet)');
CREATE TABLE q (LIKE p);
SELECT try('COPY q FROM %L (FORMAT parquet)');
SELECT count(*) FROM q;
COPY (DELETE FROM q WHERE i8 < 0 RETURNING *) TO :'file' (FORMAT parquet);
COPY (SELECT 1 AS a WHERE false) TO :'file' (FORMAT parquet);
CREATE TABLE e (a int);
COPY e FROM :'file' (FORMAT parquet);
-- what is refused
COPY s TO STDOUT (FORMAT parquet);
COPY s TO PROGRAM 'cat' (FORMAT parquet);
COPY s TO 's.parquet' (FORMAT parquet);
SELECT try(statement) FROM unnest(ARRAY['COPY s TO %L (FORMAT parquet, compression ''lzo'')',
    'COPY s TO %L (FORMAT parquet, compression ''gzip'', compression_level 10)', 'COPY s TO %L (FORMAT parquet, row_group_size 0)',
    'COPY s TO %L (FORMAT parquet, bloom_filter_columns (i4, none))', 'COPY s TO %L (FORMAT parquet, bloom_filter_columns none)', 'COPY s TO %L (bloom_filter_columns)',
    'COPY s TO %L (FORMAT parquet, bloom_filter_columns (i4, t))', 'COPY s TO %L (FORMAT parquet, bloom_filter_columns *)', 'COPY s FROM %L (FORMAT parquet, bloom_filter_columns *)',
    'COPY s TO %L (FORMAT parquet, delimiter '','')', 'COPY s FROM %L (FORMAT parquet, match_by ''luck'')',
    'COPY (SELECT 1 AS a, 2 AS a) TO %2$L (FORMAT parquet)', 'COPY (SELECT date ''infinity'' AS a) TO %2$L', 'COPY (SELECT 1/3::numeric AS a) TO %2$L',
    'COPY (SELECT 1 / (g - 900) AS a FROM generate_series(1, 1000) g) TO %2$L', 'COPY none FROM %2$L', 'COPY e FROM %2$L', 'COPY e (b) FROM %2$L']) statement;
SELECT name FROM pg_ls_dir('.') name WHERE name ~ '^[.](s|k|none)[.].*tmp$' OR name = 'none.parquet';
COPY s TO :'file' (FORMAT parquet);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON e FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT DISTINCT try('COPY e (a) FROM %L (FORMAT parquet, match_by ''name'')') FROM generate_series(1, 50);
ALTER TABLE e RENAME a TO i4;
SELECT DISTINCT try('COPY e FROM %L (FORMAT parquet, match_by ''name'')') FROM generate_series(1, 50);
-- the other ends of the pipes are closed
SELECT count(*) FROM pg_ls_dir('/proc/' || pg_backend_pid() || '/fd') fd WHERE fd::int > 100;
-- rights
CREATE ROLE copier;
GRANT pg_read_all_settings TO copier;
GRANT ALL ON s, e TO copier;
SET ROLE copier;
SELECT try('COPY s TO %L (FORMAT parquet)');
SELECT try('COPY e FROM %L (FORMAT parquet)');
SELECT try('SELECT * FROM engine.parquet_schema(%L)');
RESET ROLE;
GRANT pg_write_server_files, pg_read_server_files TO copier;
ALTER TABLE s ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON s TO copier USING (i4 < 4);
SET ROLE copier;
COPY s TO :'file' (FORMAT parquet);
SELECT try('COPY s FROM %L (FORMAT parquet)');
SELECT try('COPY r TO %L (FORMAT parquet)');
SELECT try('COPY r FROM %L (FORMAT parquet)');
RESET ROLE;
TRUNCATE r;
COPY r FROM :'file' (FORMAT parquet);
SELECT count(*) FROM r;
DROP OWNED BY copier;
DROP ROLE copier;
