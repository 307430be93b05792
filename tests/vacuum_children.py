"""VACUUM takes dead stripes out of the tables that it vacuums, and of no others. Which of a table's children
these are depends on the major version: from 18 on all of them, unless ONLY is said; before that partitions.
"""

import os

from harness.checks import Checks
from harness.server import fresh_server, major

MAKE = """
CREATE TABLE parent (id int) USING colcompress;
CREATE TABLE child () INHERITS (parent) USING colcompress;
CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10000) USING colcompress;
"""
FILL = """
INSERT INTO {0} SELECT g FROM generate_series(1, 2000) g;
DELETE FROM {0};
"""
STRIPES = "SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = '{0}'::regclass"
# A statement, and the tables whose dead stripes it takes out: before 18 (None: there is no such statement),
# and from then on.
STATEMENTS = [
    ("VACUUM parent", {"parent"}, {"parent", "child"}),
    ("VACUUM ONLY parent", None, {"parent"}),
    ("VACUUM parts", {"part"}, {"part"}),
    ("VACUUM ONLY parts", None, set()),
    ("VACUUM part, child", {"part", "child"}, {"part", "child"}),
]


def main():
    settings = {"autovacuum": "off", "colonnade.packing": "off", "colonnade.stripe_threshold_rows": "0"}
    server = fresh_server("vacuum_children", os.environ["COLONNADE_STAGE"], settings=settings)
    checks = Checks("vacuum_children")
    try:
        server.create_database("db")
        server.sql(MAKE, "db")
        for statement, before, since in STATEMENTS:
            wanted = since if major() >= 18 else before
            if wanted is None:
                continue
            for table in ("parent", "child", "part"):
                server.sql(FILL.format(table), "db")
            server.sql(statement, "db")
            empty = {table for table in ("parent", "child", "part") if server.sql(STRIPES.format(table), "db") == "0"}
            checks.say(statement, empty == wanted, sorted(empty))
            server.sql("VACUUM parent, child, part", "db")
        checks.show_log(server)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
