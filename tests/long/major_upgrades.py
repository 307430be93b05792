"""pg_upgrade from each major version to each later one: everything is there, and works.

Called by scripts/test.sh upgrades. Servers come from scripts/postgres.sh, libraries that are missing are
built. MAJORS='15 18' limits the versions, PAIRS='15-18 16-17' the pairs, MODES='copy link swap chain' the
ways.

A cluster of each old version is filled once, with transaction numbers beyond 2^32. It has three databases:
`full` has every kind of object on columnar tables, `first` has the extension's version 0.1, `by_default` has
tables that name no access method. Each pair and way upgrades a copy of it. Then:

- all answers, definitions and the extension's own tables are those of before, down to ctid and xmin;
- `engine.verify` finds nothing;
- columnar tables and twins of heap answer the same after INSERT, UPDATE, DELETE, COPY, MERGE, merge, repack,
  packing and VACUUM;
- a standby of the new server says what its primary says.

Last, one cluster goes from each version to the next, and is changed in between.
"""

import os
import subprocess
import time
from itertools import combinations
from pathlib import Path

from harness import clusters
from harness.checks import Checks
from harness.server import ROOT, TARGET, Server, ServerError, as_server_user, end_orderly, pg_config, private_base, run
from harness.standby import make_standby, wait_for_replay

WAYS = ("copy", "link", "swap")
MODES = (*WAYS, "chain")
SETTINGS = {"autovacuum": "off", "autovacuum_freeze_max_age": "2000000000", "shared_buffers": "64MB", "max_wal_size": "256MB",
            "colonnade.packing_naptime": "1s"}
DATABASES = ("full", "first", "by_default")

