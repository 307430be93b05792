-- settle(): until every snapshot sees what has been written; sessions of other databases count, too.
-- repack(t): what colcompress_repack makes of a table once everything has settled.
-- stripes(t): the rows of each stripe.
\set ECHO none
CREATE PROCEDURE settle() LANGUAGE plpgsql AS $$
DECLARE last xid8 := pg_snapshot_xmax(pg_current_snapshot());
BEGIN
  WHILE pg_snapshot_xmin(pg_current_snapshot()) < last LOOP PERFORM pg_sleep(0.01); END LOOP;
END $$;
CREATE PROCEDURE repack(t regclass) LANGUAGE plpgsql AS 'BEGIN CALL settle(); CALL engine.colcompress_repack(t); CALL settle(); END';
CREATE FUNCTION stripes(t regclass) RETURNS TABLE (first_row bigint, row_count bigint) LANGUAGE sql AS
$$ SELECT first_row, row_count FROM engine.colcompress_stripes WHERE table_name = t ORDER BY 1 $$;
\set ECHO all
