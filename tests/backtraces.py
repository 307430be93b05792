"""Where the server's environment asks for Rust's backtraces, errors and the log have none, and the server's
children still find the environment as it was."""

import os

from harness.checks import Checks
from harness.server import fresh_server

MARKS = ("stack backtrace", "rust_begin_unwind", ".rs:", "pgrx", "<unknown>", "   0: ")
SETUP = """CREATE TABLE t (k int PRIMARY KEY, v text) USING colcompress;
    INSERT INTO t SELECT g, g::text FROM generate_series(1, 20000) g;
    CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1 / ($1 - $1); END';
    CREATE DOMAIN small AS int CHECK (VALUE < 5);"""
# Errors of ours, of the server's below our callbacks, of functions below our nodes, in functions that set
# options.
FAILING = [
    "SELECT engine.alter_colcompress_table_set('t', orderby => 'nope')",
    "SELECT engine.alter_colcompress_table_set('pg_class', packing => false)",
    "ALTER TABLE t SET (orderby = 'nope')",
    "INSERT INTO t VALUES (5, 'twice')",
    "INSERT INTO t SELECT g % 100, '' FROM generate_series(1, 20000) g",
    "SELECT sum(1 / (k - 77)) FROM t",
    "SELECT sum(fails(k)) FROM t",
    "SELECT count(*) FROM t WHERE v::small = 3",
    "CREATE INDEX ON t (fails(k))",
    "CREATE INDEX ON t ((k / (k - 9)))",
    "SELECT k FROM t FOR UPDATE; SELECT engine.verify('pg_class')",
    "CALL engine.colcompress_repack('pg_class')",
    "SET statement_timeout = 1; SELECT count(*) FROM t a, t b WHERE a.v < b.v",
    "DO $$BEGIN INSERT INTO t VALUES (5, 'twice'); EXCEPTION WHEN unique_violation THEN RAISE EXCEPTION 'again: %', SQLERRM; END$$",
]


def main():
    checks = Checks("backtraces")
    for value in ("1", "full"):
        # RUST_LIB_BACKTRACE is what a careful user sets besides; it says the same.
        for environment in ({"RUST_BACKTRACE": value}, {"RUST_BACKTRACE": "0", "RUST_LIB_BACKTRACE": value}):
            server = fresh_server("backtraces", os.environ["COLONNADE_STAGE"], environment=environment,
                                  settings={"log_error_verbosity": "default"})
            said = " ".join(f"{name}={text}" for name, text in environment.items())
            try:
                server.create_database("db")
                server.sql(SETUP, "db")
                seen, shown = 0, []
                for statement in FAILING:
                    status, _, told = server.sql(statement, "db", check=False)
                    seen += status != 0
                    shown += [f"{statement}: {told[:500]}" for mark in MARKS if mark in told][:1]
                checks.say(f"errors with {said}", seen == len(FAILING) and not shown, f"{seen} of {len(FAILING)} {shown[:2]}")
                log = server.log.read_text(errors="replace")
                left = [line for line in log.splitlines() if any(mark in line for mark in MARKS)]
                checks.say(f"log with {said}", "division by zero" in log and not left, left[:3])
                child = server.sql("CREATE TEMP TABLE e (line text); COPY e FROM PROGRAM 'env'; SELECT line FROM e WHERE line ~ '^RUST_(LIB_)?BACKTRACE=' ORDER BY 1", "db")
                checks.say(f"environment with {said}", child == "\n".join(sorted(f"{n}={v}" for n, v in environment.items())), child)
            finally:
                server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