# Beside what clusters.fill makes. OLD is the old server's major version.
OBJECTS = """
CREATE ROLE upgrade_reader;
CREATE TYPE mood AS ENUM ('low', 'high');
ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high';
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE COLLATION plain_c (PROVIDER = libc, LOCALE = 'C');

-- every option, types whose values hold numbers of the catalog, a generated and an identity column
CREATE TABLE kinds (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m mood, p pair, d positive, r int4range, moods mood[], j jsonb, n numeric,
        u uuid, ts timestamptz, address inet, bits varbit, c text COLLATE plain_c, "Ein Name" float8, twice int GENERATED ALWAYS AS (d * 2) STORED, by bytea)
    USING colcompress WITH (orderby = 'm, c DESC NULLS LAST, "Ein Name"', compression = lz4, stripe_row_limit = 5000, chunk_group_row_limit = 1000,
        packing = off, packing_rows = 77, index_scan = on, fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = off);
INSERT INTO kinds (m, p, d, r, moods, j, n, u, ts, address, bits, c, "Ein Name", by)
    SELECT (enum_range(NULL::mood))[1 + g % 3], ROW(g, 'p' || g)::pair, g, int4range(g, g + 5), ARRAY['high', 'low']::mood[], jsonb_build_object('a', g), g / 7.0,
        md5(g::text)::uuid, '2024-01-01'::timestamptz + g * interval '1 minute', '10.0.0.1'::inet + g, g::bit(20)::varbit, 'c' || g % 500, sqrt(g), decode(md5(g::text), 'hex')
    FROM generate_series(1, 12000) g;
INSERT INTO kinds (m, p, d, moods) SELECT 'middle'::mood, ROW(1, 'hot')::pair, 5, '{middle}'::mood[] FROM generate_series(1, 50);
ALTER TABLE kinds ALTER n SET STATISTICS 500, ALTER p SET STATISTICS 0, ALTER j SET STORAGE EXTERNAL, ALTER c SET COMPRESSION pglz;
COMMENT ON TABLE kinds IS 'a user''s';
GRANT SELECT (id, m), UPDATE (n) ON kinds TO upgrade_reader;
CREATE STATISTICS kinds_together (ndistinct, dependencies, mcv) ON m, c FROM kinds;

-- partitions: made, attached with other column numbers, of heap, of two levels
CREATE TABLE sales (day date NOT NULL, id int NOT NULL, amount numeric(12, 2), PRIMARY KEY (day, id)) PARTITION BY RANGE (day) WITH (compression = lz4, orderby = 'day DESC');
CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2024-02-01') USING colcompress WITH (orderby = 'id');
CREATE TABLE sales_2 (gone int, id int NOT NULL, amount numeric(12, 2), too text, day date NOT NULL) USING colcompress;
INSERT INTO sales_2 SELECT g, g, g / 3.0, 'x', '2024-02-01'::date + g % 28 FROM generate_series(1, 12000) g;
ALTER TABLE sales_2 DROP COLUMN gone, DROP COLUMN too;
ALTER TABLE sales ATTACH PARTITION sales_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE sales_3 PARTITION OF sales FOR VALUES FROM ('2024-03-01') TO ('2024-04-01') USING heap;
CREATE TABLE sales_rest PARTITION OF sales DEFAULT PARTITION BY HASH (id);
CREATE TABLE sales_rest_0 PARTITION OF sales_rest FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING colcompress;
CREATE TABLE sales_rest_1 PARTITION OF sales_rest FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING colcompress;
CREATE INDEX sales_amount ON sales (amount);
INSERT INTO sales SELECT '2024-01-01'::date + g % 31, g, g / 3.0 FROM generate_series(1, 12000) g;
INSERT INTO sales SELECT '2024-03-01'::date + g % 60, g, g / 3.0 FROM generate_series(1, 30000) g;

-- inheritance, over both access methods
CREATE TABLE base (id int NOT NULL, v text DEFAULT 'base', CHECK (id > 0)) USING colcompress;
CREATE TABLE derived (more int) INHERITS (base) USING colcompress;
CREATE TABLE derived_heap (other int) INHERITS (base) USING heap;
CREATE TABLE second (another int) INHERITS (derived, derived_heap) USING colcompress;
INSERT INTO base SELECT g FROM generate_series(1, 11000) g;
INSERT INTO derived SELECT g, 'derived', g FROM generate_series(1, 11000) g;
INSERT INTO second (id, v) SELECT g, 'second' FROM generate_series(1, 100) g;
ALTER TABLE base ADD COLUMN late int DEFAULT 42;
ALTER TABLE derived DROP COLUMN more;

-- the other access method, with rows of each kind
CREATE TABLE in_rows (id int PRIMARY KEY, m mood, doc jsonb, note text) USING rowcompress WITH (batch_size = 3000, pruning_column = 'm', packing_rows = 77);
INSERT INTO in_rows SELECT g, (enum_range(NULL::mood))[1 + g % 3], jsonb_build_object('a', g, 'b', repeat('x', g % 30)), 'note ' || g FROM generate_series(1, 12000) g;
INSERT INTO in_rows SELECT g, 'middle', '{"hot": true}', 'hot' FROM generate_series(12001, 12050) g;
UPDATE in_rows SET note = 'changed' WHERE id % 500 = 1;
DELETE FROM in_rows WHERE id BETWEEN 1000 AND 3000;
DELETE FROM in_rows WHERE id = 7777;

-- our own type, with indexes of each kind, in ranges, arrays and a domain
CREATE DOMAIN even AS engine.uint8 CHECK (VALUE % 2 = 0);
CREATE TABLE unsigned (id engine.uint8 PRIMARY KEY, n engine.uint8, e even, r engine.uint8range, many engine.uint8[]) USING colcompress WITH (orderby = 'n', packing_rows = 77);
INSERT INTO unsigned SELECT 9223372036854775800 + g::numeric, g % 100, g * 2, engine.uint8range((g - 1)::engine.uint8, g::engine.uint8, '[]'), ARRAY[g, 9223372036854775808]::engine.uint8[] FROM generate_series(1, 12000) g;
INSERT INTO unsigned (id, n) SELECT g, g FROM generate_series(1, 50) g;
CREATE INDEX ON unsigned USING hash (n);
CREATE TABLE unsigned_heap USING heap AS SELECT * FROM unsigned;
CREATE INDEX ON unsigned_heap USING brin (id, n engine.uint8_minmax_multi_ops);
CREATE VIEW unsigned_sums AS SELECT n, sum(id), max(id + 1), min(id & n) FROM unsigned WHERE id > 5 AND n < 90::numeric GROUP BY n;

-- foreign keys each way, a constraint that was not checked, a trigger, row security, triggers of keys
CREATE TABLE customers (id int PRIMARY KEY, name text UNIQUE, boss int REFERENCES customers) USING colcompress;
CREATE TABLE heap_side (id int PRIMARY KEY) USING heap;
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL REFERENCES customers ON UPDATE CASCADE DEFERRABLE, side int REFERENCES heap_side,
    n int CONSTRAINT small CHECK (n < 1000000)) USING colcompress;
CREATE TABLE heap_orders (customer int REFERENCES customers ON DELETE CASCADE) USING heap;
INSERT INTO customers SELECT g, 'c' || g, nullif(g / 2, 0) FROM generate_series(1, 11000) g;
INSERT INTO heap_side SELECT g FROM generate_series(1, 10) g;
INSERT INTO orders SELECT g, 1 + g % 11000, 1 + g % 10, g FROM generate_series(1, 15000) g;
INSERT INTO heap_orders SELECT 11000;
ALTER TABLE orders ADD CONSTRAINT unchecked CHECK (n <> 5) NOT VALID;
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := coalesce(NEW.n, 0); RETURN NEW; END $$;
CREATE TRIGGER noted BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION noted();
ALTER TABLE customers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON customers FOR SELECT TO upgrade_reader USING (id < 10);
GRANT SELECT ON customers TO upgrade_reader;

-- exclusion, unlogged, a view of views, materialised views, tables without rows, columns or file
CREATE TABLE rooms (r int4range, EXCLUDE USING gist (r WITH &&)) USING colcompress;
INSERT INTO rooms SELECT int4range(g * 10, g * 10 + 5) FROM generate_series(1, 12000) g;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, v text) USING colcompress;
INSERT INTO unlogged SELECT g, 'u' || g FROM generate_series(1, 12000) g;
INSERT INTO unlogged SELECT g, 'hot' FROM generate_series(12001, 12100) g;
CREATE MATERIALIZED VIEW by_day USING colcompress WITH (orderby = 'day') AS SELECT day, count(*), sum(amount) FROM sales GROUP BY day;
CREATE UNIQUE INDEX ON by_day (day);
CREATE MATERIALIZED VIEW not_yet USING colcompress AS SELECT * FROM base WITH NO DATA;
CREATE VIEW health AS SELECT table_name, advice FROM engine.storage_health;
CREATE TABLE never (id int PRIMARY KEY, v text) USING colcompress;
CREATE TABLE emptied (id int) USING colcompress;
INSERT INTO emptied SELECT g FROM generate_series(1, 12000) g;
TRUNCATE emptied;
CREATE TABLE no_columns () USING colcompress;
INSERT INTO no_columns DEFAULT VALUES;

-- columns dropped and added, before and after stripes; long values in stripes and beside heap rows
CREATE TABLE changed (gone int, id int, lost text, kept text) USING colcompress;
INSERT INTO changed SELECT g, g, 'lost', 'kept' || g FROM generate_series(1, 12000) g;
ALTER TABLE changed DROP COLUMN gone, DROP COLUMN lost, ADD COLUMN later int DEFAULT 7, ADD COLUMN empty text;
INSERT INTO changed SELECT g, 'kept' || g, g, 'full' FROM generate_series(12001, 24000) g;
ALTER TABLE changed ADD COLUMN latest timestamptz DEFAULT '2024-05-05', ALTER later SET DEFAULT 8, DROP COLUMN empty;
INSERT INTO changed SELECT g, 'hot' FROM generate_series(24001, 24100) g;
CREATE TABLE long (id int, v text, w text) USING colcompress;
ALTER TABLE long ALTER w SET STORAGE EXTERNAL;
INSERT INTO long SELECT g, repeat(md5(g::text), 100), repeat('w', 5000) FROM generate_series(1, 12000) g;
INSERT INTO long SELECT g, (SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 200) i), repeat('w', 5000) FROM generate_series(12001, 12020) g;

-- indexes of every kind over cold, hot, changed and deleted rows
CREATE TABLE indexed (id int PRIMARY KEY, k int, v text, r int4range, a int[], p point, ts tsvector) USING colcompress WITH (stripe_row_limit = 3000);
INSERT INTO indexed SELECT g, g % 1000, md5(g::text), int4range(g, g + 10), ARRAY[g, g % 10], point(g, -g), to_tsvector('simple', 'w' || g % 100 || ' all') FROM generate_series(1, 12000) g;
CREATE INDEX i_btree ON indexed (k DESC NULLS LAST) INCLUDE (v);
CREATE UNIQUE INDEX i_unique ON indexed (v) NULLS NOT DISTINCT;
CREATE INDEX i_hash ON indexed USING hash (v);
CREATE INDEX i_gin ON indexed USING gin (a);
CREATE INDEX i_words ON indexed USING gin (ts) WITH (fastupdate = on);
CREATE INDEX i_gist ON indexed USING gist (r);
CREATE INDEX i_points ON indexed USING gist (p);
CREATE INDEX i_spgist ON indexed USING spgist (p);
CREATE INDEX i_texts ON indexed USING spgist (v);
CREATE INDEX i_brin ON indexed USING brin (id) WITH (pages_per_range = 4);
CREATE INDEX i_multi ON indexed USING brin (k int4_minmax_multi_ops);
CREATE INDEX i_bloom ON indexed USING brin (v text_bloom_ops);
CREATE INDEX i_expression ON indexed (lower(v) COLLATE plain_c) WITH (fillfactor = 60);
CREATE INDEX i_partial ON indexed (k) WHERE id % 2 = 0;
INSERT INTO indexed SELECT g, g % 1000, md5(g::text), int4range(g, g + 10), ARRAY[g, g % 10], point(g, -g), to_tsvector('simple', 'w' || g % 100) FROM generate_series(12001, 12200) g;
UPDATE indexed SET v = 'v' || id WHERE id % 97 = 0;
UPDATE indexed SET k = k + 1 WHERE id BETWEEN 4000 AND 5000;
DELETE FROM indexed WHERE id % 101 = 0;
DELETE FROM indexed WHERE id BETWEEN 7000 AND 8000;
ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_pkey;
ALTER TABLE indexed CLUSTER ON i_btree;

-- published, another place
CREATE TABLE published (id int PRIMARY KEY, v text) USING colcompress;
INSERT INTO published SELECT g, 'p' || g FROM generate_series(1, 200) g;
CREATE PUBLICATION told FOR TABLE published WHERE (id < 100);
CREATE TABLE spaced (id int PRIMARY KEY, v text) USING colcompress WITH (orderby = 'v') TABLESPACE elsewhere;
CREATE INDEX spaced_v ON spaced (v) TABLESPACE elsewhere;
INSERT INTO spaced SELECT g, 's' || g FROM generate_series(1, 12000) g;
INSERT INTO spaced SELECT g, 'hot' || g FROM generate_series(12001, 12100) g;

-- rows that packing has moved
CREATE TABLE packed (id int PRIMARY KEY, v text) USING colcompress WITH (index_scan = on);
SET colonnade.stripe_threshold_rows = 1000000;
INSERT INTO packed SELECT g, 'one by one ' || g FROM generate_series(1, 30000) g;
RESET colonnade.stripe_threshold_rows;
"""
# Access methods of partitioned tables are new in 17.
OBJECTS_17 = """
CREATE TABLE above (k int, v text) PARTITION BY RANGE (k) USING colcompress WITH (orderby = 'v');
CREATE TABLE above_1 PARTITION OF above FOR VALUES FROM (0) TO (20000);
INSERT INTO above SELECT g, 'a' || g FROM generate_series(0, 12000) g;
"""
BY_DEFAULT = """
CREATE TABLE first (id int PRIMARY KEY, v text);
INSERT INTO first SELECT g, 'f' || g FROM generate_series(1, 12000) g;
CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (20000);
INSERT INTO parts SELECT g FROM generate_series(1, 12000) g;
CREATE MATERIALIZED VIEW view AS SELECT count(*) FROM first;
CREATE TABLE heap_table (id int) USING heap;
"""
# pg_upgrade takes logical slots along from this version on, and can swap folders to this one.
SLOTS, SWAP = 17, 18
# Rows of every table with their places, and those of the extension's own tables.
ROWS = r"""
SELECT format('SELECT %L, count(*), sum(hashtextextended(concat(ctid, '' '', xmin, '' '', r::text), 0)) FROM ONLY %s r', c.oid::regclass, c.oid::regclass)
FROM pg_class c WHERE relkind IN ('r', 'm') AND relispopulated AND relpersistence <> 't' AND relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
ORDER BY c.oid::regclass::text COLLATE "C" \gexec
"""
DEFINITIONS = """
SELECT c.oid::regclass, c.oid, relfilenode, reltoastrelid, amname, relkind, relpersistence, relreplident, relispopulated, reloptions, obj_description(c.oid, 'pg_class'),
    (SELECT array_agg(a ORDER BY a::text) FROM aclexplode(relacl) a WHERE grantee <> relowner),
    (SELECT spcname FROM pg_tablespace s WHERE s.oid = reltablespace)
FROM pg_class c LEFT JOIN pg_am a ON a.oid = relam WHERE relnamespace::regnamespace::text IN ('public', 'engine') AND relkind IN ('r', 'm', 'p', 'i', 'I')
    AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = c.oid AND NOT indisvalid) ORDER BY c.oid;
SELECT attrelid::regclass, attnum, attlen, attalign, attisdropped,
    CASE WHEN NOT attisdropped THEN ROW(attname, atttypid::regtype, attstorage, attcompression, nullif(attstattarget, -1), atthasmissing, attmissingval, attgenerated,
        attidentity, attnotnull, attislocal, attinhcount, attacl) END
FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'm', 'p') AND attnum > 0 ORDER BY attrelid, attnum;
SELECT indexrelid::regclass, pg_get_indexdef(indexrelid), indisclustered, indisreplident FROM pg_index JOIN pg_class c ON c.oid = indrelid
WHERE relnamespace = 'public'::regnamespace AND indisvalid ORDER BY indexrelid;
SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint WHERE contype <> 'n' AND connamespace = 'public'::regnamespace
ORDER BY conrelid, conname COLLATE "C";
SELECT adrelid::regclass, adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1, 2;
SELECT inhrelid::regclass, inhparent::regclass, inhseqno, pg_get_expr(relpartbound, c.oid) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid ORDER BY 1, 2;
SELECT pubname, tablename, rowfilter FROM pg_publication_tables ORDER BY 1, 2;
SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext;
SELECT polname, polrelid::regclass, pg_get_expr(polqual, polrelid) FROM pg_policy;
SELECT tgname, tgrelid::regclass, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1;
SELECT extversion FROM pg_extension WHERE extname = 'colonnade';
SELECT * FROM engine.colcompress_options ORDER BY table_name::text COLLATE "C";
SELECT pg_describe_object(classid, objid, objsubid) COLLATE "C" AS member FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'colonnade') AND classid <> 'pg_type'::regclass
    -- The server makes these with the range type, and pg_upgrade does not note that they are members.
    AND pg_describe_object(classid, objid, objsubid) !~ 'cast from engine.uint8range|function engine.uint8(multi)?range[(]' ORDER BY member;
"""
# What the planner knows; reltuples is that of ANALYZE.
STATISTICS = """
SELECT relname, reltuples FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'm') ORDER BY 1;
SELECT tablename, attname, null_frac, avg_width, n_distinct, md5(concat(most_common_vals, most_common_freqs, histogram_bounds, correlation)) FROM pg_stats
WHERE schemaname = 'public' ORDER BY 1, 2, inherited;
"""
# Pages of loads that were rolled back stay until VACUUM.
WHOLE = clusters.PROBLEMS + " AND v.kind <> 'unclaimed'"
SPACE = "SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = 'elsewhere'"
# Questions that the scan, the vectorised executor and each index answer.
ANSWERS = """
SELECT m, count(*), sum(twice), min(c), max(n) FROM kinds GROUP BY m ORDER BY m;
SELECT (p).b, moods FROM kinds WHERE d = 4711;
SELECT day, count(*), sum(amount) FROM sales GROUP BY day ORDER BY day;
SELECT tableoid::regclass, count(*), sum(late), max(v) FROM base GROUP BY 1 ORDER BY 1;
SELECT count(*), sum(o.n) FROM orders o JOIN customers c ON c.id = o.customer WHERE c.name < 'c5';
SELECT later, latest, count(*), max(kept) FROM changed WHERE id % 2 = 0 GROUP BY 1, 2 ORDER BY 3 DESC, 1 LIMIT 3;
SELECT sum(length(v) + length(w)), sum(hashtext(v)) FROM long;
SELECT * FROM unsigned_sums ORDER BY n; SELECT sum(id), avg(n), variance(n) FROM unsigned_heap; SELECT count(*) FROM unsigned u JOIN indexed i ON u.n = i.k;
SELECT count(*) FROM by_day; SELECT count(*) FROM health WHERE table_name <> 'unlogged'::regclass; SELECT count(*) FROM no_columns; SELECT count(*) FROM never; SELECT count(*) FROM emptied;
SET ROLE upgrade_reader; SELECT count(*) FROM customers; SELECT count(*), max(m) FROM kinds; RESET ROLE;
SET enable_seqscan = off; SET colonnade.enable_scan = off;
SELECT sum(id) FROM indexed WHERE k = 7; SELECT id FROM indexed WHERE v = md5('4711'); SELECT id FROM indexed WHERE v = 'v97';
SELECT sum(id) FROM indexed WHERE a @> '{3}'; SELECT sum(id) FROM indexed WHERE ts @@ 'w7'::tsquery; SELECT sum(id) FROM indexed WHERE r @> 12100;
SELECT sum(id) FROM indexed WHERE p <@ box '((100, -100), (12100, -12100))'; SELECT sum(id) FROM indexed WHERE v ^@ 'ab'; SELECT sum(id) FROM indexed WHERE id BETWEEN 11900 AND 12100;
SELECT sum(id) FROM indexed WHERE lower(v) COLLATE plain_c > 'ff0'; SELECT sum(id) FROM indexed WHERE k = 8 AND id % 2 = 0;
SELECT count(*) FROM rooms WHERE r && int4range(5000, 5100); SELECT v FROM spaced WHERE id = 12050; SELECT id FROM spaced WHERE v = 's77'; SELECT v FROM packed WHERE id = 29999;
SELECT count(*) FROM unsigned WHERE n = 7; SELECT n, e, r, many FROM unsigned WHERE id = 9223372036854777000; SELECT count(*) FROM unsigned_heap WHERE n < 5 AND id > 9223372036854777000;
SELECT v FROM unlogged WHERE id IN (5, 12050); SELECT v FROM published WHERE id = 150;
"""
PREMISES = {
    "moved rows": "SELECT count(*) FROM engine.row_move",
    "rows that two lock": "SELECT count(*) FROM engine.row_proxy WHERE xmax::text::bigint BETWEEN 1 AND 1000000",
    "numbers beyond 2^32": "SELECT count(*) FROM engine.row_move WHERE mover > 4294967296",
    "an invalid index": "SELECT count(*) FROM pg_index WHERE NOT indisvalid",
}

