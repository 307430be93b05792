-- The extension is installed, preloaded, and gives back what it takes: dropping it leaves nothing behind.
SELECT extname, extversion, extrelocatable FROM pg_extension WHERE extname = 'colonnade';
SELECT current_setting('shared_preload_libraries');
DROP EXTENSION colonnade;
SELECT count(*) FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid WHERE e.extname = 'colonnade';
SELECT nspname FROM pg_namespace WHERE nspname = 'engine';
CREATE EXTENSION colonnade;
SELECT extname FROM pg_extension WHERE extname = 'colonnade';
