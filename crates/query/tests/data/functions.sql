-- Makes functions.txt, the server's answers that tests/functions.rs asks for: psql -XqAt -f functions.sql > functions.txt
-- A line: function, its arguments as type:value, =>, type:value of the result (or ERROR). Dates, timestamps and intervals are shown in hex as the server sends them.
SET client_min_messages = error;
SET timezone = 'UTC';
SET extra_float_digits = 1;
CREATE TEMP TABLE samples(type text, value text);
INSERT INTO samples
SELECT 'numeric', unnest(array['0', '0.00', '1', '-1', '0.5', '-0.5', '2.50', '3.5', '7', '10', '0.07', '100.00', '-99.995',
    '12345678.9', '9999', '10000', '0.0001', '0.00009999', '123456789012345678', '-0.000000000001', '32767.5', '2147483647.4999',
    '-2147483648.5', '9223372036854775807.5']) UNION ALL
SELECT 'smallnumeric', unnest(array['0', '1', '-0.5', '2.50', '3.5', '7', '0.07', '100.00', '-99.995', '12345678.9', '9999', '10000', '0.0001',
    '0.00009999', '123456789012345678']) UNION ALL
SELECT 'float8', unnest(array['0', '-0', '1', '-1.5', '0.5', '2.5', '1e10', '1e-10', '0.1', '123456.789', '1e15', '123456789012345680', '32767.5',
    '2147483647.5', '9.2e18', '9.3e18', '1e300', '1e-300', 'NaN', 'Infinity', '-Infinity']) UNION ALL
SELECT 'float4', unnest(array['0', '0.1', '-1.5', '2.5', '16777216', '1e30', '1e-30', '3.4e38', 'NaN']) UNION ALL
SELECT 'int4', unnest(array['0', '1', '-1', '7', '40000', '2147483647', '-2147483648']) UNION ALL
SELECT 'int8', unnest(array['0', '-1', '123456789', '3000000000', '9223372036854775807', '-9223372036854775808']) UNION ALL
SELECT 'int2', unnest(array['0', '-1', '32767', '-32768']) UNION ALL
SELECT 'date', unnest(array['2000-01-01', '1999-12-31', '2024-02-29', '1900-03-01', '0001-01-01', '0001-12-31 BC', '0011-05-05 BC', '4713-11-24 BC', '2005-01-01',
    '2020-12-31', '2021-01-03', '1998-08-02', '1999-12-27', '9999-12-31', '294276-12-31', '5874897-12-31', 'infinity', '-infinity']) UNION ALL
SELECT 'timestamp', unnest(array['2000-01-01 00:00:00', '1999-12-31 23:59:59.999999', '2024-02-29 12:34:56.789012', '1970-01-01 00:00:00', '1900-03-01 00:00:01',
    '2013-07-31 05:06:07.5', '0001-01-01 00:00:00', '0001-12-31 13:00:00 BC', '0101-02-03 BC', '2000-12-31 11:00', '2001-01-01 11:00', '4713-11-24 10:00:00 BC', '2021-01-03 23:00:00',
    '294276-12-31 23:59:59.999999', 'infinity', '-infinity']) UNION ALL
SELECT 'interval', unnest(array['1 day', '1 month', '-1 month', '1 year 2 months 3 days 04:05:06.789', '-13 months', '-400 days', '90 days', '00:00:00.000001',
    '-12:00:00', '300000 years', '0']) UNION ALL
SELECT 'text', unnest(array['', 'a', 'abc', 'Hello, World', 'naïve Größe', 'ÄÖÜ€𝄞', '  padded  ', 'a,b,,c', 'xxabcxx', 'thirteen bytes!', 'special packages among requests', '100%']) UNION ALL
SELECT 'pattern', unnest(array['', '%', '_', '%a%', 'a%', '%c', 'abc', '_b_', '%ö%', '__%__', '%special%requests%', '%b_x%', '100\%', 'a%b%c', '%,_,%']) UNION ALL
SELECT 'ascii', unnest(array['', 'a', 'abc', 'Hello, World', '  padded  ', 'xxabcxx']) UNION ALL
SELECT 'needle', unnest(array['', 'a', ',', 'b', 'xx', 'ö', 'bytes', 'World']) UNION ALL
SELECT 'set', unnest(array['', ' ', 'ax', 'Ä€𝄞', 'n!']) UNION ALL
SELECT 'place', unnest(array['-2147483648', '-3', '-1', '0', '1', '2', '5', '100', '2147483647']) UNION ALL
SELECT 'field', unnest(array['-5', '-2', '-1', '0', '1', '2', '4', '9']) UNION ALL
SELECT 'digits', unnest(array['-3', '-1', '0', '1', '2', '5']) UNION ALL
SELECT 'format', unnest(array['YYYY-MM', 'YYYY-MM-DD', 'YYYY', 'MM', 'HH24', 'yyyymmdd hh24:mi:ss']);

