-- Columns of every type: queries over each one give the answers that they give over a heap twin, whether its
-- rows are cold, hot or came by COPY, whatever codec they have and by whatever column they are sorted. Values
-- that equality forgives: images.sql.
\i include/twins.sql
SET timezone = 'UTC';
SET extra_float_digits = 1;
-- few rows, but cold ones
SET colonnade.stripe_threshold_rows = 0;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'a label that is as long as a label of an enum may be, 63 bytes');
CREATE TYPE pair AS (x int, y text);
CREATE TYPE nest AS (p pair, q pair[], r numeric);
CREATE DOMAIN short_text AS text CHECK (length(VALUE) < 40);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN pairs AS pair[];
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");
-- base types of every storage: by value of 1, 2, 4 and 8 bytes, by reference of 3 and 16 bytes, varlena, C
-- string
-- What is said of a type's first function differs from version to version.
SET client_min_messages = warning;
CREATE TYPE by2; CREATE FUNCTION by2_in(cstring) RETURNS by2 IMMUTABLE STRICT LANGUAGE internal AS 'int2in';
CREATE FUNCTION by2_out(by2) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int2out';
CREATE TYPE by2 (INPUT = by2_in, OUTPUT = by2_out, LIKE = int2);
CREATE TYPE by8; CREATE FUNCTION by8_in(cstring) RETURNS by8 IMMUTABLE STRICT LANGUAGE internal AS 'int8in';
CREATE FUNCTION by8_out(by8) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int8out';
CREATE TYPE by8 (INPUT = by8_in, OUTPUT = by8_out, LIKE = int8);
CREATE TYPE ref16; CREATE FUNCTION ref16_in(cstring) RETURNS ref16 IMMUTABLE STRICT LANGUAGE internal AS 'point_in';
CREATE FUNCTION ref16_out(ref16) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'point_out';
CREATE TYPE ref16 (INPUT = ref16_in, OUTPUT = ref16_out, LIKE = point);
CREATE TYPE blob; CREATE FUNCTION blob_in(cstring) RETURNS blob IMMUTABLE STRICT LANGUAGE internal AS 'byteain';
CREATE FUNCTION blob_out(blob) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'byteaout';
CREATE TYPE blob (INPUT = blob_in, OUTPUT = blob_out, INTERNALLENGTH = VARIABLE, STORAGE = extended, ALIGNMENT = double);
CREATE TYPE cstr; CREATE FUNCTION cstr_in(cstring) RETURNS cstr IMMUTABLE STRICT LANGUAGE internal AS 'cstring_in';
CREATE FUNCTION cstr_out(cstr) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'cstring_out';
CREATE TYPE cstr (INPUT = cstr_in, OUTPUT = cstr_out, INTERNALLENGTH = -2, ALIGNMENT = char, STORAGE = plain);
RESET client_min_messages;

