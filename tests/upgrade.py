"""ALTER EXTENSION UPDATE from every version that has a script: rows, options and rights stay, and the objects
are those of a new installation.

A database that has not been updated yet runs an older version's SQL objects on this library, so each function
and view of that version is called before the update, too. With OLD_STAGE (a staged installation of the last
release) its library writes the tables, and a restart brings ours; without it ours does, as the bytes are the
same (FORMAT.md).
"""

import hashlib
import os
import re
import subprocess
from pathlib import Path

from harness.checks import Checks
from harness.server import ROOT, Server, clean_environment, end_orderly, private_base

# Released scripts never change: a database that was created by one has just these objects.
FROZEN = {"colonnade--0.1.sql": "41d2fecb5f8237315369ca6c92794e8659298a68c53e58812133297d577d9562"}

SETTINGS = {"autovacuum": "off", "lock_timeout": "10s"}
SETUP = """
CREATE ROLE upgrade_reader; CREATE ROLE upgrade_owner;
CREATE TABLE t (id int PRIMARY KEY, k int, v text) USING colcompress WITH (orderby = 'k', compression = lz4, packing_rows = 2000, fillfactor = 80);
CREATE INDEX t_k ON t (k);
CREATE TABLE parent (k int) PARTITION BY RANGE (k);
CREATE TABLE part_1 PARTITION OF parent FOR VALUES FROM (0) TO (50000) USING colcompress WITH (stripe_row_limit = 5000, chunk_group_row_limit = 1000);
CREATE TABLE part_2 PARTITION OF parent FOR VALUES FROM (50000) TO (100000);
CREATE TABLE packed (id int PRIMARY KEY, v text) USING colcompress WITH (index_scan = on);
CREATE TABLE empty (id int) USING colcompress WITH (packing = off);
CREATE TABLE tried (id int) USING colcompress;
CREATE UNLOGGED TABLE unlogged (id int) USING colcompress;
INSERT INTO t SELECT g, g % 1000, md5(g::text) FROM generate_series(1, 60000) g;
INSERT INTO parent SELECT g FROM generate_series(0, 99999) g;
INSERT INTO unlogged SELECT g FROM generate_series(1, 20000) g;
INSERT INTO t SELECT g, g, 'hot' FROM generate_series(60001, 60500) g;
DELETE FROM t WHERE id BETWEEN 100 AND 4000;
DELETE FROM t WHERE id = 50000;
UPDATE t SET v = 'changed' WHERE id % 5000 = 7;
UPDATE t SET v = 'many' WHERE id BETWEEN 30000 AND 31000;
BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id BETWEEN 20000 AND 20100 FOR SHARE) x; COMMIT;
SET colonnade.stripe_threshold_rows = 1000000;
INSERT INTO packed SELECT g, 'one by one ' || g FROM generate_series(1, 30000) g;
RESET colonnade.stripe_threshold_rows;
CREATE MATERIALIZED VIEW m USING colcompress WITH (orderby = 'k DESC') AS SELECT k, count(*) AS n FROM t GROUP BY k;
GRANT SELECT ON t TO upgrade_reader;
GRANT SELECT ON engine.stripe TO upgrade_owner;
REVOKE EXECUTE ON FUNCTION engine.verify(regclass) FROM PUBLIC; GRANT EXECUTE ON FUNCTION engine.verify(regclass) TO upgrade_reader WITH GRANT OPTION;
REVOKE ALL ON FUNCTION engine.storage_health(regclass) FROM PUBLIC, CURRENT_USER;
REVOKE EXECUTE ON PROCEDURE engine.colcompress_repack(regclass) FROM PUBLIC; GRANT EXECUTE ON PROCEDURE engine.colcompress_repack(regclass) TO upgrade_owner;
REVOKE SELECT ON engine.colcompress_options FROM PUBLIC; GRANT SELECT ON engine.colcompress_options TO upgrade_reader WITH GRANT OPTION;
CREATE VIEW on_view AS SELECT table_name, advice FROM engine.storage_health;
ALTER TABLE packed OWNER TO upgrade_owner;
COMMENT ON TABLE t IS 'a user''s';
"""
PACK = "CALL engine.colcompress_repack('packed')"
KINDS = """SELECT count(*) FROM engine.stripe; SELECT count(*) FROM engine.delete_bitmap; SELECT count(*) FROM engine.row_proxy WHERE dead;
    SELECT count(*) FROM engine.row_proxy WHERE NOT dead; SELECT count(*) FROM engine.row_move;
    SELECT count(*) FROM t WHERE (ctid::text::point)[0] < 2147483648"""
