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
    index_scan bool DEFAULT false,
    orderby bool DEFAULT false,
    pruning_column bool DEFAULT false,
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
    EXECUTE pg_catalog.format('UPDATE %s SET %s', table_name, set_clause) OPERATOR(pg_catalog.||) coalesce(E'\n WHERE ' OPERATOR(pg_catalog.||) where_clause, '');
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

-- ---------------------------------------------------------------------------------------------------------------
-- engine.uint8: unsigned integers of 64 bits
-- ---------------------------------------------------------------------------------------------------------------

-- Operators and aggregates are in pg_catalog, where every session finds them whatever its search_path; functions and operator classes are in engine.
CREATE TYPE engine.uint8;

CREATE FUNCTION engine.uint8in(cstring) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_in';
CREATE FUNCTION engine.uint8out(engine.uint8) RETURNS cstring LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_out';
CREATE FUNCTION engine.uint8recv(internal) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_recv';
CREATE FUNCTION engine.uint8send(engine.uint8) RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_send';

CREATE TYPE engine.uint8 (INPUT = engine.uint8in, OUTPUT = engine.uint8out, RECEIVE = engine.uint8recv, SEND = engine.uint8send,
    INTERNALLENGTH = 8, PASSEDBYVALUE, ALIGNMENT = double, CATEGORY = 'N');
COMMENT ON TYPE engine.uint8 IS 'unsigned integer of 64 bits, 0 to 18446744073709551615';

-- Casts that lose nothing are implicit, as bigint's are. Those from signed integers are not: beside the operators with numeric on one side they would make numeric < integer
-- ambiguous in every query of the database.
DO $$
DECLARE
    other text;
BEGIN
    FOREACH other IN ARRAY ARRAY['int2', 'int4', 'int8', 'numeric', 'float4', 'float8', 'oid'] LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION engine.uint8(%1$s) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS ''MODULE_PATHNAME'', ''%1$s_to_uint8''', other);
        EXECUTE pg_catalog.format('CREATE FUNCTION engine.%1$s(engine.uint8) RETURNS %1$s LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS ''MODULE_PATHNAME'', ''uint8_to_%1$s''', other);
        EXECUTE pg_catalog.format('CREATE CAST (%1$s AS engine.uint8) WITH FUNCTION engine.uint8(%1$s) AS ASSIGNMENT', other);
        EXECUTE pg_catalog.format('CREATE CAST (engine.uint8 AS %1$s) WITH FUNCTION engine.%1$s(engine.uint8) AS %2$s', other,
            CASE WHEN other IN ('numeric', 'float4', 'float8') THEN 'IMPLICIT' ELSE 'ASSIGNMENT' END);
    END LOOP;
END $$;
CREATE CAST (engine.uint8 AS text) WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS engine.uint8) WITH INOUT AS ASSIGNMENT;

CREATE FUNCTION engine.uint8_of_bits(int8) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_of_bits';
CREATE FUNCTION engine.uint8_bits(engine.uint8) RETURNS int8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_bits';
COMMENT ON FUNCTION engine.uint8_of_bits(int8) IS 'the number that the 64 bits of a bigint are';
COMMENT ON FUNCTION engine.uint8_bits(engine.uint8) IS 'the bigint that the 64 bits of a number are';
CREATE FUNCTION engine.uint8(bit) RETURNS engine.uint8 LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN engine.uint8_of_bits(pg_catalog.int8($1));
-- More than 64 bits begin with zeros.
CREATE FUNCTION engine."bit"(engine.uint8, int4) RETURNS bit LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN $2 OPERATOR(pg_catalog.<=) 64 THEN pg_catalog."bit"(engine.uint8_bits($1), $2)
            ELSE (pg_catalog."bit"(0::int8, $2 OPERATOR(pg_catalog.-) 64) OPERATOR(pg_catalog.||) pg_catalog."bit"(engine.uint8_bits($1), 64))::bit varying END;
CREATE CAST (bit AS engine.uint8) WITH FUNCTION engine.uint8(bit);
CREATE CAST (engine.uint8 AS bit) WITH FUNCTION engine."bit"(engine.uint8, int4);

-- A number in JSON, as bigint is; and to_char without a detour over double precision.
CREATE FUNCTION engine.uint8_json(engine.uint8) RETURNS json LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::text::json;
CREATE CAST (engine.uint8 AS json) WITH FUNCTION engine.uint8_json(engine.uint8);
CREATE FUNCTION pg_catalog.to_char(engine.uint8, text) RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE RETURN pg_catalog.to_char(engine.numeric($1), $2);

-- Comparison: with itself, and with the server's exact numbers on either side.
DO $$
DECLARE
    pair record;
    op record;
    suffix text;
