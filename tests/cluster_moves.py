"""Rows outlive what happens to the whole cluster: other tablespaces, pg_amcheck, the wraparound of
transaction numbers, pg_upgrade.

One database with rows of every kind, see harness/clusters.py. After each step the rows must be the same, by
table and by index; `engine.verify` must find nothing; and rows must change as ever. Transaction numbers are
moved by pg_resetwal, three times nearly as far as the server allows, so that they pass 2^31 and 2^32.
pg_upgrade goes to the same major version here; tests/long/major_upgrades.py goes to later ones.
"""

import os
import re

from harness import clusters
from harness.checks import Checks
from harness.clusters import DIGESTS, JUMPS, freeze, jump, program, upgraded
from harness.server import Server, as_server_user, fresh_server, private_base, run

DATABASE = "moves"
checks = Checks("cluster_moves")
check = checks.say


def healthy(server, name, wanted):
    clusters.healthy(check, server, DATABASE, name, wanted)


def tablespaces(server, wanted):
    place = server.base / "space"
    run(as_server_user(["mkdir", place]))
    server.sql(f"CREATE TABLESPACE elsewhere LOCATION '{place}'")
    server.sql("ALTER TABLE t SET TABLESPACE elsewhere; ALTER INDEX t_pkey SET TABLESPACE elsewhere; ALTER TABLE ALL IN TABLESPACE pg_default SET TABLESPACE elsewhere", DATABASE)
    healthy(server, "ALTER TABLE SET TABLESPACE", wanted)
    server.sql("ALTER TABLE ALL IN TABLESPACE elsewhere SET TABLESPACE pg_default; ALTER INDEX ALL IN TABLESPACE elsewhere SET TABLESPACE pg_default; "
               "ALTER MATERIALIZED VIEW ALL IN TABLESPACE elsewhere SET TABLESPACE pg_default", DATABASE)
    healthy(server, "the way back", wanted)
    server.sql(f"ALTER DATABASE {DATABASE} SET TABLESPACE elsewhere")
    healthy(server, "ALTER DATABASE SET TABLESPACE", wanted)
    server.sql(f"ALTER DATABASE {DATABASE} SET TABLESPACE pg_default; DROP TABLESPACE elsewhere")


def amcheck(server):
    server.sql("CREATE EXTENSION amcheck", DATABASE)
    told = program(server, "pg_amcheck", "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, "-d", DATABASE,
                   "--heapallindexed", "--parent-check", "-v", "-i", "t_pkey", "-i", "t_k")
    checked = len(re.findall(r"checking btree index \"?\w+\.public\.t_(?:pkey|k)", told.stdout))
    check("pg_amcheck finds nothing in the indexes", told.returncode == 0 and checked == 2, told.stdout[-1500:])


def wraparound(server, wanted):
    server.sql("UPDATE pg_database SET datallowconn = true")
    for number, epoch in JUMPS:
        name = f"transaction {number + (epoch << 32)}"
        jump(server, number, epoch)
        far = int(server.sql("SELECT max(age(relfrozenxid)) FROM pg_class WHERE relname IN ('t', 'plain', 'stripe', 'row_proxy')", DATABASE))
        assert far > 1_800_000_000, f"the premise: the rows are {far} transactions old"
        healthy(server, f"{name}, before VACUUM", wanted)
        done = freeze(server)
        check(f"vacuumdb at {name}", done.returncode == 0, done.stdout)
        ages = server.sql("SELECT oid::regclass, age(relfrozenxid) FROM pg_class WHERE relfrozenxid <> 0 AND age(relfrozenxid) > 1000000", DATABASE)
        check(f"VACUUM has frozen every table at {name}", ages == "", ages)
        healthy(server, name, wanted)
        server.sql("SELECT engine.colcompress_merge('t'); DELETE FROM t WHERE id = 4; INSERT INTO t VALUES (4, 4, md5('4'), NULL)", DATABASE)
        wanted = server.sql(DIGESTS, DATABASE)
    server.sql("UPDATE pg_database SET datallowconn = datname <> 'template0'")


def upgrade(old, wanted):
    new = Server(private_base("upgraded", temporary=True), port=old.port, stage=old.stage, settings=old.settings)
    try:
        new.init()
        with checks.part("pg_upgrade"):
            upgraded(old, new)
            healthy(new, "pg_upgrade", wanted)
    finally:
        new.destroy()


def main():
    server = fresh_server("moves", os.environ["COLONNADE_STAGE"], {"autovacuum": "off", "autovacuum_freeze_max_age": "2000000000", "shared_buffers": "64MB"})
    try:
        server.create_database(DATABASE)
        wanted = clusters.fill(server, DATABASE)
        tablespaces(server, wanted)
        amcheck(server)
        wraparound(server, wanted)
        upgrade(server, server.sql(DIGESTS, DATABASE))
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
