-- DELETE and UPDATE of many rows of a stripe: bits in engine.delete_bitmap instead of tombstones, and the
-- same answers as heap's.
\set VERBOSITY terse
CREATE EXTENSION IF NOT EXISTS colonnade;
SET client_min_messages = warning;
CREATE TABLE h (id int PRIMARY KEY, k int, v text, n numeric);
CREATE TABLE c (LIKE h) USING colcompress WITH (stripe_row_limit = 5000, chunk_group_row_limit = 1000);
INSERT INTO h SELECT g, g % 17, 'row ' || g, g / 7.0 FROM generate_series(1, 20000) g;
INSERT INTO c SELECT * FROM h;
ALTER TABLE c ADD PRIMARY KEY (id);
CREATE INDEX ON h (k); CREATE INDEX ON c (k);
SELECT count(*) AS stripes, sum(row_count) AS cold FROM engine.colcompress_stripes WHERE table_name = 'c'::regclass;
-- What differs between the twins, by scans of several kinds and by index.
CREATE FUNCTION differences() RETURNS TABLE (way text, rows bigint) LANGUAGE plpgsql AS $$
BEGIN
    way := 'scan';
    SELECT count(*) INTO rows FROM ((TABLE h EXCEPT ALL TABLE c) UNION ALL (TABLE c EXCEPT ALL TABLE h)) d;
    IF rows > 0 THEN RETURN NEXT; END IF;
    way := 'vectorised';
    SELECT count(*) INTO rows FROM (SELECT count(*), sum(id), sum(n), min(v), max(v), count(*) FILTER (WHERE k = 3) FROM h
        EXCEPT SELECT count(*), sum(id), sum(n), min(v), max(v), count(*) FILTER (WHERE k = 3) FROM c) d;
    IF rows > 0 THEN RETURN NEXT; END IF;
    way := 'count';
    SELECT (SELECT count(*) FROM h) - (SELECT count(*) FROM c) INTO rows;
    IF rows <> 0 THEN RETURN NEXT; END IF;
    SET LOCAL enable_seqscan = off; SET LOCAL colonnade.enable_scan = off; SET LOCAL enable_bitmapscan = off;
    way := 'index';
    SELECT count(*) INTO rows FROM ((SELECT * FROM h WHERE id > 0 EXCEPT ALL SELECT * FROM c WHERE id > 0)
        UNION ALL (SELECT * FROM c WHERE id > 0 EXCEPT ALL SELECT * FROM h WHERE id > 0)) d;
    IF rows > 0 THEN RETURN NEXT; END IF;
    SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off;
    way := 'bitmap';
    SELECT count(*) INTO rows FROM (SELECT sum(id) FROM h WHERE k IN (3, 5) EXCEPT SELECT sum(id) FROM c WHERE k IN (3, 5)) d;
    IF rows > 0 THEN RETURN NEXT; END IF;
    RESET enable_seqscan; RESET colonnade.enable_scan; RESET enable_indexscan;
END $$;
-- Runs a statement on both, and tells what it said where that differs.
CREATE PROCEDURE alike(statement text) LANGUAGE plpgsql AS $$
DECLARE one int8; other int8;
BEGIN
    EXECUTE replace(statement, '$t', 'h'); GET DIAGNOSTICS one = ROW_COUNT;
    EXECUTE replace(statement, '$t', 'c'); GET DIAGNOSTICS other = ROW_COUNT;
    IF one <> other THEN RAISE WARNING '% rows on heap, % on columnar: %', one, other, statement; END IF;
END $$;
CREATE VIEW bitmaps AS SELECT count(*) > 0 AS bitmaps, coalesce(sum(bit_count(bits)), 0) AS dead, coalesce(sum(length(successors)) / 6, 0) AS moved
    FROM engine.delete_bitmap;
CREATE VIEW proxies AS SELECT count(*) < 400 AS few_proxies FROM engine.row_proxy;

