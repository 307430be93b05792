-- Many rows that somebody has locked cost a later look-up no more than its own row: what was too much to read
-- once is not read again for each.
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE t (id int PRIMARY KEY, v int) USING colcompress WITH (autovacuum_enabled = false);
INSERT INTO t SELECT g, g FROM generate_series(1, 20000) g;
SELECT count(*) AS cold FROM t WHERE ctid >= '(2147483648,1)';
SELECT count(*) AS locked FROM (SELECT 1 FROM t FOR UPDATE) l;
SELECT count(*) AS proxies FROM engine.row_proxy WHERE storage_id = engine.colcompress_relation_storageid('t');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION found(OUT n int) LANGUAGE plpgsql AS $$
DECLARE
    one int;
BEGIN
    n := 0;
    FOR key IN 1..3000 LOOP
        SELECT v INTO one FROM t WHERE id = key;
        IF FOUND THEN
            n := n + 1;
        END IF;
    END LOOP;
END $$;
SELECT sum(idx_tup_read) AS read_before FROM pg_stat_all_indexes WHERE schemaname = 'engine' AND relname = 'row_proxy' \gset
SELECT * FROM found();
SELECT pg_stat_force_next_flush();
SELECT sum(idx_tup_read) - :read_before < 100000 AS few_were_read, sum(idx_tup_read) - :read_before >= 3000 AS some_were
FROM pg_stat_all_indexes WHERE schemaname = 'engine' AND relname = 'row_proxy';
SELECT count(*) AS of_one_scan FROM t WHERE id > 0;
DROP TABLE t;
