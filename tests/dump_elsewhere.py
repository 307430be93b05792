"""A dump that leaves: pg_dump of a database with colcompress tables, restored on a server without the
extension and the library.

With `colonnade.show_options = off` and --no-table-access-method pg_dump writes ordinary tables. Rows,
constraints, partitions, indexes and the server's own options are compared, for plain, custom and directory
dumps and pg_dumpall; the rows are in heap pages and in stripes.
"""

import os
import re
import subprocess
import sys

from harness.checks import Checks
from harness.server import clean_environment, fresh_server

TABLES = """
CREATE EXTENSION colonnade;
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE TABLE customer (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE) USING colcompress WITH (orderby = 'name', index_scan = on, packing = off, fillfactor = 80, toast.autovacuum_enabled = off);
CREATE TABLE sale (id bigint, customer int REFERENCES customer ON DELETE CASCADE, day date, amount numeric CHECK (amount >= 0), tags text[], "We, ird" positive,
    net numeric GENERATED ALWAYS AS (amount * 0.8) STORED, PRIMARY KEY (id, day)) PARTITION BY RANGE (day) WITH (orderby = 'customer', packing = off);
CREATE TABLE sale_2024 PARTITION OF sale FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') USING colcompress
    WITH (orderby = 'day DESC, "We, ird"', stripe_row_limit = 2000, chunk_group_row_limit = 1000, compression = lz4, compression_level = 9, packing_rows = 5);
CREATE TABLE sale_2025 PARTITION OF sale FOR VALUES FROM ('2025-01-01') TO ('2026-01-01') USING heap WITH (fillfactor = 70);
CREATE INDEX ON sale (customer, day DESC) WHERE amount > 10;
CREATE UNLOGGED TABLE unlogged_one (i int) USING colcompress WITH (orderby = 'i');
CREATE TABLE "odd, name" ("WITH (orderby=i)" text DEFAULT E'x\\n)\\nWITH (orderby=y);\\n') USING colcompress WITH (orderby = '"WITH (orderby=i)"');
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO customer (name) SELECT 'customer ' || g FROM generate_series(1, 3000) g;
INSERT INTO sale SELECT g, 1 + g % 3000, date '2024-01-01' + g % 700, g / 7.0, ARRAY['a', g::text], 1 + g % 9 FROM generate_series(1, 9000) g;
INSERT INTO unlogged_one SELECT generate_series(1, 5);
INSERT INTO "odd, name" DEFAULT VALUES;
INSERT INTO "odd, name" SELECT E')\\nWITH (orderby=' || g || ')' FROM generate_series(1, 2000) g;
UPDATE sale SET amount = amount + 1 WHERE id % 50 = 1;
DELETE FROM sale WHERE id % 50 = 2;
CREATE MATERIALIZED VIEW totals USING colcompress WITH (orderby = 'day DESC') AS SELECT day, sum(amount) AS amount FROM sale GROUP BY 1;
CREATE VIEW options_of AS SELECT oid, reloptions FROM pg_class;
"""

NAMES = ["customer", "sale", "sale_2024", "sale_2025", "unlogged_one", '"odd, name"', "totals"]
ROWS = "SELECT count(*), md5(string_agg(r::text, E'\\n' ORDER BY r::text COLLATE \"C\")) FROM {} r"
# What is the same on both sides: kinds, bounds, columns, constraints, indexes, and the options that every
# server knows.
SHAPE = """
SELECT c.relname, c.relkind, c.relpersistence, pg_get_expr(c.relpartbound, c.oid), a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'm', 'p') ORDER BY 1, 5;
SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2, 3;
SELECT pg_get_indexdef(indexrelid), indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1;
SELECT c.relname, o, t.reloptions FROM pg_class c LEFT JOIN unnest(c.reloptions) o ON o ~ '^(fillfactor|autovacuum)' LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'm', 'p') ORDER BY 1, 2;
"""
METHODS = "SELECT count(*), count(*) FILTER (WHERE amname = 'heap') FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'm')"
HIDDEN = "-c colonnade.show_options=off"

checks = Checks("dump_elsewhere")
check = checks.say


def client(server, program, *arguments, options=""):
    command = [server.bindir / program, "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, *arguments]
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          env={**clean_environment(), "PGOPTIONS": options}, cwd="/")


def errors(done):
    return [line for line in done.stderr.decode(errors="replace").splitlines() if "ERROR" in line]


def contents(server, database):
    return server.sql(SHAPE, database), [server.sql(ROWS.format(name), database) for name in NAMES]


def dump(source, database, path, *arguments, options=HIDDEN):
    done = client(source, "pg_dump", "--no-table-access-method", *arguments, "-f", path, database, options=options)
    check(f"{path.name}: the dump is made", done.returncode == 0, done.stderr.decode(errors="replace"))
    return path


def compare(source, target, database, what):
    wanted, got = contents(source, "app"), contents(target, database)
    check(f"{what}: the same tables, constraints, indexes", got[0] == wanted[0], f"{wanted[0]}\nbecame\n{got[0]}")
    check(f"{what}: the same rows", got[1] == wanted[1])
    check(f"{what}: ordinary tables", target.sql(METHODS, database).strip() == "6|6", target.sql(METHODS, database))