-- the values: columns, types and expressions over a row number g and its hash h
CREATE TABLE recipe (n serial, name text, type text, expression text);
COPY recipe (name, type, expression) FROM stdin;
c_bool	bool	g % 3 = 0
c_char1	"char"	chr(33 + g % 90)::"char"
c_bpchar	char(5)	left(h, g % 6)
c_varchar	varchar(12)	left(h, g % 13)
c_text	text	CASE g % 5 WHEN 0 THEN '' WHEN 1 THEN repeat(h, g % 40) WHEN 2 THEN 'same' ELSE h END
c_text_de	text COLLATE "C"	E'\\u00e4\\u20ac ' || g % 100 || chr(128512)
c_name	name	('n' || h)::name
c_bytea	bytea	decode(repeat(h, g % 9), 'hex')
c_int2	int2	(g * 7919 % 65536 - 32768)::int2
c_int4	int4	('x' || left(h, 8))::bit(32)::int4
c_int8	int8	('x' || left(h, 16))::bit(64)::int8
c_serial	int8	g * 10::int8
c_const	int4	42
c_float4	float4	CASE g % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0' ELSE g / 7.0 END::float4
c_float8	float8	CASE g % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0' WHEN 3 THEN '4.9e-324' ELSE sin(g) END::float8
c_float8_d	float8	(g % 10000) / 100.0
c_numeric	numeric	CASE g % 10 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN repeat('9', 1 + g % 300) WHEN 4 THEN '1e-200' WHEN 5 THEN '0.00' WHEN 6 THEN '1.' || repeat('0', g % 20) ELSE (g / 3.0)::text END::numeric
c_numeric_s	numeric(12,3)	g * 1.001 - 3000
c_numeric_big	numeric(38,0)	(g::numeric * 99999999999999999999999999999 % 1e37)
c_numeric_neg	numeric(8,-3)	g * 12345 % 90000000
c_money	money	(g - 2500)::money
c_date	date	CASE g % 50 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' WHEN 2 THEN '4713-01-01 BC' WHEN 3 THEN '5874897-12-31' ELSE (date '2000-01-01' + g)::text END::date
c_time	time	time '00:00' + g * interval '17 seconds'
c_time24	time	CASE g % 2 WHEN 0 THEN '24:00' ELSE '23:59:59.999999' END::time
c_timetz	timetz	(time '00:00' + g * interval '17 seconds')::timetz AT TIME ZONE make_interval(hours => g % 12)
c_timestamp	timestamp	CASE g % 50 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE (timestamp '1999-12-31' + g * interval '1.000001 s')::text END::timestamp
c_timestamptz	timestamptz	timestamptz '1960-01-01' + g * interval '12345.678 s'
c_interval	interval	make_interval(g % 3, g % 40, g % 5, g % 9, g % 99, g, g / 7.0)
c_uuid	uuid	h::uuid
c_oid	oid	(g::int8 * 715827)::oid
c_xid	xid	(g % 4294967295)::text::xid
c_xid8	xid8	(g::int8 << 33)::text::xid8
c_lsn	pg_lsn	'0/0'::pg_lsn + g::numeric * 123456789
c_tid	tid	('(' || g || ',' || g % 200 || ')')::tid
c_regclass	regclass	CASE g % 3 WHEN 0 THEN 'pg_class' WHEN 1 THEN 'pg_proc' ELSE 'pg_type' END::regclass
c_bit	bit(7)	(g % 128)::bit(7)
c_varbit	varbit	left(('x' || h)::bit(128)::text, g % 129)::varbit
c_inet	inet	('10.' || g % 256 || '.' || g / 256 % 256 || '.1/' || 8 + g % 25)::inet
c_inet6	inet	CASE g % 3 WHEN 0 THEN '::' || to_hex(g) || '/64' ELSE '1.2.3.' || g % 250 END::inet
c_cidr	cidr	set_masklen(('10.' || g % 256 || '.0.0')::inet, 16)::cidr
c_macaddr	macaddr	left(h, 12)::macaddr
c_macaddr8	macaddr8	left(h, 16)::macaddr8
c_point	point	point(g, -g / 3.0)
c_line	line	line(point(g, 1), point(2, g + 3))
c_lseg	lseg	lseg(point(g, 1), point(2, g))
c_box	box	box(point(g, 1), point(2, g))
c_path	path	('[(0,0),' || repeat('(1,' || g || '),', g % 5) || '(2,2)]')::path
c_polygon	polygon	polygon(3 + g % 6, circle(point(g, 1), g))
c_circle	circle	circle(point(g, 1), g)
c_json	json	('{"b": ' || g || ',  "a":"' || h || '", "b": null}')::json
c_jsonb	jsonb	jsonb_build_object('g', g, 'h', left(h, g % 30), 'n', jsonb_build_array(g, null, jsonb_build_object('deep', g / 7.0), true))
c_jsonb_mix	jsonb	CASE g % 6 WHEN 0 THEN 'null' WHEN 1 THEN '1.500' WHEN 2 THEN '"s"' WHEN 3 THEN '[]' WHEN 4 THEN '{}' ELSE jsonb_build_object('k' || g, g)::text END::jsonb
c_jsonpath	jsonpath	('$.k' || g || '[*] ? (@ > ' || g || ')')::jsonpath
c_xml	xml	('<a>' || g || '</a>')::xml
c_tsvector	tsvector	to_tsvector('simple', 'w' || g || ' and w' || g % 7)
c_tsquery	tsquery	('w' || g || ' & !x')::tsquery
c_int4range	int4range	CASE g % 4 WHEN 0 THEN 'empty' WHEN 1 THEN '(,5)' ELSE '[' || g || ',' || g + g % 9 + 1 || ')' END::int4range
c_numrange	numrange	numrange(g, g + 1.5, '(]')
c_tstzrange	tstzrange	tstzrange('2020-01-01', CASE WHEN g % 2 = 0 THEN timestamptz '2020-01-02' + g * interval '1 h' END)
c_textrange	textrange	textrange('', h)
c_multirange	int4multirange	int4multirange(int4range(g, g + 2), int4range(g + 5, g + 9))
c_int4s	int4[]	CASE g % 4 WHEN 0 THEN '{}' WHEN 1 THEN '{NULL,1}' WHEN 2 THEN '[3:4][0:1]={{1,2},{3,' || g || '}}' ELSE '{' || g || '}' END::int4[]
c_texts	text[]	ARRAY[h, NULL, 'a,b"c', '', left(h, g % 32)]
c_numerics	numeric[]	ARRAY[g / 3.0, 'NaN', NULL]
c_composite	pair	ROW(g, left(h, g % 20))::pair
c_nested	nest	ROW(ROW(g, NULL), ARRAY[ROW(1, h)::pair, NULL], g / 9.0)::nest
c_composites	pair[]	ARRAY[ROW(g, 'z')::pair]
c_domain	short_text	left(h, g % 30)
c_domain_int	positive	g
c_domain_array	pairs	ARRAY[ROW(g, 'z')::pair]
c_enum	mood	(enum_range(NULL::mood))[1 + g % 4]
c_enums	mood[]	ARRAY['sad', (enum_range(NULL::mood))[1 + g % 4]]::mood[]
c_by2	by2	(g % 32767)::text::by2
c_by8	by8	(g::int8 << 31)::text::by8
c_ref16	ref16	('(' || g || ',0.1)')::ref16
c_blob	blob	(E'\\x' || repeat(h, g % 5))::blob
c_cstr	cstr	left(h, g % 20)::cstr
c_null	text	NULL
c_role	regrole	CASE g % 2 WHEN 0 THEN 10 ELSE 0 END::regrole
c_acl	aclitem	('=r/' || current_user)::aclitem
c_vector	oidvector	(g || ' ' || g + 1)::oidvector
\.
SELECT count(*) FROM recipe;

