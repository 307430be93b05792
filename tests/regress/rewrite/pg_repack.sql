-- pg_repack is stopped at its first step where it would put a heap's file in place of stripes. What it does
-- is played here.
CREATE SCHEMA repack;
CREATE FUNCTION repack.repack_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TABLE c (id int PRIMARY KEY) USING colcompress;
CREATE TABLE h (id int PRIMARY KEY);
SHOW default_table_access_method;
CREATE TRIGGER repack_trigger AFTER INSERT OR DELETE OR UPDATE ON public.c FOR EACH ROW EXECUTE PROCEDURE repack.repack_trigger('id');
CREATE TRIGGER repack_trigger AFTER INSERT OR DELETE OR UPDATE ON public.h FOR EACH ROW EXECUTE PROCEDURE repack.repack_trigger('id');
CREATE TRIGGER repack_trigger AFTER INSERT ON nosuch FOR EACH ROW EXECUTE PROCEDURE repack.repack_trigger('id');
-- its new table is columnar
SET default_table_access_method = colcompress;
CREATE TRIGGER repack_trigger AFTER INSERT OR DELETE OR UPDATE ON public.c FOR EACH ROW EXECUTE PROCEDURE repack.repack_trigger('id');
RESET default_table_access_method;
-- other triggers are nobody's business
CREATE FUNCTION repack_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER mine AFTER INSERT ON c FOR EACH ROW EXECUTE FUNCTION repack_trigger();