CALL alike('DELETE FROM $t WHERE id % 2 = 0 AND id <= 12000');
SELECT * FROM differences(); SELECT * FROM proxies; SELECT bitmaps, dead > 5800 AS most FROM bitmaps;
CALL alike('UPDATE $t SET v = v || '' changed'', n = n + 1 WHERE id % 3 = 0');
SELECT * FROM differences(); SELECT * FROM proxies; SELECT moved > 4000 AS most_moved FROM bitmaps;
-- Rows that are dead, and their successors, again; a key that changes goes row by row.
CALL alike('UPDATE $t SET k = k + 1 WHERE id % 3 = 0');
CALL alike('UPDATE $t SET id = id + 100000 WHERE id BETWEEN 14000 AND 14100');
CALL alike('DELETE FROM $t WHERE id % 5 = 1');
SELECT * FROM differences();
-- Each row once, even where a join finds it many times.
CALL alike('UPDATE $t SET k = $t.k + 1 FROM generate_series(1, 3) x WHERE $t.id > 9000');
CALL alike('DELETE FROM $t USING generate_series(1, 3) x WHERE $t.id BETWEEN 18000 AND 18500');
SELECT * FROM differences();

-- Savepoints and exceptions: half of it is taken back.
BEGIN;
CALL alike('DELETE FROM $t WHERE id BETWEEN 1 AND 500');
SAVEPOINT a;
CALL alike('DELETE FROM $t WHERE id BETWEEN 400 AND 3000');
CALL alike('UPDATE $t SET v = ''inner'' WHERE id < 6000');
SELECT * FROM differences();
ROLLBACK TO a;
SELECT * FROM differences();
CALL alike('UPDATE $t SET v = ''after'' WHERE id < 4000');
SELECT * FROM differences();
ROLLBACK;
SELECT * FROM differences();

-- Triggers with statements and subtransactions inside the statement; some of them are rolled back.
CREATE TABLE seen (t name, id int, rows bigint);
CREATE SEQUENCE gone_h; CREATE SEQUENCE gone_c;
-- The statements see what is deleted so far: rows there and rows gone are always as many.
CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE gone bigint := nextval('gone_' || tg_table_name) - 1; n bigint;
BEGIN
    IF old.id % 100 = 7 THEN
        BEGIN
            EXECUTE format('SELECT count(*) FROM %I WHERE id < 8000', tg_table_name) INTO n;
            INSERT INTO seen VALUES (tg_table_name, old.id, n + gone);
            IF old.id % 200 = 107 THEN RAISE 'no'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END IF;
    RETURN old;
END $$;
CREATE TRIGGER look BEFORE DELETE ON h FOR EACH ROW EXECUTE FUNCTION count_rows();
CREATE TRIGGER look BEFORE DELETE ON c FOR EACH ROW EXECUTE FUNCTION count_rows();
CALL alike('DELETE FROM $t WHERE id BETWEEN 3000 AND 7000');
SELECT count(*) > 20 AS looked, count(DISTINCT rows) AS counts FROM seen;
SELECT * FROM differences();
DROP TRIGGER look ON h; DROP TRIGGER look ON c;

-- The same in one transaction that is rolled back to before and done again, with RETURNING and transition
-- tables.
CREATE TABLE sums (t name, what text, rows bigint, ids numeric);
CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO sums SELECT tg_table_name, tg_op, count(*), sum(id) FROM gone; RETURN NULL; END $$;
CREATE TRIGGER after_delete AFTER DELETE ON h REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION add_up();
CREATE TRIGGER after_delete AFTER DELETE ON c REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION add_up();
CALL alike('WITH d AS (SELECT 7 AS k) DELETE FROM $t USING d WHERE $t.k = d.k');
CALL alike('DELETE FROM $t WHERE id BETWEEN 8000 AND 8400');
SELECT count(*), count(DISTINCT (rows, ids)) FROM sums;
WITH d AS (DELETE FROM h WHERE id BETWEEN 9000 AND 9300 RETURNING id, v), e AS (DELETE FROM c WHERE id BETWEEN 9000 AND 9300 RETURNING id, v)
    SELECT (SELECT count(*) FROM d) = (SELECT count(*) FROM e) AS as_many, (SELECT count(*) FROM (TABLE d EXCEPT TABLE e) x) AS others;
