-- Transactions, savepoints and prepared transactions, over small changes and over loads.
CREATE TABLE a (id int, v text);
CREATE TABLE sums (n serial, what text, rows bigint, sum bigint);
CREATE PROCEDURE note(what text) LANGUAGE sql AS $$ INSERT INTO sums (what, rows, sum) SELECT what, count(*), sum(id) FROM a $$;
BEGIN; INSERT INTO a SELECT g, g FROM generate_series(1, 3000) g; CALL note('own rows'); ROLLBACK;
CALL note('after rollback'); SELECT count(*) FROM a;
BEGIN; INSERT INTO a SELECT g, g FROM generate_series(1, 3000) g; COMMIT;
SELECT count(*), sum(id) FROM a;
BEGIN;
INSERT INTO a SELECT g, g FROM generate_series(1, 20000) g;
SAVEPOINT one;
INSERT INTO a SELECT g, g FROM generate_series(100001, 120000) g;
SELECT count(*), sum(id) FROM a;
SAVEPOINT two;
INSERT INTO a SELECT g, g FROM generate_series(200001, 220000) g;
SELECT count(*), sum(id) FROM a;
ROLLBACK TO two;
SELECT count(*), sum(id) FROM a;
RELEASE two;
ROLLBACK TO one;
SELECT count(*), sum(id) FROM a;
INSERT INTO a VALUES (-1, 'after rollback to');
RELEASE one;
COMMIT;
SELECT count(*), sum(id) FROM a;
-- one statement that reads what it writes
INSERT INTO a SELECT id, v FROM a;
SELECT count(*), sum(id) FROM a;
WITH ins AS (INSERT INTO a SELECT g, 'cte' FROM generate_series(1, 15000) g RETURNING id) SELECT count(*), (SELECT count(*) FROM a) AS before FROM ins;
SELECT count(*), sum(id) FROM a;
-- errors in the middle of a load
INSERT INTO a SELECT g, CASE WHEN g = 19000 THEN (1 / (g - g))::text ELSE g::text END FROM generate_series(1, 20000) g;
INSERT INTO a SELECT (40000 - g)::int2, g FROM generate_series(1, 40000) g ORDER BY g DESC;
SELECT count(*), sum(id) FROM a;
DO $$
BEGIN
    INSERT INTO a SELECT g, 'outer' FROM generate_series(1, 12000) g;
    BEGIN
        INSERT INTO a SELECT g, 'inner' FROM generate_series(1, 12000) g;
        RAISE EXCEPTION 'take it back';
    EXCEPTION WHEN raise_exception THEN RAISE NOTICE 'inside: %', (SELECT count(*) FROM a);
    END;
    BEGIN
        INSERT INTO a SELECT g, 'kept' FROM generate_series(1, 12000) g;
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    FOR i IN 1..5 LOOP
        BEGIN INSERT INTO a VALUES (i, 'row'); IF i % 2 = 0 THEN PERFORM 1 / 0; END IF; EXCEPTION WHEN division_by_zero THEN NULL; END;
    END LOOP;
END $$;
SELECT v, count(*) FROM a WHERE v IN ('outer', 'inner', 'kept', 'row') GROUP BY v ORDER BY v;
-- command ids: a function that looks while rows are being written
CREATE FUNCTION so_far() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT count(*) FROM a WHERE v = 'counted'); END $$;
INSERT INTO a SELECT CASE WHEN g % 5000 = 0 THEN so_far() ELSE -5 END, 'counted' FROM generate_series(1, 20000) g;
SELECT id, count(*) FROM a WHERE v = 'counted' GROUP BY id ORDER BY id;
DO $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO a SELECT CASE WHEN g % 400 = 0 THEN so_far() ELSE -6 END, 'counted' FROM generate_series(1, 2000) g; END LOOP; END $$;
SELECT id, count(*) FROM a WHERE v = 'counted' GROUP BY id ORDER BY id;
-- two-phase commit
BEGIN; INSERT INTO a SELECT g, 'prepared' FROM generate_series(1, 20000) g; INSERT INTO a VALUES (1, 'prepared'); PREPARE TRANSACTION 'differential_1';
SELECT count(*) FROM a WHERE v = 'prepared';
COMMIT PREPARED 'differential_1';
SELECT count(*) FROM a WHERE v = 'prepared';
BEGIN; INSERT INTO a SELECT g, 'prepared 2' FROM generate_series(1, 20000) g; SAVEPOINT s; INSERT INTO a SELECT g, 'prepared 2' FROM generate_series(1, 20000) g; PREPARE TRANSACTION 'differential_2';
ROLLBACK PREPARED 'differential_2';
SELECT count(*) FROM a WHERE v = 'prepared 2';
-- procedures that commit on the way
CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..4 LOOP
        INSERT INTO a SELECT g, 'step ' || i FROM generate_series(1, 6000) g;
        IF i % 2 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;