BEGIN
    FOR pair IN SELECT *, CASE WHEN l OPERATOR(pg_catalog.=) 'engine.uint8' AND r OPERATOR(pg_catalog.=) 'engine.uint8' THEN 'uint8_%s'
                               WHEN l OPERATOR(pg_catalog.=) 'engine.uint8' THEN 'uint8_%s_' OPERATOR(pg_catalog.||) r
                               ELSE l OPERATOR(pg_catalog.||) '_%s_uint8' END AS name
                FROM (VALUES ('engine.uint8', 'engine.uint8'), ('engine.uint8', 'int2'), ('engine.uint8', 'int4'), ('engine.uint8', 'int8'), ('engine.uint8', 'numeric'),
                             ('int2', 'engine.uint8'), ('int4', 'engine.uint8'), ('int8', 'engine.uint8'), ('numeric', 'engine.uint8')) pairs (l, r) LOOP
        FOR op IN SELECT * FROM (VALUES ('eq', '=', 'eqsel', 'eqjoinsel'), ('ne', '<>', 'neqsel', 'neqjoinsel'), ('lt', '<', 'scalarltsel', 'scalarltjoinsel'),
                                        ('le', '<=', 'scalarlesel', 'scalarlejoinsel'), ('gt', '>', 'scalargtsel', 'scalargtjoinsel'),
                                        ('ge', '>=', 'scalargesel', 'scalargejoinsel'), ('cmp', NULL, NULL, NULL)) ops (name, symbol, restrict, joined) LOOP
            EXECUTE pg_catalog.format('CREATE FUNCTION engine.%1$I(%2$s, %3$s) RETURNS %4$s LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE AS ''MODULE_PATHNAME'', %5$L',
                pg_catalog.format(pair.name, op.name), pair.l, pair.r, CASE op.name WHEN 'cmp' THEN 'int4' ELSE 'bool' END, pg_catalog.format(pair.name, op.name));
        END LOOP;
        FOR op IN SELECT * FROM (VALUES ('eq', '=', '=', '<>', 'eqsel', 'eqjoinsel'), ('ne', '<>', '<>', '=', 'neqsel', 'neqjoinsel'), ('lt', '<', '>', '>=', 'scalarltsel', 'scalarltjoinsel'),
                                        ('le', '<=', '>=', '>', 'scalarlesel', 'scalarlejoinsel'), ('gt', '>', '<', '<=', 'scalargtsel', 'scalargtjoinsel'),
                                        ('ge', '>=', '<=', '<', 'scalargesel', 'scalargejoinsel')) ops (name, symbol, mirrored, negated, restrict, joined) LOOP
            EXECUTE pg_catalog.format('CREATE OPERATOR pg_catalog.%1$s (FUNCTION = engine.%2$I, LEFTARG = %3$s, RIGHTARG = %4$s, COMMUTATOR = OPERATOR(pg_catalog.%5$s), NEGATOR = OPERATOR(pg_catalog.%6$s), RESTRICT = %7$s, JOIN = %8$s%9$s)',
                op.symbol, pg_catalog.format(pair.name, op.name), pair.l, pair.r, op.mirrored, op.negated, op.restrict, op.joined, CASE op.name WHEN 'eq' THEN ', HASHES, MERGES' ELSE '' END);
        END LOOP;
    END LOOP;
END $$;

CREATE FUNCTION engine.uint8_hash(engine.uint8) RETURNS int4 LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_hash';
CREATE FUNCTION engine.uint8_hash_extended(engine.uint8, int8) RETURNS int8 LANGUAGE c IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_hash_extended';
CREATE FUNCTION engine.uint8_hash(numeric) RETURNS int4 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_hash_numeric';
CREATE FUNCTION engine.uint8_hash_extended(numeric, int8) RETURNS int8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_hash_numeric_extended';
CREATE FUNCTION engine.uint8_sortsupport(internal) RETURNS void LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_sortsupport';
CREATE FUNCTION engine.uint8_in_range(engine.uint8, engine.uint8, engine.uint8, bool, bool) RETURNS bool LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_in_range';

CREATE OPERATOR FAMILY engine.uint8_ops USING btree;
CREATE OPERATOR CLASS engine.uint8_ops DEFAULT FOR TYPE engine.uint8 USING btree FAMILY engine.uint8_ops AS
    OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
    FUNCTION 1 engine.uint8_cmp(engine.uint8, engine.uint8), FUNCTION 2 engine.uint8_sortsupport(internal),
    FUNCTION 3 engine.uint8_in_range(engine.uint8, engine.uint8, engine.uint8, bool, bool), FUNCTION 4 pg_catalog.btequalimage(oid);
