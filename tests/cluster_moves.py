"""Rows outlive what happens to the whole cluster: other tablespaces, pg_amcheck, the wraparound of
transaction numbers, pg_upgrade.

One database with rows of every kind: in stripes, in heap pages, changed, deleted and locked in stripes, and
out of line. After each step the rows must be the same, by table and by index; `engine.verify` must find
nothing; and rows must change as ever. Transaction numbers are moved by pg_resetwal, three times nearly as far
as the server allows, so that they pass 2^31 and 2^32.
"""

import os
import re

from harness.checks import Checks
from harness.server import Server, as_server_user, fresh_server, private_base, run

SETUP = """
CREATE TABLE t (id int PRIMARY KEY, k int, v text, big text) USING colcompress WITH (stripe_row_limit = 2000, orderby = 'k');
INSERT INTO t SELECT g, g % 100, md5(g::text) FROM generate_series(1, 5000) g;
SELECT engine.colcompress_merge('t');
CREATE INDEX t_k ON t (k);
INSERT INTO t SELECT g, g % 100, 'hot', repeat(md5(g::text), 300) FROM generate_series(5001, 5300) g;
UPDATE t SET v = 'changed', big = repeat(v, 200) WHERE id % 50 = 1;
DELETE FROM t WHERE id % 50 = 2;
BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id % 50 = 3 FOR SHARE) x; COMMIT;
CREATE TABLE plain (a bigint, b text) USING colcompress;
INSERT INTO plain SELECT g, 'b' || g FROM generate_series(1, 20000) g;
CREATE MATERIALIZED VIEW mv USING colcompress AS SELECT k, count(*) FROM t GROUP BY k;
"""
DIGESTS = """
SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t;
SELECT count(*), sum(hashtextextended(p::text, 0)) FROM plain p;
SELECT count(*), sum(hashtextextended(m::text, 0)) FROM mv m;
SET enable_seqscan = off; SET colonnade.enable_scan = off; SET enable_bitmapscan = off;
SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t WHERE id > 0;
"""
PROBLEMS = "SELECT c.oid::regclass, v.kind, v.detail FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND amname = 'colcompress', engine.verify(c.oid) v"
# Numbers and epochs, each nearly as far from the one before as autovacuum_freeze_max_age can be, so that
# autovacuum does not freeze first; the last passes 2^32.
JUMPS = ((1_900_000_000, 0), (3_800_000_000, 0), (1_400_000_000, 1))
DATABASE = "moves"
checks = Checks("cluster_moves")
check = checks.say


def healthy(server, name, wanted):
    found, problems = server.sql(DIGESTS, DATABASE), server.sql(PROBLEMS, DATABASE)
    check(f"the rows after {name}", found == wanted, f"{found} instead of {wanted}")
    check(f"engine.verify after {name}", problems == "", problems)
    # Changes that are rolled back go through proxies, tombstones and new stripes as ever.
    changed = server.sql("BEGIN; WITH u AS (UPDATE t SET v = 'x' WHERE id % 7 = 0 RETURNING 1) SELECT count(*) FROM u; "
                         "INSERT INTO plain SELECT g, 'new' FROM generate_series(1, 15000) g; SELECT count(*) FROM plain; ROLLBACK", DATABASE)
    check(f"changes after {name}", changed.split() == ["742", "35000"], changed)


def program(server, name, *arguments):
    return run(as_server_user([server.bindir / name, *arguments]), check=False, cwd=str(server.base))


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


def jump(server, number, epoch):
    """Stops the server and makes `number` its next transaction; every database is frozen after it."""
    server.stop()
    segment = server.data / "pg_xact" / f"{number // (32 * 8192 * 4):04X}"
    run(as_server_user(["dd", "if=/dev/zero", f"of={segment}", "bs=8192", "count=32", "status=none"]))
    done = program(server, "pg_resetwal", "-f", "-D", server.data, "-x", number, "-e", epoch)
    if done.returncode != 0:
        raise AssertionError(done.stdout)
    server.start()
    now = int(server.sql("SELECT pg_current_xact_id()"))
    assert now >= number + (epoch << 32), f"the premise: the next transaction is {now}"


def wraparound(server, wanted):
    server.sql("UPDATE pg_database SET datallowconn = true")
    for number, epoch in JUMPS:
        name = f"transaction {number + (epoch << 32)}"
        jump(server, number, epoch)
        far = int(server.sql("SELECT max(age(relfrozenxid)) FROM pg_class WHERE relname IN ('t', 'plain', 'stripe', 'row_proxy')", DATABASE))
        assert far > 1_800_000_000, f"the premise: the rows are {far} transactions old"
        healthy(server, f"{name}, before VACUUM", wanted)
        done = program(server, "vacuumdb", "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, "--all", "--freeze")
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
        old.stop()
        new_bin = str(new.bindir)
        done = run(as_server_user([new.bindir / "pg_upgrade", "-b", new_bin, "-B", new_bin, "-d", old.data, "-D", new.data, "-U", old.superuser,
                                   "-s", new.socket_dir, "-p", old.port, "-P", old.port + 1]), check=False, cwd=str(new.base))
        logs = () if done.returncode == 0 else new.data.glob("pg_upgrade_output.d/*/log/pg_upgrade_dump_*.log")
        check("pg_upgrade", done.returncode == 0, done.stdout[-300:] + "".join(log.read_text()[-1500:] for log in logs))
        if done.returncode == 0:
            new.start()
            healthy(new, "pg_upgrade", wanted)
    finally:
        new.destroy()


def main():
    server = fresh_server("moves", os.environ["COLONNADE_STAGE"], {"autovacuum": "off", "autovacuum_freeze_max_age": "2000000000", "shared_buffers": "64MB"})
    try:
        server.create_database(DATABASE)
        server.sql(SETUP, DATABASE)
        kinds = server.sql("SELECT count(*) FROM engine.row_proxy WHERE dead; SELECT 90 * count(*) FROM engine.delete_bitmap; SELECT count(*) FROM engine.row_proxy WHERE NOT dead; "
                           "SELECT count(*) FROM t WHERE (ctid::text::point)[0] < 2147483648", DATABASE).split()
        assert all(int(kind) >= 16 for kind in kinds), f"the premise: rows of every kind; found {kinds}"
        wanted = server.sql(DIGESTS, DATABASE)
        tablespaces(server, wanted)
        amcheck(server)
        wraparound(server, wanted)
        upgrade(server, server.sql(DIGESTS, DATABASE))
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
