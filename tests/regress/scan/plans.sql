-- What the scan node prunes, filters and shows; parameters, nested loops, cursors, and what it declines.
\i include/scan_twins.sql
-- the scan node on its own
SET colonnade.enable_vectorised = off;
-- pruning: constants, both kinds of bounds, IN, OR, IS NULL, LIKE prefix
SELECT scans('SELECT * FROM column_rows WHERE id = 2500');
SELECT scans('SELECT * FROM column_rows WHERE id BETWEEN 1500 AND 2500');
SELECT scans('SELECT * FROM column_rows WHERE id IN (10, 5500)');
SELECT scans('SELECT * FROM column_rows WHERE id < 10 OR id > 5990');
SELECT scans('SELECT * FROM column_rows WHERE allnull IS NOT NULL');
SELECT scans('SELECT * FROM column_rows WHERE const IS NULL');
SELECT scans('SELECT * FROM column_rows WHERE const LIKE ''nev%''');
SELECT scans('SELECT * FROM column_rows WHERE const LIKE ''alw%x''');
SELECT scans('SELECT * FROM column_rows WHERE id < 2000.5 AND i2 + 1 > 0');
SELECT scans('SELECT * FROM column_rows WHERE d > timestamptz ''2099-01-01'' AND isfinite(d)');
SELECT scans('SELECT * FROM column_rows WHERE id > 1e30');
SELECT scans('SELECT count(*) FROM column_rows');
-- only what is wanted is read
EXPLAIN (COSTS OFF) SELECT t FROM column_rows WHERE id < 10 AND upper(few) = 'RED';
EXPLAIN (COSTS OFF) SELECT count(*) FROM column_rows;
EXPLAIN (COSTS OFF, VERBOSE) SELECT f4 + 1, ctid, tableoid::regclass FROM column_rows WHERE few = 'red';
CREATE FUNCTION explain_json(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
    RETURN (SELECT string_agg(key || '=' || CASE WHEN key LIKE 'Bytes%' THEN (value::text::int8 > 0)::text ELSE regexp_replace(value::text, '\.00$', '') END, '; ' ORDER BY n)
            FROM json_each(plan -> 0 -> 'Plan') WITH ORDINALITY e (key, value, n)
            WHERE key ~ 'Custom|Columns|Filter|Prune|Stripes|Chunks|Hot|Bytes|Actual Rows');
END $$;
SELECT explain_json('SELECT t FROM column_rows WHERE id BETWEEN 3 AND 1004 AND few LIKE ''%e%''');
-- parameters: a generic plan prunes with the values of each execution
SET plan_cache_mode = force_generic_plan;
PREPARE by_id (int8) AS SELECT count(*), min(t) FROM column_rows WHERE id = $1;
EXECUTE by_id (17); EXECUTE by_id (5999); EXECUTE by_id (NULL); EXECUTE by_id (99999);
SELECT scans('EXECUTE by_id (17)');
SELECT scans('EXECUTE by_id (5999)');
SELECT scans('EXECUTE by_id (NULL)');
PREPARE by_like (text, text[], date) AS SELECT count(*) FROM column_rows WHERE t LIKE $1 AND few = ANY ($2) AND d < $3;
EXECUTE by_like ('/page/1%', '{red,green}', '2024-01-01');
EXECUTE by_like ('%9', '{red,NULL}', 'infinity');
EXECUTE by_like ('/page/12\', '{red}', 'infinity');
EXECUTE by_like (NULL, '{red}', 'infinity');
SELECT count(*) FROM heap_rows WHERE t LIKE '/page/1%' AND few = ANY ('{red,green}') AND d < '2024-01-01';
SELECT count(*) FROM heap_rows WHERE t LIKE '%9' AND few = ANY ('{red,NULL}') AND d < 'infinity';
PREPARE by_num (numeric) AS SELECT count(*) FROM column_rows WHERE num <= $1;
EXECUTE by_num (2.5); EXECUTE by_num ('NaN'); EXECUTE by_num ('Infinity'); EXECUTE by_num (1e60);
SELECT count(*) FILTER (WHERE num <= 2.5), count(*) FILTER (WHERE num <= 'NaN'), count(*) FILTER (WHERE num <= 'Infinity'),
    count(*) FILTER (WHERE num <= 1e60) FROM heap_rows;
RESET plan_cache_mode;
-- init plans, correlated sub-queries, LATERAL and rescans
SELECT scans('SELECT * FROM column_rows WHERE id = (SELECT max(id) FROM heap_rows)');
SELECT * FROM differences(ARRAY[
    'SELECT h.id, (SELECT count(*) FROM {t} r WHERE r.id = h.id * 3) FROM heap_rows h WHERE h.id < 300',
    'SELECT h.id, (SELECT max(r.t) FROM {t} r WHERE r.id BETWEEN h.id AND h.id + 3 AND r.few = h.few) FROM heap_rows h WHERE h.id < 100',
    'SELECT h.id, (SELECT count(*) FROM {t} r WHERE upper(r.few) = upper(h.few)) FROM heap_rows h WHERE h.id < 20',
    'SELECT h.id FROM heap_rows h WHERE h.id < 50 AND EXISTS (SELECT FROM {t} r WHERE r.id = h.id + 1 AND r.b)',
    'SELECT h.id FROM heap_rows h WHERE h.id < 50 AND h.id NOT IN (SELECT r.id FROM {t} r WHERE r.b)',
    'SELECT h.id, l.* FROM heap_rows h, LATERAL (SELECT r.i4, h.t FROM {t} r WHERE r.id = h.id ORDER BY 1 LIMIT 1) l WHERE h.id < 40',
    'SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE a.few = ''red''',
    'SELECT count(*) FROM {t} a FULL JOIN heap_rows b ON a.id = b.id',
    'SELECT * FROM (SELECT id, few FROM {t} ORDER BY id DESC LIMIT 3) x', 'SELECT DISTINCT few FROM {t}',
    'WITH c AS MATERIALIZED (SELECT * FROM {t} WHERE id < 100) SELECT a.id FROM c a, c b WHERE a.id = b.id',
    'WITH RECURSIVE r AS (SELECT 1::int8 AS id UNION ALL SELECT t.id + 1 FROM {t} t JOIN r ON t.id = r.id WHERE t.id < 9) SELECT * FROM r']);
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
SELECT * FROM differences(ARRAY[
    'SELECT a.id, b.t FROM (SELECT * FROM heap_rows WHERE id IN (3, 2500, 5999, 7)) a JOIN {t} b ON a.id = b.id',
    'SELECT count(*) FROM (VALUES (1), (2), (NULL)) v (x) LEFT JOIN {t} b ON b.id = v.x']);
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material; RESET enable_memoize;
SELECT count(*) FROM (SELECT FROM column_rows LIMIT 5) x;
-- cursors: forwards and back, held over a commit, at a position
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM column_rows WHERE id < 6;
FETCH 3 FROM c; FETCH BACKWARD 2 FROM c; FETCH LAST FROM c; FETCH FIRST FROM c; FETCH ABSOLUTE 2 FROM c;
DECLARE n NO SCROLL CURSOR FOR SELECT id FROM column_rows WHERE id < 6;
FETCH 2 FROM n;
DECLARE h CURSOR WITH HOLD FOR SELECT id, t FROM column_rows WHERE id > 5997;
COMMIT;
FETCH ALL FROM h;
CLOSE h;
-- system columns: ctid and tableoid from the node, the transaction's through the server's own scan
SELECT count(DISTINCT ctid), count(DISTINCT tableoid) FROM column_rows;
EXPLAIN (COSTS OFF) SELECT xmin FROM column_rows;
SELECT count(*) FROM column_rows a JOIN column_rows b ON a.ctid = b.ctid;
-- switched off, and TABLESAMPLE
SET colonnade.enable_scan = off;
EXPLAIN (COSTS OFF) SELECT id FROM column_rows;
RESET colonnade.enable_scan;
EXPLAIN (COSTS OFF) SELECT id FROM column_rows TABLESAMPLE SYSTEM (10);
SET enable_seqscan = off;
CREATE INDEX ON column_rows (i4);
EXPLAIN (COSTS OFF) SELECT id FROM column_rows WHERE i4 = 5;
RESET enable_seqscan;
-- row security and barriers: conditions that are not leakproof wait for the policy
\i include/leak.sql
CREATE VIEW barrier WITH (security_barrier) AS SELECT id, few FROM column_rows WHERE id = 3;
SELECT id FROM barrier WHERE leak(id) AND id < 100;
EXPLAIN (COSTS OFF) SELECT id FROM barrier WHERE id < 100 AND few LIKE 'r%' AND leak(few);
CREATE ROLE scan_reader;
GRANT SELECT ON column_rows TO scan_reader;
ALTER TABLE column_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY only_three ON column_rows USING (id <= 3 AND length(const) > 1);
SET ROLE scan_reader;
SELECT id FROM column_rows WHERE leak(id) AND few LIKE 'g%';
EXPLAIN (COSTS OFF) SELECT id FROM column_rows WHERE num > 1 AND i2 > 0;
RESET ROLE;
ALTER TABLE column_rows DISABLE ROW LEVEL SECURITY;
DROP OWNED BY scan_reader;
DROP ROLE scan_reader;