CREATE OPERATOR FAMILY engine.uint8_hash_ops USING hash;
CREATE OPERATOR CLASS engine.uint8_hash_ops DEFAULT FOR TYPE engine.uint8 USING hash FAMILY engine.uint8_hash_ops AS
    OPERATOR 1 pg_catalog.=, FUNCTION 1 engine.uint8_hash(engine.uint8), FUNCTION 2 engine.uint8_hash_extended(engine.uint8, int8);
CREATE FUNCTION engine.uint8_brin_distance(internal, internal) RETURNS float8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_brin_distance';
CREATE OPERATOR FAMILY engine.uint8_minmax_ops USING brin;
CREATE OPERATOR CLASS engine.uint8_minmax_ops DEFAULT FOR TYPE engine.uint8 USING brin FAMILY engine.uint8_minmax_ops AS
    OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
    FUNCTION 1 pg_catalog.brin_minmax_opcinfo(internal), FUNCTION 2 pg_catalog.brin_minmax_add_value(internal, internal, internal, internal),
    FUNCTION 3 pg_catalog.brin_minmax_consistent(internal, internal, internal), FUNCTION 4 pg_catalog.brin_minmax_union(internal, internal, internal);
CREATE OPERATOR FAMILY engine.uint8_minmax_multi_ops USING brin;
CREATE OPERATOR CLASS engine.uint8_minmax_multi_ops FOR TYPE engine.uint8 USING brin FAMILY engine.uint8_minmax_multi_ops AS
    OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
    FUNCTION 1 pg_catalog.brin_minmax_multi_opcinfo(internal), FUNCTION 2 pg_catalog.brin_minmax_multi_add_value(internal, internal, internal, internal),
    FUNCTION 3 pg_catalog.brin_minmax_multi_consistent(internal, internal, internal, int4), FUNCTION 4 pg_catalog.brin_minmax_multi_union(internal, internal, internal),
    FUNCTION 5 pg_catalog.brin_minmax_multi_options(internal), FUNCTION 11 engine.uint8_brin_distance(internal, internal);
CREATE OPERATOR FAMILY engine.uint8_bloom_ops USING brin;
CREATE OPERATOR CLASS engine.uint8_bloom_ops FOR TYPE engine.uint8 USING brin FAMILY engine.uint8_bloom_ops AS
    OPERATOR 1 pg_catalog.=,
    FUNCTION 1 pg_catalog.brin_bloom_opcinfo(internal), FUNCTION 2 pg_catalog.brin_bloom_add_value(internal, internal, internal, internal),
    FUNCTION 3 pg_catalog.brin_bloom_consistent(internal, internal, internal, int4), FUNCTION 4 pg_catalog.brin_bloom_union(internal, internal, internal),
    FUNCTION 5 pg_catalog.brin_bloom_options(internal), FUNCTION 11 engine.uint8_hash(engine.uint8);

-- The other types in the families. The server's own operators between these are in them, too: it sorts and hashes either side of a join of two types by the family of the join's operator.
DO $$
DECLARE
    other text;
    hashed text;
    family text;
    own record;