def restores(source, target):
    base = source.base
    plain = dump(source, "app", base / "app.sql")
    target.sql("CREATE DATABASE plain")
    done = client(target, "psql", "-X", "-q", "-d", "plain", "-f", plain)
    check("plain: nothing but the extension is missed", len(errors(done)) == 2 and all("extension" in line for line in errors(done)),
          done.stderr.decode(errors="replace")[:2000])
    compare(source, target, "plain", "plain")

    for what, arguments in (("custom", ["-Fc"]), ("directory", ["-Fd", "-j", "2"])):
        archive = dump(source, "app", base / f"app.{what}", *arguments)
        listed = client(target, "pg_restore", "-l", archive).stdout.decode()
        kept = base / f"{what}.list"
        kept.write_text("".join(f"{line}\n" for line in listed.splitlines() if not re.search(r" EXTENSION .*\bcolonnade\b", line)))
        target.sql(f"CREATE DATABASE {what}")
        done = client(target, "pg_restore", "--no-table-access-method", "--exit-on-error", "-j", "2", "-L", kept, "-d", what, archive)
        check(f"{what}: restored without an error", done.returncode == 0, done.stderr.decode(errors="replace")[:2000])
        compare(source, target, what, what)

    done = client(source, "pg_dumpall", "--no-table-access-method", "--database=postgres", options=HIDDEN)
    check("pg_dumpall: the dump is made", done.returncode == 0, done.stderr.decode(errors="replace"))
    path = base / "all.sql"
    path.write_bytes(done.stdout)
    done = client(target, "psql", "-X", "-q", "-d", "postgres", "-f", path)
    missed = [line for line in errors(done) if "extension" not in line and "already exists" not in line]
    check("pg_dumpall: nothing but the extension is missed", not missed, "\n".join(missed))
    compare(source, target, "app", "pg_dumpall")


def session_only(source, target):
    """The setting changes what its session sees, and nothing else."""
    with_options = dump(source, "app", source.base / "shown.sql", options="")
    check("without the setting the options are in the dump", b"orderby=name" in with_options.read_bytes())
    target.sql("CREATE DATABASE shown")
    done = client(target, "psql", "-X", "-q", "-d", "shown", "-f", with_options)
    check("and the other server refuses them", any("unrecognized parameter" in line for line in errors(done)))

    def asked(query, options=HIDDEN):
        done = client(source, "psql", "-X", "-At", "-d", "app", "-c", query, options=options)
        return done.stdout.decode().strip() or done.stderr.decode().strip()

    check("views, CTEs and subqueries have none", asked("""
        WITH c AS (SELECT * FROM pg_class) SELECT count(*) FROM (
            SELECT reloptions FROM c UNION ALL SELECT reloptions FROM options_of UNION ALL SELECT (SELECT x.reloptions FROM pg_class x WHERE x.oid = c.oid) FROM c
            UNION ALL SELECT l.r FROM c, LATERAL (SELECT c.reloptions AS r) l UNION ALL SELECT reloptions FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace GROUP BY 1
        ) x WHERE reloptions::text LIKE '%orderby%'""") == "0")
    check("what is not ours stays", asked("SELECT reloptions FROM pg_class WHERE relname IN ('customer', 'sale_2025') ORDER BY relname") == "{fillfactor=80}\n{fillfactor=70}")
    check("others see them", "orderby=name" in asked("SELECT reloptions FROM pg_class WHERE relname = 'customer'", ""))
    check("they are in force", asked("SELECT engine.colcompress_option('customer', 'orderby')") == "name")
    check("it holds for a session", "cannot be set after connection start" in asked("SET colonnade.show_options = on", ""))
    done = client(source, "psql", "-X", "-At", "-d", "postgres", "-c", "SELECT count(*) > 100 FROM pg_class WHERE reloptions IS NULL", options=HIDDEN)
    check("a database without the extension notices nothing", done.stdout.decode().strip() == "t", done.stderr.decode())
    source.sql("CREATE DATABASE older")
    source.sql("CREATE EXTENSION colonnade VERSION '0.1'", "older")
    done = client(source, "pg_dump", "older", options=HIDDEN)
    check("objects of version 0.1 are told of", b"ALTER EXTENSION colonnade UPDATE" in done.stderr, done.stderr.decode())
    source.sql("DROP DATABASE older")


def main():
    source = fresh_server("dump_from", os.environ["COLONNADE_STAGE"])
    target = None
    try:
        target = fresh_server("dump_to", None, port=54322)
        source.sql("CREATE DATABASE app")
        source.sql(TABLES, "app")
        hot, cold = source.sql("SELECT sum(hot_rows), sum(cold_rows) FROM engine.storage_health", "app").strip().split("|")
        check("rows of both kinds are there", int(hot) > 50 and int(cold) > 8000, f"{hot} {cold}")
        check("the target has no extension", target.sql("SELECT count(*) FROM pg_available_extensions WHERE name = 'colonnade'; SHOW shared_preload_libraries").split() == ["0"])
        session_only(source, target)
        restores(source, target)
    finally:
        if target is not None:
            target.destroy()
        source.destroy()
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
