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
-- What is made anew, because its columns or arguments change, keeps its rights
-- ---------------------------------------------------------------------------------------------------------------

-- What a user has built on it cannot be kept: the server's own hint would be DROP ... CASCADE, which an update has not. NULL rights are the default ones;
-- those of a view are kept if somebody has changed them since the extension gave them.
DO $$
DECLARE
    functions regprocedure[] := ARRAY['engine.storage_health(regclass)', 'engine.verify(regclass)'];
    options regclass := 'engine.colcompress_options';
    dependents text;
BEGIN
    SELECT pg_catalog.string_agg(DISTINCT pg_catalog.pg_describe_object(coalesce(w.classid, d.classid), coalesce(w.objid, d.objid), 0), ', ')
    INTO dependents
    FROM pg_catalog.pg_depend d
    LEFT JOIN LATERAL (SELECT 'pg_catalog.pg_class'::regclass AS classid, r.ev_class AS objid FROM pg_catalog.pg_rewrite r
                       WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::regclass AND r.oid OPERATOR(pg_catalog.=) d.objid) w ON true
    WHERE (d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::regclass AND d.refobjid OPERATOR(pg_catalog.=) ANY (functions)
           OR d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::regclass AND d.refobjid OPERATOR(pg_catalog.=) options)
      AND d.deptype IN ('n', 'a')
      AND NOT (w.objid IS NOT NULL AND w.objid OPERATOR(pg_catalog.=) ANY (ARRAY[options, 'engine.storage_health']));
    IF dependents IS NOT NULL THEN
        RAISE EXCEPTION 'objects of users depend on what this version makes anew' USING ERRCODE = 'dependent_objects_still_exist',
            DETAIL = 'On engine.storage_health(regclass), engine.verify(regclass) or engine.colcompress_options: ' || dependents || '.',
            HINT = 'Keep their definitions (pg_get_viewdef), drop them, update, and create them again.';
    END IF;
    PERFORM pg_catalog.set_config('engine.kept_rights', coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'object', k.object, 'class', k.class::pg_catalog.oid, 'rights', k.rights)), '[]')::text, true)
    FROM (SELECT 'FUNCTION ' || p.oid::regprocedure::text AS object,
                 'pg_catalog.pg_proc'::regclass AS class, p.proacl::text AS rights
          FROM pg_catalog.pg_proc p WHERE p.oid OPERATOR(pg_catalog.=) ANY (functions) AND p.proacl IS NOT NULL
          UNION ALL
          SELECT 'TABLE engine.colcompress_options', 'pg_catalog.pg_class'::regclass, coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner))::text
          FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_init_privs i
              ON i.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::regclass AND i.objoid OPERATOR(pg_catalog.=) c.oid AND i.objsubid OPERATOR(pg_catalog.=) 0
          WHERE c.oid OPERATOR(pg_catalog.=) options AND c.relacl::text IS DISTINCT FROM i.initprivs::text) k;
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
    OUT overlapping_stripes bigint, OUT file_bytes bigint, OUT stripe_bytes bigint, OUT dead_bytes bigint, OUT advice text, OUT needed text, OUT possible text, OUT unsorted_stripes bigint, OUT dirty_stripes bigint)
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
-- The name is text, as storage_engine has it: WHERE table_name = 'events' finds it.
DROP VIEW engine.colcompress_options;
CREATE VIEW engine.colcompress_options WITH (security_barrier) AS
SELECT c.oid::regclass::text AS table_name,
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

GRANT SELECT ON engine.colcompress_options TO PUBLIC;