BEGIN
    FOREACH other IN ARRAY ARRAY['int2', 'int4', 'int8', 'numeric'] LOOP
        FOREACH family IN ARRAY ARRAY['uint8_ops USING btree', 'uint8_minmax_ops USING brin', 'uint8_minmax_multi_ops USING brin'] LOOP
            EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY engine.%2$s ADD OPERATOR 1 pg_catalog.< (engine.uint8, %1$s), OPERATOR 2 pg_catalog.<= (engine.uint8, %1$s), OPERATOR 3 pg_catalog.= (engine.uint8, %1$s),
                OPERATOR 4 pg_catalog.>= (engine.uint8, %1$s), OPERATOR 5 pg_catalog.> (engine.uint8, %1$s)', other, family);
        END LOOP;
        IF other OPERATOR(pg_catalog.<>) 'numeric' THEN
            EXECUTE pg_catalog.format('CREATE FUNCTION engine.uint8_in_range_%1$s(engine.uint8, engine.uint8, %1$s, bool, bool) RETURNS bool LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS ''MODULE_PATHNAME'', ''uint8_in_range_%1$s''', other);
            EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY engine.uint8_ops USING btree ADD FUNCTION 3 (engine.uint8, %1$s) engine.uint8_in_range_%1$s(engine.uint8, engine.uint8, %1$s, bool, bool)', other);
        END IF;
        EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY engine.uint8_ops USING btree ADD OPERATOR 1 pg_catalog.< (%1$s, engine.uint8), OPERATOR 2 pg_catalog.<= (%1$s, engine.uint8),
            OPERATOR 3 pg_catalog.= (%1$s, engine.uint8), OPERATOR 4 pg_catalog.>= (%1$s, engine.uint8), OPERATOR 5 pg_catalog.> (%1$s, engine.uint8),
            FUNCTION 1 (engine.uint8, %1$s) engine.uint8_cmp_%1$s(engine.uint8, %1$s), FUNCTION 1 (%1$s, engine.uint8) engine.%1$s_cmp_uint8(%1$s, engine.uint8)', other);
        hashed := CASE other WHEN 'numeric' THEN 'engine.uint8_hash' ELSE 'pg_catalog.hash' OPERATOR(pg_catalog.||) other END;
        EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY engine.uint8_hash_ops USING hash ADD OPERATOR 1 pg_catalog.= (engine.uint8, %1$s), OPERATOR 1 pg_catalog.= (%1$s, engine.uint8),
            FUNCTION 1 (%1$s, %1$s) %2$s(%1$s), FUNCTION 2 (%1$s, %1$s) %3$s(%1$s, int8)', other, hashed,
            CASE other WHEN 'numeric' THEN 'engine.uint8_hash_extended' ELSE hashed OPERATOR(pg_catalog.||) 'extended' END);
    END LOOP;
    FOR own IN SELECT a.amname, pg_catalog.format('OPERATOR %s pg_catalog.%s (%s, %s)', m.amopstrategy, o.oprname, m.amoplefttype::regtype, m.amoprighttype::regtype) AS member
               FROM pg_catalog.pg_amop m JOIN pg_catalog.pg_operator o ON o.oid OPERATOR(pg_catalog.=) m.amopopr JOIN pg_catalog.pg_opfamily f ON f.oid OPERATOR(pg_catalog.=) m.amopfamily
               JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) f.opfmethod
               WHERE a.amname IN ('btree', 'hash') AND f.opfname IN ('integer_ops', 'numeric_ops') AND f.opfnamespace OPERATOR(pg_catalog.=) 'pg_catalog'::regnamespace
               UNION ALL
               SELECT 'btree', pg_catalog.format('FUNCTION 1 (%1$s, %2$s) %3$s(%1$s, %2$s)', p.amproclefttype::regtype, p.amprocrighttype::regtype, p.amproc)
               FROM pg_catalog.pg_amproc p JOIN pg_catalog.pg_opfamily f ON f.oid OPERATOR(pg_catalog.=) p.amprocfamily JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) f.opfmethod
               WHERE a.amname OPERATOR(pg_catalog.=) 'btree' AND f.opfname IN ('integer_ops', 'numeric_ops') AND f.opfnamespace OPERATOR(pg_catalog.=) 'pg_catalog'::regnamespace AND p.amprocnum OPERATOR(pg_catalog.=) 1 LOOP
        EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY engine.%s USING %s ADD %s', CASE own.amname WHEN 'btree' THEN 'uint8_ops' ELSE 'uint8_hash_ops' END, own.amname, own.member);
    END LOOP;
END $$;

-- A cluster that is upgraded to 18 does without it: then a scan does not skip to the next value of a leading column by itself.
DO $$
BEGIN
    IF pg_catalog.current_setting('server_version_num')::int OPERATOR(pg_catalog.>=) 180000 THEN
        CREATE FUNCTION engine.uint8_skip_support(internal) RETURNS void LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_skip_support';
        ALTER OPERATOR FAMILY engine.uint8_ops USING btree ADD FUNCTION 6 (engine.uint8, engine.uint8) engine.uint8_skip_support(internal);
    END IF;
END $$;

-- Arithmetic, beside signed integers too.
DO $$
DECLARE
    pair record;
    op record;
