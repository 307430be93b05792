\echo Use "CREATE EXTENSION colonnade" to load this file. \quit

CREATE SCHEMA engine;
GRANT USAGE ON SCHEMA engine TO PUBLIC;

-- ---------------------------------------------------------------- storage: the directory of stripes
-- One row a stripe (state 's') or reserved range of row numbers (state 'r'). Read and written by the access method
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
-- A publication FOR ALL TABLES would publish it otherwise.
ALTER TABLE engine.stripe REPLICA IDENTITY NOTHING;
REVOKE ALL ON engine.stripe FROM PUBLIC;

-- ---------------------------------------------------------------- the access method
CREATE FUNCTION engine.colcompress_handler(internal) RETURNS table_am_handler
    AS 'MODULE_PATHNAME', 'colcompress_handler' LANGUAGE C STRICT;
CREATE ACCESS METHOD colcompress TYPE TABLE HANDLER engine.colcompress_handler;
COMMENT ON ACCESS METHOD colcompress IS 'columnar storage: recent rows in heap pages, the rest in compressed stripes';
