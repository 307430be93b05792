-- UPDATE, DELETE, MERGE, row locks, ON CONFLICT and foreign keys of rows in stripes: every statement on a
-- heap table and on its columnar twin, whose rows are cold.
\set VERBOSITY terse
SET colonnade.enable_vectorised = on;
SET max_parallel_workers_per_gather = 0;
\i include/twins.sql

SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE h (id int PRIMARY KEY, k int, v text, n numeric(10,2)) USING heap;
CREATE TABLE c (id int PRIMARY KEY, k int, v text, n numeric(10,2)) USING colcompress;
INSERT INTO h SELECT i, i % 100, 'row ' || i, i * 1.5 FROM generate_series(19001, 30000) i;
INSERT INTO c SELECT * FROM h;
CREATE INDEX ON c (k);
CREATE INDEX ON h (k);
SELECT cold_rows('c') = 11000 AS cold;

-- Runs a statement on both; tells how many rows each changed, where that differs.
CREATE PROCEDURE on_both(statement text) LANGUAGE plpgsql AS $$
DECLARE n bigint; m bigint; e1 text; e2 text;
BEGIN
    BEGIN EXECUTE replace(statement, '$t', 'h'); GET DIAGNOSTICS n = ROW_COUNT;
    EXCEPTION WHEN OTHERS THEN e1 := SQLSTATE || ' ' || regexp_replace(SQLERRM, '"h(c?)(_|")', '"c\1\2', 'g'); END;
    BEGIN EXECUTE replace(statement, '$t', 'c'); GET DIAGNOSTICS m = ROW_COUNT;
    EXCEPTION WHEN OTHERS THEN e2 := SQLSTATE || ' ' || SQLERRM; END;
    IF n IS DISTINCT FROM m OR e1 IS DISTINCT FROM e2 THEN
        RAISE NOTICE '%: % % differs from % %', statement, n, e1, m, e2;
    END IF;
    IF differences('h', 'c') <> 0 THEN
        RAISE NOTICE '%: % rows differ', statement, differences('h', 'c');
    END IF;
END $$;