BEGIN
    FOR pair IN SELECT *, CASE WHEN l OPERATOR(pg_catalog.=) 'engine.uint8' AND r OPERATOR(pg_catalog.=) 'engine.uint8' THEN 'uint8_%s'
                               WHEN l OPERATOR(pg_catalog.=) 'engine.uint8' THEN 'uint8_%s_' OPERATOR(pg_catalog.||) r
                               ELSE l OPERATOR(pg_catalog.||) '_%s_uint8' END AS name
                FROM (VALUES ('engine.uint8', 'engine.uint8'), ('engine.uint8', 'int2'), ('engine.uint8', 'int4'), ('engine.uint8', 'int8'),
                             ('int2', 'engine.uint8'), ('int4', 'engine.uint8'), ('int8', 'engine.uint8')) pairs (l, r) LOOP
        FOR op IN SELECT * FROM (VALUES ('add', '+', true), ('sub', '-', false), ('mul', '*', true), ('div', '/', false), ('mod', '%', false)) ops (name, symbol, commutes) LOOP
            EXECUTE pg_catalog.format('CREATE FUNCTION engine.%1$I(%2$s, %3$s) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS ''MODULE_PATHNAME'', %4$L',
                pg_catalog.format(pair.name, op.name), pair.l, pair.r, pg_catalog.format(pair.name, op.name));
            EXECUTE pg_catalog.format('CREATE OPERATOR pg_catalog.%1$s (FUNCTION = engine.%2$I, LEFTARG = %3$s, RIGHTARG = %4$s%5$s)', op.symbol,
                pg_catalog.format(pair.name, op.name), pair.l, pair.r, CASE WHEN op.commutes THEN ', COMMUTATOR = OPERATOR(pg_catalog.' OPERATOR(pg_catalog.||) op.symbol OPERATOR(pg_catalog.||) ')' ELSE '' END);
        END LOOP;
    END LOOP;
    FOR op IN SELECT * FROM (VALUES ('and', '&', 'engine.uint8'), ('or', '|', 'engine.uint8'), ('xor', '#', 'engine.uint8'), ('shift_left', '<<', 'int4'), ('shift_right', '>>', 'int4')) ops (name, symbol, r) LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION engine.uint8_%1$s(engine.uint8, %2$s) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS ''MODULE_PATHNAME'', ''uint8_%1$s''', op.name, op.r);
        EXECUTE pg_catalog.format('CREATE OPERATOR pg_catalog.%3$s (FUNCTION = engine.uint8_%1$s, LEFTARG = engine.uint8, RIGHTARG = %2$s%4$s)', op.name, op.r, op.symbol,
            CASE WHEN op.r OPERATOR(pg_catalog.=) 'int4' THEN '' ELSE ', COMMUTATOR = OPERATOR(pg_catalog.' OPERATOR(pg_catalog.||) op.symbol OPERATOR(pg_catalog.||) ')' END);
    END LOOP;
    FOR op IN SELECT * FROM (VALUES ('not', '~'), ('plus', '+'), ('minus', '-')) ops (name, symbol) LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION engine.uint8_%1$s(engine.uint8) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS ''MODULE_PATHNAME'', ''uint8_%1$s''', op.name);
        EXECUTE pg_catalog.format('CREATE OPERATOR pg_catalog.%2$s (FUNCTION = engine.uint8_%1$s, RIGHTARG = engine.uint8)', op.name, op.symbol);
    END LOOP;
END $$;
CREATE FUNCTION pg_catalog.abs(engine.uint8) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_plus';
CREATE OPERATOR pg_catalog.@ (FUNCTION = pg_catalog.abs, RIGHTARG = engine.uint8);
CREATE FUNCTION pg_catalog.mod(engine.uint8, engine.uint8) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_mod';

-- Aggregates. storage_engine has min, max and sum in the schema engine.
CREATE FUNCTION engine.uint8_larger(engine.uint8, engine.uint8) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_larger';
CREATE FUNCTION engine.uint8_smaller(engine.uint8, engine.uint8) RETURNS engine.uint8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_smaller';
CREATE FUNCTION engine.uint8_sum_add(internal, engine.uint8) RETURNS internal LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_sum_add';
CREATE FUNCTION engine.uint8_sum_remove(internal, engine.uint8) RETURNS internal LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_sum_remove';
CREATE FUNCTION engine.uint8_sum_combine(internal, internal) RETURNS internal LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_sum_combine';
CREATE FUNCTION engine.uint8_sum_serialize(internal) RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_sum_serialize';
CREATE FUNCTION engine.uint8_sum_deserialize(bytea, internal) RETURNS internal LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_sum_deserialize';
CREATE FUNCTION engine.uint8_sum(internal) RETURNS numeric LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_sum';
CREATE FUNCTION engine.uint8_avg(internal) RETURNS numeric LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_avg';
CREATE FUNCTION engine.uint8_accum(internal, engine.uint8) RETURNS internal LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_accum';
CREATE FUNCTION engine.uint8_accum_inv(internal, engine.uint8) RETURNS internal LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_accum_inv';
DO $$
DECLARE
    place text;
    name text;
