-- Conditions of every kind over every type give heap's answer, filtered natively or not.
\i include/scan_twins.sql
-- premise: our node reads the columnar table, and cold and hot rows are both there
EXPLAIN (COSTS OFF) SELECT id FROM column_rows WHERE id < 10;
SELECT (ctid::text::point)[0] >= 2147483648 AS cold, count(*) > 0 AS some FROM column_rows GROUP BY 1 ORDER BY 1;
-- comparisons of each column with values of its kind, and what else may stand on the other side
CREATE TEMP TABLE operands (col text, other text);
INSERT INTO operands
SELECT col, unnest(string_to_array(others, ';')) FROM (VALUES
    ('id', '0;1;2000;2001;6000;6001;2000.5;-3e30;1e30;''NaN''::numeric;3000::float8;3000::int2'),
    ('i2', '0;-32768;32767;32768;100000;10000000000;-249.5;0.0;''NaN''::numeric;''Infinity''::numeric;1.5::float8;''NaN''::float8;''-Infinity''::float8'),
    ('i4', '0;-3001;-3000;3000;2147483647;2147483648;-2147483649;17.5;-17.5;1e40;''-Infinity''::numeric;1.5::float8;''NaN''::float8;1e300::float8'),
    ('i8', '0;1000000007;9223372036854775807;-9223372036854775808;9223372036854775808;2000000014.5;1e19::float8;5::int2;1.5::float8'),
    ('f4', '0;''-0''::float4;0.1;0.1::float4;0.1::float8;''NaN''::float4;''NaN''::float8;''Infinity''::float4;''-Infinity''::float8;100;1e300;3.5::numeric'),
    ('f8', '0;''-0''::float8;0.1;0.1::float4;0.1::float8;''NaN''::float8;''Infinity''::float8;''-Infinity''::float8;100;714.2857142857143'),
    ('num', '0;2.5;2.500;''NaN''::numeric;''Infinity''::numeric;''-Infinity''::numeric;1e60;1e-60;1e61;1000;666.6666666666666667;333::int;0.1::float8'),
    ('num2', '0;-700;-699.75;-699.755;800;1e40;-1e40;''NaN''::numeric;5::int2;12.25::float8;12.25'),
    ('d',
    'date ''2020-01-01'';date ''2024-02-29'';date ''infinity'';date ''-infinity'';date ''5000000-01-01'';timestamp ''2024-02-29 '
        '12:00'';timestamp ''2024-02-29'';timestamp ''infinity'';timestamp ''-infinity'';timestamptz ''2024-02-29 12:00'';timestamptz ''2024-02-29 '
        '00:00'';timestamptz ''infinity'''),
    ('ts',
    'date ''2020-01-01'';date ''2020-02-29'';date ''infinity'';date ''5000000-01-01'';timestamp ''2020-02-29 '
        '12:00'';timestamp ''2020-02-29'';timestamp ''infinity'';timestamp ''-infinity'';timestamptz ''2020-03-29 12:00'';timestamptz ''2020-02-29 '
        '00:00'';timestamptz ''-infinity'''),
    ('tstz',
    'date ''2020-01-01'';date ''2020-02-29'';date ''-infinity'';date ''5000000-01-01'';timestamp ''2020-02-29 12:00'';timestamp ''2020-03-29 '
        '02:30'';timestamp ''infinity'';timestamptz ''2020-03-29 12:00'';timestamptz ''2020-02-29 00:00'';timestamptz ''-infinity'''),
    ('b', 'true;false;NULL::bool'),
    ('u', 'md5(''17'')::uuid;md5(''zz'')::uuid;''00000000-0000-0000-0000-000000000000''::uuid'),
    ('t', '''/page/17'';'''';''/page/'';''zz'';''/page/17''::varchar;''/page/17''::name;''/page/17''::char(20)'),
    ('tc', '''<3'';'''';''Z'';''ä'';''a0'''),
    ('vc', '''c4ca'';'''';''c4ca''::text;''c4ca  '''),
    ('ch', '''äbc'';''äbc  '';'''';''äbcdef'';''äbcdefgh'';''ä''::text;''äbc''::varchar'),
    ('by', '''\x''::bytea;''\xc4ca''::bytea;''\xff''::bytea'),
    ('m', '''ok'';''sad''::mood;NULL::mood'),
    ('dom', '17;299;300;-1;17::small_int;17.5'),
    ('lab', '''l7'';''l7''::label;''zz'''),
    ('arr', 'ARRAY[1, 1];''{}''::int[]'),
    ('j', '''{"k": 7, "v": "x1"}''::jsonb'),
    ('allnull', '0;NULL::int'),
    ('const', '''always'';''never'''),
    ('few', '''red'';''violet''')) v (col, others);
SELECT count(*) > 150 AS enough FROM operands;
SELECT d.* FROM operands, unnest(ARRAY['=', '<>', '<', '<=', '>', '>=']) op, LATERAL differences(ARRAY[
    format('SELECT id, %I FROM {t} WHERE %I %s %s', col, col, op, other)]) d;
SELECT d.* FROM operands, unnest(ARRAY['=', '>']) op, LATERAL differences(ARRAY[
    format('SELECT id FROM {t} WHERE NOT (%s %s %I) AND id > 1500', other, op, col),
    format('SELECT id FROM {t} WHERE (%I %s %s) IS NOT TRUE OR id = 5', col, op, other)]) d;
-- NULL tests, arrays, LIKE, booleans
SELECT d.*
    FROM
    unnest(ARRAY['id','i2','i4','i8','f4','f8','num','num2','d','ts','tstz','b','u','t','tc','vc','ch','by','m','dom','lab','arr','j','allnull','const','few'])
    col,
LATERAL differences(ARRAY[
    format('SELECT * FROM {t} WHERE %I IS NULL', col),
    format('SELECT * FROM {t} WHERE %I IS NOT NULL', col),
    format('SELECT id, %I FROM {t} WHERE NOT (%I IS NULL OR id > 3000)', col, col),
    format('SELECT %I, count(*) FROM {t} GROUP BY 1', col),
    format('SELECT id FROM {t} WHERE %I = (SELECT %I FROM heap_rows WHERE id = 1234)', col, col),
    format('SELECT id FROM {t} WHERE %I = ANY (SELECT %I FROM heap_rows WHERE id < 20)', col, col),
    format('SELECT id FROM {t} WHERE %I <> ALL (ARRAY(SELECT %I FROM heap_rows WHERE id IN (17, 18)))', col, col)]) d
    WHERE d.query NOT LIKE '%allnull%' OR true;
SELECT * FROM differences(ARRAY[
    'SELECT * FROM {t} WHERE i4 IN (1, 2, 3, NULL)', 'SELECT * FROM {t} WHERE i4 NOT IN (1, 2, 3)', 'SELECT * FROM {t} WHERE i4 NOT IN (1, NULL)',
    'SELECT * FROM {t} WHERE i4 = ANY (''{}'')', 'SELECT * FROM {t} WHERE NOT i4 = ANY (''{}'')', 'SELECT * FROM {t} WHERE i4 <> ALL (''{}'')',
    'SELECT * FROM {t} WHERE i4 < ANY (''{-2990,-2995}'')', 'SELECT * FROM {t} WHERE i4 < ALL (''{-2990,-2995}'')',
    'SELECT * FROM {t} WHERE i4 < ALL (''{-2990,NULL}'')',
    'SELECT * FROM {t} WHERE NOT i4 < ANY (''{10,20}'')', 'SELECT * FROM {t} WHERE NOT i4 < ALL (''{10,20}'')',
    'SELECT * FROM {t} WHERE i4 = ANY (NULL::int[])',
    'SELECT * FROM {t} WHERE i2 IN (1, 100000, -32768)', 'SELECT * FROM {t} WHERE num IN (2.5, ''NaN'', 1000)',
    'SELECT * FROM {t} WHERE t IN (''/page/1'', '''', ''x'')',
    'SELECT * FROM {t} WHERE few IN (''red'', ''blue'')', 'SELECT * FROM {t} WHERE few NOT IN (''red'')', 'SELECT * FROM {t} WHERE ch IN (''ä'', ''äb   '')',
    'SELECT * FROM {t} WHERE d IN (''2020-01-05'', ''infinity'')', 'SELECT * FROM {t} WHERE u IN (md5(''3'')::uuid, md5(''4'')::uuid)',
    'SELECT * FROM {t} WHERE t LIKE ''/page/1%''', 'SELECT * FROM {t} WHERE t LIKE ''/page/1''', 'SELECT * FROM {t} WHERE t LIKE ''%''',
    'SELECT * FROM {t} WHERE t LIKE ''''',
    'SELECT * FROM {t} WHERE t LIKE ''/page/1_''', 'SELECT * FROM {t} WHERE t LIKE ''/page/%7''', 'SELECT * FROM {t} WHERE t LIKE ''%7''',
    'SELECT * FROM {t} WHERE t LIKE ''/p\age/1%''',
    'SELECT * FROM {t} WHERE t LIKE ''/page/1\''', 'SELECT * FROM {t} WHERE t NOT LIKE ''/page/1%''',
    'SELECT * FROM {t} WHERE NOT t NOT LIKE ''/page/1%''', 'SELECT * FROM {t} WHERE t ILIKE ''/PAGE/1%''',
    'SELECT * FROM {t} WHERE t ^@ ''/page/2''', 'SELECT * FROM {t} WHERE t ^@ ''''', 'SELECT * FROM {t} WHERE t ~ ''^/page/2''',
    'SELECT * FROM {t} WHERE vc LIKE ''c4%''',
    'SELECT * FROM {t} WHERE ch LIKE ''äb%''', 'SELECT * FROM {t} WHERE ch LIKE ''äb''', 'SELECT * FROM {t} WHERE tc LIKE ''A%''',
    'SELECT * FROM {t} WHERE lab LIKE ''l1%''',
    'SELECT * FROM {t} WHERE t LIKE ''/page/1%'' COLLATE "C"', 'SELECT * FROM {t} WHERE t < ''/page/2'' COLLATE "C"',
    'SELECT * FROM {t} WHERE t ~<~ ''/page/2''', 'SELECT * FROM {t} WHERE t ~>=~ ''/page/2''',
    'SELECT * FROM {t} WHERE tc BETWEEN ''A'' AND ''F''', 'SELECT * FROM {t} WHERE tc COLLATE "de-x-icu" < ''a''',
    'SELECT * FROM {t} WHERE b', 'SELECT * FROM {t} WHERE NOT b', 'SELECT * FROM {t} WHERE b IS TRUE', 'SELECT * FROM {t} WHERE b IS NOT TRUE',
    'SELECT * FROM {t} WHERE b IS FALSE',
    'SELECT * FROM {t} WHERE b IS NOT FALSE', 'SELECT * FROM {t} WHERE b IS UNKNOWN', 'SELECT * FROM {t} WHERE b IS NOT UNKNOWN',
    'SELECT * FROM {t} WHERE b = true AND NOT (i2 > 0 OR b IS NULL)',
    'SELECT * FROM {t} WHERE (i2 > 0) IS NOT FALSE', 'SELECT * FROM {t} WHERE NOT (i2 > 0 AND i4 > 0)',
    'SELECT * FROM {t} WHERE (i2 > 0 AND t LIKE ''/page/2%'') OR (i4 < 0 AND few = ''red'')',
    'SELECT * FROM {t} WHERE id < 10 OR (id > 5990 AND few IS NULL) OR num = ''NaN''', 'SELECT * FROM {t} WHERE num > 5 OR id = 8',
    'SELECT * FROM {t} WHERE NOT num > 5 AND id > 100',
    'SELECT * FROM {t} WHERE i4 = i8 OR i2 = i4', 'SELECT * FROM {t} WHERE f4 = f8', 'SELECT * FROM {t} WHERE i2 + 1 = 5',
    'SELECT * FROM {t} WHERE abs(i2) < 3 AND id > 100',
    'SELECT * FROM {t} WHERE j @> ''{"k": 3}''', 'SELECT * FROM {t} WHERE j ->> ''v'' = ''x1'' AND few = ''red''',
    'SELECT * FROM {t} WHERE arr @> ARRAY[3]', 'SELECT * FROM {t} WHERE length(few) = 3',
    'SELECT * FROM {t} WHERE few || ''x'' = ''redx'' AND upper(few) = ''RED''', 'SELECT * FROM {t} WHERE coalesce(few, ''none'') = ''none''',
    'SELECT * FROM {t} WHERE few IS DISTINCT FROM ''red''',
    'SELECT * FROM {t} WHERE few IS NOT DISTINCT FROM NULL', 'SELECT * FROM {t} WHERE (i2, i4) < (0, 0)',
    'SELECT * FROM {t} WHERE ROW(i2, few) IS NULL', 'SELECT * FROM {t} WHERE ROW(i2, few) IS NOT NULL',
    'SELECT * FROM {t} WHERE i4::oid < 5', 'SELECT * FROM {t} WHERE i4::int8 = 5', 'SELECT * FROM {t} WHERE i4::numeric = 5.5',
    'SELECT * FROM {t} WHERE i2::float8 < 5.5', 'SELECT * FROM {t} WHERE i8::float8 < 5.5',
    'SELECT * FROM {t} WHERE f4::numeric < 5', 'SELECT * FROM {t} WHERE f4::float8 = 0.1', 'SELECT * FROM {t} WHERE 10 / nullif(i2, 0) > 1',
    'SELECT * FROM {t} WHERE 10 / (i2 - 17) > 1',
    'SELECT * FROM {t} WHERE id < 10 AND 10 / (i2 - 17) > 1', 'SELECT * FROM {t} WHERE false', 'SELECT * FROM {t} WHERE NULL',
    'SELECT * FROM {t} WHERE id = NULL::int8',
    'SELECT * FROM {t} WHERE ts > now() - interval ''100 years''', 'SELECT * FROM {t} WHERE tstz < now()',
    'SELECT * FROM {t} WHERE d >= current_date', 'SELECT * FROM {t} WHERE tstz < clock_timestamp()',
    'SELECT * FROM {t} WHERE d::timestamp < timestamp ''2024-01-01'' AND isfinite(d)',
    'SELECT * FROM {t} WHERE d > timestamptz ''2024-01-01 00:00+14''', 'SELECT * FROM {t} WHERE d = timestamptz ''2024-01-01 00:00''',
    'SELECT * FROM {t} WHERE f8 IN (''NaN'', ''-0'', 0.1)', 'SELECT * FROM {t} WHERE f4 IN (''NaN'', 0, 0.1::float4)',
    'SELECT * FROM {t} WHERE f8 NOT IN (''NaN'', 0)', 'SELECT * FROM {t} WHERE f8 IN (''Infinity'')',
    'SELECT * FROM {t} WHERE num IN (2.5, 2.50, 1e60)', 'SELECT * FROM {t} WHERE num NOT IN (2.5, ''NaN'')',
    'SELECT * FROM {t} WHERE id::numeric IN (5.0, 6.5, 7)', 'SELECT * FROM {t} WHERE i4 IN (2147483647, -2147483648) OR i8 IN (9223372036854775807)',
    'SELECT * FROM {t} WHERE (b AND NOT (i2 < 0)) OR (NOT b AND i2 IN (1, 2, 3)) OR (b IS NULL AND t LIKE ''/page/3%'')',
    'SELECT * FROM {t} WHERE NOT (num > 5 OR f8 > 5 OR few = ''red'')',
    'SELECT * FROM {t} WHERE few > ''green'' AND few < ''red''', 'SELECT * FROM {t} WHERE few = ''red'' OR few LIKE ''b%'' OR tc > ''U''',
    'SELECT * FROM {t} WHERE by IN (''\x'', ''\xc4'') OR u = md5(''5'')::uuid',
    'SELECT * FROM {t} WHERE d BETWEEN ''2020-03-01'' AND ''2020-04-01'' AND tstz NOT BETWEEN ''2020-02-01'' AND ''2020-03-01''',
    'SELECT * FROM {t} WHERE 17 = ANY (arr)', 'SELECT * FROM {t} WHERE const = t OR const = ''always''',
    'SELECT * FROM {t} WHERE tc = (''<3'' COLLATE "C") AND t = vc::text', 'SELECT * FROM {t} WHERE ch = ''äbc'' AND ch::text = ''äbc''',
    'SELECT * FROM {t} WHERE ch > ''äb'' AND ch <> ''''', 'SELECT * FROM {t} WHERE dom::int8 = 17 OR lab::text = ''l3''',
    'SELECT count(*) FROM {t}', 'SELECT count(*) FROM {t} WHERE id > 100', 'SELECT 1 FROM {t} WHERE few = ''red''',
    'SELECT r FROM {t} r WHERE id < 50', 'SELECT r.*, r FROM {t} r WHERE few = ''green''',
    'SELECT id, i2 + i4 AS s, t || vc AS c FROM {t} WHERE i2 < 5', 'SELECT t, id, t FROM {t}']);