CREATE TEMP TABLE cases(name text, expression text, types text[]);
INSERT INTO cases VALUES
('add', '$1 + $2', '{smallnumeric,smallnumeric}'), ('subtract', '$1 - $2', '{smallnumeric,smallnumeric}'), ('multiply', '$1 * $2', '{smallnumeric,smallnumeric}'),
('divide', '$1 / $2', '{numeric,numeric}'), ('modulo', '$1 % $2', '{smallnumeric,smallnumeric}'),
('negate', '- $1', '{numeric}'), ('absolute', 'abs($1)', '{numeric}'), ('less', '$1 < $2', '{smallnumeric,smallnumeric}'), ('equal', '$1 = $2', '{smallnumeric,smallnumeric}'),
('round', 'round($1)', '{numeric}'), ('round', 'round($1, $2)', '{numeric,digits}'), ('truncate', 'trunc($1, $2)', '{numeric,digits}'), ('truncate', 'trunc($1)', '{numeric}'),
('ceiling', 'ceil($1)', '{numeric}'), ('floor', 'floor($1)', '{numeric}'), ('length 12 2', '$1::numeric(12,2)', '{numeric}'), ('length 20 6', '$1::numeric(20,6)', '{numeric}'),
('add', '$1 + $2', '{float8,float8}'), ('multiply', '$1 * $2', '{float8,float8}'), ('divide', '$1 / $2', '{float8,float8}'), ('less', '$1 < $2', '{float8,float8}'), ('equal', '$1 = $2', '{float8,float8}'),
('multiply', '$1 * $2', '{float4,float4}'), ('divide', '$1 / $2', '{float4,float4}'), ('round', 'round($1)', '{float8}'), ('floor', 'floor($1)', '{float8}'),
('add', '$1 + $2', '{int4,int4}'), ('multiply', '$1 * $2', '{int4,int4}'), ('divide', '$1 / $2', '{int4,int4}'), ('modulo', '$1 % $2', '{int4,int4}'), ('negate', '- $1', '{int4}'), ('absolute', 'abs($1)', '{int4}'),
('multiply', '$1 * $2', '{int8,int8}'), ('divide', '$1 / $2', '{int8,int8}'), ('modulo', '$1 % $2', '{int8,int8}'), ('subtract', '$1 - $2', '{int8,int8}'), ('multiply', '$1 * $2', '{int2,int2}'),
('cast int2', '$1::int2', '{numeric}'), ('cast int4', '$1::int4', '{numeric}'), ('cast int8', '$1::int8', '{numeric}'), ('cast float8', '$1::float8', '{numeric}'), ('cast float4', '$1::float4', '{numeric}'),
('cast int2', '$1::int2', '{float8}'), ('cast int4', '$1::int4', '{float8}'), ('cast int8', '$1::int8', '{float8}'), ('cast numeric', '$1::numeric', '{float8}'), ('cast float4', '$1::float4', '{float8}'),
('cast int4', '$1::int4', '{float4}'), ('cast int8', '$1::int8', '{float4}'), ('cast numeric', '$1::numeric', '{float4}'), ('cast float8', '$1::float8', '{float4}'),
('cast int2', '$1::int2', '{int4}'), ('cast numeric', '$1::numeric', '{int4}'), ('cast float4', '$1::float4', '{int4}'), ('cast int8', '$1::int8', '{int4}'),
('cast int4', '$1::int4', '{int8}'), ('cast numeric', '$1::numeric', '{int8}'), ('cast float8', '$1::float8', '{int8}'), ('cast float4', '$1::float4', '{int8}'),
('cast timestamp', '$1::timestamp', '{date}'), ('cast date', '$1::date', '{timestamp}'),
('add', '$1 + $2', '{date,int4}'), ('subtract', '$1 - $2', '{date,int4}'), ('subtract', '$1 - $2', '{date,date}'), ('subtract', '$1 - $2', '{timestamp,timestamp}'),
('add', '$1 + $2', '{date,interval}'), ('add', '$1 + $2', '{timestamp,interval}'), ('subtract', '$1 - $2', '{timestamp,interval}'),
('to_char', 'to_char($1, $2)', '{timestamp,format}'),
('like', '$1 LIKE $2', '{text,pattern}'), ('ilike', '$1 ILIKE $2', '{ascii,pattern}'), ('starts_with', 'starts_with($1, $2)', '{text,needle}'),
('characters', 'length($1)', '{text}'), ('octets', 'octet_length($1)', '{text}'), ('lower', 'lower($1)', '{ascii}'), ('upper', 'upper($1)', '{ascii}'),
('substring', 'substring($1 from $2)', '{text,place}'), ('substring', 'substring($1 from $2 for $3)', '{text,place,place}'), ('left', 'left($1, $2)', '{text,place}'), ('right', 'right($1, $2)', '{text,place}'),
('position', 'position($2 in $1)', '{text,needle}'), ('split_part', 'split_part($1, $2, $3)', '{text,needle,field}'), ('replace', 'replace($1, $2, $3)', '{text,needle,needle}'),
('ltrim', 'ltrim($1, $2)', '{text,set}'), ('rtrim', 'rtrim($1, $2)', '{text,set}'), ('btrim', 'btrim($1, $2)', '{text,set}'), ('btrim', 'btrim($1)', '{text}'), ('concat', '$1 || $2', '{text,needle}');
INSERT INTO cases SELECT 'extract ' || field, format('extract(%s from $1)', field), array[type]
FROM unnest(array['millennium', 'century', 'decade', 'year', 'isoyear', 'quarter', 'month', 'week', 'day', 'dow', 'isodow', 'doy', 'epoch']) field, unnest(array['date', 'timestamp']) type;
INSERT INTO cases SELECT 'extract ' || field, format('extract(%s from $1)', field), '{timestamp}' FROM unnest(array['hour', 'minute', 'second', 'milliseconds', 'microseconds']) field;
INSERT INTO cases SELECT 'date_part ' || field, format('date_part(%L, $1)', field), '{timestamp}' FROM unnest(array['century', 'year', 'week', 'hour', 'second', 'milliseconds', 'epoch', 'dow']) field;
INSERT INTO cases SELECT 'date_trunc ' || field, format('date_trunc(%L, $1)', field), '{timestamp}'
FROM unnest(array['millennium', 'century', 'decade', 'year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'second', 'milliseconds', 'microseconds']) field;

CREATE FUNCTION pg_temp.real_type(type text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN type = 'smallnumeric' THEN 'numeric' WHEN type IN ('pattern', 'ascii', 'needle', 'set', 'format') THEN 'text' WHEN type IN ('place', 'field', 'digits') THEN 'int4' ELSE type END
$$;
CREATE FUNCTION pg_temp.shown(type text, value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    IF value IS NULL THEN RETURN type || ':NULL'; END IF;
    IF type IN ('date', 'timestamp', 'interval') THEN
        EXECUTE format('SELECT encode(%s_send(%L::%s), ''hex'')', type, value, type) INTO found;
        RETURN type || ':' || found;
    END IF;
    RETURN type || ':' || value;
END $$;
CREATE FUNCTION pg_temp.answer(name text, expression text, types text[], arguments text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE filled text := expression; found text; found_type text; line text := name;
BEGIN
    FOR at IN 1..array_length(types, 1) LOOP
        filled := replace(filled, '$' || at, format('(%L::%s)', arguments[at], pg_temp.real_type(types[at])));
        line := line || E'\t' || pg_temp.shown(pg_temp.real_type(types[at]), arguments[at]);
    END LOOP;
    BEGIN
        EXECUTE format('SELECT v::text, CASE pg_typeof(v)::text WHEN ''integer'' THEN ''int4'' WHEN ''bigint'' THEN ''int8'' WHEN ''smallint'' THEN ''int2'' WHEN ''double precision'' THEN ''float8''
            WHEN ''real'' THEN ''float4'' WHEN ''boolean'' THEN ''bool'' WHEN ''timestamp without time zone'' THEN ''timestamp'' ELSE pg_typeof(v)::text END FROM (SELECT %s AS v) t', filled) INTO found, found_type;
        RETURN line || E'\t=>\t' || pg_temp.shown(found_type, found);
    EXCEPTION WHEN OTHERS THEN
        RETURN line || E'\t=>\tERROR';
    END;
END $$;
-- Of what has many lines a part is enough.
SELECT line FROM (
    SELECT pg_temp.answer(c.name, c.expression, c.types, array[a.value, b.value, d.value]) AS line, c.name, c.types, a.value AS a, b.value AS b, d.value AS d
    FROM cases c JOIN samples a ON a.type = c.types[1] LEFT JOIN samples b ON b.type = c.types[2] LEFT JOIN samples d ON d.type = c.types[3]) t
WHERE CASE WHEN name IN ('substring', 'replace', 'split_part', 'less', 'equal') THEN hashtext(line) % 8 = 0
           WHEN name IN ('add', 'subtract', 'multiply', 'divide', 'modulo', 'like') THEN hashtext(line) % 2 = 0 ELSE true END
ORDER BY name, types, a, b, d;