# What both a columnar table and its twin of heap go through, {0} being the table. New rows have numbers above
# the one that is named here; those of the round before are deleted first.
COPIED = "".join(f"{g}\tcopied {g}\n" for g in range(200001, 212001))
CHANGES = {
    "t": ("id, k, v, big", 100000, """
        UPDATE {0} SET v = v || 'x' WHERE id % 50 IN (1, 3, 4); UPDATE {0} SET k = k + 1 WHERE id BETWEEN 3000 AND 3400; DELETE FROM {0} WHERE id % 50 = 5;
        DELETE FROM {0} WHERE id BETWEEN 1000 AND 1200; INSERT INTO {0} SELECT g, g % 100, 'new' FROM generate_series(100001, 112000) g;
        INSERT INTO {0} SELECT g, 5, 'one', repeat(md5(g::text), 200) FROM generate_series(112001, 112050) g;
        INSERT INTO {0} VALUES (7, 7, 'again') ON CONFLICT (id) DO UPDATE SET v = 'conflict';
        MERGE INTO {0} USING (SELECT g AS id FROM generate_series(2990, 3010) g UNION ALL SELECT 900001) s ON {0}.id = s.id
            WHEN MATCHED AND s.id < 3000 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 'merged in')"""),
    "packed": ("id, v", 200000, """
        UPDATE {0} SET v = 'changed' WHERE id % 1000 = 3; DELETE FROM {0} WHERE id % 1000 = 4; DELETE FROM {0} WHERE id BETWEEN 15000 AND 16000;
        COPY {0} FROM STDIN;\n""" + COPIED + "\\.\n"),
    "indexed": ("id, k, v, r, a, p::text, ts", 20000, """
        UPDATE {0} SET v = 'w' || id, r = int4range(id, id + 20), p = point(id, id) WHERE id % 89 = 1; UPDATE {0} SET a = a || 77, k = 5 WHERE id BETWEEN 9000 AND 10500;
        DELETE FROM {0} WHERE id % 103 = 0; INSERT INTO {0} SELECT g, g % 1000, md5(g::text), int4range(g, g + 10), ARRAY[g, g % 10], point(g, -g),
            to_tsvector('simple', 'w' || g % 100) FROM generate_series(20001, 31000) g"""),
    "changed": ("id, kept, later, latest", 30000, """
        UPDATE {0} SET later = later + 1 WHERE id % 500 = 1; DELETE FROM {0} WHERE id % 500 = 2; UPDATE {0} SET kept = 'k' WHERE id BETWEEN 11000 AND 13000;
        INSERT INTO {0} (id, kept, later, latest) SELECT g, 'new', g, '2024-06-06' FROM generate_series(30001, 42000) g"""),
    "sales": ("day, id, amount", 50000, """
        UPDATE {0} SET amount = 0 WHERE id % 500 = 1; UPDATE {0} SET day = day + 31, id = id + 1000000 WHERE id % 500 = 2 AND day < '2024-03-01'; DELETE FROM {0} WHERE id % 500 = 3;
        INSERT INTO {0} SELECT '2024-01-01'::date + g % 120, g, 1 FROM generate_series(50001, 90000) g"""),
    "spaced": ("id, v", 20000, "UPDATE {0} SET v = 'u' || v WHERE id % 100 = 1; DELETE FROM {0} WHERE id > 12050 OR id % 100 = 2; INSERT INTO {0} SELECT g, 'n' FROM generate_series(20001, 32000) g"),
    "unsigned": ("id, n, e, r, many", 18446744073709500000, """
        UPDATE {0} SET n = n + 1 WHERE n % 50 = 1; DELETE FROM {0} WHERE n % 50 = 2; UPDATE {0} SET e = e + 2 WHERE id > 9223372036854777000;
        INSERT INTO {0} (id, n, e) SELECT 18446744073709500000 + g::numeric, g, 2 * g FROM generate_series(1, 12000) g"""),
    "in_rows": ("id, m, doc::text, note", 20000, """
        UPDATE {0} SET note = 'u' || note WHERE id % 500 = 1; DELETE FROM {0} WHERE id % 500 = 2; UPDATE {0} SET doc = doc || '{{"c": 1}}' WHERE id BETWEEN 9000 AND 10500;
        INSERT INTO {0} SELECT g, 'middle', jsonb_build_object('a', g), 'new' FROM generate_series(20001, 32000) g"""),
    "unlogged": ("id, v", 20000, "UPDATE {0} SET v = 'u' || v WHERE id % 100 = 1; DELETE FROM {0} WHERE id > 12050 OR id % 100 = 2; INSERT INTO {0} SELECT g, 'n' FROM generate_series(20001, 32000) g"),
}
# What each leaves the rows what they are.
UPKEEP = ("SELECT engine.colcompress_merge('t')", "CALL engine.colcompress_repack('packed')", "SELECT engine.colcompress_merge('sales_2')", "CALL engine.colcompress_repack('sales')",
          "CALL engine.colcompress_repack('changed')", "CALL engine.colcompress_repack('in_rows')", "CALL engine.colcompress_repack('indexed')", "SELECT engine.unpack('unlogged')", "VACUUM", "REFRESH MATERIALIZED VIEW by_day",
          "REFRESH MATERIALIZED VIEW not_yet", "REINDEX TABLE indexed", "ALTER TABLE spaced SET TABLESPACE pg_default", "ANALYZE", "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING)", "VACUUM FULL spaced")