-- NULL in a 13th of the rows of every column, at other places in each
SELECT format('CREATE TABLE h (id int, %s)', string_agg(name || ' ' || type, ', ' ORDER BY n)) AS ddl FROM recipe \gset
:ddl;
SELECT format('INSERT INTO h SELECT g, %s FROM (SELECT g, md5(g::text) AS h FROM generate_series(1, 2600) g) g',
              string_agg(format('CASE WHEN (g * 5 + %s) %% 13 <> 0 THEN (%s)::%s END', n, expression, type), ', ' ORDER BY n)) AS dml FROM recipe \gset
\o /dev/null
:dml;
\o

SELECT count(*) FROM h;
-- rows by a bulk load
CREATE TABLE c (LIKE h) USING colcompress WITH (stripe_row_limit = 1500, chunk_group_row_limit = 1000);
INSERT INTO c SELECT * FROM h;
SELECT cold_rows('c');
SELECT differences('h', 'c');
SELECT * FROM other_answers('h', 'c');
-- each codec
CREATE TABLE c_none USING colcompress WITH (compression = none) AS SELECT * FROM h;
CREATE TABLE c_pglz USING colcompress WITH (compression = pglz, stripe_row_limit = 1100) AS SELECT * FROM h;
CREATE TABLE c_lz4 USING colcompress WITH (compression = lz4, chunk_group_row_limit = 1200) AS SELECT * FROM h;
CREATE TABLE c_zstd USING colcompress WITH (compression = zstd, compression_level = 19) AS SELECT * FROM h;
SELECT t, cold_rows(t), differences('h', t) FROM (VALUES ('c_none'::regclass), ('c_pglz'), ('c_lz4'), ('c_zstd')) v(t);
DROP TABLE c_none, c_pglz, c_lz4, c_zstd;
-- rows one by one stay hot, and read the same
SET colonnade.stripe_threshold_rows = 1000;
CREATE TABLE hot (LIKE h) USING colcompress;
DO $$ DECLARE i int; BEGIN FOR i IN 1..40 LOOP INSERT INTO hot SELECT * FROM h WHERE id = i; END LOOP; END $$;
CREATE TABLE h40 AS SELECT * FROM h WHERE id <= 40;
SELECT cold_rows('hot'), differences('h40', 'hot');
SELECT * FROM other_answers('h40', 'hot');
-- hot and cold rows in one table; COPY as the way in
INSERT INTO hot SELECT * FROM h WHERE id > 40;
SELECT cold_rows('hot') > 0, differences('h', 'hot');
DROP TABLE hot, h40;
CREATE TABLE d (LIKE h) USING colcompress;
SELECT current_setting('data_directory') || '/types.copy' AS file \gset
\set ECHO none
COPY c TO :'file';
COPY d FROM :'file';
\set ECHO all
SELECT cold_rows('d'), differences('h', 'd');
DROP TABLE d;
-- sorted by a load, by each column that has an order
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE h3 AS SELECT * FROM h WHERE id % 13 = 0;
DO $$
DECLARE r record; sorted int := 0; inversions int;
BEGIN
    FOR r IN SELECT name FROM recipe ORDER BY n LOOP
        BEGIN
            EXECUTE format('CREATE TABLE s (LIKE h) USING colcompress WITH (orderby = ''%s desc, id'')', r.name);
        EXCEPTION WHEN undefined_function THEN
            CONTINUE;
        END;
        INSERT INTO s SELECT * FROM h WHERE id % 13 = 0;
        sorted := sorted + 1;
        IF differences('h3', 's') <> 0 THEN RAISE NOTICE 'sorting by % changed rows', r.name; END IF;
        -- a scan returns one stripe in the order it was written
        IF cold_rows('s') = 0 THEN RAISE NOTICE 'no stripe for %', r.name; END IF;
        EXECUTE
            format('SELECT count(*) FROM (SELECT %1$I AS v, lag(%1$I) OVER () AS before FROM s) s WHERE v > before OR (v IS NULL '
            'AND before IS NOT NULL)', r.name) INTO inversions;
        IF inversions <> 0 THEN RAISE NOTICE '% is out of order % times', r.name, inversions; END IF;
        DROP TABLE s;
    END LOOP;
    RAISE NOTICE '% columns can be sorted by', sorted;