BEGIN
    FOREACH place IN ARRAY ARRAY['pg_catalog', 'engine'] LOOP
        EXECUTE pg_catalog.format('CREATE AGGREGATE %1$s.min(engine.uint8) (SFUNC = engine.uint8_smaller, STYPE = engine.uint8, COMBINEFUNC = engine.uint8_smaller, SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE)', place);
        EXECUTE pg_catalog.format('CREATE AGGREGATE %1$s.max(engine.uint8) (SFUNC = engine.uint8_larger, STYPE = engine.uint8, COMBINEFUNC = engine.uint8_larger, SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE)', place);
        FOREACH name IN ARRAY ARRAY['sum', 'avg'] LOOP
            CONTINUE WHEN place OPERATOR(pg_catalog.=) 'engine' AND name OPERATOR(pg_catalog.=) 'avg';
            EXECUTE pg_catalog.format('CREATE AGGREGATE %1$s.%2$s(engine.uint8) (SFUNC = engine.uint8_sum_add, STYPE = internal, SSPACE = 24, FINALFUNC = engine.uint8_%2$s, COMBINEFUNC = engine.uint8_sum_combine,
                SERIALFUNC = engine.uint8_sum_serialize, DESERIALFUNC = engine.uint8_sum_deserialize, MSFUNC = engine.uint8_sum_add, MINVFUNC = engine.uint8_sum_remove, MSTYPE = internal, MSSPACE = 24,
                MFINALFUNC = engine.uint8_%2$s, PARALLEL = SAFE)', place, name);
        END LOOP;
    END LOOP;
    FOREACH name IN ARRAY ARRAY['and', 'or', 'xor'] LOOP
        EXECUTE pg_catalog.format('CREATE AGGREGATE pg_catalog.bit_%1$s(engine.uint8) (SFUNC = engine.uint8_%1$s, STYPE = engine.uint8, COMBINEFUNC = engine.uint8_%1$s, PARALLEL = SAFE)', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['var_pop', 'var_samp', 'variance', 'stddev_pop', 'stddev_samp', 'stddev'] LOOP
        EXECUTE pg_catalog.format('CREATE AGGREGATE pg_catalog.%1$s(engine.uint8) (SFUNC = engine.uint8_accum, STYPE = internal, SSPACE = 128, FINALFUNC = pg_catalog.%2$s, COMBINEFUNC = pg_catalog.numeric_combine,
            SERIALFUNC = pg_catalog.numeric_serialize, DESERIALFUNC = pg_catalog.numeric_deserialize, MSFUNC = engine.uint8_accum, MINVFUNC = engine.uint8_accum_inv, MSTYPE = internal, MSSPACE = 128,
            MFINALFUNC = pg_catalog.%2$s, PARALLEL = SAFE)', name,
            'numeric_' OPERATOR(pg_catalog.||) CASE name WHEN 'variance' THEN 'var_samp' WHEN 'stddev' THEN 'stddev_samp' ELSE name END);
    END LOOP;
END $$;

-- The names that storage_engine's scripts call.
DO $$
DECLARE f record;
BEGIN
    FOR f IN SELECT * FROM (VALUES
        ('uint8lt', 'engine.uint8, engine.uint8', 'bool', 'uint8_lt'), ('uint8le', 'engine.uint8, engine.uint8', 'bool', 'uint8_le'),
        ('uint8eq', 'engine.uint8, engine.uint8', 'bool', 'uint8_eq'), ('uint8ne', 'engine.uint8, engine.uint8', 'bool', 'uint8_ne'),
        ('uint8ge', 'engine.uint8, engine.uint8', 'bool', 'uint8_ge'), ('uint8gt', 'engine.uint8, engine.uint8', 'bool', 'uint8_gt'),
        ('uint8cmp', 'engine.uint8, engine.uint8', 'int4', 'uint8_cmp'), ('uint8hash', 'engine.uint8', 'int4', 'uint8_hash'),
        ('uint8larger', 'engine.uint8, engine.uint8', 'engine.uint8', 'uint8_larger'), ('uint8smaller', 'engine.uint8, engine.uint8', 'engine.uint8', 'uint8_smaller'),
        ('uint8_to_int8', 'engine.uint8', 'int8', 'uint8_bits'), ('int8_to_uint8', 'int8', 'engine.uint8', 'uint8_of_bits'),
        ('uint8_to_numeric', 'engine.uint8', 'numeric', 'uint8_to_numeric'), ('numeric_to_uint8', 'numeric', 'engine.uint8', 'numeric_to_uint8')
        ) names (name, arguments, result, symbol) LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION engine.%1$I(%2$s) RETURNS %3$s LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS ''MODULE_PATHNAME'', %4$L', f.name, f.arguments, f.result, f.symbol);
    END LOOP;
END $$;

-- Ranges, whose canonical form is that of the server's own integer ranges.
CREATE TYPE engine.uint8range;
CREATE FUNCTION engine.uint8_range_canonical(engine.uint8range) RETURNS engine.uint8range LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_range_canonical';
CREATE FUNCTION engine.uint8_distance(engine.uint8, engine.uint8) RETURNS float8 LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uint8_distance';
CREATE TYPE engine.uint8range AS RANGE (SUBTYPE = engine.uint8, SUBTYPE_OPCLASS = engine.uint8_ops, CANONICAL = engine.uint8_range_canonical, SUBTYPE_DIFF = engine.uint8_distance, MULTIRANGE_TYPE_NAME = engine.uint8multirange);

