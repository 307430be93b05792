-- Rows of engine.row_proxy: made for the rows that are locked or changed, for rows ahead where one is locked
-- after the other, and taken away by VACUUM where nobody needs them.
CREATE FUNCTION proxies(t regclass, OUT live int8, OUT dead int8) LANGUAGE sql AS
$$ SELECT count(*) FILTER (WHERE NOT p.dead), count(*) FILTER (WHERE p.dead) FROM engine.row_proxy p
    WHERE p.storage_id = engine.colcompress_relation_storageid(t) $$;
CREATE TABLE parent (id int PRIMARY KEY, n int, note text) USING colcompress WITH (stripe_row_limit = 25000);
INSERT INTO parent SELECT g, 0, 'row ' || g FROM generate_series(1, 100000) g;
SELECT engine.colcompress_merge('parent');
SELECT count(*) AS cold FROM parent WHERE ctid >= '(2147483648,1)';
VACUUM parent;
SELECT * FROM proxies('parent');

-- Locking all rows, and what is left of that.
BEGIN;
SELECT sum(id) FROM (SELECT id FROM parent FOR UPDATE) p;
SELECT * FROM proxies('parent');
COMMIT;
SELECT pg_relation_size('engine.row_proxy') AS size \gset
VACUUM parent;
SELECT * FROM proxies('parent');
VACUUM engine.row_proxy;
-- The second time takes no more room.
SELECT sum(id) FROM (SELECT id FROM parent FOR KEY SHARE) p;
VACUUM parent;
VACUUM engine.row_proxy;
SELECT sum(id) FROM (SELECT id FROM parent ORDER BY id DESC FOR UPDATE) p;
SELECT pg_relation_size('engine.row_proxy') <= :size * 1.1 AS used_again, live > 0 AS live FROM proxies('parent');
-- Pages that everybody sees in full, as their own vacuum leaves them.
VACUUM (FREEZE) engine.row_proxy;
VACUUM parent;
SELECT * FROM proxies('parent');
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(*) FROM engine.row_proxy WHERE storage_id = engine.colcompress_relation_storageid('parent');
RESET enable_seqscan; RESET enable_bitmapscan;

-- Few rows far apart: no more proxies than rows.
SELECT count(*) FROM (SELECT FROM parent WHERE id % 10000 = 0 FOR UPDATE) p;
SELECT * FROM proxies('parent');
-- Foreign keys, with rollbacks in between: rows one after the other, and the same again.
CREATE TABLE child (id int REFERENCES parent, other int REFERENCES parent) USING colcompress;
BEGIN;
INSERT INTO child SELECT g, 100001 - g FROM generate_series(1, 1000) g;
SAVEPOINT a;
INSERT INTO child SELECT g, g FROM generate_series(1001, 2000) g;
ROLLBACK TO a;
INSERT INTO child SELECT g, g FROM generate_series(1001, 2000) g;
COMMIT;
SELECT live BETWEEN 3000 AND 6000 AS live, dead FROM proxies('parent');
-- What is dead stays so, what was updated and rolled back is as it was.
BEGIN;
UPDATE parent SET n = 1 WHERE id = 5;
MERGE INTO parent p USING (SELECT generate_series(3001, 3100) AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE;
ROLLBACK;
UPDATE parent SET n = 2 WHERE id = 6;
MERGE INTO parent p USING (SELECT generate_series(4001, 4100) AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE;
VACUUM parent;
SELECT live <= 101 AS live, dead FROM proxies('parent');
SELECT count(*), sum(n), min(n) FROM parent;
DELETE FROM parent WHERE id = 7;
SELECT * FROM engine.verify('parent');
-- An update that is rolled back leaves a version of the proxy beside it on its page: what finds that void
-- must not take the proxy itself for void.
SET enable_seqscan = off; SET enable_bitmapscan = off; SET colonnade.enable_scan = off;
SELECT id FROM parent WHERE id = 8 FOR UPDATE;
BEGIN;
UPDATE parent SET n = 3 WHERE id = 8;
ROLLBACK;
SELECT id, n FROM parent WHERE id = 8;
SELECT id, n FROM parent WHERE id = 8;
UPDATE parent SET n = 4 WHERE id = 8;
SELECT id, n FROM parent WHERE id = 8;
RESET enable_seqscan; RESET enable_bitmapscan; RESET colonnade.enable_scan;
SELECT id, n FROM parent WHERE id = 8;
-- And what was rolled back in bulk is not walked over again and again.
DO $$ BEGIN
    FOR i IN 1 .. 300 LOOP
        BEGIN
            DELETE FROM parent WHERE id BETWEEN 10001 AND 10060;
            RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN
        END;
    END LOOP;
END $$;
DELETE FROM parent WHERE id BETWEEN 10001 AND 10060;
SELECT count(*), sum(n), min(n) FROM parent;
-- Rows whose stripes are gone.
SELECT count(*) FROM (SELECT FROM parent WHERE id BETWEEN 5000 AND 9000 FOR UPDATE) p;
SELECT engine.colcompress_merge('parent');
VACUUM parent;
SELECT * FROM proxies('parent');
SELECT count(*) FROM (SELECT FROM parent FOR UPDATE) p;
REINDEX TABLE engine.row_proxy;
DROP TABLE child;
DROP TABLE parent;
SELECT count(*) FROM engine.row_proxy;
