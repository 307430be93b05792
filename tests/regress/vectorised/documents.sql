-- jsonb and array operators over columnar tables: shredded documents, documents of many shapes, arrays, hot
-- rows; against heap.
\i include/answers.sql
\i include/node.sql
\set ECHO none
SET max_parallel_workers_per_gather = 0;
CREATE TABLE heap_t (id int8, same jsonb, j jsonb, words text[], numbers int[], bigs int8[]) USING heap;
INSERT INTO heap_t SELECT i,
    jsonb_build_object('os', (ARRAY['android', 'ios', 'windows'])[i % 3 + 1], 'n', i % 50, 'price', round(i / 7.0, 2), 'flag', i % 2 = 0, 'deep',
        jsonb_build_object('a', i % 4, 'b', 'x' || i % 5)),
    CASE i % 23
        WHEN 0 THEN NULL
        WHEN 1 THEN '{}'
        WHEN 2 THEN '[]'
        WHEN 3 THEN '"os"'
        WHEN 4 THEN '12.50'
        WHEN 5 THEN 'null'
        WHEN 6 THEN '["os", "k", 1, null, {"os": "android"}]'
        WHEN 7 THEN '{"os": null, "k": 1}'
        WHEN 8 THEN '{"os": {"os": "android", "empty": {}}, "k": [1, 2, {"x": "y"}]}'
        WHEN 9 THEN '{"os": 1.0}'
        WHEN 10 THEN '{"os": 1.00, "k": 1e40}'
        WHEN 11 THEN '{"os": true}'
        WHEN 12 THEN '{"os": "andr\u0041id \"quoted\" \\ \t\n\u0001 ä", "k": -0.00001}'
        WHEN 13 THEN '{"os": 123456789012345678901234567890.123}'
        WHEN 14 THEN '{"os": -0.5, "k": false}'
        WHEN 15 THEN '{"os": ["android"]}'
        WHEN 16 THEN '{"os": "android"}'
        WHEN 17 THEN '{"os": ""}'
        WHEN 18 THEN '{"os": 0.000, "k": 100000000}'
        ELSE jsonb_build_object('os', CASE WHEN i % 2 = 0 THEN 'android' ELSE 'ios' END, 'k', i) END,
    CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN ARRAY[NULL, 'a'] WHEN 3 THEN ARRAY[repeat('long ', 60), 'a', ''] WHEN 4
        THEN ARRAY[['a', 'b'], ['c', NULL]] ELSE ARRAY['t' || i % 20, 'c' || i % 8] END,
    CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN ARRAY[NULL, 1] WHEN 3 THEN ARRAY[[1, 2], [3, NULL]] ELSE ARRAY[i % 10, i % 4, 0] END,
    CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN ARRAY[NULL, 1] WHEN 3 THEN '[0:1][2:2]={{1},{NULL}}' ELSE ARRAY[i % 10, i % 4] END
    FROM generate_series(1, 30000) i;
