-- Who sees which options, and what wrong names get.
CREATE TABLE mine (k int, v text) USING colcompress WITH (orderby = 'k');
CREATE TABLE plain (k int);
CREATE VIEW seen AS SELECT 1 AS one;
CREATE TABLE parts (k int) PARTITION BY RANGE (k);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10) USING colcompress;

-- ---- names that no option has, relations that have none
\set VERBOSITY default
SELECT engine.colcompress_option('mine', 'orderby'), engine.colcompress_option('mine', 'compression'), engine.colcompress_option('part', 'orderby') IS NULL;
SELECT engine.colcompress_option('mine', 'wrong');
SELECT engine.colcompress_option('mine', 'Compression');
SELECT engine.colcompress_option('plain', 'compression');
SELECT engine.colcompress_option('plain', 'wrong');
SELECT engine.colcompress_option('seen', 'compression');
SELECT engine.colcompress_option('parts', 'compression');
SELECT engine.colcompress_option('nosuch', 'compression');
-- a table that is gone, as in the view beside DROP TABLE
SELECT engine.colcompress_option(4294967295::oid::regclass, 'compression') IS NULL AS gone;
SELECT engine.colcompress_option(NULL, 'compression') IS NULL, engine.colcompress_option('mine', NULL) IS NULL;
-- one way of naming tables
SELECT engine.alter_colcompress_table_set('plain', packing => false);
SELECT engine.colcompress_merge('plain');
SELECT engine.verify('plain');

-- ---- conditions on the view ask only tables of ours
SELECT table_name, orderby FROM engine.colcompress_options WHERE compression = 'zstd' AND packing_rows > 5 AND table_name::text ~ 'mine|part' ORDER BY 1::text;

-- ---- what a role may do something with
CREATE ROLE rights_none;
CREATE ROLE rights_owner;
CREATE ROLE rights_member IN ROLE rights_owner;
CREATE ROLE rights_insert;
CREATE ROLE rights_column;
CREATE TABLE owned (k int) USING colcompress;
ALTER TABLE owned OWNER TO rights_owner;
CREATE MATERIALIZED VIEW summary USING colcompress AS SELECT 1 AS k;
GRANT INSERT ON mine TO rights_insert;
GRANT SELECT (v) ON mine TO rights_column;
GRANT TRIGGER ON summary TO rights_column;
CREATE FUNCTION sees(who name) RETURNS text LANGUAGE plpgsql AS $$
DECLARE names text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', who);
    SELECT string_agg(table_name::text, ', ' ORDER BY table_name::text COLLATE "C") INTO names FROM engine.colcompress_options;
    RESET ROLE;
    RETURN names;
END $$;
SELECT who, sees(who) FROM unnest('{rights_none,rights_owner,rights_member,rights_insert,rights_column}'::name[]) who;
SELECT sees(current_user);
-- the same tables as information_schema has for them, which leaves out materialized views
SET ROLE rights_column;
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
RESET ROLE;
GRANT SELECT ON mine TO PUBLIC;
SELECT sees('rights_none');

-- ---- what is for tests only is no setting that users find
SELECT count(*) FROM pg_settings WHERE name LIKE 'colonnade.packing\_stop%';
SET ROLE rights_none;
\set VERBOSITY sqlstate
SHOW colonnade.packing_stop_at;
\set VERBOSITY default
SET colonnade.packing_stop_at = 1;
RESET ROLE;
DROP OWNED BY rights_none, rights_owner, rights_member, rights_insert, rights_column;
DROP ROLE rights_none, rights_owner, rights_member, rights_insert, rights_column;
