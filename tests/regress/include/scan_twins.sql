-- Two tables with the same rows, heap_rows and column_rows, and what compares answers between them: queries
-- over {t}. Used by tests in scan/ and vectorised/.
\set heap heap_rows
\set columns column_rows
\ir answers.sql
\ir plan.sql
\set ECHO none
-- Three stripes of 2,000 rows (chunks of 1,000) and some hot rows; ascending id, so that conditions on id
-- prune.
SET timezone = 'Europe/Berlin';
SET max_parallel_workers_per_gather = 0;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN small_int AS int CHECK (VALUE < 100000);
CREATE DOMAIN label AS varchar(20);
CREATE TABLE heap_rows (
    id int8, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, num numeric, num2 numeric(12,2),
    d date, ts timestamp, tstz timestamptz, b bool, u uuid,
    t text, tc text COLLATE "C", vc varchar(20), ch char(6), by bytea, m mood, dom small_int, lab label,
    arr int[], j jsonb, allnull int, const text, few text) USING heap;
INSERT INTO heap_rows
SELECT g,
    CASE WHEN g % 11 = 0 THEN NULL WHEN g % 97 = 0 THEN 32767 WHEN g % 89 = 0 THEN -32768 ELSE g % 500 - 250 END,
    CASE WHEN g % 13 = 0 THEN NULL WHEN g % 101 = 0 THEN 2147483647 WHEN g % 103 = 0 THEN -2147483648 ELSE g - 3000 END,
    CASE WHEN g % 17 = 0 THEN NULL WHEN g % 107 = 0 THEN 9223372036854775807 WHEN g % 109 = 0 THEN -9223372036854775808 ELSE g::int8 * 1000000007 END,
    CASE g % 10 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN '-0' WHEN 5 THEN '0.1' ELSE (g / 7.0)::float4 END,
    CASE g % 10 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN '-0' WHEN 5 THEN '0.1' ELSE g / 7.0::float8 END,
    CASE g % 20 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN 1e60 WHEN 5 THEN 1e-60 WHEN 6 THEN 2.50
        WHEN 7 THEN 2.5 ELSE g / 3.0 END,
    CASE WHEN g % 19 = 0 THEN NULL ELSE g / 4.0 - 700 END,
    CASE g % 200 WHEN 0 THEN NULL WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' ELSE date '2020-01-01' + g % 3000 END,
    CASE g % 200 WHEN 0 THEN NULL WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' ELSE timestamp '2020-01-01' + g % 3000 * interval '1 hour' END,
    CASE g % 200 WHEN 0 THEN NULL WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' ELSE timestamptz '2020-01-01' + g % 3000 * interval '1 hour' END,
    CASE g % 5 WHEN 0 THEN NULL ELSE g % 3 = 0 END,
    CASE WHEN g % 23 = 0 THEN NULL ELSE md5((g % 700)::text)::uuid END,
    CASE WHEN g % 29 = 0 THEN NULL WHEN g % 31 = 0 THEN '' ELSE '/page/' || g % 400 END,
    CASE WHEN g % 29 = 0 THEN NULL WHEN g % 31 = 0 THEN '' ELSE chr(60 + g % 60) || g % 7 END,
    CASE WHEN g % 37 = 0 THEN NULL ELSE left(md5((g % 90)::text), g % 15) END,
    CASE WHEN g % 41 = 0 THEN NULL ELSE left('äbcdef' || g % 90, g % 7) END,
    CASE WHEN g % 43 = 0 THEN NULL ELSE decode(left(md5((g % 90)::text), g % 10 * 2), 'hex') END,
    CASE WHEN g % 7 = 0 THEN NULL ELSE (ARRAY['sad', 'ok', 'happy'])[g % 3 + 1]::mood END,
    g % 300, CASE WHEN g % 6 = 0 THEN NULL ELSE 'l' || g % 50 END,
    CASE WHEN g % 8 = 0 THEN NULL ELSE ARRAY[g % 10, g % 4] END,
    CASE WHEN g % 9 = 0 THEN NULL ELSE jsonb_build_object('k', g % 20, 'v', 'x' || g % 3) END,
    NULL, 'always', (ARRAY['red', 'green', 'blue', NULL])[g % 4 + 1]
FROM generate_series(1, 6000) g;
CREATE TABLE column_rows (LIKE heap_rows) USING colcompress WITH (stripe_row_limit = 2000, chunk_group_row_limit = 1000);
INSERT INTO column_rows SELECT * FROM heap_rows ORDER BY id;
-- hot rows, one command each so that they stay in heap pages
INSERT INTO heap_rows SELECT * FROM heap_rows WHERE id IN (7, 11, 20, 200, 201, 202, 1001);
INSERT INTO column_rows SELECT * FROM heap_rows WHERE id IN (7, 11, 20, 200, 201, 202, 1001)
    AND ctid NOT IN (SELECT max(ctid) FROM heap_rows WHERE id IN (7, 11, 20, 200, 201, 202, 1001) GROUP BY id);
ANALYZE heap_rows, column_rows;

-- Queries whose answers differ.
CREATE FUNCTION differences(queries text[]) RETURNS TABLE (query text, heap text, columns text) LANGUAGE sql AS $$
    SELECT * FROM (SELECT q, outcome(q, 'heap_rows') AS heap, outcome(q, 'column_rows') AS columns
                   FROM unnest(queries) q OFFSET 0) a
    WHERE heap IS DISTINCT FROM columns
$$;
-- What EXPLAIN ANALYZE says of the scan nodes of a query, without what varies.
CREATE FUNCTION scans(query text, VARIADIC wanted text[] DEFAULT ARRAY['Stripes', 'Chunks', 'Chunk Filter', 'Prune', 'Filter'])
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN SELECT plan(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') LOOP
        line := regexp_replace(trim(line), '^->\s+', '');
        IF line LIKE 'Custom Scan%' OR line LIKE '% Scan on %' OR split_part(line, ':', 1) = ANY (wanted) THEN
            RETURN NEXT regexp_replace(line, ' \(actual.*', '');
        END IF;
    END LOOP;
END $$;
\set ECHO all
