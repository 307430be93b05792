-- Names of storage_engine beside those that other tests have: docs/from-storage-engine.md is run as a whole by
-- tests/documents.py, so here is what each does.
SET colonnade.stripe_threshold_rows = 1;
CREATE TABLE c (k int, v int) USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000, packing = off);
INSERT INTO c SELECT g, g FROM generate_series(1, 3000) g;
CREATE TABLE r (k int, v int) USING rowcompress WITH (batch_size = 1000, orderby = 'k', packing = off);
INSERT INTO r SELECT g, g FROM generate_series(1, 3000) g;
SELECT table_name, storage_id = engine.colcompress_relation_storageid('c') AS own, stripe_num, file_offset = first_block * 8192 AS place, data_length = byte_length AS length, first_row_number, row_count
FROM engine.colcompress_stripes ORDER BY first_row;
SELECT table_name, storage_id = engine.rowcompress_relation_storageid(relation => 'r') AS own, batch_num, file_offset = first_block * 8192 AS place, data_length = byte_length AS length, first_row_number, row_count
FROM engine.rowcompress_batches ORDER BY first_row;
-- Rows of a stripe by their numbers.
SELECT count(*), count(DISTINCT k) FROM c JOIN (SELECT engine.row_number_to_tid(first_row + g) AS place FROM engine.colcompress_stripes, generate_series(0, row_count - 1) g) n ON c.ctid = n.place;
SELECT engine.row_number_to_tid(0), engine.row_number_to_tid(255), engine.row_number_to_tid(256), engine.row_number_to_tid(549755813887);
SELECT engine.row_number_to_tid(-1);
-- What a repack writes anew.
DELETE FROM c WHERE k <= 50 OR k BETWEEN 1001 AND 1150;
SELECT stripes, dirty_stripes, dead_rows FROM engine.storage_health('c');
SELECT * FROM engine.storage_maintenance_stats('c');
CALL harness.settle();
CALL engine.colcompress_repack('c', 0.8);
SELECT row_count FROM engine.colcompress_stripes ORDER BY first_row;
CALL harness.settle();
CALL engine.colcompress_repack('c', 0.9);
SELECT row_count FROM engine.colcompress_stripes ORDER BY first_row;
CALL harness.settle();
CALL engine.colcompress_repack('c', min_fill_ratio => 1);
SELECT row_count FROM engine.colcompress_stripes ORDER BY first_row;
DELETE FROM c WHERE k = 2500 OR k = 2900;
CALL harness.settle();
CALL engine.colcompress_repack('c', 0);
CALL engine.colcompress_repack('c', NULL);
SELECT stripes, dirty_stripes, dead_rows FROM engine.storage_health('c');
CALL engine.colcompress_repack('c', 1.01);
CALL engine.colcompress_repack('c', -0.1);
CALL engine.colcompress_repack('c', 'NaN');
-- Updates with the caller's clauses and rights.
CALL engine.smart_update('c', 'v = -v', 'k % 100 = 0');
CALL engine.smart_update('r', 'v = v + 1, k = k');
CALL engine.colcompress_bulk_update('c', 'v = 0', where_clause => 'v < 0', batch_size => 10, skip_columns => '{k}');
SELECT count(*), sum(v), count(*) FILTER (WHERE v = 0) FROM c;
SELECT count(*), sum(v) FROM r;
-- A comment in one clause does not reach the next.
CALL engine.smart_update('c', 'v = v + 1 -- a comment', 'k = 2000 -- another');
CALL engine.smart_update('c', 'nothing = 1');
CREATE ROLE storage_engine_stranger;
SET ROLE storage_engine_stranger;
CALL engine.smart_update('c', 'v = 1');
CALL engine.storage_maintenance_auto();
CALL engine.colcompress_merge_incremental('c');
RESET ROLE;
-- Maintenance: what is needed is done, and named.
CREATE TABLE "Needy" (k int) USING colcompress WITH (packing = off);
INSERT INTO "Needy" SELECT generate_series(1, 500000);
DELETE FROM "Needy" WHERE k % 2 = 0;
SELECT total_units, dirty_units, dirty_ratio, live_rows, tombstone_rows, recommended_action FROM engine.storage_maintenance_stats('"Needy"');
SELECT status, reason IS NOT NULL AS reason, suggested_command, priority FROM engine.storage_maintenance_recommendation('"Needy"');
CALL engine.storage_maintenance_auto(dry_run => true, am_filter => 'rowcompress');
CALL engine.storage_maintenance_auto(dry_run => true, max_tables => 0);
CALL engine.storage_maintenance_auto(dry_run => true);
SELECT dirty_units FROM engine.storage_maintenance_stats('"Needy"');
CALL harness.settle();
CALL engine.storage_maintenance_auto(max_tables => 1, am_filter => 'colcompress', p_verbose => true);
SELECT dirty_units, recommended_action FROM engine.storage_maintenance_stats('"Needy"');
VACUUM "Needy";
SELECT * FROM engine.storage_maintenance_recommendation('"Needy"');
CALL harness.settle();
CALL engine.storage_maintenance_auto();
BEGIN;
CALL engine.storage_maintenance_auto();
COMMIT;
CREATE TABLE h (k int);
SELECT * FROM engine.storage_maintenance_stats('h');
CALL harness.settle();
CALL engine.rowcompress_merge_incremental('r');
SELECT hot_rows, dirty_stripes FROM engine.storage_health('r');
SELECT engine.ensure_am_depends_catalog();
-- What this session has read.
SELECT engine.rowcompress_reset_scan_stats();
SELECT count(v) FROM r WHERE k > 2900;
SELECT count(*) FROM c;
SELECT * FROM engine.rowcompress_scan_stats();
SET colonnade.enable_vectorised = off;
SELECT count(v) FROM r;
SELECT * FROM engine.rowcompress_scan_stats();
CREATE TABLE s USING rowcompress AS SELECT * FROM r;
SELECT count(v) FROM s;
SELECT table_name FROM engine.rowcompress_scan_stats() ORDER BY 1;
SELECT engine.rowcompress_reset_scan_stats('r');
SELECT table_name FROM engine.rowcompress_scan_stats() ORDER BY 1;
DROP TABLE s;
SELECT table_name FROM engine.rowcompress_scan_stats() ORDER BY 1;
DROP ROLE storage_engine_stranger;
