\echo Use "ALTER EXTENSION colonnade UPDATE TO '0.2'" to load this file. \quit

-- Version 0.1 is released: colonnade--0.1.sql never changes any more. CREATE EXTENSION runs it and then this file,
-- so a new installation and an updated one have the same objects.

-- ---------------------------------------------------------------------------------------------------------------
-- rowcompress: tables whose rows lie together
-- ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION engine.rowcompress_handler(internal) RETURNS table_am_handler
    AS 'MODULE_PATHNAME', 'rowcompress_handler' LANGUAGE C STRICT;
CREATE ACCESS METHOD rowcompress TYPE TABLE HANDLER engine.rowcompress_handler;
COMMENT ON ACCESS METHOD rowcompress IS 'compressed storage of whole rows: recent rows in heap pages, the rest in batches of small blocks';

-- ---------------------------------------------------------------------------------------------------------------
-- Two functions give more columns: they are made anew, and keep their rights
-- ---------------------------------------------------------------------------------------------------------------

-- What a user has built on them cannot be kept: the server's own hint would be DROP ... CASCADE, which an update has not. NULL rights are the default ones.
DO $$
DECLARE
    functions regprocedure[] := ARRAY['engine.storage_health(regclass)', 'engine.verify(regclass)'];
    dependents text;
BEGIN
    SELECT pg_catalog.string_agg(DISTINCT pg_catalog.pg_describe_object(coalesce(w.classid, d.classid), coalesce(w.objid, d.objid), 0), ', ')
    INTO dependents
    FROM pg_catalog.pg_depend d
    LEFT JOIN LATERAL (SELECT 'pg_catalog.pg_class'::regclass AS classid, r.ev_class AS objid FROM pg_catalog.pg_rewrite r
                       WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::regclass AND r.oid OPERATOR(pg_catalog.=) d.objid) w ON true
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::regclass AND d.refobjid OPERATOR(pg_catalog.=) ANY (functions) AND d.deptype IN ('n', 'a')
      AND NOT (w.objid IS NOT NULL AND w.objid OPERATOR(pg_catalog.=) 'engine.storage_health'::regclass);
    IF dependents IS NOT NULL THEN
        RAISE EXCEPTION 'objects of users depend on functions that get more columns' USING ERRCODE = 'dependent_objects_still_exist',
            DETAIL = 'On engine.storage_health(regclass) or engine.verify(regclass): ' || dependents || '.',
            HINT = 'Keep their definitions (pg_get_viewdef), drop them, update, and create them again.';
    END IF;
    PERFORM pg_catalog.set_config('engine.kept_rights', coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'function', p.oid::regprocedure, 'rights', p.proacl::text)) FILTER (WHERE p.proacl IS NOT NULL), '[]')::text, true)
    FROM pg_catalog.pg_proc p WHERE p.oid OPERATOR(pg_catalog.=) ANY (functions);
END $$;

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
    OUT overlapping_stripes bigint, OUT file_bytes bigint, OUT stripe_bytes bigint, OUT dead_bytes bigint, OUT advice text, OUT needed text, OUT possible text, OUT unsorted_stripes bigint)
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_storage_health';