CALL steps();
SELECT v, count(*) FROM a WHERE v LIKE 'step%' GROUP BY v ORDER BY v;
-- cursors keep their snapshot
BEGIN;
DECLARE c CURSOR FOR SELECT count(*) OVER () FROM a WHERE id = 1;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM a WHERE v = 'row' ORDER BY id;
INSERT INTO a SELECT 1, 'late' FROM generate_series(1, 15000) g;
FETCH 1 FROM c;
COMMIT;
FETCH ALL FROM h;
-- repeatable read and serializable with nobody else
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) > 0 FROM a; INSERT INTO a SELECT g, 'rr' FROM generate_series(1, 15000) g; SELECT count(*) FROM a WHERE v = 'rr'; COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO a SELECT g, 'ser' FROM generate_series(1, 15000) g; SELECT count(*) FROM a WHERE v = 'ser'; COMMIT;
-- TRUNCATE, DROP and CREATE in transactions
BEGIN; TRUNCATE a; SELECT count(*) FROM a; INSERT INTO a SELECT g, 'new' FROM generate_series(1, 15000) g; SELECT count(*) FROM a; ROLLBACK;
SELECT count(*) > 15000 FROM a;
BEGIN; INSERT INTO a SELECT g, 'gone' FROM generate_series(1, 15000) g; TRUNCATE a; INSERT INTO a VALUES (1, 'x'); COMMIT;
SELECT * FROM a;
BEGIN; SAVEPOINT s; TRUNCATE a; INSERT INTO a SELECT g, 's' FROM generate_series(1, 15000) g; ROLLBACK TO s; SELECT * FROM a; COMMIT;
BEGIN; CREATE TABLE fresh AS SELECT g AS id FROM generate_series(1, 20000) g; SELECT count(*), sum(id) FROM fresh; TRUNCATE fresh; INSERT INTO fresh SELECT g FROM generate_series(1, 20000) g; SELECT count(*) FROM fresh; COMMIT;
SELECT count(*), sum(id) FROM fresh;
BEGIN; DROP TABLE fresh; ROLLBACK; SELECT count(*) FROM fresh;
BEGIN; CREATE TABLE rolled (i int); INSERT INTO rolled SELECT g FROM generate_series(1, 20000) g; ROLLBACK; SELECT * FROM rolled;
SELECT what, rows, sum FROM sums ORDER BY n;
TRUNCATE a, fresh RESTART IDENTITY; SELECT count(*) FROM a;
-- unique checks across loads
CREATE TABLE u (id int PRIMARY KEY, v text);
INSERT INTO u SELECT g, g FROM generate_series(1, 20000) g;
INSERT INTO u VALUES (777, 'again');
INSERT INTO u SELECT g, g FROM generate_series(20001, 40000) g;
INSERT INTO u SELECT g, g FROM generate_series(39999, 60000) g;
INSERT INTO u SELECT g % 15000 + 100000, g FROM generate_series(1, 20000) g;
INSERT INTO u SELECT g, 'conflict' FROM generate_series(19990, 40010) g ON CONFLICT DO NOTHING;
SELECT count(*), sum(id), count(DISTINCT id) FROM u;
SELECT v FROM u WHERE id IN (1, 777, 20001, 40005, 40011) ORDER BY id;
COPY (SELECT g, g FROM generate_series(50000, 70000) g) TO '/dev/null';
BEGIN; INSERT INTO u SELECT g, 'back' FROM generate_series(100000, 120000) g; ROLLBACK; INSERT INTO u SELECT g, 'forth' FROM generate_series(100000, 120000) g;
SELECT count(*), sum(id) FROM u;