CALL on_both('DELETE FROM $t WHERE id = 20000');
CALL on_both('UPDATE $t SET v = v || ''!'' WHERE id = 20001');
CALL on_both('UPDATE $t SET v = v || ''?'' WHERE id = 20001');
CALL on_both('UPDATE $t SET id = 40000 WHERE id = 20002');
CALL on_both('UPDATE $t SET id = 20003 WHERE id = 20004');
CALL on_both('INSERT INTO $t VALUES (20000, 1, ''again'', 1)');
CALL on_both('INSERT INTO $t VALUES (20005, 1, ''again'', 1)');
CALL on_both('UPDATE $t SET n = n + 1 WHERE k = 7');
CALL on_both('DELETE FROM $t WHERE k = 8 AND id > 19500');
CALL on_both('INSERT INTO $t SELECT i, 5, ''upsert'', 0 FROM generate_series(19990, 20040) i ON CONFLICT (id) DO UPDATE SET v = excluded.v, n = $t.n + 1');
CALL on_both('INSERT INTO $t SELECT i, 5, ''nothing'', 0 FROM generate_series(19900, 20100) i ON CONFLICT DO NOTHING');
CALL on_both('INSERT INTO $t VALUES (20500, 1, ''a'', 1), (20500, 1, ''b'', 1) ON CONFLICT (id) DO UPDATE SET v = excluded.v');
CALL on_both('MERGE INTO $t USING (SELECT i FROM generate_series(21000, 21010) i UNION ALL SELECT 50001) s ON id = i
           WHEN MATCHED AND i % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = ''merged'' WHEN NOT MATCHED THEN INSERT VALUES (i, 0, ''new'', 0)');
CALL on_both('UPDATE $t SET v = x.v FROM (VALUES (22000, ''x''), (22001, ''y''), (22001, ''y'')) x (id, v) WHERE $t.id = x.id');
CALL on_both('WITH d AS (DELETE FROM $t WHERE id BETWEEN 23000 AND 23100 RETURNING *) INSERT INTO $t SELECT id + 100000, k, v, n FROM d');
CALL on_both('SELECT 1 FROM $t WHERE id BETWEEN 24000 AND 24010 FOR UPDATE');
CALL on_both('SELECT 1 FROM $t WHERE id BETWEEN 24000 AND 24010 FOR KEY SHARE SKIP LOCKED');

DELETE FROM c WHERE id = 25000 RETURNING *;
DELETE FROM h WHERE id = 25000 RETURNING *;
UPDATE c SET v = 'returned' WHERE id = 25001 RETURNING *;
UPDATE h SET v = 'returned' WHERE id = 25001 RETURNING *;
SELECT * FROM c WHERE id = 25002 FOR UPDATE;

-- Every way to read leaves dead rows out.
CREATE FUNCTION answers(t regclass) RETURNS TABLE (way text, answer text) LANGUAGE plpgsql AS $$
DECLARE q text;
BEGIN
    FOREACH q IN ARRAY ARRAY['count(*) FROM %s', 'count(*), sum(n), min(id), max(id) FROM %s', 'count(*) FROM %s WHERE id > 25000',
        'sum(id) FROM %s WHERE k = 7',
                             'count(*), sum(k) FROM %s WHERE v LIKE ''row 2%%''',
                             'md5(string_agg(k || '':'' || c, '','' ORDER BY k)) FROM (SELECT k, count(*) AS c FROM %s GROUP BY k) g'] LOOP
        way := format('SELECT (x)::text FROM (SELECT ' || q || ') x', t);
        EXECUTE way INTO answer;
        way := q;
        RETURN NEXT;
    END LOOP;
END $$;
CREATE PROCEDURE compare(what text) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    FOR r IN SELECT a.way, a.answer AS heap, b.answer AS col FROM answers('h') a JOIN answers('c') b USING (way) WHERE a.answer IS DISTINCT FROM b.answer LOOP
        RAISE NOTICE '% (%): heap %, columnar %', r.way, what, r.heap, r.col;
    END LOOP;
END $$;
CALL compare('vectorised');
SET colonnade.enable_vectorised = off;
CALL compare('scan node');
SET colonnade.enable_scan = off;
CALL compare('table scan');
SET enable_seqscan = off; SET enable_indexscan = off;
CALL compare('bitmap scan');
SET enable_indexscan = on; SET enable_bitmapscan = off;
CALL compare('index scan');
RESET enable_seqscan; RESET enable_bitmapscan;
RESET colonnade.enable_scan; RESET colonnade.enable_vectorised;
SELECT count(*) FROM c TABLESAMPLE BERNOULLI (100) WHERE id = 25000 OR k = 8;
SELECT count(*) FROM c TABLESAMPLE SYSTEM (100) WHERE id = 25000 OR k = 8;
SELECT count(*) FROM c WHERE ctid > '(2147483648,0)' AND id = 25000;

-- Cursors see what was there when they were opened, in both directions; WHERE CURRENT OF.
BEGIN;
DECLARE before SCROLL CURSOR FOR SELECT id FROM c WHERE id BETWEEN 26000 AND 26005 ORDER BY ctid;
DECLARE plain CURSOR FOR SELECT id FROM c WHERE id BETWEEN 26000 AND 26005;
FETCH 1 FROM plain;
DELETE FROM c WHERE id IN (26000, 26002, 26004);
FETCH 10 FROM before;
FETCH BACKWARD 10 FROM before;
FETCH 10 FROM plain;
DECLARE place CURSOR FOR SELECT id, v FROM c WHERE id IN (26001, 26003);
FETCH place;
UPDATE c SET v = 'once' WHERE CURRENT OF place;
UPDATE c SET v = v || ' twice' WHERE CURRENT OF place RETURNING id, v;
FETCH place;
DELETE FROM c WHERE CURRENT OF place RETURNING id;
ROLLBACK;
SELECT differences('h', 'c');

-- Savepoints: locks and changes of a rolled-back part are gone.
BEGIN;
UPDATE c SET v = 'outer' WHERE id = 27000;
SAVEPOINT a;
DELETE FROM c WHERE id = 27001;
UPDATE c SET v = 'inner' WHERE id IN (27000, 27002);
SELECT id, v FROM c WHERE id BETWEEN 27000 AND 27002 ORDER BY id;
ROLLBACK TO a;
SELECT id, v FROM c WHERE id BETWEEN 27000 AND 27002 ORDER BY id;
DELETE FROM c WHERE id = 27001;
UPDATE c SET v = 'after' WHERE id = 27002;
SELECT id, v FROM c WHERE id BETWEEN 27000 AND 27002 ORDER BY id;
ROLLBACK;
SELECT differences('h', 'c');

-- A command does not see its own changes, nor change a row twice.
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I SET v = ''meddled'' WHERE id = %s', tg_table_name, new.id + 1);
    RETURN new;
END $$;
CREATE TRIGGER meddle BEFORE UPDATE ON c FOR EACH ROW WHEN (new.v = 'meddle') EXECUTE FUNCTION meddle();
CREATE TRIGGER meddle BEFORE UPDATE ON h FOR EACH ROW WHEN (new.v = 'meddle') EXECUTE FUNCTION meddle();
CALL on_both('UPDATE $t SET v = ''meddle'' WHERE id = 28000');
CALL on_both('UPDATE $t SET v = ''meddle'' WHERE id IN (28010, 28011)');
DROP TRIGGER meddle ON c; DROP TRIGGER meddle ON h;

-- Row triggers get old and new rows, statement triggers their transition tables.
CREATE TABLE told (tab text, what text, old text, new text);
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO told VALUES (tg_table_name, tg_when || ' ' || tg_op, CASE WHEN tg_op <> 'INSERT' THEN old::text END, CASE WHEN tg_op <> 'DELETE'
        THEN new::text END);
    RETURN CASE WHEN tg_op = 'DELETE' THEN old ELSE new END;
END $$;
CREATE FUNCTION tell_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO told SELECT tg_table_name, 'all', (SELECT string_agg(o::text, ' ' ORDER BY id) FROM o), (SELECT string_agg(n::text, ' ' ORDER BY id) FROM n);
    RETURN NULL;
END $$;
DO $$ DECLARE t text; BEGIN
    FOREACH t IN ARRAY ARRAY['h', 'c'] LOOP
        EXECUTE format('CREATE TRIGGER b BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION note_change()', t);
        EXECUTE format('CREATE TRIGGER a AFTER UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION note_change()', t);
        EXECUTE format('CREATE TRIGGER u AFTER UPDATE ON %I REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION tell_all()', t);
    END LOOP;
END $$;
CALL on_both('UPDATE $t SET v = ''told'' WHERE id BETWEEN 28100 AND 28102');
CALL on_both('DELETE FROM $t WHERE id BETWEEN 28101 AND 28103');
SELECT what, old, new FROM told WHERE tab = 'h' EXCEPT ALL SELECT what, old, new FROM told WHERE tab = 'c';
SELECT count(*) FROM told WHERE tab = 'c';
DROP TRIGGER a ON h; DROP TRIGGER a ON c; DROP TRIGGER b ON h; DROP TRIGGER b ON c; DROP TRIGGER u ON h; DROP TRIGGER u ON c;

-- Foreign keys that refer to cold rows.
CREATE TABLE hc (id int REFERENCES h ON UPDATE CASCADE ON DELETE CASCADE, x int) USING heap;
CREATE TABLE cc (id int REFERENCES c ON UPDATE CASCADE ON DELETE CASCADE, x int) USING colcompress;
CALL on_both('INSERT INTO $tc SELECT id, id FROM $t WHERE id BETWEEN 28500 AND 28600');
CALL on_both('INSERT INTO $tc VALUES (20000000, 1)');
CALL on_both('DELETE FROM $t WHERE id BETWEEN 28500 AND 28510');
CALL on_both('UPDATE $t SET id = id + 1000000 WHERE id BETWEEN 28511 AND 28520');
SELECT count(*), sum(id) FROM hc;
SELECT count(*), sum(id) FROM cc;
ALTER TABLE hc DROP CONSTRAINT hc_id_fkey, ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES h;
ALTER TABLE cc DROP CONSTRAINT cc_id_fkey, ADD CONSTRAINT fk FOREIGN KEY (id) REFERENCES c;
CALL on_both('DELETE FROM $t WHERE id = 28530');
DROP TABLE hc;
DROP TABLE cc;

-- Statistics, VACUUM, new indexes, and tables written anew.
VACUUM c; VACUUM h;
ANALYZE c; ANALYZE h;
SELECT (SELECT reltuples FROM pg_class WHERE relname = 'c') = (SELECT reltuples FROM pg_class WHERE relname = 'h') AS same_count;
CREATE INDEX c_v ON c (v); CREATE UNIQUE INDEX CONCURRENTLY c_id ON c (id); REINDEX TABLE c;
SET enable_seqscan = off; SET colonnade.enable_scan = off;
SELECT count(*), min(v) FROM c WHERE v >= 'row 2'; SELECT count(*), min(v) FROM h WHERE v >= 'row 2';
RESET enable_seqscan; RESET colonnade.enable_scan;
CALL harness.settle();
BEGIN;
DELETE FROM c WHERE id BETWEEN 29000 AND 29005;
CLUSTER c USING c_id;
SELECT count(*) FROM c WHERE id BETWEEN 29000 AND 29006;
ROLLBACK;
SELECT differences('h', 'c');
CALL on_both('DELETE FROM $t WHERE id BETWEEN 29100 AND 29105');
CALL harness.settle();
VACUUM FULL c;
SELECT differences('h', 'c'), (SELECT sum(row_count) FROM engine.colcompress_stripes WHERE table_name = 'c'::regclass) = (SELECT count(*) FROM c
    WHERE ctid >= '(2147483648,0)') AS dead_rows_are_gone;
CALL on_both('UPDATE $t SET v = ''clustered'' WHERE id BETWEEN 29200 AND 29205');
CLUSTER c USING c_id;
SELECT differences('h', 'c');
CALL on_both('DELETE FROM $t WHERE id BETWEEN 29300 AND 29305');
SELECT engine.colcompress_merge('c');
SELECT differences('h', 'c');
CALL on_both('DELETE FROM $t WHERE id BETWEEN 29400 AND 29405');
ALTER TABLE c ALTER k TYPE bigint; ALTER TABLE h ALTER k TYPE bigint;
SELECT differences('h', 'c');
CALL on_both('DELETE FROM $t WHERE id BETWEEN 29500 AND 29505');
ALTER TABLE c SET ACCESS METHOD heap;
SELECT differences('h', 'c');
ALTER TABLE c SET ACCESS METHOD colcompress;
SELECT cold_rows('c') > 10000 AS cold;
CALL on_both('DELETE FROM $t WHERE id BETWEEN 29600 AND 29605');

-- Nothing stays behind when a table goes.
SELECT count(*) > 0 AS proxies FROM engine.row_proxy;
BEGIN; TRUNCATE c; SELECT count(*) FROM c; ROLLBACK;
SELECT differences('h', 'c');
BEGIN; UPDATE c SET k = 1 WHERE id = 20100; DELETE FROM c WHERE id = 20101; DROP TABLE c; ROLLBACK;
SELECT differences('h', 'c');
CREATE TEMP TABLE t (id int, v text) USING colcompress ON COMMIT DELETE ROWS;
BEGIN; INSERT INTO t SELECT i, 'x' FROM generate_series(1, 5000) i; DELETE FROM t WHERE id % 2 = 0; SELECT count(*) FROM t; COMMIT;
DROP TABLE c, t;
SELECT count(*) FROM engine.row_proxy;

-- Partitions: a row that moves to another one.
CREATE TABLE p (id int, k int, v text) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING colcompress;
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) USING colcompress;
INSERT INTO p SELECT i, 1 + i % 2, 'p' FROM generate_series(1, 10000) i;
UPDATE p SET k = 3 - k WHERE id IN (5000, 5001) RETURNING tableoid::regclass, *;
SELECT tableoid::regclass, count(*), sum(id) FROM p GROUP BY 1 ORDER BY 1;
DROP TABLE p;