TABLES = ("t", "part_1", "packed", "empty", "unlogged", "m")
ROWS = "".join(f"SELECT '{name}', count(*), md5(string_agg(r::text, ',' ORDER BY r::text COLLATE \"C\")) FROM {name} r;" for name in TABLES) + """
    SET enable_seqscan = off; SET colonnade.enable_scan = off; SET enable_bitmapscan = off;
    SELECT count(*), sum(id), max(v) FROM t WHERE id BETWEEN 90 AND 31500; SELECT count(*), sum(k) FROM t WHERE k = 7; SELECT v FROM packed WHERE id = 29999;
    RESET enable_seqscan; RESET colonnade.enable_scan; RESET enable_bitmapscan;
    SELECT relname, relacl, reloptions, relowner::regrole, obj_description(oid) FROM pg_class WHERE relname IN ('t', 'part_1', 'packed', 'empty', 'unlogged', 'm') ORDER BY 1;
    SELECT relacl FROM pg_class WHERE oid IN ('engine.stripe'::regclass, 'engine.colcompress_options'::regclass) ORDER BY relname; SELECT count(*) > 5 FROM on_view;
    SELECT proname, proacl FROM pg_proc WHERE pronamespace = 'engine'::regnamespace AND pronargs = 1 AND proname IN ('verify', 'storage_health', 'colcompress_repack') ORDER BY 1;
    SET ROLE upgrade_reader; SELECT count(*) FROM t; RESET ROLE"""
