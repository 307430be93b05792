-- CREATE EXTENSION where a schema engine exists: it is not taken over, and the error says what to do.
-- 18 adds a context: which line of the script it was.
\set SHOW_CONTEXT never
DROP EXTENSION colonnade;
\dn engine

-- ---- somebody's, with objects
CREATE ROLE schema_trap;
CREATE SCHEMA engine AUTHORIZATION schema_trap;
CREATE FUNCTION engine.colcompress_option(oid, name) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
CREATE EXTENSION colonnade;
\set VERBOSITY sqlstate
CREATE EXTENSION colonnade;
\set VERBOSITY default
CREATE EXTENSION colonnade SCHEMA engine;
CREATE EXTENSION colonnade VERSION '0.1';
SELECT count(*) FROM pg_am WHERE amname = 'colcompress';
-- what the hint says
ALTER SCHEMA engine RENAME TO application;
CREATE EXTENSION colonnade;
CREATE TABLE t (k int) USING colcompress;
SELECT pg_describe_object('pg_namespace'::regclass, 'engine'::regnamespace, 0), pg_get_userbyid(nspowner) = current_user AS mine FROM pg_namespace
    WHERE nspname = 'engine';
DROP EXTENSION colonnade CASCADE;

-- ---- the user's own, empty
CREATE SCHEMA engine;
CREATE EXTENSION colonnade;
DROP SCHEMA engine;
CREATE EXTENSION colonnade;

-- ---- other statements about schemas are nobody's business
CREATE SCHEMA engine;
CREATE SCHEMA IF NOT EXISTS engine;
BEGIN;
DROP EXTENSION colonnade;
CREATE SCHEMA engine;
CREATE SCHEMA engine;
ROLLBACK;
SELECT extname, nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'colonnade';
DROP SCHEMA application CASCADE;
DROP ROLE schema_trap;
