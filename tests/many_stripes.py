"""DELETE and UPDATE of rows in more stripes than the server has room for locks: stripes that a statement has to itself are given back once there are many."""

import os

from harness.checks import Checks
from harness.server import ServerError, fresh_server

STRIPES, ROWS = 4000, 40
SETTINGS = {"max_locks_per_transaction": "10", "max_connections": "10", "max_worker_processes": "2", "max_prepared_transactions": "0", "colonnade.packing": "off"}
TABLE = f"""
CREATE TABLE t (stripe int, row int, version int) USING colcompress;
SET colonnade.stripe_threshold_rows = 1;
DO $$ BEGIN FOR i IN 1..{STRIPES} LOOP INSERT INTO t SELECT i, g, 0 FROM generate_series(1, {ROWS}) g; END LOOP; END $$;
"""
STATEMENTS = {
    "UPDATE": ("UPDATE t SET version = version + 1", f"{STRIPES * ROWS} {STRIPES * ROWS}"),
    "DELETE of half": ("DELETE FROM t WHERE row % 2 = 0", f"{STRIPES * ROWS // 2} 0"),
    "DELETE of all": ("DELETE FROM t", "0 "),
}


def main():
    server = fresh_server("many_stripes", os.environ["COLONNADE_STAGE"], settings=SETTINGS)
    checks = Checks("many_stripes")
    try:
        server.create_database("many")
        for name, (statement, expected) in STATEMENTS.items():
            with checks.part(name, (AssertionError, ServerError)):
                server.sql("DROP TABLE IF EXISTS t;" + TABLE, "many")
                stripes = server.sql("SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 't'::regclass", "many")
                assert stripes == str(STRIPES), f"the premise: {STRIPES} stripes; found {stripes}"
                server.sql(statement, "many")
                found = server.sql("SELECT count(*) || ' ' || coalesce(sum(version)::text, '') FROM t", "many")
                assert found == expected, f"found {found}, not {expected}"
                faults = server.sql("SELECT v FROM engine.verify('t') v", "many")
                assert not faults, f"engine.verify finds {faults[:500]}"
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