CREATE TABLE column_t (LIKE heap_t) USING colcompress WITH (stripe_row_limit = 10000, chunk_group_row_limit = 2500);
INSERT INTO column_t SELECT * FROM heap_t;
INSERT INTO column_t SELECT -id, same, j, words, numbers, bigs FROM heap_t WHERE id < 200;
INSERT INTO heap_t SELECT -id, same, j, words, numbers, bigs FROM heap_t WHERE id < 200;
ANALYZE heap_t, column_t;
-- Bytes that the scan of a query decoded.
CREATE FUNCTION decoded(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN (SELECT sum((value #>> '{}')::bigint) FROM jsonb_path_query(plan::jsonb, '$.**."Bytes Decoded"') v (value));
END $$;
CREATE FUNCTION conditions() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT c || ' ' || rest FROM unnest(ARRAY['same', 'j']) c, unnest(ARRAY[
        '? ''os''', '? ''k''', '? ''android''', '? ''none''', '? ''''',
        '@> ''{"os": "android"}''', '@> ''{}''', '@> ''[]''', '@> ''"os"''', '@> ''null''', '@> ''12.5''', '@> ''["os"]''', '@> ''[1.0, null]''',
        '@> ''[{"os": "android"}]''',
        '@> ''{"os": 1}''', '@> ''{"os": true}''', '@> ''{"os": null}''', '@> ''{"os": {}}''', '@> ''{"os": {"os": "android"}}''', '@> ''{"os": ["android"]}''',
        '@> ''{"os": "ios", "flag": true}''', '@> ''{"n": 7}''', '@> ''{"n": 7.00, "os": "ios"}''', '@> ''{"deep": {"b": "x1"}}''',
        '@> ''{"deep": {"b": "x1", "a": 2}, "os": "ios"}''', '@> ''{"deep": {"c": 1}}''',
        '@> ''{"k": [2]}''', '@> ''{"k": [{"x": "y"}]}''', '@> ''{"price": 0.14}''', '@> ''{"none": "x"}''', '@> NULL', '->> ''os'' = ''android''',
        '->> ''n'' = ''7''', '->> ''flag'' = ''true''', '->> ''k'' IS NULL',
        '-> ''deep'' ->> ''b'' = ''x1''', '-> ''os'' ->> ''os'' = ''android''', '-> ''k'' IS NULL', '-> ''os'' @> ''{"os": "android"}''']) rest
    UNION ALL
    SELECT c || ' ' || rest FROM unnest(ARRAY['words', 'words::varchar[]']) c,
        unnest(ARRAY['@> ''{t5}''', '@> ''{t5,c5}''', '@> ''{}''', '@> ''{NULL}''', '@> ''{a,NULL}''', '@> ''{a,""}''', '@> ''{b,c}''',
        '&& ''{t1,c}''', '&& ''{}''', '&& ''{NULL}''']) rest
    UNION ALL
    SELECT c || ' ' || rest FROM unnest(ARRAY['numbers', 'bigs']) c,
        unnest(ARRAY['@> ''{1}''', '@> ''{1,3}''', '@> ''{}''', '@> ''{NULL}''', '&& ''{7,8}''', '&& ''{NULL}''']) rest
    UNION ALL
    VALUES ('''a'' = ANY (words)'), ('''t5'' = ANY (words)'), ('1 = ANY (numbers)'), ('NOT 1 = ANY (numbers)'), ('(3 = ANY (numbers)) IS NULL'),
        ('8::int8 = ANY (bigs)'), ('NULL::int = ANY (numbers)') $$;
\set ECHO all
-- premise: these run in the node, and the first column is shredded
SELECT c, node(format('SELECT count(*) FROM column_t WHERE %s', c))
    FROM unnest(ARRAY['same @> ''{"os": "ios"}''', 'j ? ''os''', 'words @> ''{a}''', '1 = ANY (numbers)', 'same ->> ''os'' = ''ios''']) c;
SELECT decoded('SELECT count(*) FROM column_t WHERE same @> ''{"os": "ios"}''') * 20 < decoded('SELECT max(same::text) FROM column_t') AS paths_alone;
-- conditions whose answers differ from heap's
SELECT count(*) AS conditions FROM conditions();
SELECT c, outcome(q, 'heap_t') AS heap, outcome(q, 'column_t') AS columns FROM conditions() c, format('SELECT count(*), sum(id) FROM {t} WHERE %s', c) q
    WHERE outcome(q, 'heap_t') <> outcome(q, 'column_t');
SELECT c, outcome(q, 'heap_t') AS heap, outcome(q, 'column_t') AS columns FROM conditions() c,
    format('SELECT %s AS answer, count(*), sum(id) FROM {t} GROUP BY 1', c) q
    WHERE outcome(q, 'heap_t') <> outcome(q, 'column_t');
-- values
SELECT q, outcome(q, 'heap_t') = outcome(q, 'column_t') AS same, node(replace(q, '{t}', 'column_t')) FROM unnest(ARRAY[
    'SELECT same ->> ''os'', count(*), min(same ->> ''price''), max(same ->> ''n'') FROM {t} GROUP BY 1',
    'SELECT j ->> ''os'', count(*), min(j ->> ''k'') FROM {t} GROUP BY 1',
    'SELECT same -> ''deep'' ->> ''b'', count(*) FROM {t} WHERE same ? ''deep'' GROUP BY 1',
    'SELECT same ->> ''deep'', count(*), sum(id) FROM {t} GROUP BY 1',
    'SELECT same -> ''n'', j -> ''os'', j -> ''k'', id FROM {t} ORDER BY id',
    'SELECT count(j), min(id) FROM {t} WHERE id > 100 AND id < 130 AND j ? ''os''',
    'SELECT same, j ->> ''os'' FROM {t} WHERE same @> ''{"os": "ios"}'' ORDER BY id LIMIT 100',
    'SELECT sum(CASE WHEN j ? ''os'' THEN id END), count(same ->> ''flag'') FROM {t}',
    'SELECT a.same ->> ''os'', count(*) FROM {t} a JOIN {t} b ON a.id = b.id AND b.j ? ''k'' GROUP BY 1']) q;
-- a column that came later
ALTER TABLE heap_t ADD COLUMN late jsonb DEFAULT '{"os": "late", "n": 1}';
ALTER TABLE column_t ADD COLUMN late jsonb DEFAULT '{"os": "late", "n": 1}';
SELECT q, outcome(q, 'heap_t') = outcome(q, 'column_t') AS same FROM unnest(ARRAY[
    'SELECT late ->> ''os'', count(*) FROM {t} GROUP BY 1', 'SELECT count(*), sum(id) FROM {t} WHERE late @> ''{"n": 1}''',
    'SELECT late ->> ''none'', count(*) FROM {t} GROUP BY 1']) q;