SELECT * FROM differences();

-- A cursor that was open before goes on with its rows; one opened after does not have them.
BEGIN;
DECLARE before CURSOR FOR SELECT id FROM c WHERE id BETWEEN 10000 AND 19000;
FETCH 1 FROM before \gset first_
SELECT count(*) AS rows FROM c WHERE id BETWEEN 10000 AND 19000 \gset
DELETE FROM c WHERE id BETWEEN 10000 AND 19000;
SELECT count(*) FROM c WHERE id BETWEEN 10000 AND 19000;
MOVE FORWARD ALL FROM before \; SELECT :rows > 1000 AS many;
FETCH BACKWARD 1 FROM before \gset last_
SELECT :first_id BETWEEN 10000 AND 19000 AND :last_id BETWEEN 10000 AND 19000 AND :first_id <> :last_id AS alive;
ROLLBACK;
SELECT * FROM differences();

-- Foreign keys: cascades, and children that keep their parents.
CREATE TABLE child_h (id int REFERENCES h ON DELETE CASCADE);
CREATE TABLE child_c (id int REFERENCES c ON DELETE CASCADE) USING colcompress;
INSERT INTO child_h SELECT id FROM h WHERE id % 7 = 0 ORDER BY id; INSERT INTO child_c SELECT id FROM child_h;
CALL alike('DELETE FROM $t WHERE id BETWEEN 11000 AND 12500');
SELECT count(*) AS differ FROM ((TABLE child_h EXCEPT ALL TABLE child_c) UNION ALL (TABLE child_c EXCEPT ALL TABLE child_h)) d;
SELECT * FROM differences();

-- Two-phase commit, ANALYZE, samples, a new index, VACUUM, and a rewrite.
SET max_parallel_workers_per_gather = 0;
ANALYZE c;
SELECT abs(reltuples - (SELECT count(*) FROM c)) < 50 AS counted FROM pg_class WHERE relname = 'c';
SELECT (SELECT count(*) FROM c TABLESAMPLE BERNOULLI (100)) - (SELECT count(*) FROM h) AS missed;
CREATE INDEX by_v ON c (v);
SET enable_seqscan = off; SET colonnade.enable_scan = off;
SELECT (SELECT count(*) FROM c WHERE v >= '') - (SELECT count(*) FROM h) AS missed;
RESET enable_seqscan; RESET colonnade.enable_scan;
VACUUM c;
SELECT * FROM differences();
SELECT * FROM engine.verify('c');
-- VACUUM has taken the index entries of rows that are dead to everybody, and the planner counts the others.
CREATE EXTENSION pgstattuple;
VACUUM c; VACUUM c;
SELECT (SELECT tuple_count FROM pgstattuple('c_pkey')) - (SELECT count(*) FROM c) AS entries_too_many;
SELECT sum(row_count) > (SELECT count(*) FROM c WHERE ctid >= '(2147483648,1)') AS dead_rows_in_stripes FROM engine.colcompress_stripes
    WHERE table_name = 'c'::regclass;
CREATE FUNCTION expected_rows() RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM c' INTO plan; RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows'; END $$;
SELECT dead_rows = cold_rows - (SELECT count(*) FROM c WHERE ctid >= '(2147483648,1)') AS dead_counted, advice ~ 'drop \d+ dead rows' AS advised
    FROM engine.storage_health('c');