ROWS_OF = "CREATE TABLE rows USING rowcompress AS SELECT g AS k FROM generate_series(1, 20000) g; {}; DROP TABLE rows"
COPIED = "CREATE TABLE copied USING heap AS SELECT g AS k FROM generate_series(1, 20000) g; CREATE INDEX copy ON copied USING columnstore (k); {}; DROP TABLE copied"
# A call of every function and view that a version has, by name. They leave the rows what they are.
FILE_OF = "CREATE SERVER files FOREIGN DATA WRAPPER cstore_fdw; CREATE FOREIGN TABLE f (k int) SERVER files; INSERT INTO f VALUES (1); {}; DROP SERVER files CASCADE"
PARQUET_OF = "CREATE SERVER files FOREIGN DATA WRAPPER parquet_fdw; DO $$ DECLARE file text := current_setting('data_directory') || '/f.parquet'; BEGIN EXECUTE format('COPY (SELECT 1 AS a) TO %L', file); EXECUTE format('CREATE FOREIGN TABLE f (a int) SERVER files OPTIONS (filename %L)', file); END $$; {}; DROP SERVER files CASCADE"
CALLS = {
    "colcompress_handler": "CREATE TABLE by_handler (k int) USING colcompress; DROP TABLE by_handler",
    "alter_colcompress_table_set": "SELECT engine.alter_colcompress_table_set('tried', compression => 'zstd', orderby => 'id', packing_rows => 77)",
    "alter_colcompress_table_reset": "SELECT engine.alter_colcompress_table_reset('tried', true, true, true, true, true, true, true, true)",
    "colcompress_option": "SELECT engine.colcompress_option('t', 'orderby'), engine.colcompress_option('t', 'compression')",
    "colcompress_options": "SELECT * FROM engine.colcompress_options WHERE compression = 'lz4' AND packing_rows > 5 ORDER BY 1",
    "colcompress_merge": "CREATE TABLE merged USING colcompress AS SELECT 1 AS k; SELECT engine.colcompress_merge('merged'); DROP TABLE merged",
    "colcompress_repack": "CALL engine.colcompress_repack('empty')",
    "packing_progress": "SELECT * FROM engine.packing_progress WHERE false",
    "unpack": "CREATE TABLE unpacked USING colcompress AS SELECT g FROM generate_series(1, 20000) g; SELECT engine.unpack('unpacked'); DROP TABLE unpacked",
    "verify": "SELECT kind, stripe, block, tid, detail FROM engine.verify('t') WHERE kind <> 'unclaimed'",
    "colcompress_relation_storageid": "SELECT engine.colcompress_relation_storageid('t') > 0",
    "colcompress_stripes": "SELECT table_name, sum(row_count) FROM engine.colcompress_stripes GROUP BY 1 ORDER BY 1::text",
    "storage_health": "SELECT * FROM engine.storage_health('packed'); SELECT table_name, cold_rows FROM engine.storage_health ORDER BY 1::text",
    "stripe": "SELECT count(*) > 0 FROM engine.stripe", "row_proxy": "SELECT count(*) > 0 FROM engine.row_proxy",
    "delete_bitmap": "SELECT count(*) > 0 FROM engine.delete_bitmap", "row_move": "SELECT count(*) FROM engine.row_move",
    # since 0.2
    "portable_options": "SELECT engine.portable_options(reloptions, relam) FROM pg_class WHERE relname = 't'",
    "packing_statistics": "SELECT * FROM engine.packing_statistics('t'); SELECT count(*) FROM engine.packing_statistics()",
    "colcompress_packing_statistics": "SELECT * FROM engine.colcompress_packing_statistics",
    "packing_statistics_reset": "SELECT engine.packing_statistics_reset('t')",
    "packing_calls": "SELECT * FROM engine.packing_calls()",
    "rowcompress_handler": "CREATE TABLE by_handler (k int) USING rowcompress; DROP TABLE by_handler",
    "alter_rowcompress_table_set": ROWS_OF.format("SELECT engine.alter_rowcompress_table_set('rows', batch_size => 500, orderby => 'k', packing_rows => 77)"),
    "alter_rowcompress_table_reset": ROWS_OF.format("SELECT engine.alter_rowcompress_table_reset('rows', true, true, true, true, true, true, true, true)"),
    "rowcompress_options": ROWS_OF.format("SELECT * FROM engine.rowcompress_options"),
    "rowcompress_batches": ROWS_OF.format("SELECT row_count FROM engine.rowcompress_batches"),
    "rowcompress_relation_storageid": ROWS_OF.format("SELECT engine.rowcompress_relation_storageid('rows') > 0"),
    "rowcompress_repack": ROWS_OF.format("SELECT engine.rowcompress_repack('rows')"),
    "rowcompress_scan_stats": ROWS_OF.format("SELECT count(k) FROM rows; SELECT total_scans FROM engine.rowcompress_scan_stats()"),
    "rowcompress_reset_scan_stats": "SELECT engine.rowcompress_reset_scan_stats()",
    "rowcompress_merge_incremental": ROWS_OF.format("CALL engine.rowcompress_merge_incremental('rows')"),
    "colcompress_merge_incremental": "CALL engine.colcompress_merge_incremental('empty')",
    "smart_update": ROWS_OF.format("CALL engine.smart_update('rows', 'k = 0')"),
    "colcompress_bulk_update": ROWS_OF.format("CALL engine.colcompress_bulk_update('rows', 'k = 0')"),
    "row_number_to_tid": "SELECT engine.row_number_to_tid(0)", "ensure_am_depends_catalog": "SELECT engine.ensure_am_depends_catalog()",
    "storage_maintenance_stats": "SELECT total_units FROM engine.storage_maintenance_stats('t')",
    "storage_maintenance_recommendation": "SELECT count(*) FROM engine.storage_maintenance_recommendation('t')",
    "columnstore_handler": COPIED.format("SELECT sum(k) FROM copied"),
    "columnstore_refresh": COPIED.format("CALL engine.columnstore_refresh('copy')"),
    "columnstore_verify": COPIED.format("SELECT * FROM engine.columnstore_verify('copy')"),
    "columnstore_figures": COPIED.format("SELECT heap_blocks > 0 FROM engine.columnstore_figures('copy'::regclass)"),
    "columnstore_create": COPIED.format("SELECT count(*) FROM engine.columnstore_create('copied')"),
    "stat_all_column_store_indexes": COPIED.format("SELECT relation_blocks, compressed_blocks, cache_pages_usable FROM engine.stat_all_column_store_indexes"),
    "columnstore_indexes": COPIED.format("SELECT index_name, copies FROM engine.columnstore_indexes"),
    # tests/uint8.py has the type's functions.
    "storage_maintenance_auto": "CALL engine.storage_maintenance_auto(dry_run => true)",
    "parquet_schema": "DO $$ BEGIN EXECUTE format('COPY (SELECT 1 AS a) TO %L', current_setting('data_directory') || '/u.parquet'); END $$; SELECT * FROM engine.parquet_schema(current_setting('data_directory') || '/u.parquet')",
    "parquet_fdw_handler": PARQUET_OF.format("SELECT sum(a) FROM f"),
    "parquet_fdw_validator": PARQUET_OF.format("ALTER FOREIGN TABLE f OPTIONS (SET filename '/none')"),
    "column_file": "SELECT count(*) FROM engine.column_file",
    "column_file_default": "SELECT count(*) FROM engine.column_file_default",
    "cstore_fdw_handler": FILE_OF.format("SELECT sum(k) FROM f"),
    "cstore_fdw_validator": FILE_OF.format("ALTER FOREIGN TABLE f OPTIONS (ADD compression_level '5')"),
    "cstore_table_size": FILE_OF.format("SELECT cstore_table_size('f') > 0"),
    "cstore_clean_table_resources": "SELECT cstore_clean_table_resources(1)",
}
MEMBERS = """
SELECT proname COLLATE "C" AS name FROM pg_proc WHERE oid IN (SELECT objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND classid = 'pg_proc'::regclass
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'colonnade'))
    AND proname !~ 'uint8' AND NOT coalesce(to_regtype('engine.uint8') = ANY (prorettype || proargtypes::oid[]), false)
UNION SELECT relname FROM pg_class WHERE relkind IN ('r', 'v', 'm') AND oid IN (SELECT objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass
    AND classid = 'pg_class'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'colonnade')) ORDER BY name"""
