-- Index and bitmap scans of rows in stripes read only the columns that their plan looks at: every use of a
-- row still finds what it needs.
CREATE TABLE t (id int PRIMARY KEY, a int, b text, c numeric, gone int, d jsonb) USING colcompress;
ALTER TABLE t DROP COLUMN gone;
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO t SELECT g, g % 100, 'b' || g, g / 3.0, jsonb_build_object('k', g) FROM generate_series(1, 20000) g;
CREATE INDEX ON t (a);
CREATE INDEX ON t ((c * 2));
VACUUM ANALYZE t;
CREATE TABLE h AS SELECT * FROM t;
CREATE INDEX ON h (id);
CREATE INDEX ON h (a);
ANALYZE h;
ALTER TABLE t SET (index_scan = true);
SET enable_seqscan = off;
SET colonnade.enable_scan = off;
\set heap h
\set columns t
\i include/answers.sql
-- The scans that a query of the columnar table goes by, and whether its answer is heap's.
CREATE FUNCTION scanned(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE node text;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || replace(query, '{t}', 't') INTO node;
    RETURN (SELECT string_agg(DISTINCT m[1], ', ' ORDER BY m[1]) FROM regexp_matches(node, '"Node Type": "([^"]*Scan)"', 'g') m)
        || ': ' || same(query);
END $$;
SELECT scanned('SELECT b FROM {t} WHERE id = 77');
SELECT scanned('SELECT x FROM {t} x WHERE id = 77');
SELECT scanned('SELECT * FROM {t} WHERE id BETWEEN 70 AND 500');
SELECT scanned('SELECT c FROM {t} WHERE id BETWEEN 70 AND 500 AND b LIKE ''%3''');
SELECT scanned('SELECT id FROM {t} WHERE id BETWEEN 70 AND 500');
SELECT scanned('SELECT d->''k'' FROM {t} WHERE a IN (3, 50)');
SELECT scanned('SELECT count(*) FROM {t} WHERE a = 3 OR id < 10');
SELECT scanned('SELECT x.b, y FROM {t} x JOIN LATERAL (SELECT c, y.tableoid IS NULL FROM {t} y WHERE y.id = x.a + 1) y ON true WHERE x.id < 40');
SELECT scanned('SELECT (SELECT b FROM {t} y WHERE y.id = x.id + 1 AND y.c > x.c) FROM {t} x WHERE x.id < 40');
SET work_mem = '64kB';
SELECT scanned('SELECT sum(c) FROM {t} WHERE a < 90');
RESET work_mem;
-- rows that a lock or a trigger asks for again, system columns beside others, a cursor
SELECT b, xmin FROM t WHERE id = 5;
SELECT ctid, c FROM t WHERE id = 5;
BEGIN;
DECLARE k CURSOR FOR SELECT b FROM t WHERE id < 4 ORDER BY id;
FETCH 2 FROM k;
FETCH BACKWARD 1 FROM k;
COMMIT;
-- premise: below a join and an aggregate an index scan hands on no more than is wanted of rows in stripes
RESET colonnade.enable_scan;
SET colonnade.enable_vectorised = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT sum(x.c) FROM t x WHERE x.a = 3;
EXPLAIN (COSTS OFF, VERBOSE) SELECT sum(y.c) FROM (SELECT DISTINCT g * 7 AS k FROM generate_series(1, 20) g) x JOIN t y ON y.id = x.k;
-- the same chunks again and again, one value at a time and then whole; another backend's changes are seen all
-- the same
CREATE FUNCTION sums(rounds int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE wrong int := 0; ours record; theirs record;
BEGIN
    FOR i IN 1..rounds LOOP
        SELECT a, b, c, d INTO ours FROM t WHERE id = i * 37 % 20000 + 1;
        SELECT a, b, c, d INTO theirs FROM h WHERE id = i * 37 % 20000 + 1;
        wrong := wrong + (ours::text IS DISTINCT FROM theirs::text)::int;
    END LOOP;
    RETURN format('%s rounds, %s wrong', rounds, wrong);
END $$;
SELECT sums(3000);
ALTER TABLE t ADD COLUMN e text DEFAULT 'later';
ALTER TABLE h ADD COLUMN e text DEFAULT 'later';
SELECT sums(100), (SELECT string_agg(DISTINCT e, ',') FROM t WHERE id < 500);
ALTER TABLE t DROP COLUMN b;
ALTER TABLE h DROP COLUMN b;
SELECT scanned('SELECT * FROM {t} WHERE id BETWEEN 70 AND 500');
DELETE FROM t WHERE id % 10 = 3;
DELETE FROM h WHERE id % 10 = 3;
SELECT scanned('SELECT sum(c) FROM {t} WHERE id IN (SELECT g * 7 FROM generate_series(1, 2000) g)');
-- bitmap scans load the rows of a block that are in one chunk together: blocks across chunks and stripes,
-- dead rows, columns newer than a stripe, lossy pages, conditions to be looked at again, dictionaries, rows
-- in heap pages between
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE tagged (id int, tag text, tags text[], doc jsonb, n numeric, gone text) USING colcompress
    WITH (chunk_group_row_limit = 1000, stripe_row_limit = 2500);
ALTER TABLE tagged DROP COLUMN gone;
INSERT INTO tagged SELECT g, 'tag ' || g % 3000, ARRAY['a' || g % 30, CASE WHEN g % 7 <> 0 THEN 'b' || g % 50 END],
    jsonb_build_object('k', g % 40, 's', 'v' || g), CASE WHEN g % 9 <> 0 THEN g / 8.0 END
FROM generate_series(1, 8000) g;
ALTER TABLE tagged ADD COLUMN added int DEFAULT 7;
INSERT INTO tagged SELECT g, 'tag ' || g % 3000, ARRAY['a' || g % 30], jsonb_build_object('k', g % 40), g / 8.0, g FROM generate_series(8001, 12000) g;
RESET colonnade.stripe_threshold_rows;
INSERT INTO tagged SELECT g, 'hot', ARRAY['a' || g % 30], jsonb_build_object('k', g % 40), NULL, g FROM generate_series(12001, 12100) g;
CREATE TABLE tagged_h AS SELECT * FROM tagged;
CREATE INDEX ON tagged USING gin (tags);
CREATE INDEX ON tagged USING gin (doc jsonb_path_ops);
CREATE INDEX ON tagged (id);
CREATE INDEX ON tagged (n);
DELETE FROM tagged WHERE id % 11 = 0;
DELETE FROM tagged_h WHERE id % 11 = 0;
DO $$ BEGIN FOR i IN 1..30 LOOP DELETE FROM tagged WHERE id = i * 90; DELETE FROM tagged_h WHERE id = i * 90; END LOOP; END $$;
VACUUM ANALYZE tagged, tagged_h;
SET colonnade.enable_scan = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
-- premise: rows in stripes and in heap pages, stripes that a block does not end with
SELECT count(*) FILTER (WHERE (ctid::text::point)[0] >= 2147483648) AS cold, count(*) FROM tagged;
SELECT count(*) FILTER (WHERE row_count % 256 <> 0) FROM engine.colcompress_stripes WHERE table_name = 'tagged'::regclass;
CREATE FUNCTION bitmaps(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE node text; ours text; theirs text; of_ours text; of_theirs text;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, FORMAT json) SELECT count(*) FROM tagged WHERE ' || condition INTO node;
    EXECUTE 'SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM tagged x WHERE ' || condition INTO ours;
    EXECUTE 'SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM tagged_h x WHERE ' || condition INTO theirs;
    -- a column that the condition does not mention: what it does mention is read only where it is looked at
    -- again
    EXECUTE 'SELECT concat(count(*), '' '', sum(hashtext(added::text)::bigint)) FROM tagged WHERE ' || condition INTO of_ours;
    EXECUTE 'SELECT concat(count(*), '' '', sum(hashtext(added::text)::bigint)) FROM tagged_h WHERE ' || condition INTO of_theirs;
    ours := ours || of_ours;
    theirs := theirs || of_theirs;
    RETURN substring(node from '"Node Type": "(Bitmap Heap Scan)"') || CASE WHEN node ~ '"Lossy Heap Blocks": [1-9]' THEN ', lossy' ELSE ''
        END || ': ' || (ours IS NOT DISTINCT FROM theirs);
END $$;
SELECT bitmaps(c) FROM unnest(ARRAY['tags @> ARRAY[''a5'']', 'tags @> ARRAY[''a5'', ''b5'']', 'doc @> ''{"k": 7}''',
    'tags && ARRAY[''b1'', ''b2''] AND doc @> ''{"k": 11}''',
    'tags @> ARRAY[''a5''] OR doc @> ''{"k": 3}'' OR id BETWEEN 2400 AND 2600', 'id BETWEEN 1 AND 12100', 'n < 500 OR id > 7900',
    'n < 900 AND tag LIKE ''%7'' AND added = 7', 'id = 2500']) c;
INSERT INTO tagged SELECT g, 'more', ARRAY['a' || g % 30], NULL, g, g FROM generate_series(20001, 450000) g;
INSERT INTO tagged_h SELECT g, 'more', ARRAY['a' || g % 30], NULL, g, g FROM generate_series(20001, 450000) g;
SET work_mem = '64kB';
SET enable_seqscan = off;
SELECT bitmaps(c) FROM unnest(ARRAY['tags @> ARRAY[''a5''] AND tag <> ''hot''', 'n BETWEEN 300 AND 430000 AND id % 3 = 0']) c;
RESET work_mem;
-- the same rows again under a nested loop
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*), sum(t.n) FROM generate_series(1, 40) g JOIN tagged t ON t.id BETWEEN g AND g + 300;
SELECT count(*), sum(t.n) FROM generate_series(1, 40) g JOIN tagged_h t ON t.id BETWEEN g AND g + 300;
-- of the rows that a nested loop finds by an index the key is read only where something asks for it
CREATE INDEX ON tagged_h (id);
ANALYZE tagged_h;
CREATE FUNCTION nested(columns text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE node text; ours text; theirs text;
BEGIN
    EXECUTE format('EXPLAIN (FORMAT json) SELECT %s FROM generate_series(1, 400) g %s', columns, replace(query, '{t}', 'tagged')) INTO node;
    EXECUTE format('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM (SELECT %s FROM generate_series(1, 400) g %s) x', columns,
        replace(query, '{t}', 'tagged')) INTO ours;
    EXECUTE format('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM (SELECT %s FROM generate_series(1, 400) g %s) x', columns,
        replace(query, '{t}', 'tagged_h')) INTO theirs;
    RETURN concat_ws(', ', substring(node from '"Node Type": "(Nested Loop)"'), substring(node from '"Node Type": "((Index|Bitmap Heap) Scan)"'))
        || ': ' || (ours IS NOT DISTINCT FROM theirs);
END $$;
CREATE VIEW asked AS SELECT c, q FROM unnest(ARRAY['t.n', 't.id', 'g', 't', 'abs(t.id), t.tag', 'count(*), sum(t.n)', 't.xmin IS NULL']) c,
    unnest(ARRAY['JOIN {t} t ON t.id = g * 7', 'LEFT JOIN {t} t ON t.id = g * 7',
        'LEFT JOIN {t} t ON t.id = g * 7 AND t.id % 2 = 0 WHERE t.id + g > 800 OR t.id IS NULL', 'JOIN {t} t ON t.id = g * 7 AND t.id + g < 900']) q;
SELECT nested(c, q) AS nested, count(*) FROM asked GROUP BY 1 ORDER BY 1;
SET enable_indexscan = on;
SET enable_bitmapscan = off;
SELECT nested(c, q) AS nested, count(*) FROM asked GROUP BY 1 ORDER BY 1;

-- Of a sample only the pages of the columns that an aggregation reads are looked at.
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE wide (id int, w text) USING colcompress;
INSERT INTO wide SELECT g, (SELECT string_agg(md5(g::text || i), '') FROM generate_series(1, 10) i) FROM generate_series(1, 5000) g;
CREATE FUNCTION pages(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) ' || query INTO plan;
    RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
END $$;
SELECT pages('SELECT max(w) FROM wide TABLESAMPLE SYSTEM (100)') > 80 AS premise,
    pages('SELECT count(*), sum(id) FROM wide TABLESAMPLE SYSTEM (100)') < 40 AS few,
    pages('SELECT id, count(*) FROM wide TABLESAMPLE BERNOULLI (100) GROUP BY id') < 40 AS few;
DROP FUNCTION pages(text);
DROP TABLE wide;