REFUSED = {
    "a CHECK": ("INSERT INTO base VALUES (-1)", "base_id_check"),
    "a foreign key": ("INSERT INTO orders VALUES (99999, 99999)", "orders_customer_fkey"),
    "a foreign key of a cold row": ("DELETE FROM customers WHERE id = 5", "_fkey"),
    "an exclusion": ("INSERT INTO rooms VALUES ('[5001,5003)')", "rooms_r_excl"),
    "a unique index": ("INSERT INTO indexed (id, v) VALUES (99999, md5('11'))", "i_unique"),
    "a primary key": ("INSERT INTO sales VALUES ('2024-02-02', 1, 1)", "sales_2_pkey"),
    "a trigger and an unchecked CHECK": ("UPDATE orders SET n = 5 WHERE id = 6", "unchecked"),
}
checks = Checks("major_upgrades")


# -- servers ----------------------------------------------------------------------------------------


def stage(major):
    """The stage of a major version; its library is built where there is none."""
    if not (TARGET / "built" / f"pg{major}" / "dev" / "colonnade.so").exists():
        subprocess.run([ROOT / "scripts/build.sh", "dev"], check=True, env={**os.environ, "PG": str(major)})
    laid = subprocess.run([ROOT / "scripts/stage.sh", "dev"], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "PG": str(major)})
    return Path(laid.stdout.splitlines()[-1])


