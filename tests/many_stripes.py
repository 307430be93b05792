"""DELETE and UPDATE of rows in more stripes than the server has room for locks, and of more rows than there
should be memory for: stripes that a statement has to itself are given back once there are many, or many rows
of them have moved. VACUUM of more tables than there is room for locks."""

import os

from harness.checks import Checks
from harness.kit import MemoryWatch
from harness.server import fresh_server

STRIPES, ROWS = 4000, 40
SETTINGS = {"max_locks_per_transaction": "10", "max_connections": "10", "max_worker_processes": "2", "max_prepared_transactions": "0", "colonnade.packing": "off"}
TABLE = f"""
CREATE TABLE t (stripe int, row int, version int) USING colcompress;
SET colonnade.stripe_threshold_rows = 1;
DO $$ BEGIN FOR i IN 1..{STRIPES} LOOP INSERT INTO t SELECT i, g, 0 FROM generate_series(1, {ROWS}) g; END LOOP; END $$;
"""
TABLES = 2500
STATEMENTS = {
    "UPDATE": ("UPDATE t SET version = version + 1", f"{STRIPES * ROWS} {STRIPES * ROWS}"),
    "DELETE of half": ("DELETE FROM t WHERE row % 2 = 0", f"{STRIPES * ROWS // 2} 0"),
    "DELETE of all": ("DELETE FROM t", "0 "),
}
# What a new version of a row takes in memory must not add up: 23 MB for so many.
MOVED, MOST_KB = 1_800_000, 10_000


def update_many(server, tell):
    setup = server.session("many")
    setup.run("CREATE TABLE long (a int, b int) USING colcompress WITH (stripe_row_limit = 10000)")
    setup.run(f"INSERT INTO long SELECT g, g FROM generate_series(1, {MOVED}) g")
    setup.close()
    session = server.session("many")
    # What a first look takes is not meant.
    session.run("SELECT count(*), sum(b) FROM long")
    pid = session.value("SELECT pg_backend_pid()")
    with MemoryWatch(pid) as before:
        session.run("SELECT pg_sleep(0.2)")
    with MemoryWatch(pid) as during:
        session.run("UPDATE long SET b = b + 1")
    grown = during.peak_kb - before.peak_kb
    assert session.value("SELECT sum(b - a) FROM long") == str(MOVED), "not every row was updated"
    session.close()
    assert grown < MOST_KB, f"the session's memory grew by {grown} kB"
    tell(f"{grown} kB")


def vacuum_many(server):
    server.create_database("tables")
    for first in range(0, TABLES, 50):
        server.sql(f"DO $$ BEGIN FOR i IN {first}..{first + 49} LOOP EXECUTE format('CREATE TABLE many_%s (a int) USING colcompress', i); END LOOP; END $$", "tables")
    every = "DO $$ BEGIN FOR i IN 0..%d LOOP EXECUTE format('LOCK TABLE many_%%s', i); END LOOP; END $$" % (TABLES - 1)
    status, _, errors = server.sql(every, "tables", check=False)
    assert status != 0 and "out of shared memory" in errors, f"the premise: there is no room for so many locks {errors}"
    server.sql("SET colonnade.stripe_threshold_rows = 0; INSERT INTO many_7 SELECT generate_series(1, 2000); DELETE FROM many_7", "tables")
    server.sql("VACUUM", "tables")
    left = server.sql("SELECT count(*) FROM engine.colcompress_stripes", "tables")
    assert left == "0", f"{left} stripes of dead rows are left"


def main():
    server = fresh_server("many_stripes", os.environ["COLONNADE_STAGE"], settings=SETTINGS)
    checks = Checks("many_stripes")
    try:
        server.create_database("many")
        for name, (statement, expected) in STATEMENTS.items():
            with checks.part(name):
                server.sql("DROP TABLE IF EXISTS t;" + TABLE, "many")
                stripes = server.sql("SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 't'::regclass", "many")
                assert stripes == str(STRIPES), f"the premise: {STRIPES} stripes; found {stripes}"
                server.sql(statement, "many")
                found = server.sql("SELECT count(*) || ' ' || coalesce(sum(version)::text, '') FROM t", "many")
                assert found == expected, f"found {found}, not {expected}"
                faults = server.sql("SELECT v FROM engine.verify('t') v", "many")
                assert not faults, f"engine.verify finds {faults[:500]}"
        with checks.part(f"UPDATE of {MOVED} rows") as tell:
            update_many(server, tell)
        with checks.part(f"VACUUM of {TABLES} tables"):
            vacuum_many(server)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
