-- Tables of many shapes under the scan node: partitions, inheritance, changed columns, empty tables, own
-- writes, DML over hot rows.
\i include/scan_twins.sql
-- partitions, one of them heap, columns in another order
CREATE TABLE parts (id int8, few text, d date) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (2000) USING colcompress;
CREATE TABLE parts_2 (d date, gone int, few text, id int8) USING colcompress;
ALTER TABLE parts_2 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (2000) TO (4000);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (4000) TO (MAXVALUE) USING heap;
INSERT INTO parts SELECT id, few, d FROM heap_rows;
ANALYZE parts;
SET colonnade.vectorised_min_rows = 0;
EXPLAIN (COSTS OFF) SELECT * FROM parts WHERE id < 3000 AND few = 'red';
SELECT * FROM differences(ARRAY(SELECT replace(q, '{t}', '(SELECT id, few, d FROM {t}) s') FROM unnest(ARRAY[
    'SELECT * FROM {t} WHERE id < 3000 AND few = ''red''', 'SELECT count(*), min(d), max(d) FROM {t}']) q));
SELECT count(*), sum(hashtextextended(p::text, 0)) = (SELECT sum(hashtextextended(h::text, 0)) FROM (SELECT id, few, d FROM heap_rows) h) AS same
    FROM (SELECT id, few, d FROM parts) p;
SELECT tableoid::regclass, count(*) FROM parts WHERE few = 'red' GROUP BY 1 ORDER BY 1;
-- inheritance
CREATE TABLE parent (id int8, few text) USING colcompress;
CREATE TABLE child (extra int) INHERITS (parent) USING colcompress;
INSERT INTO parent SELECT id, few FROM heap_rows WHERE id <= 3000;
INSERT INTO child SELECT id, few, 1 FROM heap_rows WHERE id > 3000;
SELECT tableoid::regclass, count(*), sum(id) FROM parent WHERE few = 'red' GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM ONLY parent;
-- columns that come, go and change
CREATE TABLE shape (a int, b text, c int) USING colcompress WITH (stripe_row_limit = 1000);
INSERT INTO shape SELECT g, 'b' || g % 10, g % 7 FROM generate_series(1, 2500) g;
ALTER TABLE shape ADD COLUMN d int, ADD COLUMN e text DEFAULT 'old', ADD COLUMN f numeric DEFAULT 1.50 NOT NULL;
ALTER TABLE shape DROP COLUMN b;
INSERT INTO shape SELECT g, g % 7, g, 'new' || g % 3, g FROM generate_series(2501, 5000) g;
INSERT INTO shape VALUES (5001, 1, NULL, DEFAULT, DEFAULT);
SELECT count(*), count(d), count(*) FILTER (WHERE e = 'old'), sum(f) FROM shape;
SELECT count(*), min(a), max(a) FROM shape WHERE e = 'old';
SELECT count(*), min(a), max(a) FROM shape WHERE e LIKE 'new1%' AND f > 2600;
SELECT count(*), min(a), max(a) FROM shape WHERE d IS NULL;
SELECT count(*), min(a), max(a) FROM shape WHERE d IS NOT NULL OR f = 1.5;
SELECT s FROM shape s WHERE a IN (1, 2501, 5001) ORDER BY a;
SELECT scans('SELECT * FROM shape WHERE a = 17 AND e = ''old''', 'Stripes', 'Rows Removed by Filter');
ALTER TABLE shape ALTER COLUMN a TYPE oid USING a::oid;
SELECT count(*) FROM shape WHERE a < 10;
ALTER TABLE shape ALTER COLUMN c TYPE numeric, ALTER COLUMN e TYPE varchar(10);
SELECT count(*), sum(c) FROM shape WHERE c = 3 AND e <> 'old';
-- no rows, and only hot ones
CREATE TABLE empty (a int, b text) USING colcompress;
SELECT count(*), max(b) FROM empty WHERE a > 1;
SELECT scans('SELECT * FROM empty WHERE a > 1', 'Stripes');
INSERT INTO empty VALUES (1, 'one'), (2, 'two');
SELECT * FROM empty WHERE b LIKE 't%';
SELECT scans('SELECT * FROM empty WHERE a > 1', 'Stripes', 'Hot Rows', 'Rows Removed by Chunk Filter');
TRUNCATE empty;
SELECT * FROM empty;
-- no columns at all
CREATE TABLE bare () USING colcompress;
INSERT INTO bare SELECT FROM generate_series(1, 3000);
SELECT count(*) FROM bare;
SELECT FROM bare LIMIT 2;
-- own writes, in and out of transactions and functions; a command does not see its own rows
CREATE TABLE own (a int) USING colcompress;
BEGIN;
INSERT INTO own SELECT g FROM generate_series(1, 5000) g;
SELECT count(*), sum(a) FROM own WHERE a > 10;
SAVEPOINT s;
INSERT INTO own SELECT a + 5000 FROM own;
SELECT count(*) FROM own;
ROLLBACK TO s;
SELECT count(*) FROM own;
INSERT INTO own SELECT a FROM own WHERE a <= 3 RETURNING a;
SELECT count(*) FROM own;
ROLLBACK;
SELECT count(*) FROM own;
-- UPDATE and DELETE of hot rows through the node
CREATE TABLE dml (a int, b text) USING colcompress;
INSERT INTO dml VALUES (1, 'one'), (2, 'two'), (3, 'three');
EXPLAIN (COSTS OFF) UPDATE dml SET b = dml.b || '!' FROM (VALUES (1), (2)) v (x) WHERE dml.a = v.x AND dml.a < 3;
UPDATE dml SET b = dml.b || '!' FROM (VALUES (1), (2)) v (x) WHERE dml.a = v.x AND dml.a < 3 RETURNING dml.*;
DELETE FROM dml USING (VALUES (1), (2)) v (x) WHERE dml.a = v.x AND dml.b LIKE 'two%' RETURNING dml.a;
SELECT * FROM dml ORDER BY a FOR UPDATE;
SELECT * FROM dml ORDER BY a;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM dml WHERE a = 3;
FETCH c;
UPDATE dml SET b = 'current' WHERE CURRENT OF c;
COMMIT;
SELECT * FROM dml ORDER BY a;
MERGE INTO dml USING (VALUES (1, 'x'), (9, 'y')) v (a, b) ON dml.a = v.a
    WHEN MATCHED THEN UPDATE SET b = v.b WHEN NOT MATCHED THEN INSERT VALUES (v.a, v.b);
SELECT * FROM dml ORDER BY a;
-- materialised views, temporary and unlogged tables
CREATE MATERIALIZED VIEW mv USING colcompress AS SELECT id, few FROM heap_rows;
SELECT count(*) FROM mv WHERE id > 3000 AND few = 'blue';
CREATE TEMP TABLE tmp USING colcompress AS SELECT id, few FROM heap_rows;
SELECT count(*) FROM tmp WHERE id > 3000 AND few = 'blue';
CREATE UNLOGGED TABLE unl USING colcompress AS SELECT id, few FROM heap_rows;
SELECT count(*) FROM unl WHERE id > 3000 AND few = 'blue';
SELECT count(*) FROM heap_rows WHERE id > 3000 AND few = 'blue';