def wanted_pairs():
    named = os.environ.get("PAIRS")
    if named:
        return [tuple(map(int, pair.split("-"))) for pair in named.split()]
    return list(combinations(sorted(map(int, os.environ.get("MAJORS", "15 16 17 18").split())), 2))


def new_server(name, where, settings=None):
    """A server of that stage, without a cluster."""
    return Server(private_base(name, temporary=True), stage=where, settings={**SETTINGS, **(settings or {})})


def clone(filled, where):
    """A copy of a server that is down, its tablespace included."""
    copy = new_server("old", where)
    run(as_server_user(["cp", "-a", filled.data, filled.base / "space", copy.base]))
    for link in (copy.data / "pg_tblspc").iterdir():
        run(as_server_user(["ln", "-sfn", copy.base / "space", link]))
    copy.configure()
    return copy


# -- before -----------------------------------------------------------------------------------------


def knows_versions(where):
    """Whether the servers of a stage keep versions of columns among their options, as minor releases of late
    2026 do."""
    programs = next(where.glob("postgresql/*/bin"), None) or Path(pg_config("--bindir"))
    return b"pg_attver" in (programs / "postgres").read_bytes()


def forget_versions(server):
    """Takes the versions of columns away. Minor releases from before them refuse any table that has some. The
    old server then refuses values of composite types, new ones do not look."""
    for database in DATABASES:
        server.sql("UPDATE pg_attribute SET attoptions = (SELECT array_agg(o) FROM unnest(attoptions) o WHERE o !~ '^pg_attver=') WHERE attoptions::text ~ 'pg_attver='", database)


