-- Values come back byte for byte where equality forgives a difference: display scales, negative zeros, NaN
-- payloads, trailing blanks, keys of jsonb. Rows of a stripe are compared with a heap twin's as images (*=).
-- What queries say of every type: answers.sql.
SET colonnade.stripe_threshold_rows = 0;
SET TimeZone = 'UTC';
CREATE FUNCTION twin(h regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE different bigint; n bigint; cold bigint;
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %s) USING colcompress WITH (stripe_row_limit = 5000, chunk_group_row_limit = 1000)', h || '_c', h);
  EXECUTE format('INSERT INTO %I SELECT * FROM %s', h || '_c', h);
  EXECUTE format('SELECT count(*), count(*) FILTER (WHERE (old_row *= new_row) IS NOT TRUE) FROM %s old_row FULL JOIN %I new_row USING (id)', h,
      h || '_c') INTO n, different;
  EXECUTE format('SELECT count(*) FROM %I WHERE ctid >= ''(2147483648,0)''', h || '_c') INTO cold;
  RETURN format('%s rows, %s cold, %s different', n, cold, different);
END $$;

-- Numbers.
CREATE TABLE numbers USING heap AS
SELECT g AS id, (hashint8(g) % 30000)::int2 AS i2, hashint8(g) AS i4, hashint8extended(g, 1) AS i8,
  CASE g % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN '1e-40' ELSE hashint8(g) / 7.0 END::float4 AS f4,
  CASE g % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN '5e-324' ELSE hashint8extended(g, 2) / 7.0
      END::float8 AS f8,
  (hashint8(g) / 100.0)::money AS cash, abs(hashint8(g))::oid AS o, abs(hashint8(g))::text::xid AS x, abs(hashint8extended(g, 3) / 2)::text::xid8 AS x8,
  g % 3 = 0 AS b, chr(1 + g % 127)::"char" AS c
FROM generate_series(1, 12000) g;
SELECT twin('numbers');
CREATE TABLE numerics USING heap AS
SELECT g AS id,
  round(hashint8(g)::numeric / 10000, 4) AS money,
  CASE WHEN g % 100 > 0 THEN (hashint8extended(g, 1)::numeric * hashint8extended(g, 2)) / (10::numeric ^ (g % 40)) END AS mixed,
  round(hashint8extended(g, 1)::numeric / (10::numeric ^ (g % 23)), g % 30) AS scales,
  CASE g % 17 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN '0' WHEN 4 THEN '0.000' WHEN 5 THEN '-0.0'
    WHEN 6 THEN '1e300' WHEN 7 THEN '-1e-300' WHEN 8 THEN repeat('9', g % 400 + 1) WHEN 9 THEN '0.' || repeat('7', g % 400 + 1)
    WHEN 10 THEN '10000' WHEN 11 THEN '1.0000000000' WHEN 12 THEN '99999999999999999999999999999999999999' WHEN 13
        THEN '100000000000000000000000000000000000000'
    WHEN 14 THEN '0.00000000000000000000000000000000000001' ELSE g::text || '.50' END::numeric AS odd
FROM generate_series(1, 12000) g;
SELECT twin('numerics');
-- Numerics that are not in the form the server itself writes.
CREATE TABLE sent (id int, n numeric) USING heap;
INSERT INTO sent VALUES (1, 'NaN'), (2, 1e131071), (3, 1e-16383), (4, trim_scale(1.500)), (5, 0.00001), (6, 12345678901234567890.123456789012345678);
SELECT twin('sent');

-- Dates and times.
CREATE TABLE times USING heap AS
SELECT g AS id,
  CASE g % 7 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' WHEN 2 THEN '4713-01-01 BC' ELSE (date '2000-01-01' + g)::text END::date AS d,
  CASE g % 7 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE (timestamp '2000-01-01' + g * interval '1.000001 s')::text END::timestamp AS t,
  CASE g % 7 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE (timestamptz '2000-01-01' - g * interval '11 days')::text END::timestamptz AS tz,
  time '00:00' + g * interval '7.77 s' AS ti, (time '00:00' + g * interval '7.77 s')::text::timetz AS tiz,
  g * interval '1 month' - g * interval '3 days 0.001 s' AS i
FROM generate_series(1, 3000) g;
SELECT twin('times');

-- Text and bytes.
CREATE DOMAIN short_text AS varchar(40) CHECK (VALUE <> 'never');
CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
ALTER TYPE colour ADD VALUE 'before' BEFORE 'red';
CREATE TABLE texts USING heap AS
SELECT g AS id, CASE WHEN g % 13 > 0 THEN repeat(chr(97 + g % 26), g % 300) END AS t, (g % 1000)::text::char(12) AS bp,
  CASE WHEN g % 9 > 0 THEN 'v' || g END::short_text AS dom, ('name' || g)::name AS n, decode(md5(g::text), 'hex') AS by,
  md5(g::text) AS hex, md5(g::text)::uuid AS u, (ARRAY['before', 'red', 'green', 'blue'])[g % 4 + 1]::colour AS e,
  'größe ' || g AS utf, ''::text AS empty, repeat(md5(g::text), 1 + (g % 50) * 40) AS wide
FROM generate_series(1, 6000) g;
SELECT twin('texts');

