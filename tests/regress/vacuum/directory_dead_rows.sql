-- A row of the directory that is dead to everybody may lose its index entry before it goes itself (by the
-- server's deletion of index entries, or REINDEX): VACUUM frees the pages of its stripe all the same.
\i include/packing.sql
SET colonnade.packing = off;
SET colonnade.stripe_threshold_rows = 100;
CREATE TABLE small (a int, b text) USING colcompress;
DO $$ BEGIN FOR i IN 0..7 LOOP INSERT INTO small SELECT g, 'row ' || g FROM generate_series(i * 1000, i * 1000 + 999) g; END LOOP; END $$;
CALL harness.settle();
CALL engine.colcompress_repack('small');
SELECT count(*) AS stripes FROM engine.colcompress_stripes WHERE table_name = 'small'::regclass;
CALL harness.settle();
REINDEX TABLE engine.stripe;
VACUUM small;
SELECT kind, count(*) FROM engine.verify('small') GROUP BY 1;
INSERT INTO small SELECT g, 'row ' || g FROM generate_series(8000, 10999) g;
SELECT count(*), sum(a) FROM small;
SELECT kind, count(*) FROM engine.verify('small') GROUP BY 1;
