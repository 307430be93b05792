-- What PostgreSQL 18 has and older versions have not. Answers stand beside heap's where a statement has any.
SELECT current_setting('server_version_num')::int >= 180000 AS since_18 \gset
\if :since_18
-- Virtual generated columns: nothing is stored of them.
CREATE TABLE heap_v (id int, a int, v int GENERATED ALWAYS AS (a * 2), s int GENERATED ALWAYS AS (a * 3) STORED, b text);
CREATE TABLE column_v (LIKE heap_v INCLUDING GENERATED) USING colcompress;
INSERT INTO heap_v (id, a, b) SELECT g, g % 1000, 't' || g FROM generate_series(1, 50000) g;
INSERT INTO column_v (id, a, b) SELECT id, a, b FROM heap_v ORDER BY id;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v), sum(s) FROM column_v WHERE v > 100;
SELECT count(*), sum(v), sum(s), min(v), max(v) FROM heap_v WHERE v > 100
UNION ALL SELECT count(*), sum(v), sum(s), min(v), max(v) FROM column_v WHERE v > 100;
ALTER TABLE heap_v ADD COLUMN w text GENERATED ALWAYS AS (b || 'x');
ALTER TABLE column_v ADD COLUMN w text GENERATED ALWAYS AS (b || 'x');
SELECT max(w), count(*) FROM heap_v WHERE w LIKE 't1%x' UNION ALL SELECT max(w), count(*) FROM column_v WHERE w LIKE 't1%x';
ALTER TABLE column_v SET (orderby = 'v');
UPDATE column_v SET a = a + 1 WHERE id <= 10;
UPDATE heap_v SET a = a + 1 WHERE id <= 10;
SELECT engine.colcompress_merge('column_v');
SELECT count(*) FROM (TABLE heap_v EXCEPT TABLE column_v) different;
SELECT * FROM engine.verify('column_v');

-- RETURNING old and new values of rows in stripes.
UPDATE column_v SET a = a + 1 WHERE id = 20000 RETURNING old.a, new.a, old.v, new.v, old.s, new.s;
DELETE FROM column_v WHERE id = 20001 RETURNING old.id, old.w, new.id;
INSERT INTO column_v (id, a) VALUES (70000, 5) RETURNING old.id, new.v;
MERGE INTO column_v c USING (VALUES (30000, 1), (80000, 2)) v(id, x) ON c.id = v.id
    WHEN MATCHED THEN UPDATE SET a = v.x WHEN NOT MATCHED THEN INSERT (id, a) VALUES (v.id, v.x)
    RETURNING merge_action(), old.a, new.a, c.id;

-- A NOT NULL that was not checked, and a CHECK that is not enforced, prove nothing.
CREATE TABLE unchecked (x int) USING colcompress;
INSERT INTO unchecked SELECT CASE WHEN g % 100 = 0 THEN NULL ELSE g END FROM generate_series(1, 20000) g;
ALTER TABLE unchecked ADD CONSTRAINT no_null NOT NULL x NOT VALID;
SELECT count(*) FROM column_v WHERE id NOT IN (SELECT x FROM unchecked);
ALTER TABLE unchecked ADD CONSTRAINT negative CHECK (x < 0) NOT ENFORCED;
SELECT count(*) FROM unchecked WHERE x > 0;
ALTER TABLE unchecked VALIDATE CONSTRAINT no_null;

-- Keys of periods.
CREATE TABLE periods (id int4range, valid daterange, PRIMARY KEY (id, valid WITHOUT OVERLAPS)) USING colcompress;
INSERT INTO periods SELECT int4range(g, g + 1), daterange('2020-01-01', '2021-01-01') FROM generate_series(1, 3000) g;
INSERT INTO periods VALUES ('[5,6)', daterange('2020-06-01', '2020-07-01'));
INSERT INTO periods VALUES ('[5,6)', daterange('2021-06-01', '2021-07-01'));
CREATE TABLE parts (id int4range, valid daterange, FOREIGN KEY (id, PERIOD valid) REFERENCES periods (id, PERIOD valid)) USING colcompress;
INSERT INTO parts VALUES ('[7,8)', daterange('2020-02-01', '2020-03-01'));
INSERT INTO parts VALUES ('[7,8)', daterange('2022-02-01', '2022-03-01'));
DELETE FROM periods WHERE id = '[7,8)';

-- Skip scan, and rows of a bitmap that has become lossy.
CREATE TABLE skipped (a int, b int) USING colcompress;
INSERT INTO skipped SELECT g % 5, g FROM generate_series(1, 100000) g;
CREATE INDEX ON skipped (a, b);
VACUUM ANALYZE skipped;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM skipped WHERE b = 777;
SELECT * FROM skipped WHERE b = 777;
RESET enable_seqscan;

-- A scan of ours that is switched off is one, as EXPLAIN shows.
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT max(a) FROM column_v;
RESET enable_seqscan;
\endif
