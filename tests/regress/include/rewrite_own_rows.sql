-- By a statement, in the setting test.statement, of a table of :method. What one statement sees does not
-- change because a function that it calls rewrites the table, and no other.
\set ECHO none
\t on
CREATE TABLE t (id int, s text) USING :method;
ALTER TABLE t SET (autovacuum_enabled = off);
INSERT INTO t SELECT g, 'old' FROM generate_series(1, 3000) g;
INSERT INTO t SELECT g, 'old hot' FROM generate_series(3001, 3010) g;
CREATE UNIQUE INDEX t_id ON t (id);
CREATE FUNCTION rewrite() RETURNS text LANGUAGE plpgsql AS 'BEGIN EXECUTE current_setting(''test.statement''); RETURN ''rewritten''; END';
CREATE FUNCTION insert_some(a int, b int) RETURNS text LANGUAGE plpgsql AS
    'BEGIN INSERT INTO t SELECT g, ''by a function'' FROM generate_series(a, b) g; RETURN ''inserted''; END';
CREATE FUNCTION delete_some(a int, b int) RETURNS text LANGUAGE plpgsql AS 'BEGIN DELETE FROM t WHERE id BETWEEN a AND b; RETURN ''deleted''; END';
CREATE FUNCTION update_some(a int, b int) RETURNS text LANGUAGE plpgsql AS
    'BEGIN UPDATE t SET s = s || ''!'' WHERE id BETWEEN a AND b; RETURN ''updated''; END';
CREATE FUNCTION seen() RETURNS text STABLE LANGUAGE plpgsql AS
  'BEGIN RETURN (SELECT string_agg(s || '': '' || n, '', '' ORDER BY s) FROM (SELECT s, count(*) AS n FROM t GROUP BY s) g); END';
-- Rows of commands before, of this one, deaths of both.
BEGIN;
INSERT INTO t SELECT g, 'many' FROM generate_series(10001, 12000) g;
INSERT INTO t VALUES (20001, 'one');
INSERT INTO t VALUES (20002, 'two');
UPDATE t SET s = s || '!' WHERE id IN (1, 3001, 10001, 20001);
DELETE FROM t WHERE id IN (2, 3002, 10002, 20002);
SELECT 'one statement', rewrite(), seen();
SELECT 'later', seen();
SELECT 'new rows', insert_some(30001, 32000), insert_some(33001, 33002), rewrite(), seen(), delete_some(30001, 30500), rewrite(), seen(),
    update_some(31001, 33001), rewrite(), seen();
SELECT 'later', seen();
SELECT 'deaths', delete_some(3, 500), delete_some(3003, 3004), delete_some(10003, 11000), rewrite(), seen(), update_some(501, 600),
    update_some(3005, 3006), rewrite(), seen();
SELECT 'later', seen();
COMMIT;
SELECT 'committed', seen();
-- A cursor that is older.
BEGIN;
DECLARE c CURSOR FOR SELECT 'cursor', seen() FROM generate_series(1, 9);
FETCH 1 FROM c;
INSERT INTO t SELECT g, 'after the cursor' FROM generate_series(40001, 42000) g;
INSERT INTO t VALUES (43001, 'after it');
DELETE FROM t WHERE id BETWEEN 700 AND 1800 OR id IN (12000, 33002);
SELECT rewrite(), seen();
FETCH 1 FROM c;
SELECT insert_some(44001, 44002), rewrite(), seen();
FETCH 1 FROM c;
COMMIT;
SELECT 'committed', seen();
-- Savepoints.
BEGIN;
INSERT INTO t VALUES (50001, 'outer');
SAVEPOINT a;
INSERT INTO t SELECT g, 'inner' FROM generate_series(51001, 52500) g;
DELETE FROM t WHERE id > 41000 AND id < 50000;
SAVEPOINT b;
SELECT 'inner', rewrite(), seen();
RELEASE b;
SELECT 'released', seen();
ROLLBACK TO a;
SELECT 'rolled back', seen(), rewrite(), seen();
SAVEPOINT c;
DELETE FROM t;
ROLLBACK TO c;
SELECT 'not deleted', rewrite(), seen();
COMMIT;
SELECT 'committed', seen();
-- REPEATABLE READ.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 'repeatable', seen();
DELETE FROM t WHERE s LIKE 'by a function%';
INSERT INTO t VALUES (60001, 'repeatable');
SELECT 'repeatable', rewrite(), seen();
SELECT 'later', seen(), delete_some(40001, 41000), rewrite(), seen();
COMMIT;
SELECT 'committed', seen();
SET enable_seqscan = off;
SELECT id, s FROM t WHERE id IN (1, 2, 3001, 40001, 41500, 60001) ORDER BY id;
RESET enable_seqscan;
DROP TABLE t;
DROP FUNCTION rewrite, insert_some, delete_some, update_some, seen;
\t off
\set ECHO all