-- Foreign keys of cold rows. The check of an INSERT leaves out a row that is dead by then, so the check of an
-- UPDATE of a row that this transaction inserted must be made though the key is the same: xmin says so.
CREATE TABLE pk (id int PRIMARY KEY);
INSERT INTO pk VALUES (1);
CREATE TABLE hf (id int REFERENCES pk DEFERRABLE INITIALLY DEFERRED, x int) USING heap;
CREATE TABLE cf (id int REFERENCES pk DEFERRABLE INITIALLY DEFERRED, x int) USING colcompress;
\set VERBOSITY sqlstate
BEGIN; INSERT INTO hf SELECT g, 0 FROM generate_series(1, 5) g; UPDATE hf SET x = 1; COMMIT;
BEGIN; INSERT INTO cf SELECT g, 0 FROM generate_series(1, 5) g; SELECT cold_rows('cf'); UPDATE cf SET x = 1; COMMIT;
BEGIN; SAVEPOINT a; INSERT INTO hf SELECT g, 0 FROM generate_series(1, 5) g; RELEASE a; UPDATE hf SET x = 1; COMMIT;
BEGIN; SAVEPOINT a; INSERT INTO cf SELECT g, 0 FROM generate_series(1, 5) g; RELEASE a; UPDATE cf SET x = 1; COMMIT;
BEGIN;
COPY cf FROM stdin;
1	0
7	0
\.
SELECT cold_rows('cf');
UPDATE cf SET x = 1;
COMMIT;
-- Deleted again, or with its parent there: nothing to object to.
BEGIN; INSERT INTO cf SELECT g, 0 FROM generate_series(1, 5) g; UPDATE cf SET x = 1; DELETE FROM cf WHERE id > 1; COMMIT;
SELECT * FROM cf;
TRUNCATE hf, cf;
-- An immediate key, and a trigger that comes before its check and updates the row.
ALTER TABLE hf ALTER CONSTRAINT hf_id_fkey NOT DEFERRABLE;
ALTER TABLE cf ALTER CONSTRAINT cf_id_fkey NOT DEFERRABLE;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I SET x = 1 WHERE id = $1 AND x = 0', tg_table_name) USING new.id;
    RETURN NULL;