SELECT abs(expected_rows() - (SELECT count(*) FROM c)) < 50 AS estimated;
SELECT engine.colcompress_merge('c');
SELECT * FROM differences();
SELECT count(*) AS bitmaps_left FROM engine.delete_bitmap;
CALL alike('DELETE FROM $t WHERE id > 1000');
SELECT * FROM differences();
DROP TABLE child_c;
TRUNCATE c; INSERT INTO c SELECT * FROM h;
SELECT * FROM differences();
DROP TABLE c;
SELECT count(*) AS bitmaps_left FROM engine.delete_bitmap;
-- A stripe with many rows that were only locked is claimed, too, once enough rows were changed.
CREATE TABLE locked (k int, v int) USING colcompress WITH (packing = false);
INSERT INTO locked SELECT g, 0 FROM generate_series(1, 3000) g;
SELECT engine.colcompress_merge('locked');
BEGIN;
SELECT count(*) FROM (SELECT FROM locked FOR SHARE) x;
COMMIT;
DELETE FROM locked WHERE k <= 2500;
SELECT count(*) AS left, (SELECT count(*) > 0 FROM engine.delete_bitmap WHERE storage_id = engine.colcompress_relation_storageid('locked')) AS in_bulk
    FROM locked;
DROP TABLE locked;
-- COPY sends what is returned while the statement runs, and waits for who reads it: no stripe is claimed
-- meanwhile.
CREATE TABLE sent (k int) USING colcompress WITH (packing = false);
INSERT INTO sent SELECT g FROM generate_series(1, 1000) g;
SELECT engine.colcompress_merge('sent');
COPY (DELETE FROM sent WHERE k <= 600 RETURNING k) TO PROGRAM 'cat > /dev/null';
SELECT count(*) AS left, (SELECT count(*) > 0 FROM engine.delete_bitmap WHERE storage_id = engine.colcompress_relation_storageid('sent')) AS in_bulk FROM sent;
DROP TABLE sent;
-- Through a partitioned table, too; what an UPDATE moves to another partition it moves by itself.
CREATE TABLE parted (k int, part int, v int) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1) USING colcompress WITH (packing = false);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2) USING colcompress WITH (packing = false);
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES IN (3) USING heap;
INSERT INTO parted SELECT g, 1 + g % 2, 0 FROM generate_series(1, 6000) g;
SELECT engine.colcompress_merge('parted_1'), engine.colcompress_merge('parted_2');
CREATE FUNCTION in_bulk(OUT first bool, OUT second bool) LANGUAGE sql AS $$
SELECT EXISTS (SELECT FROM engine.delete_bitmap WHERE storage_id = engine.colcompress_relation_storageid('parted_1')),
       EXISTS (SELECT FROM engine.delete_bitmap WHERE storage_id = engine.colcompress_relation_storageid('parted_2')) $$;
BEGIN;
DELETE FROM parted WHERE part < 3 AND k % 3 = 0;
SELECT * FROM in_bulk();
SELECT part, count(*), sum(k), sum(v) FROM parted GROUP BY part ORDER BY part;
ROLLBACK;
BEGIN;
UPDATE parted SET v = k, part = CASE WHEN k % 100 = 0 THEN 3 WHEN k % 100 = 1 THEN 3 - part ELSE part END WHERE part < 3;
SELECT * FROM in_bulk();
SELECT part, count(*), sum(k), sum(v) FROM parted GROUP BY part ORDER BY part;
ROLLBACK;
SELECT part, count(*), sum(k), sum(v) FROM parted GROUP BY part ORDER BY part;
DROP TABLE parted;

-- Rows of a hundred stripes in turn: a stripe that was claimed stays so.
CREATE TABLE scattered (id int, v int) USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000);
INSERT INTO scattered SELECT g, 0 FROM generate_series(1, 100000) g;
CREATE TABLE shuffled AS SELECT g AS id FROM generate_series(1, 100000) g ORDER BY md5(g::text);
ANALYZE scattered, shuffled;
SET max_parallel_workers_per_gather = 0; SET enable_mergejoin = off; SET enable_nestloop = off;
SELECT count(*) AS before FROM engine.row_proxy \gset
UPDATE scattered s SET v = 1 FROM (SELECT id FROM shuffled ORDER BY md5(id::text) OFFSET 0) o WHERE o.id = s.id;
SELECT count(*) - :before < 3000 AS few_proxies FROM engine.row_proxy;
SELECT v, count(*) FROM scattered GROUP BY v ORDER BY v;