def fill(server, major):
    """Makes and fills the old cluster."""
    server.init()
    server.start()
    server.sql("UPDATE pg_database SET datallowconn = true")
    for number, epoch in clusters.JUMPS:
        clusters.jump(server, number, epoch)
        done = clusters.freeze(server)
        assert done.returncode == 0, done.stdout
    server.sql("UPDATE pg_database SET datallowconn = datname <> 'template0'")
    run(as_server_user(["mkdir", server.base / "space"]))
    server.sql(f"CREATE TABLESPACE elsewhere LOCATION '{server.base / 'space'}'")
    for database in DATABASES:
        server.create_database(database, extension=False)
    server.sql("CREATE EXTENSION colonnade", "full")
    clusters.fill(server, "full")
    server.sql(OBJECTS + (OBJECTS_17 if major >= 17 else ""), "full")
    reader, locker, other = (server.session("full") for _ in range(3))
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM packed")
    server.sql("CALL engine.colcompress_repack('packed')", "full")
    for session in (locker, other):
        session.run("BEGIN; SELECT id FROM t WHERE id IN (11, 12, 5011) FOR SHARE")
    for session in (locker, other, reader):
        session.run("COMMIT")
        session.close()
    failed, _, _ = server.sql("CREATE UNIQUE INDEX CONCURRENTLY invalid ON indexed (k)", "full", check=False)
    assert failed, "the premise: an index that could not be built"
    server.sql("CREATE EXTENSION colonnade VERSION '0.1'", "first")
    clusters.fill(server, "first")
    server.sql("CREATE EXTENSION colonnade; ALTER DATABASE by_default SET default_table_access_method = colcompress; "
               "ALTER ROLE postgres IN DATABASE by_default SET default_table_access_method = colcompress", "by_default")
    server.sql(BY_DEFAULT, "by_default")
    for database in DATABASES:
        server.sql("ANALYZE", database)
    if major >= SLOTS:
        server.sql("SELECT pg_create_logical_replication_slot('kept', 'pgoutput')", "full")
    for what, question in PREMISES.items():
        assert int(server.sql(question, "full")) > 0, f"the premise: {what}"