END $$;
CREATE TRIGGER "A" AFTER INSERT ON hf FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TRIGGER "A" AFTER INSERT ON cf FOR EACH ROW EXECUTE FUNCTION touch();
INSERT INTO hf SELECT g, 0 FROM generate_series(1, 5) g;
INSERT INTO cf SELECT g, 0 FROM generate_series(1, 5) g;
INSERT INTO cf SELECT 1, 0 FROM generate_series(1, 5) g;
SELECT * FROM hf;
SELECT count(*), sum(x), cold_rows('cf') FROM cf;
\set VERBOSITY terse
DROP TABLE hf, cf, pk;

-- ON CONFLICT of a row that an earlier command of the transaction made cold.
CREATE TABLE u (id int PRIMARY KEY, x int) USING colcompress;
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO u SELECT g, 0 FROM generate_series(1, 5) g;
SELECT cold_rows('u');
INSERT INTO u VALUES (1, 7), (2, 7), (6, 7) ON CONFLICT (id) DO UPDATE SET x = excluded.x;
INSERT INTO u VALUES (3, 8), (7, 8) ON CONFLICT DO NOTHING;
SELECT * FROM u ORDER BY id;
SAVEPOINT a;
INSERT INTO u SELECT g, 0 FROM unnest(ARRAY[8, 9, 8]) g ON CONFLICT (id) DO UPDATE SET x = -1;
ROLLBACK TO a;
COMMIT;