END $$;
DROP TABLE h3;

-- values larger than a page, than a chunk's cap, than a megabyte
CREATE TABLE hb (id int, t text, b bytea, a int[], j jsonb, x text);
INSERT INTO hb SELECT g,
    CASE WHEN g % 4 > 0 THEN (SELECT string_agg(md5(i || '.' || g), '') FROM generate_series(1, 10000 * g) i) END,
    decode(repeat(md5(g::text), 50000), 'hex'),
    (SELECT array_agg(i * g) FROM generate_series(1, 100000) i),
    (SELECT jsonb_object_agg('k' || i, md5(i::text)) FROM generate_series(1, 20000) i),
    CASE g WHEN 1 THEN repeat('x', 40000000) WHEN 2 THEN '' END
FROM generate_series(1, 12) g;
CREATE TABLE cb USING colcompress AS SELECT * FROM hb;
SELECT cold_rows('cb') > 0, differences('hb', 'cb');
SELECT id, length(t), length(b), cardinality(a), length(x) FROM cb ORDER BY id LIMIT 2;
CREATE TABLE cb1 (LIKE hb) USING colcompress;
INSERT INTO cb1 SELECT * FROM hb WHERE id = 5;
INSERT INTO cb1 SELECT * FROM hb WHERE id <> 5;
SELECT differences('hb', 'cb1');
DROP TABLE hb, cb, cb1;

-- as many columns as a table may have
SELECT format('CREATE TABLE hw (id int, %s)', string_agg(format('k%s %s', i, (ARRAY['int', 'bool', 'int2', 'float8'])[1 + i % 4]), ', ')) AS ddl
    FROM generate_series(1, 1599) i \gset
\set ECHO none
:ddl;
SELECT format('INSERT INTO hw SELECT g, %s FROM generate_series(1, 3000) g',
    string_agg(CASE i % 4 WHEN 0 THEN format('CASE WHEN g %% 3 = %s THEN g + %s END', i % 3, i)
    WHEN 1 THEN format('(g + %s) %% 2 = 0', i) WHEN 2 THEN 'NULL' ELSE format('CASE WHEN g %% 7 = 0 THEN g / %s.0 END', i) END, ', ')) AS dml
    FROM generate_series(1, 1599) i \gset
:dml;
\set ECHO all
CREATE TABLE cw (LIKE hw) USING colcompress;
INSERT INTO cw SELECT * FROM hw;
SELECT cold_rows('cw'), differences('hw', 'cw');
SELECT count(k1599), sum(k1596), max(k1597::int) FROM cw;
SELECT count(k1599), sum(k1596), max(k1597::int) FROM hw;
DROP TABLE hw, cw;

-- no columns at all, and only dropped ones
CREATE TABLE none () USING colcompress;
INSERT INTO none DEFAULT VALUES;
INSERT INTO none SELECT FROM generate_series(1, 20000);
SELECT count(*) FROM none;
CREATE TABLE gone (id int, a int, b text) USING colcompress;
INSERT INTO gone SELECT g, g, g FROM generate_series(1, 20000) g;
ALTER TABLE gone DROP COLUMN a, DROP COLUMN b, DROP COLUMN id;
SELECT count(*) FROM gone;
ALTER TABLE gone ADD COLUMN n int DEFAULT 7;
SELECT count(*), sum(n) FROM gone;
DROP TABLE none, gone, h, c;