# What pg_dump does not tell of members: that they are members, of whom, and the rights they were made with.
CATALOGS = """
SELECT extversion, extowner::regrole, extnamespace::regnamespace, extrelocatable, extconfig FROM pg_extension WHERE extname = 'colonnade';
SELECT pg_describe_object(classid, objid, objsubid) COLLATE "C" AS member, deptype FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'colonnade') ORDER BY member;
SELECT pg_describe_object(classoid, objoid, objsubid) COLLATE "C" AS object, privtype, initprivs FROM pg_init_privs
WHERE pg_describe_object(classoid, objoid, objsubid) ~ 'engine|colcompress|colonnade' ORDER BY object;
SELECT pg_describe_object(classid, objid, objsubid) COLLATE "C" AS object, pg_describe_object(refclassid, refobjid, refobjsubid) COLLATE "C" AS needs, deptype
FROM pg_depend, pg_identify_object(refclassid, refobjid, refobjsubid) AS needed, pg_identify_object(classid, objid, objsubid) AS needing
WHERE needed.schema = 'engine' AND needing.schema = 'engine' ORDER BY object, needs, deptype;
"""
AFTER = """
INSERT INTO t SELECT g, g % 1000, 'later' FROM generate_series(100001, 130000) g;
UPDATE t SET v = 'again' WHERE id % 777 = 1; DELETE FROM t WHERE id BETWEEN 110000 AND 115000;
SELECT engine.colcompress_merge('part_1'); VACUUM t; CALL engine.colcompress_repack('t'); VACUUM t;
"""

checks = Checks("upgrade")
check = checks.say


def known_versions(stage):
    """Versions that a staged installation has a script of; the server's own list leaves out a staged one's.
    """
    scripts = stage.glob("**/extension/colonnade--*.sql")
    return sorted({version for script in scripts for version in script.stem.split("--")[1:]})


def definitions(server, database):
    """Every member's definition, owner, rights and comment as text, without what numbers objects. The
    database has nothing else."""
    done = subprocess.run([server.bindir / "pg_dump", "-h", server.socket_dir, "-p", str(server.port), "-U", server.superuser, "--schema-only",
                           "--binary-upgrade", database], capture_output=True, text=True, env=clean_environment(), cwd="/")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not re.search(r"binary_upgrade|restrict |^WHERE oid = |^SET |^--|^$|relfrozenxid|relminmxid|set_config", line)]
    return "\n".join(lines) + "\n" + server.sql(CATALOGS, database)


def call_all(server, database, version):
    members = server.sql(MEMBERS, database).splitlines()
    assert len(members) > 10, members
    missing = [name for name in members if name not in CALLS]
    check(f"{version}: every function and view is called here", not missing, missing)
    for name in members:
        status, told, errors = server.sql(CALLS.get(name, ""), database, check=False)
        check(f"{version}: {name} works on this library", status == 0, f"{told} {errors}")


def healthy(server, database, when, wanted):
    rows = server.sql(ROWS, database)
    check(f"{when}: rows, options and rights are there", rows == wanted, f"{rows}\n{wanted}")
    for name in TABLES:
        faults = server.sql(f"SELECT kind, detail FROM engine.verify('{name}') WHERE kind <> 'unclaimed'", database)
        check(f"{when}: engine.verify finds nothing in {name}", faults == "", faults)