def told(server, standby=False):
    """What a server says of its databases: {what: text}. Of a standby, or to compare with one: without
    unlogged tables."""
    found = {}
    for database in DATABASES:
        found[f"rows of {database}"] = server.sql(ROWS.replace("<> 't'", "= 'p'") if standby else ROWS, database)
        found[f"definitions of {database}"] = server.sql(DEFINITIONS, database)
    found["answers"] = server.sql("\n".join(line for line in ANSWERS.splitlines() if not (standby and "FROM unlogged" in line)), "full")
    found["statistics"] = server.sql(STATISTICS, "full")
    return found


# -- the upgrade ------------------------------------------------------------------------------------


def refused_without_preloading(filled, old_stage, new_stage, name):
    """pg_upgrade --check says what is missing where the new cluster does not preload the library."""
    old, new = clone(filled, old_stage), new_server("unprepared", new_stage, {"shared_preload_libraries": ""})
    try:
        new.init()
        done = clusters.pg_upgrade(old, new, "--check")
        good = done.returncode != 0 and "loadable_libraries.txt" in done.stdout and "Set shared_preload_libraries = 'colonnade'" in done.stdout
        checks.say(f"{name} --check says that the library is not preloaded", good, done.stdout)
    finally:
        old.destroy()
        new.destroy()


def upgrade(old, new_stage, name, way, check_first):
    """The new server, running, of an old one that is down; None where pg_upgrade fails."""
    new = new_server("new", new_stage)
    try:
        new.init()
        if check_first:
            done = clusters.pg_upgrade(old, new, "--check", f"--{way}")
            checks.say(f"{name}: pg_upgrade --check", done.returncode == 0, done.stdout)
        started = time.monotonic()
        with checks.part(f"{name}: pg_upgrade") as add:
            clusters.upgraded(old, new, f"--{way}", "--jobs", 1 if way == "copy" else 2)
            add(f"{time.monotonic() - started:.1f} s")
            return new
    except BaseException:
        new.destroy()
        raise
    new.destroy()
    return None


# -- after ------------------------------------------------------------------------------------------


def same(name, found, wanted, leave=()):
    """A test for each thing that is told."""
    for what in wanted:
        if what not in leave:
            lines = sorted(set(found[what].splitlines()) ^ set(wanted[what].splitlines()))
            checks.say(f"{name}: {what}", found[what] == wanted[what], "\n".join(lines[:20]) or f"{found[what][:500]}\n{wanted[what][:500]}")


def whole(server, name):
    """The verifier finds nothing."""
    for database in DATABASES:
        faults = server.sql(WHOLE, database)
        checks.say(f"{name}: engine.verify finds nothing in {database}", faults == "", faults)


def twin_digests(server):
    """What each table and its twin are: {table: (rows, rows of the twin)}."""
    return {table: tuple(server.sql(f"SELECT count(*), sum(hashtextextended(ROW({columns})::text, 0)) FROM {name}", "full") for name in (table, f"twin_{table}"))
            for table, (columns, *_) in CHANGES.items()}


def compare_twins(server, name):
    """Each table has the rows of its twin."""
    different = {table: both for table, both in twin_digests(server).items() if both[0] != both[1]}
    checks.say(f"{name}: tables are as their twins of heap", not different, different)


def change(server, name):
    """Changes of every kind, to columnar tables and to twins of heap."""
    for what, (statement, word) in REFUSED.items():
        status, _, errors = server.sql(statement, "full", check=False)
        checks.say(f"{name}: {what} holds", status != 0 and word in errors, errors or "no error")
    for table, (_, new, text) in CHANGES.items():
        server.sql(f"DROP TABLE IF EXISTS twin_{table}; CREATE TABLE twin_{table} USING heap AS TABLE {table}", "full")
        if table == "t":
            server.sql("ALTER TABLE twin_t ADD PRIMARY KEY (id)", "full")
        for target in (table, f"twin_{table}"):
            server.sql(f"DELETE FROM {target} WHERE id > {new};" + text.format(target), "full")
    compare_twins(server, f"{name}, changed")
    whole(server, f"{name}, changed")
    for statement in UPKEEP:
        server.sql(statement, "full")
    compare_twins(server, f"{name}, merged, packed and vacuumed")
    pack(server, name)
    whole(server, f"{name}, merged, packed and vacuumed")
    age = server.sql("SELECT oid::regclass, age(relfrozenxid) FROM pg_class WHERE relfrozenxid <> 0 AND age(relfrozenxid) > 100000", "full")
    checks.say(f"{name}: VACUUM has frozen every table", age == "", age)


def pack(server, name):
    """The worker in the background packs rows that came one by one."""
    server.sql("SET colonnade.stripe_threshold_rows = 1000000; TRUNCATE never; INSERT INTO never SELECT g, 'n' || g FROM generate_series(1, 12000) g", "full")
    server.sql("ALTER SYSTEM SET colonnade.packing = on")
    server.sql("SELECT pg_reload_conf()")
    deadline, hot = time.monotonic() + 90, ""
    while time.monotonic() < deadline and hot != "0":
        time.sleep(0.5)
        hot = server.sql("SELECT hot_rows FROM engine.storage_health('never')", "full")
    server.sql("ALTER SYSTEM RESET colonnade.packing")
    server.sql("SELECT pg_reload_conf()")
    checks.say(f"{name}: packing works in the background", hot == "0", f"{hot} heap rows are left")


def by_default(server, name):
    """A database's own default makes columnar tables."""
    made = server.sql("CREATE TABLE made (id int); SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'made'; DROP TABLE made", "by_default")
    checks.say(f"{name}: default_table_access_method of a database holds", made == "colcompress", made)


