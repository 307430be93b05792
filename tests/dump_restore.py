"""pg_dump and pg_restore carry colcompress tables whole: access method, options, rows.

For a UTF-8 and a LATIN1 database: dump, restore, compare options and rows, dump again, compare the dumps.
Rows are in heap pages and in stripes, and of those in stripes some are changed, deleted (many by one
statement, single ones) and locked. A parallel dump by a snapshot that is older than changes and packing has
the rows of before.
"""

import os
import re
import subprocess
import sys

from harness.checks import Checks
from harness.server import ServerError, clean_environment, fresh_server

TABLES = """
CREATE TABLE plain (i int, t text) USING colcompress;
CREATE TABLE heap_twin (i int, t text) WITH (fillfactor = 70);
CREATE TABLE full_set (i int PRIMARY KEY, t text, "We, ""x'y" int, "Grö ße" numeric, "desc" date) USING colcompress
    WITH (compression = pglz, compression_level = 9, stripe_row_limit = 2000, chunk_group_row_limit = 1000,
          orderby = '"We, ""x''y" desc nulls last, "Grö ße", t nulls first, "desc" DESC', index_scan = on,
          fillfactor = 80, autovacuum_vacuum_threshold = 77, toast.autovacuum_enabled = off);
CREATE SCHEMA "odd schema";
CREATE TABLE "odd schema"."tab,le" ("a=b" int, "c\\d" text) USING colcompress WITH (orderby = '"c\\d", "a=b"');
CREATE TABLE parted (i int, j int) PARTITION BY RANGE (i) WITH (orderby = 'j DESC, i', packing = off);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000) USING colcompress WITH (orderby = 'j', compression = none);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (9000);
CREATE TABLE renamed (a int, b int) USING colcompress WITH (orderby = 'a desc');
ALTER TABLE renamed RENAME a TO "a, desc";
CREATE TABLE in_rows (i int PRIMARY KEY, t text, d date) USING rowcompress WITH (batch_size = 700, pruning_column = 'd', compression = lz4);
CREATE UNLOGGED TABLE unlogged_one (i int) USING colcompress WITH (compression = lz4);
INSERT INTO plain SELECT g, 'row ' || g FROM generate_series(1, 3) g;
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO full_set SELECT g, 'ä' || g, g % 7, g / 3.0, date '2020-01-01' + g % 100 FROM generate_series(1, 5000) g;
INSERT INTO "odd schema"."tab,le" SELECT g, NULL FROM generate_series(1, 10) g;
INSERT INTO parted SELECT g, -g FROM generate_series(0, 4999) g;
INSERT INTO renamed SELECT g, NULL FROM generate_series(1, 100) g;
INSERT INTO unlogged_one VALUES (1);
INSERT INTO in_rows SELECT g, 'ä' || g, date '2020-01-01' + g % 100 FROM generate_series(1, 3000) g;
CREATE MATERIALIZED VIEW summary USING colcompress WITH (orderby = 'k desc', compression_level = 1) AS
    SELECT i % 10 AS k, count(*) AS n FROM full_set GROUP BY 1;
UPDATE full_set SET t = 'changed' WHERE i % 50 = 1;
DELETE FROM full_set WHERE i % 50 = 2;
DELETE FROM full_set WHERE i = 4444;
UPDATE in_rows SET t = 'changed' WHERE i % 50 = 1; DELETE FROM in_rows WHERE i % 50 = 2; DELETE FROM in_rows WHERE i = 5;
BEGIN; SELECT count(*) FROM (SELECT FROM full_set WHERE i % 50 = 3 FOR SHARE) x; COMMIT;
REFRESH MATERIALIZED VIEW summary;
"""
# Rows of stripes; those deleted by many, deleted alone, and locked.
KINDS = """
SELECT sum(row_count) FROM engine.stripe; SELECT coalesce(sum(bit_count(bits)), 0) FROM engine.delete_bitmap;
SELECT count(*) FROM engine.row_proxy WHERE dead; SELECT count(*) FROM engine.row_proxy WHERE NOT dead
"""

OPTIONS = """
SELECT c.oid::regclass, a.amname, c.reloptions, t.reloptions
FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
WHERE c.relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'engine', 'pg_toast') AND c.relkind IN ('r', 'm', 'p')
ORDER BY c.oid::regclass::text COLLATE "C"
"""

ROWS = "SELECT count(*), md5(string_agg(r::text, E'\\n' ORDER BY r::text COLLATE \"C\")) FROM {} r"

checks = Checks("dump_restore")
check = checks.say