CREATE FUNCTION pg_catalog.generate_series(start engine.uint8, stop engine.uint8, step engine.uint8) RETURNS SETOF engine.uint8 LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1000
BEGIN ATOMIC SELECT engine.uint8(v) FROM pg_catalog.generate_series(engine.numeric(start), engine.numeric(stop), engine.numeric(step)) v; END;
CREATE FUNCTION pg_catalog.generate_series(start engine.uint8, stop engine.uint8) RETURNS SETOF engine.uint8 LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1000
BEGIN ATOMIC SELECT engine.uint8(v) FROM pg_catalog.generate_series(engine.numeric(start), engine.numeric(stop)) v; END;

-- Columnstore indexes on heap tables.
CREATE FUNCTION engine.columnstore_handler(internal) RETURNS index_am_handler LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'columnstore_handler';
CREATE ACCESS METHOD columnstore TYPE INDEX HANDLER engine.columnstore_handler;
COMMENT ON ACCESS METHOD columnstore IS 'columnar copy of a heap table, for scans';
CREATE OPERATOR CLASS engine.columnstore_ops DEFAULT FOR TYPE anyelement USING columnstore AS STORAGE anyelement;
CREATE PROCEDURE engine.columnstore_refresh(IN index regclass, INOUT copied bigint DEFAULT NULL) LANGUAGE c AS 'MODULE_PATHNAME', 'colonnade_columnstore_refresh';
COMMENT ON PROCEDURE engine.columnstore_refresh(regclass, bigint) IS 'copies blocks of a table into its columnstore index that everybody sees and that it does not have; copied is how many';
CREATE FUNCTION engine.columnstore_verify(index regclass, OUT block bigint, OUT detail text) RETURNS SETOF record LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'colonnade_columnstore_verify';
COMMENT ON FUNCTION engine.columnstore_verify(regclass) IS 'compares the copies of a columnstore index with the rows of its table; a row for each block that differs';
CREATE FUNCTION engine.columnstore_figures(index oid, OUT heap_blocks bigint, OUT clean_blocks bigint, OUT checked_blocks bigint, OUT not_visible_blocks bigint, OUT not_copied_blocks bigint, OUT copied_blocks bigint,
    OUT copies bigint, OUT copied_rows bigint, OUT bytes bigint) RETURNS SETOF record LANGUAGE c STRICT ROWS 1 AS 'MODULE_PATHNAME', 'colonnade_columnstore_figures';
COMMENT ON FUNCTION engine.columnstore_figures(oid) IS 'figures of a columnstore index';
CREATE VIEW engine.columnstore_indexes AS
SELECT c.oid::regclass AS index_name, i.indrelid::regclass AS table_name, f.heap_blocks, f.clean_blocks, f.checked_blocks, f.not_visible_blocks, f.not_copied_blocks, f.copied_blocks, f.copies, f.copied_rows, f.bytes
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) c.relam AND a.amname OPERATOR(pg_catalog.=) 'columnstore'
JOIN pg_catalog.pg_index i ON i.indexrelid OPERATOR(pg_catalog.=) c.oid,
    LATERAL engine.columnstore_figures(c.oid) f
WHERE c.relkind OPERATOR(pg_catalog.=) 'i';
COMMENT ON VIEW engine.columnstore_indexes IS 'columnstore indexes: how many blocks of their tables queries read from copies';
GRANT SELECT ON engine.columnstore_indexes TO PUBLIC;
CREATE VIEW engine.stat_all_column_store_indexes AS
SELECT table_name, index_name, heap_blocks AS relation_blocks, copied_blocks AS compressed_blocks, clean_blocks + checked_blocks AS cache_pages_usable FROM engine.columnstore_indexes;
COMMENT ON VIEW engine.stat_all_column_store_indexes IS 'columnstore_indexes under the names of Swarm64 DA';
GRANT SELECT ON engine.stat_all_column_store_indexes TO PUBLIC;

CREATE FUNCTION engine.columnstore_create(table_name regclass, compression_type text DEFAULT 'zstd', compression_level int DEFAULT 5) RETURNS SETOF regclass
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    columns text;
    before oid[];