-- System columns of OLD and NEW; xmin is this transaction's where it wrote the row.
CREATE FUNCTION tell_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% %: old at its place: %, old xmin % own: %, new at its place: %', tg_when, old.id,
        old.ctid = (SELECT place FROM places p WHERE p.id = old.id),
        CASE WHEN old.xmin = '2' THEN '2' END, old.xmin::text = pg_current_xact_id()::xid::text,
        CASE WHEN tg_op = 'UPDATE' AND tg_when = 'AFTER' THEN new.ctid = (SELECT ctid FROM u WHERE id = new.id) END;
    RETURN coalesce(new, old);
END $$;
CREATE TRIGGER b BEFORE UPDATE OR DELETE ON u FOR EACH ROW EXECUTE FUNCTION tell_place();
CREATE TRIGGER a AFTER UPDATE OR DELETE ON u FOR EACH ROW EXECUTE FUNCTION tell_place();
CREATE TEMP TABLE places AS SELECT id, ctid AS place FROM u WHERE ctid >= '(2147483648,0)';
UPDATE u SET x = 2 WHERE id = 4;
DELETE FROM u WHERE id = 5;
BEGIN;
INSERT INTO u SELECT g, 0 FROM generate_series(10, 15) g;
INSERT INTO places SELECT id, ctid FROM u WHERE id >= 10 AND ctid >= '(2147483648,0)';
SELECT count(*), bool_and(xmin::text = pg_current_xact_id()::xid::text) AS own FROM u WHERE id >= 10;
UPDATE u SET x = 2 WHERE id = 10;
DELETE FROM u WHERE id = 11;
DROP TRIGGER b ON u;
UPDATE u SET x = 2 WHERE id = 12;
DELETE FROM u WHERE id = 13;
COMMIT;
DELETE FROM u WHERE id = 14;
SELECT xmin FROM u WHERE id = 15;
DROP TABLE u;