CREATE OR REPLACE VIEW engine.storage_health WITH (security_barrier) AS
SELECT t.table_name, h.*
FROM (SELECT c.oid::regclass AS table_name
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      WHERE a.amhandler::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (ARRAY[
                'engine.colcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid,
                'engine.rowcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid])
        AND c.relkind IN ('r', 'm')
        AND (pg_catalog.pg_has_role('pg_stat_scan_tables', 'USAGE')
             OR (pg_catalog.has_table_privilege(c.oid, 'SELECT') AND NOT pg_catalog.row_security_active(c.oid)))
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

-- ---------------------------------------------------------------- the rights of the two functions
-- The server notes rights given in a script as the extension's own, which pg_dump leaves out; they are the users'.
DO $$
DECLARE
    kept jsonb;
    given record;
BEGIN
    FOR kept IN SELECT pg_catalog.jsonb_array_elements(pg_catalog.current_setting('engine.kept_rights')::jsonb) LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC, CURRENT_USER', kept ->> 'function');
        -- Where nobody has any rights there is nothing to give again; aclexplode refuses an empty list.
        FOR given IN SELECT * FROM pg_catalog.aclexplode(
            CASE WHEN kept ->> 'rights' OPERATOR(pg_catalog.<>) '{}' THEN (kept ->> 'rights')::pg_catalog.aclitem[] END) LOOP
            EXECUTE pg_catalog.format('GRANT %s ON FUNCTION %s TO %s%s', given.privilege_type, kept ->> 'function',
                CASE WHEN given.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END,
                CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
        END LOOP;
        DELETE FROM pg_catalog.pg_init_privs WHERE classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::regclass
            AND objoid OPERATOR(pg_catalog.=) (kept ->> 'function')::regprocedure;
    END LOOP;
END $$;

-- ---------------------------------------------------------------- catalogs that shrink
-- What is known of single rows comes and goes by the million: their files are cut off where they end in empty pages. engine.stripe keeps its pages: where its rows lie is remembered from
-- one transaction to the next.
ALTER TABLE engine.row_proxy RESET (vacuum_truncate);
ALTER TABLE engine.delete_bitmap RESET (vacuum_truncate);
ALTER TABLE engine.row_move RESET (vacuum_truncate);

-- ---------------------------------------------------------------- dumps for servers without the extension
-- What a session with colonnade.show_options = off finds in pg_class.reloptions: the planner calls it. No parallel worker need know of the setting.
CREATE FUNCTION engine.portable_options(reloptions text[], relam oid)
RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'colonnade_portable_options';

COMMENT ON FUNCTION engine.portable_options(text[], oid)
IS 'options of a relation without those that only colcompress tables have';

-- ---------------------------------------------------------------- what packing has done
CREATE FUNCTION engine.packing_statistics(table_name regclass DEFAULT NULL, OUT packed_table regclass, OUT state text, OUT detail text,
    OUT rows_packed bigint, OUT stripes_written bigint, OUT packed_bytes_before bigint, OUT packed_bytes_after bigint,
    OUT rows_rewritten bigint, OUT stripes_replaced bigint, OUT stripes_rewritten bigint, OUT rewritten_bytes_before bigint, OUT rewritten_bytes_after bigint,
    OUT stripes_taken_out bigint, OUT stripes_moved bigint, OUT vacuums bigint, OUT bytes_cut_off bigint,
    OUT rounds bigint, OUT calls bigint, OUT last_round timestamptz, OUT last_call timestamptz, OUT last_look timestamptz, OUT next_look timestamptz,
    OUT waiting_rows bigint, OUT too_young_rows bigint, OUT errors bigint, OUT last_error text, OUT last_error_time timestamptz, OUT counted_since timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_packing_statistics';

COMMENT ON FUNCTION engine.packing_statistics(regclass)
IS 'what packing has done to a colcompress table, or to all of the database, and why it does no more now';

CREATE VIEW engine.colcompress_packing_statistics AS
SELECT packed_table AS table_name, state, detail, rows_packed, stripes_written, packed_bytes_before, packed_bytes_after,
    rows_rewritten, stripes_replaced, stripes_rewritten, rewritten_bytes_before, rewritten_bytes_after,
    stripes_taken_out, stripes_moved, vacuums, bytes_cut_off, rounds, calls, last_round, last_call, last_look, next_look,
    waiting_rows, too_young_rows, errors, last_error, last_error_time, counted_since
FROM engine.packing_statistics();

COMMENT ON VIEW engine.colcompress_packing_statistics
IS 'what packing has done to the colcompress tables whose rows the user may read, and why it does no more now';

GRANT SELECT ON engine.colcompress_packing_statistics TO PUBLIC;

CREATE FUNCTION engine.packing_statistics_reset(table_name regclass DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_packing_statistics_reset';

COMMENT ON FUNCTION engine.packing_statistics_reset(regclass)
IS 'begin to count anew what packing does to a table, or to all of the database';

-- As pg_stat_reset(): who may is for the superuser to say.
REVOKE EXECUTE ON FUNCTION engine.packing_statistics_reset(regclass) FROM PUBLIC;

-- ---------------------------------------------------------------- what packing is doing, by CALL too
CREATE FUNCTION engine.packing_calls(OUT pid int, OUT activity text)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_packing_calls';

COMMENT ON FUNCTION engine.packing_calls()
IS 'what sessions are doing that run CALL engine.colcompress_repack()';

CREATE OR REPLACE VIEW engine.packing_progress AS
SELECT pid, datname, query AS activity, xact_start
FROM pg_catalog.pg_stat_activity
WHERE backend_type = 'colonnade packing' AND state = 'active'
UNION ALL
SELECT a.pid, a.datname, c.activity, a.xact_start
FROM engine.packing_calls() c JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) c.pid;

COMMENT ON VIEW engine.packing_progress
IS 'what packing is doing now, in the background and by CALL: the table, and how many rows it has moved in this round';

-- ---------------------------------------------------------------- options and batches of rowcompress tables
CREATE FUNCTION engine.alter_rowcompress_table_set(
    table_name regclass,
    batch_size int DEFAULT NULL,
    compression name DEFAULT NULL,
    compression_level int DEFAULT NULL,
    pruning_column text DEFAULT NULL,
    index_scan bool DEFAULT NULL,
    orderby text DEFAULT NULL,
    packing bool DEFAULT NULL,
    packing_rows int DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_alter_rowcompress_table_set';

COMMENT ON FUNCTION engine.alter_rowcompress_table_set(regclass, int, name, int, text, bool, text, bool, int)
IS 'ALTER TABLE ... SET (...) for the options that are not NULL';

CREATE FUNCTION engine.alter_rowcompress_table_reset(
    table_name regclass,
    batch_size bool DEFAULT false,
    compression bool DEFAULT false,
    compression_level bool DEFAULT false,
    pruning_column bool DEFAULT false,
    index_scan bool DEFAULT false,
    orderby bool DEFAULT false,
    packing bool DEFAULT false,
    packing_rows bool DEFAULT false)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_alter_rowcompress_table_reset';

COMMENT ON FUNCTION engine.alter_rowcompress_table_reset(regclass, bool, bool, bool, bool, bool, bool, bool, bool)
IS 'ALTER TABLE ... RESET (...) for the options that are true';

CREATE VIEW engine.rowcompress_options WITH (security_barrier) AS
SELECT c.oid::regclass AS table_name,
       engine.colcompress_option(c.oid, 'batch_size')::int AS batch_size,
       engine.colcompress_option(c.oid, 'compression')::name AS compression,
       engine.colcompress_option(c.oid, 'compression_level')::int AS compression_level,
       (SELECT a.attnum FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND NOT a.attisdropped
            AND a.attname::text OPERATOR(pg_catalog.=) engine.colcompress_option(c.oid, 'pruning_column')) AS pruning_attnum,
       engine.colcompress_option(c.oid, 'index_scan')::bool AS index_scan,
       engine.colcompress_option(c.oid, 'orderby') AS orderby,
       engine.colcompress_option(c.oid, 'packing')::bool AS packing,
       engine.colcompress_option(c.oid, 'packing_rows')::int AS packing_rows
FROM (SELECT c.oid
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      WHERE a.amhandler::pg_catalog.oid OPERATOR(pg_catalog.=) 'engine.rowcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid
        AND c.relkind IN ('r', 'm')
        AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
        AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')
             OR pg_catalog.has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
             OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
      OFFSET 0) c;

COMMENT ON VIEW engine.rowcompress_options
IS 'options in force of the rowcompress tables that the user may do something with, defaults included';

GRANT SELECT ON engine.rowcompress_options TO PUBLIC;

CREATE FUNCTION engine.rowcompress_repack(table_name regclass)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_colcompress_merge';

COMMENT ON FUNCTION engine.rowcompress_repack(regclass)
IS 'rewrite a rowcompress table into full batches, sorted by its option orderby; locks the table exclusively';

CREATE FUNCTION engine.rowcompress_relation_storageid(table_name regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_colcompress_relation_storageid';

COMMENT ON FUNCTION engine.rowcompress_relation_storageid(regclass)
IS 'key of the table''s batches in the directory; NULL before anything is stored';

CREATE VIEW engine.rowcompress_batches WITH (security_barrier) AS
SELECT t.table_name,
       s.first_row,
       s.row_count,
       s.first_block,
       s.block_count,
       s.byte_length
FROM (SELECT c.oid::regclass AS table_name, engine.rowcompress_relation_storageid(c.oid) AS storage_id
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      WHERE a.amhandler::pg_catalog.oid OPERATOR(pg_catalog.=) 'engine.rowcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid
        AND c.relkind IN ('r', 'm')
        AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
        AND NOT pg_catalog.row_security_active(c.oid)
      OFFSET 0) t
JOIN engine.stripe s USING (storage_id)
WHERE s.state <> 'r';

COMMENT ON VIEW engine.rowcompress_batches
IS 'batches of the rowcompress tables that the user may read: rows and place of each';

GRANT SELECT ON engine.rowcompress_batches TO PUBLIC;
