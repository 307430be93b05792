\echo Use "ALTER EXTENSION colonnade UPDATE TO '0.2'" to load this file. \quit

-- Version 0.1 is released: colonnade--0.1.sql never changes any more. CREATE EXTENSION runs it and then this file,
-- so a new installation and an updated one have the same objects.

-- ---------------------------------------------------------------------------------------------------------------
-- engine.storage_health tells what is needed from what is possible
-- ---------------------------------------------------------------------------------------------------------------

-- The view keeps its columns and what is built on it: it lets go of the old function before that goes.
CREATE OR REPLACE VIEW engine.storage_health WITH (security_barrier) AS
SELECT NULL::regclass AS table_name, n AS hot_rows, n AS cold_rows, n AS dead_rows, n AS stripes, n AS small_stripes,
    n AS overlapping_stripes, n AS file_bytes, n AS stripe_bytes, n AS dead_bytes, NULL::text AS advice
FROM (SELECT NULL::bigint AS n) nothing;

DROP FUNCTION engine.storage_health(regclass);

CREATE FUNCTION engine.storage_health(table_name regclass, OUT hot_rows bigint, OUT cold_rows bigint, OUT dead_rows bigint, OUT stripes bigint, OUT small_stripes bigint,
    OUT overlapping_stripes bigint, OUT file_bytes bigint, OUT stripe_bytes bigint, OUT dead_bytes bigint, OUT advice text, OUT needed text, OUT possible text)
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_storage_health';

CREATE OR REPLACE VIEW engine.storage_health WITH (security_barrier) AS
SELECT t.table_name, h.*
FROM (SELECT c.oid::regclass AS table_name
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      WHERE a.amhandler::pg_catalog.oid OPERATOR(pg_catalog.=) 'engine.colcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid
        AND c.relkind IN ('r', 'm')
        AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
        AND NOT pg_catalog.row_security_active(c.oid)
        AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
      OFFSET 0) t, LATERAL engine.storage_health(t.table_name) h
-- A table that was dropped meanwhile has none, nor has an unlogged one on a standby.
WHERE h.file_bytes IS NOT NULL;

COMMENT ON FUNCTION engine.storage_health(regclass)
IS 'how a colcompress table is stored, and what would help';

-- ---------------------------------------------------------------- options: names that are wrong, tables of others
-- A name that no option has, and a relation that is no colcompress table, are errors now.
CREATE OR REPLACE FUNCTION engine.colcompress_option(table_name regclass, option name)
RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'colonnade_colcompress_option_checked';

-- Tables that the user may do something with, as information_schema.tables has them. They are chosen first: conditions on the options are
-- no reason to ask for options of other tables.
CREATE OR REPLACE VIEW engine.colcompress_options WITH (security_barrier) AS
SELECT c.oid::regclass AS table_name,
       engine.colcompress_option(c.oid, 'chunk_group_row_limit')::int AS chunk_group_row_limit,
       engine.colcompress_option(c.oid, 'stripe_row_limit')::int AS stripe_row_limit,
       engine.colcompress_option(c.oid, 'compression')::name AS compression,
       engine.colcompress_option(c.oid, 'compression_level')::int AS compression_level,
       engine.colcompress_option(c.oid, 'orderby') AS orderby,
       engine.colcompress_option(c.oid, 'index_scan')::bool AS index_scan,
       engine.colcompress_option(c.oid, 'packing')::bool AS packing,
       engine.colcompress_option(c.oid, 'packing_rows')::int AS packing_rows
FROM (SELECT c.oid
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      WHERE a.amhandler::pg_catalog.oid OPERATOR(pg_catalog.=) 'engine.colcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid
        AND c.relkind IN ('r', 'm')
        AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
        AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')
             OR pg_catalog.has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
             OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
      OFFSET 0) c;

COMMENT ON VIEW engine.colcompress_options
IS 'options in force of the colcompress tables that the user may do something with, defaults included';

-- ---------------------------------------------------------------- engine.verify says how bad a fault is
DROP FUNCTION engine.verify(regclass);
CREATE FUNCTION engine.verify(table_name regclass, OUT kind text, OUT stripe bigint, OUT block bigint, OUT tid tid, OUT detail text, OUT severity text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_verify';

COMMENT ON FUNCTION engine.verify(regclass)
IS 'faults in the storage of a colcompress table and its indexes, one row each; none when it is healthy';