-- Fixed width by reference, geometry, networks, bits.
CREATE TABLE fixed USING heap AS
SELECT g AS id, point(g, -g) AS pt, lseg(point(g, 1), point(2, g)) AS ls, box(point(g, g), point(1, 2)) AS bx,
  circle(point(g, 0), g) AS ci, line(point(g, 1), point(2, g + 1)) AS li, path(polygon(box(point(g, g), point(0, 0)))) AS pa,
      polygon(g % 20 + 3, circle(point(0, 0), g)) AS po,
  ('10.' || g % 256 || '.0.' || g % 250 || '/' || 8 + g % 24)::inet AS ip, ('10.' || g % 256 || '.0.0/16')::cidr AS ci4,
      ('2001:db8::' || to_hex(g))::inet AS ip6,
  ('08:00:2b:01:02:' || lpad(to_hex(g % 256), 2, '0'))::macaddr AS mac, ('08:00:2b:01:02:03:04:' || lpad(to_hex(g % 256), 2, '0'))::macaddr8 AS mac8,
  (g % 1024)::bit(10) AS bits, g::bit(20)::varbit AS vb, ('0/' || to_hex(g))::pg_lsn AS lsn, ('(' || g || ',1)')::tid AS tid,
  ('pg_class'::regclass::oid::int + 0)::oid::regclass AS rc, '1 2 3'::int2vector AS iv, (g || ' 5 6')::oidvector AS ov
FROM generate_series(1, 2500) g;
SELECT twin('fixed');

-- Arrays, composites, ranges, json, full text, and each inside the other.
CREATE TYPE pair AS (a int8, b text);
CREATE TYPE deep AS (p pair, ps pair[], r int8range, n numeric);
CREATE TABLE nested USING heap AS
SELECT g AS id, ARRAY[g, NULL, -g] AS i4a, ARRAY[g::int8, 2] AS i8a, ARRAY[[g, 1], [2, 3]]::int8[] AS matrix, '{}'::text[] AS none,
    ARRAY['x' || g, NULL, repeat('y', g % 3000)] AS ta,
  ('[2:3]={' || g || ',5}')::int[] AS bounds, ROW(g, repeat('z', g % 2500))::pair AS pr, ARRAY[ROW(g, 'q')::pair, NULL] AS pairs,
  ROW(ROW(g, 'in')::pair, ARRAY[ROW(g, repeat('w', 3000))::pair], int8range(g, g + 5), g / 3.0)::deep AS dp,
  int4range(g, NULL) AS r4, 'empty'::numrange AS rn, tstzrange('2024-01-01', '2024-01-01'::timestamptz + g * interval '1 h', '[]') AS rt,
      int8multirange(int8range(1, 3), int8range(g + 10, g + 20)) AS mr,
  json_build_object('b', g, 'a', ARRAY[1, 2]) AS js, jsonb_build_object('b', g, 'a', jsonb_build_array(1.50, NULL, true, repeat('j', g % 2000))) AS jb,
  to_tsvector('simple', 'the word ' || g) AS tv, plainto_tsquery('simple', 'word ' || g) AS tq, xmlelement(name x, g::text) AS xm,
      ('$.a[' || g || ']')::jsonpath AS jp,
  pg_current_snapshot() AS sn
FROM generate_series(1, 1500) g;
SELECT twin('nested');

-- Types of a user's own: by value, odd fixed widths, double alignment, plain storage.
-- What is said of a type's first function differs from version to version.
SET client_min_messages = warning;
CREATE TYPE own8;
CREATE FUNCTION own8in(cstring) RETURNS own8 AS 'int8in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION own8out(own8) RETURNS cstring AS 'int8out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE own8 (INPUT = own8in, OUTPUT = own8out, INTERNALLENGTH = 8, PASSEDBYVALUE, ALIGNMENT = double);
CREATE TYPE own16;
CREATE FUNCTION own16in(cstring) RETURNS own16 AS 'uuid_in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION own16out(own16) RETURNS cstring AS 'uuid_out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE own16 (INPUT = own16in, OUTPUT = own16out, INTERNALLENGTH = 16, ALIGNMENT = char);
CREATE TYPE ownplain;
CREATE FUNCTION ownplainin(cstring) RETURNS ownplain AS 'byteain' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION ownplainout(ownplain) RETURNS cstring AS 'byteaout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE ownplain (INPUT = ownplainin, OUTPUT = ownplainout, INTERNALLENGTH = VARIABLE, ALIGNMENT = double, STORAGE = plain);
RESET client_min_messages;
CREATE TABLE own USING heap AS
SELECT g AS id, g::text::own8 AS a, md5(g::text)::own16 AS b, repeat('p', g % 90)::ownplain AS c, ARRAY[repeat('p', g % 50)::ownplain] AS d
FROM generate_series(1, 1200) g;
SELECT twin('own');

-- Values that heap keeps compressed or out of line, small and large.
CREATE TABLE large USING heap AS SELECT g AS id, (SELECT string_agg(md5((g * 1000 + k)::text), '') FROM generate_series(1, 3000) k) AS random_text,
    repeat('x', 1200000) AS flat,
  ARRAY[repeat('a', 500000), NULL] AS arr, ROW(g, repeat('b', 2000000))::pair AS pr FROM generate_series(1, 4) g;
SELECT twin('large');
-- Binary-compatible types change without a rewrite.
CREATE TABLE recast (id int, v varchar(20), i int) USING heap;
INSERT INTO recast SELECT g, 'v' || g, g FROM generate_series(1, 1500) g;
SELECT twin('recast');
ALTER TABLE recast_c ALTER v TYPE text, ALTER i TYPE oid;
ALTER TABLE recast ALTER v TYPE text, ALTER i TYPE oid;
INSERT INTO recast SELECT g, 'w' || g, (g + 3000000000)::oid FROM generate_series(1501, 3000) g;
INSERT INTO recast_c SELECT * FROM recast WHERE id > 1500;
SELECT count(*), count(*) FILTER (WHERE (h *= c) IS NOT TRUE) AS different FROM recast h FULL JOIN recast_c c USING (id);
SELECT count(*) FROM recast_c WHERE i > 2999999999::oid;