-- ---------------------------------------------------------------- engine.verify says how bad a fault is
DROP FUNCTION engine.verify(regclass);
CREATE FUNCTION engine.verify(table_name regclass, OUT kind text, OUT stripe bigint, OUT block bigint, OUT tid tid, OUT detail text, OUT severity text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_verify';

COMMENT ON FUNCTION engine.verify(regclass)
IS 'faults in the storage of a colcompress table and its indexes, one row each; none when it is healthy';

-- ---------------------------------------------------------------- which stripes a repack writes anew
-- Beside the one of version 0.1, whose rights a dump may hold.
CREATE PROCEDURE engine.colcompress_repack(table_name regclass, min_fill_ratio float8)
LANGUAGE c
AS 'MODULE_PATHNAME', 'colonnade_colcompress_repack';

COMMENT ON PROCEDURE engine.colcompress_repack(regclass, float8)
IS 'turn heap rows of a table into stripes, join small stripes, and write those anew of which at most this share of rows is alive, while others read and write it; commits after each stripe';

-- ---------------------------------------------------------------- the rights of what was made anew
-- The server notes rights given in a script as the extension's own, which pg_dump leaves out; they are the users'. Of a view the extension's own stay noted.
DO $$
DECLARE
    kept jsonb;
    given record;
    own aclitem[];
    made pg_catalog.oid;
BEGIN
    FOR kept IN SELECT pg_catalog.jsonb_array_elements(pg_catalog.current_setting('engine.kept_rights')::jsonb) LOOP
        made := CASE WHEN pg_catalog.starts_with(kept ->> 'object', 'TABLE ') THEN pg_catalog.substr(kept ->> 'object', 7)::regclass::pg_catalog.oid
                     ELSE pg_catalog.substr(kept ->> 'object', 10)::regprocedure::pg_catalog.oid END;
        own := (SELECT i.initprivs FROM pg_catalog.pg_init_privs i WHERE i.classoid OPERATOR(pg_catalog.=) (kept ->> 'class')::pg_catalog.oid AND i.objoid OPERATOR(pg_catalog.=) made);
        EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM PUBLIC, CURRENT_USER', kept ->> 'object');
        -- Where nobody has any rights there is nothing to give again; aclexplode refuses an empty list.
        FOR given IN SELECT * FROM pg_catalog.aclexplode(
            CASE WHEN kept ->> 'rights' OPERATOR(pg_catalog.<>) '{}' THEN (kept ->> 'rights')::pg_catalog.aclitem[] END) LOOP
            EXECUTE pg_catalog.format('GRANT %s ON %s TO %s%s', given.privilege_type, kept ->> 'object',
                CASE WHEN given.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END,
                CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
        END LOOP;
        IF own IS NULL THEN
            DELETE FROM pg_catalog.pg_init_privs WHERE classoid OPERATOR(pg_catalog.=) (kept ->> 'class')::pg_catalog.oid AND objoid OPERATOR(pg_catalog.=) made;
        ELSE
            UPDATE pg_catalog.pg_init_privs SET initprivs = own WHERE classoid OPERATOR(pg_catalog.=) (kept ->> 'class')::pg_catalog.oid AND objoid OPERATOR(pg_catalog.=) made;
        END IF;
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
SELECT c.oid::regclass::text AS table_name,
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

CREATE FUNCTION engine.rowcompress_relation_storageid(relation regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_colcompress_relation_storageid';

COMMENT ON FUNCTION engine.rowcompress_relation_storageid(regclass)
IS 'key of the table''s batches in the directory; NULL before anything is stored';

-- Both views have storage_engine's names of columns beside ours, as far as there is such a thing here.
CREATE VIEW engine.rowcompress_batches WITH (security_barrier) AS
SELECT t.table_name,
       s.first_row,
       s.row_count,
       s.first_block,
       s.block_count,
       s.byte_length,
       s.storage_id,
       pg_catalog.row_number() OVER (PARTITION BY s.storage_id ORDER BY s.first_row) AS batch_num,
       s.first_block OPERATOR(pg_catalog.*) pg_catalog.current_setting('block_size')::bigint AS file_offset,
       s.byte_length AS data_length,
       s.first_row AS first_row_number
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

CREATE OR REPLACE VIEW engine.colcompress_stripes WITH (security_barrier) AS
SELECT t.table_name,
       s.first_row,
       s.row_count,
       s.first_block,
       s.block_count,
       s.byte_length,
       s.storage_id,
       pg_catalog.row_number() OVER (PARTITION BY s.storage_id ORDER BY s.first_row) AS stripe_num,
       s.first_block OPERATOR(pg_catalog.*) pg_catalog.current_setting('block_size')::bigint AS file_offset,
       s.byte_length AS data_length,
       s.first_row AS first_row_number
FROM (SELECT c.oid::regclass AS table_name, engine.colcompress_relation_storageid(c.oid) AS storage_id
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_am a ON a.oid = c.relam
      WHERE a.amhandler::pg_catalog.oid OPERATOR(pg_catalog.=) 'engine.colcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid
        AND c.relkind IN ('r', 'm')
        AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
        AND NOT pg_catalog.row_security_active(c.oid)
      OFFSET 0) t
JOIN engine.stripe s USING (storage_id)
WHERE s.state <> 'r';

-- ---------------------------------------------------------------- what scans have read in this session
CREATE FUNCTION engine.rowcompress_scan_stats(OUT table_name text, OUT total_scans bigint, OUT batches_total bigint,
    OUT batches_scanned bigint, OUT batches_pruned bigint, OUT pruning_ratio real)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_rowcompress_scan_stats';

COMMENT ON FUNCTION engine.rowcompress_scan_stats()
IS 'batches that scans of rowcompress tables have read in this session, and those that their statistics left out';

CREATE FUNCTION engine.rowcompress_reset_scan_stats(table_name regclass DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_rowcompress_reset_scan_stats';

COMMENT ON FUNCTION engine.rowcompress_reset_scan_stats(regclass)
IS 'begin to count anew what scans of a rowcompress table read in this session, or of all';

-- ---------------------------------------------------------------------------------------------------------------
-- storage_engine's maintenance: thin layers on what stands, so that scripts for it run (docs/from-storage-engine.md)
-- ---------------------------------------------------------------------------------------------------------------

-- One UPDATE, as anybody could write it, with the caller's rights: the clauses are the caller's SQL.
CREATE PROCEDURE engine.smart_update(table_name regclass, set_clause text, where_clause text DEFAULT NULL, row_threshold bigint DEFAULT 150000)
LANGUAGE plpgsql
AS $$
DECLARE
    changed bigint;
BEGIN
    EXECUTE pg_catalog.format('UPDATE %s SET %s', table_name, set_clause) OPERATOR(pg_catalog.||) coalesce(' WHERE ' OPERATOR(pg_catalog.||) where_clause, '');
    GET DIAGNOSTICS changed = ROW_COUNT;
    RAISE NOTICE '% rows were updated', changed;
END $$;

COMMENT ON PROCEDURE engine.smart_update(regclass, text, text, bigint)
IS 'UPDATE table SET set_clause WHERE where_clause, as one statement; row_threshold is not used';

CREATE PROCEDURE engine.colcompress_bulk_update(table_name regclass, set_clause text, where_clause text DEFAULT NULL, batch_size int DEFAULT 50000, skip_columns text[] DEFAULT NULL)
LANGUAGE plpgsql
AS $$
BEGIN
    CALL engine.smart_update(table_name, set_clause, where_clause);
END $$;

COMMENT ON PROCEDURE engine.colcompress_bulk_update(regclass, text, text, int, text[])
IS 'UPDATE table SET set_clause WHERE where_clause, as one statement; batch_size and skip_columns are not used';

CREATE FUNCTION engine.row_number_to_tid(row_number bigint)
RETURNS tid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
SELECT pg_catalog.format('(%s,%s)', 2147483648 OPERATOR(pg_catalog.+) (row_number OPERATOR(pg_catalog./) 256),
                         (row_number OPERATOR(pg_catalog.%) 256) OPERATOR(pg_catalog.+) 1)::pg_catalog.tid
$$;

COMMENT ON FUNCTION engine.row_number_to_tid(bigint)
IS 'ctid of the row of a stripe or batch that has this number';

CREATE FUNCTION engine.ensure_am_depends_catalog()
RETURNS void
LANGUAGE sql
AS $$ $$;

COMMENT ON FUNCTION engine.ensure_am_depends_catalog()
IS 'does nothing: the server knows what the access methods need';

CREATE FUNCTION engine.storage_maintenance_stats(p_table regclass,
    OUT am_name text, OUT maintenance_mode text, OUT total_units bigint, OUT dirty_units bigint, OUT dirty_ratio real, OUT live_rows bigint,
    OUT tombstone_rows bigint, OUT effective_pruning_ratio_est real, OUT recommended_action text)
RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED
AS $$
SELECT a.amname::text, 'eager'::text, h.stripes, h.dirty_stripes,
       coalesce(h.dirty_stripes::real OPERATOR(pg_catalog./) nullif(h.stripes, 0)::real, 0)::real,
       (h.hot_rows OPERATOR(pg_catalog.+) h.cold_rows) OPERATOR(pg_catalog.-) h.dead_rows,
       h.dead_rows,
       coalesce(1::real OPERATOR(pg_catalog.-) (h.dirty_stripes::real OPERATOR(pg_catalog./) nullif(h.stripes, 0)::real), 1)::real,
       CASE WHEN pg_catalog.strpos(h.needed, 'colcompress_repack') OPERATOR(pg_catalog.>) 0 THEN 'run_incremental_merge'
            WHEN pg_catalog.strpos(h.needed, 'colcompress_merge') OPERATOR(pg_catalog.>) 0 THEN 'run_full_repack' ELSE 'ok' END
FROM engine.storage_health(p_table) h, pg_catalog.pg_class c JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) c.relam
WHERE c.oid OPERATOR(pg_catalog.=) p_table AND h.file_bytes IS NOT NULL
$$;

COMMENT ON FUNCTION engine.storage_maintenance_stats(regclass)
IS 'figures of engine.storage_health under storage_engine''s names';

CREATE FUNCTION engine.storage_maintenance_recommendation(p_table regclass, OUT status text, OUT reason text, OUT suggested_command text, OUT priority text)
RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED
AS $$
SELECT CASE WHEN h.needed IS NULL THEN 'ok' ELSE 'degraded' END,
       coalesce(h.advice, 'nothing is needed'),
       CASE WHEN pg_catalog.strpos(h.needed, 'colcompress_repack') OPERATOR(pg_catalog.>) 0 THEN pg_catalog.format('CALL engine.colcompress_repack(%L);', p_table)
            WHEN pg_catalog.strpos(h.needed, 'colcompress_merge') OPERATOR(pg_catalog.>) 0 THEN pg_catalog.format('SELECT engine.colcompress_merge(%L);', p_table)
            WHEN pg_catalog.strpos(h.needed, 'VACUUM') OPERATOR(pg_catalog.>) 0 THEN pg_catalog.format('VACUUM %s;', p_table) END,
       CASE WHEN h.needed IS NULL THEN 'none' ELSE 'medium' END
FROM engine.storage_health(p_table) h
WHERE h.file_bytes IS NOT NULL
$$;

COMMENT ON FUNCTION engine.storage_maintenance_recommendation(regclass)
IS 'advice of engine.storage_health under storage_engine''s names';

CREATE PROCEDURE engine.colcompress_merge_incremental(p_table regclass)
LANGUAGE c
AS 'MODULE_PATHNAME', 'colonnade_colcompress_repack';

COMMENT ON PROCEDURE engine.colcompress_merge_incremental(regclass)
IS 'CALL engine.colcompress_repack(table)';

CREATE PROCEDURE engine.rowcompress_merge_incremental(p_table regclass)
LANGUAGE c
AS 'MODULE_PATHNAME', 'colonnade_colcompress_repack';

COMMENT ON PROCEDURE engine.rowcompress_merge_incremental(regclass)
IS 'CALL engine.colcompress_repack(table)';

-- The list is taken at once, as each table is a transaction or more. Tables of others are left to them.
CREATE PROCEDURE engine.storage_maintenance_auto(dry_run bool DEFAULT false, max_tables int DEFAULT NULL, am_filter text DEFAULT NULL, p_verbose bool DEFAULT false)
LANGUAGE plpgsql
AS $$
DECLARE
    needy regclass[];
    needed text[];
    one int;
BEGIN
    SELECT pg_catalog.array_agg(t.table_name), pg_catalog.array_agg(t.needed) INTO needy, needed
    FROM (SELECT h.table_name, h.needed
          FROM engine.storage_health h
          JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) h.table_name
          JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) c.relam
          WHERE pg_catalog.strpos(h.needed, 'colcompress_repack') OPERATOR(pg_catalog.>) 0 AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
            AND (am_filter IS NULL OR a.amname::text OPERATOR(pg_catalog.=) am_filter)
          ORDER BY h.table_name::text LIMIT max_tables) t;
    FOR one IN 1 .. coalesce(pg_catalog.array_length(needy, 1), 0) LOOP
        IF p_verbose OR dry_run THEN
            RAISE NOTICE '%: %', needy[one], needed[one];
        END IF;
        IF NOT dry_run AND EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) needy[one]) THEN
            CALL engine.colcompress_repack(needy[one]);
        END IF;
    END LOOP;
END $$;

COMMENT ON PROCEDURE engine.storage_maintenance_auto(bool, int, text, bool)
IS 'CALL engine.colcompress_repack for the tables of the user that need it (engine.storage_health)';