def replicated(server, name):
    """A standby says what its primary says."""
    standby = make_standby(server, options=("-T", f"{server.sql(SPACE)}={server.base / 'standby_space'}"))
    try:
        wait_for_replay(server, standby)
        same(f"{name}, on a standby", told(standby, True), told(server, True))
        whole_there = standby.sql(WHOLE + " AND c.relpersistence = 'p'", "full")
        checks.say(f"{name}, on a standby: engine.verify finds nothing", whole_there == "", whole_there)
    finally:
        standby.stop("immediate")


def slot(server, name):
    """The logical slot has come along, and decodes what is published."""
    found = server.sql("INSERT INTO published VALUES (-1, 'later'); SELECT count(*) FROM pg_logical_slot_get_binary_changes("
                       "'kept', NULL, NULL, 'proto_version', '1', 'publication_names', 'told') WHERE get_byte(data, 0) = ascii('I')", "full", check=False)
    checks.say(f"{name}: a logical slot decodes what is published", found[1].strip() == "1", found)


def update_extension(server, name):
    """Version 0.1 works after the upgrade, and so does its update."""
    wanted = server.sql(clusters.DIGESTS, "first")
    server.sql("VACUUM; ALTER EXTENSION colonnade UPDATE", "first")
    version = server.sql("SELECT extversion = default_version FROM pg_extension JOIN pg_available_extensions ON name = extname WHERE extname = 'colonnade'", "first")
    checks.say(f"{name}: ALTER EXTENSION UPDATE from 0.1", version == "t", version)
    clusters.healthy(checks.say, server, "first", f"{name} and ALTER EXTENSION UPDATE", wanted)


def examine(server, major, name, before, first=True, last=True):
    """Everything that is looked at after an upgrade: the first of a cluster, the last."""
    # Before 18 pg_upgrade leaves the planner's statistics behind.
    same(name, told(server), before, () if major >= 18 else ("statistics",))
    whole(server, name)
    # Between upgrades the rows of the one change.
    for database in ("full", "first") if first else ("first",):
        clusters.healthy(checks.say, server, database, f"{name} in {database}", server.sql(clusters.DIGESTS, database))
    by_default(server, name)
    change(server, name)
    if last:
        update_extension(server, name)
    replicated(server, name)
    crashes = [line for line in server.log.read_text(errors="replace").splitlines() if any(word in line for word in ("terminated by signal", "PANIC:", "XX000"))]
    checks.say(f"{name}: the server stays up", not crashes, "\n".join(crashes))


def pair(filled, still, before, stages, old_major, new_major, way):
    """Upgrades a copy. `still` is what the old cluster says afterwards, where it can."""
    name, failed = f"{old_major} to {new_major} by {way}", checks.failed
    old, new = clone(filled, stages[old_major]), None
    try:
        new = upgrade(old, stages[new_major], name, way, check_first=True)
        if new:
            examine(new, new_major, name, before)
            if old_major >= SLOTS:
                slot(new, name)
            new.stop()
            if way == "copy" and still:
                old.start()
                same(f"{name}: the old cluster is as it was", told(old), still)
    except ServerError as error:
        checks.say(f"{name}: no statement fails", False, error)
    finally:
        if new and checks.failed > failed:
            checks.show_log(new)
        for server in (new, old):
            if server:
                server.destroy()


def chain(filled, before, stages):
    """From each version to the next, with changes in between."""
    majors = sorted(stages)
    # The tablespace stays where the first cluster has it.
    servers, name = [clone(filled, stages[majors[0]])], str(majors[0])
    try:
        for step, major in enumerate(majors[1:]):
            name, way = f"{name} to {major}", WAYS[step % len(WAYS)]
            server = upgrade(servers[-1], stages[major], name, "copy" if way == "swap" and major < SWAP else way, check_first=False)
            if server is None:
                return
            servers.append(server)
            examine(server, major, name, before, first=step == 0, last=major == majors[-1])
            before = told(server)
            server.stop()
    except ServerError as error:
        checks.say(f"{name}: no statement fails", False, error)
    finally:
        for server in servers:
            server.destroy()


def main():
    # Majors are named one by one here: the first is Debian's, the others have trees of their own.
    for name in ("PG", "PG_CONFIG"):
        os.environ.pop(name, None)
    end_orderly()
    pairs, modes = wanted_pairs(), os.environ.get("MODES", " ".join(MODES)).split()
    majors = sorted({major for both in pairs for major in both})
    stages = {major: stage(major) for major in majors}
    unprepared = set()
    for old_major in majors[:1] if modes == ["chain"] else sorted({old for old, _ in pairs}):
        filled = new_server("filled", stages[old_major])
        try:
            fill(filled, old_major)
            before = told(filled)
            unaware = [major for major, where in stages.items() if major > old_major and not knows_versions(where)]
            forgotten = knows_versions(stages[old_major]) and bool(unaware)
            if forgotten:
                print(f"the servers of {unaware} are older minor releases than that of {old_major}: versions of columns are left out", flush=True)
                forget_versions(filled)
            if old_major >= SLOTS:
                # pg_upgrade refuses a slot that has not seen all.
                filled.sql("SELECT pg_replication_slot_advance('kept', pg_current_wal_lsn())", "full")
            filled.stop()
            for new_major in [new for old, new in pairs if old == old_major]:
                if new_major not in unprepared:
                    unprepared.add(new_major)
                    refused_without_preloading(filled, stages[old_major], stages[new_major], f"{old_major} to {new_major}")
                for way in WAYS:
                    if way in modes and (way != "swap" or new_major >= SWAP):
                        pair(filled, None if forgotten else before, before, stages, old_major, new_major, way)
            if "chain" in modes and old_major == majors[0] and len(majors) > 2:
                chain(filled, before, stages)
        finally:
            filled.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