BEGIN
    -- An index has 32 columns at most (INDEX_MAX_KEYS). It is made in the schema of its table, with a name that the server finds.
    FOR columns IN
        SELECT string_agg(quote_ident(attname), ', ' ORDER BY number)
        FROM (SELECT attname, row_number() OVER (ORDER BY attnum) AS number FROM pg_attribute
              WHERE attrelid = table_name AND attnum > 0 AND NOT attisdropped AND attgenerated <> 'v') c
        GROUP BY (number - 1) / 32 ORDER BY min(number)
    LOOP
        before := ARRAY(SELECT indexrelid FROM pg_index WHERE indrelid = table_name);
        EXECUTE format('CREATE INDEX ON %s USING columnstore (%s) WITH (compression_type = %L, compression_level = %s)',
            table_name, columns, compression_type, compression_level);
        RETURN QUERY SELECT indexrelid::regclass FROM pg_index WHERE indrelid = table_name AND indexrelid <> ALL (before);
    END LOOP;
END $$;
COMMENT ON FUNCTION engine.columnstore_create(regclass, text, int) IS 'makes columnstore indexes of all columns of a table, of up to 32 columns each';

-- ---------------------------------------------------------------------------------------------------------------
-- Foreign tables over column files
-- ---------------------------------------------------------------------------------------------------------------
-- The storage id of each foreign table that was ever loaded. Its stripes are in engine.stripe.
CREATE TABLE engine.column_file (
    table_oid      int8   NOT NULL,
    storage_id     int8   NOT NULL,
    CONSTRAINT column_file_pkey PRIMARY KEY (table_oid, storage_id)
) USING heap;
-- What rows of a foreign table have in a column that is younger than they are: the value's bytes, as the server holds it. Nobody else may write them, as they are taken for what they are.
CREATE TABLE engine.column_file_default (
    table_oid      int8   NOT NULL,
    column_number  int8   NOT NULL,
    value          bytea  NOT NULL,
    CONSTRAINT column_file_default_pkey PRIMARY KEY (table_oid, column_number)
) USING heap;
ALTER TABLE engine.column_file_default ALTER COLUMN value SET STATISTICS 0;
ALTER TABLE engine.column_file REPLICA IDENTITY NOTHING;
ALTER TABLE engine.column_file_default REPLICA IDENTITY NOTHING;
REVOKE ALL ON engine.column_file, engine.column_file_default FROM PUBLIC;

CREATE FUNCTION engine.cstore_fdw_handler() RETURNS fdw_handler LANGUAGE c AS 'MODULE_PATHNAME', 'colonnade_cstore_fdw_handler';
CREATE FUNCTION engine.cstore_fdw_validator(options text[], catalog oid) RETURNS void LANGUAGE c AS 'MODULE_PATHNAME', 'colonnade_cstore_fdw_validator';
CREATE FOREIGN DATA WRAPPER cstore_fdw HANDLER engine.cstore_fdw_handler VALIDATOR engine.cstore_fdw_validator;
COMMENT ON FOREIGN DATA WRAPPER cstore_fdw IS 'foreign tables over column files';
-- In the schema in which the extension was created, as those of cstore_fdw, so that scripts for it find them.
CREATE FUNCTION @extschema@.cstore_table_size(relation regclass) RETURNS bigint LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'colonnade_cstore_table_size';
COMMENT ON FUNCTION @extschema@.cstore_table_size(regclass) IS 'bytes of the file of a foreign table';
CREATE FUNCTION @extschema@.cstore_clean_table_resources(table_oid oid) RETURNS void LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'colonnade_cstore_clean_table_resources';
COMMENT ON FUNCTION @extschema@.cstore_clean_table_resources(oid) IS 'takes away the file below the data directory of a foreign table that is no more';
REVOKE ALL ON FUNCTION @extschema@.cstore_clean_table_resources(oid) FROM PUBLIC;

-- ---------------------------------------------------------------- Parquet
CREATE FUNCTION engine.parquet_schema(file text, OUT column_name text, OUT data_type text, OUT not_read_as text) RETURNS SETOF record LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'colonnade_parquet_schema';
COMMENT ON FUNCTION engine.parquet_schema(text) IS 'columns of a Parquet file on the server, and the types that they are read as';
CREATE FUNCTION engine.parquet_fdw_handler() RETURNS fdw_handler LANGUAGE c AS 'MODULE_PATHNAME', 'colonnade_parquet_fdw_handler';
CREATE FUNCTION engine.parquet_fdw_validator(options text[], catalog oid) RETURNS void LANGUAGE c AS 'MODULE_PATHNAME', 'colonnade_parquet_fdw_validator';
CREATE FOREIGN DATA WRAPPER parquet_fdw HANDLER engine.parquet_fdw_handler VALIDATOR engine.parquet_fdw_validator;
COMMENT ON FOREIGN DATA WRAPPER parquet_fdw IS 'foreign tables that read Parquet files';
