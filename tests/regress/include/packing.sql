-- repack(t): what colcompress_repack makes of a table once everything has settled.
-- stripes(t): the rows of each stripe.
\set ECHO none
CREATE PROCEDURE repack(t regclass) LANGUAGE plpgsql AS 'BEGIN CALL harness.settle(); CALL engine.colcompress_repack(t); CALL harness.settle(); END';
CREATE FUNCTION stripes(t regclass) RETURNS TABLE (first_row bigint, row_count bigint) LANGUAGE sql AS
$$ SELECT first_row, row_count FROM engine.colcompress_stripes WHERE table_name = t ORDER BY 1 $$;
\set ECHO all
