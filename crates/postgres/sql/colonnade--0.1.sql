\echo Use "CREATE EXTENSION colonnade" to load this file. \quit

CREATE SCHEMA engine;
GRANT USAGE ON SCHEMA engine TO PUBLIC;

-- ---------------------------------------------------------------- storage: the directory of stripes
-- One row a stripe (state 's', or 'm' where packing moved rows of the table into it) or reserved range of row numbers (state 'r'). Read and written by the access method
-- only; summaries hold minima and maxima of the users' data, so nobody else may select from it.
CREATE TABLE engine.stripe (
    storage_id     int8   NOT NULL,
    first_row      int8   NOT NULL,
    row_count      int8   NOT NULL,
    first_block    int8   NOT NULL,
    block_count    int8   NOT NULL,
    byte_length    int8   NOT NULL,
    footer_offset  int8   NOT NULL,
    footer_length  int8   NOT NULL,
    state          "char" NOT NULL,
    summary        bytea  NOT NULL,
    CONSTRAINT stripe_pkey PRIMARY KEY (storage_id, first_row, state)
) USING heap WITH (vacuum_truncate = off, toast.vacuum_truncate = off, toast_tuple_target = 8160);
-- Summaries stay in the row, uncompressed, as long as they fit the page: opening a table reads them all.
ALTER TABLE engine.stripe ALTER COLUMN summary SET STORAGE EXTERNAL;
-- A publication FOR ALL TABLES would publish updates and deletions otherwise; what is inserted is kept from decoding.
ALTER TABLE engine.stripe REPLICA IDENTITY NOTHING;
REVOKE ALL ON engine.stripe FROM PUBLIC;

-- One row for each row of a stripe that was ever locked or changed: it carries the locks, and says that the row is dead and
-- what has taken its place. Of no use to anybody else; who could read it would learn which rows others change.
CREATE TABLE engine.row_proxy (
    storage_id     int8   NOT NULL,
    row_number     int8   NOT NULL,
    successor      tid    NOT NULL,
    dead           bool   NOT NULL,
    CONSTRAINT row_proxy_pkey PRIMARY KEY (storage_id, row_number)
) USING heap WITH (vacuum_truncate = off, fillfactor = 50);
ALTER TABLE engine.row_proxy ALTER COLUMN storage_id SET STATISTICS 0, ALTER COLUMN row_number SET STATISTICS 0,
    ALTER COLUMN successor SET STATISTICS 0, ALTER COLUMN dead SET STATISTICS 0;
ALTER TABLE engine.row_proxy REPLICA IDENTITY NOTHING;
REVOKE ALL ON engine.row_proxy FROM PUBLIC;

-- Rows of stripes that one command has deleted or updated in bulk: a bit for each, from first_row on, and the place of the new
-- version for each bit that is set (none at all where the command has only deleted). They fit the page and never leave it.
CREATE TABLE engine.delete_bitmap (
    storage_id     int8   NOT NULL,
    first_row      int8   NOT NULL,
    bits           bytea  NOT NULL,
    successors     bytea  NOT NULL
) USING heap WITH (vacuum_truncate = off);
CREATE INDEX delete_bitmap_first_row ON engine.delete_bitmap (storage_id, first_row);
ALTER TABLE engine.delete_bitmap ALTER COLUMN bits SET STORAGE PLAIN, ALTER COLUMN successors SET STORAGE PLAIN,
    ALTER COLUMN storage_id SET STATISTICS 0, ALTER COLUMN first_row SET STATISTICS 0,
    ALTER COLUMN bits SET STATISTICS 0, ALTER COLUMN successors SET STATISTICS 0;
ALTER TABLE engine.delete_bitmap REPLICA IDENTITY NOTHING;
REVOKE ALL ON engine.delete_bitmap FROM PUBLIC;

-- Where the rows went that a packing transaction has moved: old and new places, 12 bytes a row, some hundred rows an entry.
CREATE TABLE engine.row_move (
    storage_id     int8   NOT NULL,
    mover          int8   NOT NULL,
    first_old      int8   NOT NULL,
    moves          bytea  NOT NULL,
    CONSTRAINT row_move_pkey PRIMARY KEY (storage_id, mover, first_old)
) USING heap WITH (vacuum_truncate = off);
ALTER TABLE engine.row_move ALTER COLUMN moves SET STORAGE PLAIN, ALTER COLUMN moves SET STATISTICS 0;
ALTER TABLE engine.row_move REPLICA IDENTITY NOTHING;
REVOKE ALL ON engine.row_move FROM PUBLIC;

-- ---------------------------------------------------------------- the access method
CREATE FUNCTION engine.colcompress_handler(internal) RETURNS table_am_handler
    AS 'MODULE_PATHNAME', 'colcompress_handler' LANGUAGE C STRICT;
CREATE ACCESS METHOD colcompress TYPE TABLE HANDLER engine.colcompress_handler;
COMMENT ON ACCESS METHOD colcompress IS 'columnar storage: recent rows in heap pages, the rest in compressed stripes';

-- ---------------------------------------------------------------- options
-- Options of colcompress tables. They live in pg_class.reloptions; these are other ways to set and see them.

