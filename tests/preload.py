"""A server that does not preload the library refuses to load it later, and says what to do; nothing is left
half-made. What works there beside columnar tables, and what does not, is what docs/operations.md says
("Without the library")."""

import os
import time

from harness.checks import Checks
from harness.server import fresh_server

WAYS = {
    "CREATE EXTENSION": "CREATE EXTENSION colonnade",
    "LOAD": "LOAD '$libdir/colonnade'",
    "LOAD again in one session": "DO $$BEGIN LOAD '$libdir/colonnade'; EXCEPTION WHEN OTHERS THEN NULL; END$$; LOAD '$libdir/colonnade'",
}

TABLES = """CREATE TABLE a_heap AS SELECT g AS k FROM generate_series(1, 1000) g; CREATE TABLE z_heap (k int) WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0);
    CREATE TABLE col (k int PRIMARY KEY) USING colcompress; CREATE INDEX col_k ON col (k); INSERT INTO col SELECT g FROM generate_series(1, 20000) g;
    CREATE TABLE parts (k int) PARTITION BY RANGE (k); CREATE TABLE recent PARTITION OF parts FOR VALUES FROM (10) TO (20);
    CREATE TABLE old PARTITION OF parts FOR VALUES FROM (0) TO (10) USING colcompress; INSERT INTO parts VALUES (5), (15);"""
REFUSED = ("SELECT * FROM col", "INSERT INTO col VALUES (0)", "TRUNCATE col", "DROP TABLE col", "DROP INDEX col_k", "ALTER TABLE col RENAME TO other", "ALTER TABLE col SET ACCESS METHOD heap",
           "SELECT pg_table_size('col')", "VACUUM", "VACUUM FREEZE", "ANALYZE", "VACUUM a_heap, col, z_heap", "REINDEX DATABASE db", "SELECT * FROM parts", "SELECT * FROM parts WHERE k = 5",
           "DROP EXTENSION colonnade CASCADE", "CREATE TABLE new (k int) USING colcompress", "SELECT * FROM engine.colcompress_options")
DONE = ("SELECT * FROM a_heap", "VACUUM a_heap, z_heap", "ANALYZE z_heap", "REINDEX TABLE a_heap", "SELECT * FROM parts WHERE k = 15", "INSERT INTO parts VALUES (16)", "CREATE TABLE new (k int); DROP TABLE new",
        "SELECT count(*) FROM pg_class", "CREATE DATABASE copy TEMPLATE db", "DROP DATABASE copy", "CHECKPOINT")


def with_tables(checks):
    """A server that had the library, and is started without it."""
    server = fresh_server("preload", os.environ["COLONNADE_STAGE"], settings={"autovacuum_naptime": "1s", "autovacuum_vacuum_cost_delay": "0"})
    try:
        server.create_database("db")
        server.sql(TABLES, "db")
        server.settings["shared_preload_libraries"] = ""
        server.configure()
        server.restart()
        for statement in REFUSED:
            status, _, told = server.sql(f"\\set VERBOSITY verbose\n{statement}", "db", check=False)
            checks.say(f"without the library: refused {statement}", status != 0 and "55000" in told and "preload" in told, told)
        for statement in DONE:
            status, _, told = server.sql(statement, "db", check=False)
            checks.say(f"without the library: done {statement}", status == 0, told)
        before = server.sql("SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'z_heap'", "db")
        server.sql("INSERT INTO z_heap SELECT generate_series(1, 5000); DELETE FROM z_heap", "db")
        deadline, after = time.monotonic() + 60, before
        while after == before and time.monotonic() < deadline:
            time.sleep(0.5)
            after = server.sql("SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'z_heap'", "db")
        checks.say("without the library: autovacuum goes on with other tables", after != before, after)
        del server.settings["shared_preload_libraries"]
        server.configure()
        server.restart()
        whole = server.sql("VACUUM; ANALYZE; SELECT count(*), sum(k) FROM col; SELECT count(*) FROM parts; SELECT count(*) FROM engine.verify('col'); DROP EXTENSION colonnade CASCADE", "db")
        checks.say("with it again all is there", whole.split() == ["20000|200010000", "3", "0"], whole)
    finally:
        server.destroy()


def main():
    server = fresh_server("preload", os.environ["COLONNADE_STAGE"], settings={"shared_preload_libraries": ""})
    checks = Checks("preload")
    try:
        assert server.sql("SHOW shared_preload_libraries") == "", "the premise: nothing is preloaded"
        for name, statement in WAYS.items():
            status, _, err = server.sql(f"\\set VERBOSITY verbose\n{statement}", check=False)
            good = status != 0 and "55000" in err and "shared_preload_libraries = 'colonnade'" in err
            checks.say(f"{name} is refused", good, f"{status} {err}")
        left = server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'engine'")
        checks.say("no schema is left", left == "0", left)
    finally:
        server.destroy()
    with_tables(checks)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
