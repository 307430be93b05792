-- The extension is installed, preloaded, and gives back what it takes: dropping it leaves nothing behind.
SELECT extname, extversion, extrelocatable FROM pg_extension WHERE extname = 'colonnade';
SELECT current_setting('shared_preload_libraries') ~ '(^|, )[$]libdir/colonnade(,|$)' AS preloaded;
DROP EXTENSION colonnade;
SELECT count(*) FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid WHERE e.extname = 'colonnade';
SELECT nspname FROM pg_namespace WHERE nspname = 'engine';
-- What others have put into the schema that it is created from is not used by its views.
CREATE FUNCTION planted(regproc, regprocedure) RETURNS bool LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'planted, as %', current_user; END$$;
CREATE OPERATOR = (LEFTARG = regproc, RIGHTARG = regprocedure, FUNCTION = planted);
CREATE EXTENSION colonnade;
-- A table that is not there any more has no health.
SELECT engine.storage_health(4294967295::oid::regclass) IS NULL AS none;
SELECT (SELECT count(*) FROM engine.colcompress_options) AS options, (SELECT count(*) FROM engine.colcompress_stripes) AS stripes,
    (SELECT count(*) FROM engine.storage_health) AS health;
DROP OPERATOR = (regproc, regprocedure);
DROP FUNCTION planted;
SELECT extname FROM pg_extension WHERE extname = 'colonnade';