CREATE FUNCTION engine.alter_colcompress_table_set(
    table_name regclass,
    chunk_group_row_limit int DEFAULT NULL,
    stripe_row_limit int DEFAULT NULL,
    compression name DEFAULT NULL,
    compression_level int DEFAULT NULL,
    orderby text DEFAULT NULL,
    index_scan bool DEFAULT NULL,
    packing bool DEFAULT NULL,
    packing_rows int DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_alter_colcompress_table_set';

COMMENT ON FUNCTION engine.alter_colcompress_table_set(regclass, int, int, name, int, text, bool, bool, int)
IS 'ALTER TABLE ... SET (...) for the options that are not NULL';

CREATE FUNCTION engine.alter_colcompress_table_reset(
    table_name regclass,
    chunk_group_row_limit bool DEFAULT false,
    stripe_row_limit bool DEFAULT false,
    compression bool DEFAULT false,
    compression_level bool DEFAULT false,
    orderby bool DEFAULT false,
    index_scan bool DEFAULT false,
    packing bool DEFAULT false,
    packing_rows bool DEFAULT false)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_alter_colcompress_table_reset';

COMMENT ON FUNCTION engine.alter_colcompress_table_reset(regclass, bool, bool, bool, bool, bool, bool, bool, bool)
IS 'ALTER TABLE ... RESET (...) for the options that are true';

CREATE FUNCTION engine.colcompress_option(table_name regclass, option name)
RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'colonnade_colcompress_option';

COMMENT ON FUNCTION engine.colcompress_option(regclass, name)
IS 'value in force of one option of a colcompress table';

-- As oids: there is an operator for regproc and regprocedure only if somebody has put one into a schema of the path.
CREATE VIEW engine.colcompress_options AS
SELECT c.oid::regclass AS table_name,
       engine.colcompress_option(c.oid, 'chunk_group_row_limit')::int AS chunk_group_row_limit,
       engine.colcompress_option(c.oid, 'stripe_row_limit')::int AS stripe_row_limit,
       engine.colcompress_option(c.oid, 'compression')::name AS compression,
       engine.colcompress_option(c.oid, 'compression_level')::int AS compression_level,
       engine.colcompress_option(c.oid, 'orderby') AS orderby,
       engine.colcompress_option(c.oid, 'index_scan')::bool AS index_scan,
       engine.colcompress_option(c.oid, 'packing')::bool AS packing,
       engine.colcompress_option(c.oid, 'packing_rows')::int AS packing_rows
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_am a ON a.oid = c.relam
WHERE a.amhandler::pg_catalog.oid OPERATOR(pg_catalog.=) 'engine.colcompress_handler(internal)'::pg_catalog.regprocedure::pg_catalog.oid
  AND c.relkind IN ('r', 'm');

COMMENT ON VIEW engine.colcompress_options
IS 'options in force of every colcompress table, defaults included';

GRANT SELECT ON engine.colcompress_options TO PUBLIC;

-- ---------------------------------------------------------------- merging

CREATE FUNCTION engine.colcompress_merge(table_name regclass)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_colcompress_merge';

COMMENT ON FUNCTION engine.colcompress_merge(regclass)
IS 'rewrite a colcompress table into full stripes, sorted by its option orderby; locks the table exclusively';

CREATE PROCEDURE engine.colcompress_repack(table_name regclass)
LANGUAGE c
AS 'MODULE_PATHNAME', 'colonnade_colcompress_repack';

COMMENT ON PROCEDURE engine.colcompress_repack(regclass)
IS 'turn the heap rows of a colcompress table into stripes while others read and write it; commits after each stripe';

CREATE VIEW engine.packing_progress AS
SELECT pid, datname, query AS activity, xact_start
FROM pg_catalog.pg_stat_activity
WHERE backend_type = 'colonnade packing' AND state = 'active';

COMMENT ON VIEW engine.packing_progress
IS 'what packing in the background is doing now: the table, and how many rows it has moved in this round';

GRANT SELECT ON engine.packing_progress TO PUBLIC;

CREATE FUNCTION engine.unpack(table_name regclass)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_unpack';

COMMENT ON FUNCTION engine.unpack(regclass)
IS 'rewrite a colcompress table so that all its rows are heap rows, as publishing it needs; locks the table exclusively';

-- ---------------------------------------------------------------- checking
CREATE FUNCTION engine.verify(table_name regclass, OUT kind text, OUT stripe bigint, OUT block bigint, OUT tid tid, OUT detail text)
RETURNS SETOF record
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'colonnade_verify';

COMMENT ON FUNCTION engine.verify(regclass)
IS 'faults in the storage of a colcompress table and its indexes, one row each; none when it is healthy';

CREATE FUNCTION engine.colcompress_relation_storageid(table_name regclass)
RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_colcompress_relation_storageid';

COMMENT ON FUNCTION engine.colcompress_relation_storageid(regclass)
IS 'key of the table''s stripes in the directory; NULL before anything is stored';

-- A stripe says how many rows a table has where, which not everybody may know: only tables that the user may
-- read, and none of which row security hides rows.
CREATE VIEW engine.colcompress_stripes WITH (security_barrier) AS
SELECT t.table_name,
       s.first_row,
       s.row_count,
       s.first_block,
       s.block_count,
       s.byte_length
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

COMMENT ON VIEW engine.colcompress_stripes
IS 'stripes of the colcompress tables that the user may read: rows and place of each';

GRANT SELECT ON engine.colcompress_stripes TO PUBLIC;

CREATE FUNCTION engine.storage_health(table_name regclass, OUT hot_rows bigint, OUT cold_rows bigint, OUT dead_rows bigint, OUT stripes bigint, OUT small_stripes bigint,
    OUT overlapping_stripes bigint, OUT file_bytes bigint, OUT stripe_bytes bigint, OUT dead_bytes bigint, OUT advice text)
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'colonnade_storage_health';

COMMENT ON FUNCTION engine.storage_health(regclass)
IS 'how a colcompress table is stored, and what would help';

CREATE VIEW engine.storage_health WITH (security_barrier) AS
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

COMMENT ON VIEW engine.storage_health
IS 'how each colcompress table that the user may read is stored, and what would help';

GRANT SELECT ON engine.storage_health TO PUBLIC;