def update(server, version, default):
    database = f"from_{version.replace('.', '_')}"
    wanted = server.sql(ROWS, database)
    kinds = server.sql(KINDS, database).split()
    assert all(int(kind) > 0 for kind in kinds), f"the premise: rows of every kind; found {kinds}"
    installed = server.sql("SELECT extversion FROM pg_extension WHERE extname = 'colonnade'", database)
    assert installed == version, installed
    session = server.session(database)
    session.run("SELECT count(*) FROM t; PREPARE by_key AS SELECT v FROM t WHERE id = $1; EXECUTE by_key(7)")
    call_all(server, database, version)
    healthy(server, database, f"{version} before", wanted)
    dumped = subprocess.run([server.bindir / "pg_dump", "-h", server.socket_dir, "-p", str(server.port), "-U", server.superuser, database],
                            capture_output=True, text=True, env=clean_environment(), cwd="/")
    own = "CREATE VIEW on_view_of_options AS SELECT orderby FROM engine.colcompress_options; CREATE VIEW on_function AS SELECT kind FROM engine.verify('t'); CREATE FUNCTION atomic() RETURNS bigint BEGIN ATOMIC SELECT hot_rows FROM engine.storage_health('t'); END"
    server.sql(own, database)
    status, _, errors = server.sql("ALTER EXTENSION colonnade UPDATE", database, check=False)
    check(f"{version}: what users built on functions that change is named", status != 0 and all(told in errors for told in (
        "DETAIL", "view on_function", "view on_view_of_options", "function atomic()", "HINT", "create them again")), errors)
    server.sql("DROP VIEW on_function; DROP VIEW on_view_of_options; DROP FUNCTION atomic; ALTER EXTENSION colonnade UPDATE", database)
    check(f"{version} is {default} now", server.sql("SELECT extversion FROM pg_extension WHERE extname = 'colonnade'", database) == default)
    healthy(server, database, f"{version} after", wanted)
    call_all(server, database, default)
    with checks.part(f"{version} after: a session that was open goes on", errors=Exception):
        session.run("SELECT count(*) FROM t; EXECUTE by_key(7); SELECT count(*) FROM engine.colcompress_options")
    session.close()
    server.create_database("updated", extension=False)
    server.sql(f"CREATE EXTENSION colonnade VERSION '{version}'; ALTER EXTENSION colonnade UPDATE", "updated")
    mine, fresh = definitions(server, "updated"), definitions(server, "fresh")
    for told in ("COMMENT ON VIEW engine.storage_health", "GRANT SELECT ON TABLE engine.storage_health", "CREATE TABLE engine.stripe", "access method colcompress|"):
        assert told in fresh, f"the premise: {told} is compared"
    different = sorted(set(mine.splitlines()) ^ set(fresh.splitlines()))
    check(f"{version} after: the objects are those of a new installation", mine == fresh and len(fresh) > 5000, different[:20])
    server.sql(AFTER, database)
    for name in TABLES:
        faults = server.sql(f"SELECT kind, detail FROM engine.verify('{name}') WHERE kind <> 'unclaimed'", database)
        check(f"{version} after changes: engine.verify finds nothing in {name}", faults == "", faults)
    server.create_database("restored", extension=False)
    status, _, errors = server.sql(dumped.stdout, "restored", check=False)
    check(f"{version}: a dump of it is restored", dumped.returncode == 0 and status == 0, errors[-1000:])
    server.sql("ALTER EXTENSION colonnade UPDATE", "restored")
    healthy(server, "restored", f"{version} dumped and restored as {default}", wanted)


def main():
    for name, digest in FROZEN.items():
        found = hashlib.sha256((ROOT / "crates/postgres/sql" / name).read_bytes()).hexdigest()
        check(f"{name} is what was released", found == digest, found)
    stage, old = Path(os.environ["COLONNADE_STAGE"]), os.environ.get("OLD_STAGE")
    end_orderly()
    server = Server(private_base("upgrade", temporary=True), stage=old or stage, settings=SETTINGS)
    try:
        server.init()
        server.start()
        versions = known_versions(Path(old or stage))
        for version in versions:
            database = f"from_{version.replace('.', '_')}"
            server.create_database(database, extension=False)
            server.sql(f"CREATE EXTENSION colonnade VERSION '{version}'", database)
            server.sql(SETUP if version == versions[0] else re.sub(r"CREATE ROLE \w+;", "", SETUP), database)
            # A snapshot that does not see the mover keeps what is noted of the moves.
            reader = server.session(database)
            reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")
            server.sql(PACK, database)
            reader.close()
        if old:
            server.stop()
            server.use_stage(stage)
            server.configure()
            server.start()
        server.create_database("fresh")
        default = server.sql("SELECT extversion FROM pg_extension WHERE extname = 'colonnade'", "fresh")
        unreachable = server.sql(f"SELECT source FROM pg_extension_update_paths('colonnade') WHERE target = '{default}' AND path IS NULL AND source < '{default}'")
        check("every version leads to this one", unreachable == "", unreachable)
        before = [version for version in versions if version != default]
        assert before, "the premise: there is an older version"
        for version in before:
            update(server, version, default)
        checks.show_log(server)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