def client(server, program, *arguments):
    command = [server.bindir / program, "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, *arguments]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=clean_environment(), cwd="/")
    if done.returncode != 0:
        raise ServerError(f"{program} failed: {done.stderr.decode(errors='replace')[:2000]}")
    return done.stdout


def contents(server, database):
    tables = server.sql("SET client_encoding = 'UTF8';" + OPTIONS, database).splitlines()
    rows = [server.sql("SET client_encoding = 'UTF8';" + ROWS.format(line.split("|")[0]), database) for line in tables]
    return tables, rows


def normal(dump):
    """The lines of a plain dump, without what differs from one run to the next. In any order: a load into a
    table with orderby, while it has no index yet, sorts its rows."""
    return sorted(re.sub(rb"(?m)^(--.*|\\(un)?restrict .*)$", b"", dump).splitlines())


def empty_database(server, name, encoding):
    server.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")


def one_encoding(server, encoding):
    source = f"src_{encoding.lower()}"
    empty_database(server, source, encoding)
    server.sql("CREATE EXTENSION colonnade", source)
    server.sql("SET client_encoding = 'UTF8';" + TABLES, source)
    wanted = contents(server, source)
    kinds = [int(kind) for kind in server.sql(KINDS, source).split()]
    check(f"{encoding}: rows of every kind are there to begin with", all(kind >= least for kind, least in zip(kinds, (6000, 100, 1, 50))), str(kinds))
    check(f"{encoding}: the options are there to begin with",
          any("We, " in line and "stripe_row_limit=2000" in line for line in wanted[0]) and len(wanted[0]) == 11,
          "\n".join(wanted[0]))
    plain = client(server, "pg_dump", source)
    for variant, options in (("plain", []), ("quoted", ["--quote-all-identifiers"]), ("inserts", ["--inserts"])):
        target = f"{source}_{variant}"
        empty_database(server, target, encoding)
        path = server.base / f"{target}.sql"
        path.write_bytes(client(server, "pg_dump", *options, source))
        client(server, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", target, "-f", path)
        got = contents(server, target)
        check(f"{encoding} {variant}: same options", got[0] == wanted[0], f"{wanted[0]}\nbecame {got[0]}")
        check(f"{encoding} {variant}: same rows", got[1] == wanted[1])
        again = client(server, "pg_dump", target)
        check(f"{encoding} {variant}: dumping the copy gives the same dump", normal(again) == normal(plain))
    archive = server.base / f"{source}.dump"
    archive.write_bytes(client(server, "pg_dump", "-Fc", source))
    empty_database(server, f"{source}_custom", encoding)
    client(server, "pg_restore", "--exit-on-error", "-j", "2", "-d", f"{source}_custom", archive)
    check(f"{encoding} custom, in parallel: same options and rows", contents(server, f"{source}_custom") == wanted)
    empty_database(server, f"{source}_schema", encoding)
    client(server, "pg_restore", "--exit-on-error", "--schema-only", "-d", f"{source}_schema", archive)
    check(f"{encoding} schema only: same options", contents(server, f"{source}_schema")[0] == wanted[0])
    older_snapshot(server, encoding, source, wanted)


def older_snapshot(server, encoding, source, wanted):
    """What pg_dump sees by the snapshot of another transaction, once rows have been changed and packed since.
    """
    target, folder = f"{source}_snapshot", server.base / f"{source}.dir"
    with server.session(source) as reader:
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        snapshot = reader.value("SELECT pg_export_snapshot()")
        server.sql("UPDATE full_set SET t = 'later' WHERE i % 3 = 0; DELETE FROM full_set WHERE i % 5 = 0; DELETE FROM renamed; DELETE FROM plain WHERE i = 2; "
                   "INSERT INTO plain VALUES (4, 'later')", source)
        server.sql("CALL engine.colcompress_repack('full_set')", source)
        server.sql("CALL engine.colcompress_repack('plain')", source)
        check(f"{encoding} older snapshot: the rows are others now", contents(server, source)[1] != wanted[1])
        client(server, "pg_dump", "-Fd", "-j", "2", f"--snapshot={snapshot}", "-f", folder, source)
        reader.run("COMMIT")
    empty_database(server, target, encoding)
    client(server, "pg_restore", "--exit-on-error", "-j", "2", "-d", target, folder)
    check(f"{encoding} older snapshot, in parallel: the rows of before", contents(server, target) == wanted)


def main():
    server = fresh_server("dump", os.environ["COLONNADE_STAGE"])
    try:
        for encoding in ("UTF8", "LATIN1"):
            one_encoding(server, encoding)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
