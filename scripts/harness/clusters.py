"""A database with rows of every kind, and what happens to whole clusters: far transaction numbers,
pg_upgrade.

Who calls it: tests/cluster_moves.py and tests/long/major_upgrades.py. The rows must be the same whatever
happens, by table and by index; `engine.verify` must find nothing; and rows must change as ever.
"""

from .server import ServerError, as_server_user, run

# Rows in stripes, in heap pages, changed, deleted and locked in stripes, and out of line.
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
KINDS = """SELECT count(*) FROM engine.row_proxy WHERE dead; SELECT 90 * count(*) FROM engine.delete_bitmap;
    SELECT count(*) FROM engine.row_proxy WHERE NOT dead; SELECT count(*) FROM t WHERE (ctid::text::point)[0] < 2147483648"""
DIGESTS = """
SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t;
SELECT count(*), sum(hashtextextended(p::text, 0)) FROM plain p;
SELECT count(*), sum(hashtextextended(m::text, 0)) FROM mv m;
SET enable_seqscan = off; SET colonnade.enable_scan = off; SET enable_bitmapscan = off;
SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t WHERE id > 0;
"""
# Numbers and epochs, each nearly as far from the one before as autovacuum_freeze_max_age can be, so that
# autovacuum does not freeze first; the last passes 2^32.
JUMPS = ((1_900_000_000, 0), (3_800_000_000, 0), (1_400_000_000, 1))
PROBLEMS = "SELECT c.oid::regclass, v.kind, v.detail FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND amname IN ('colcompress', 'rowcompress'), engine.verify(c.oid) v WHERE c.relkind <> 'p'"


def fill(server, database):
    """Fills the database and returns what `DIGESTS` say of it."""
    server.sql(SETUP, database)
    kinds = server.sql(KINDS, database).split()
    assert all(int(kind) >= 16 for kind in kinds), f"the premise: rows of every kind; found {kinds}"
    return server.sql(DIGESTS, database)


def healthy(check, server, database, name, wanted):
    """Three tests, said by `check`: the rows of `fill` are as wanted, whole, and change as ever."""
    found, problems = server.sql(DIGESTS, database), server.sql(PROBLEMS, database)
    check(f"the rows after {name}", found == wanted, f"{found} instead of {wanted}")
    check(f"engine.verify after {name}", problems == "", problems)
    # Changes that are rolled back go through proxies, tombstones and new stripes as ever.
    changed = server.sql("BEGIN; WITH u AS (UPDATE t SET v = 'x' WHERE id % 7 = 0 RETURNING 1) SELECT count(*) FROM u; "
                         "INSERT INTO plain SELECT g, 'new' FROM generate_series(1, 15000) g; SELECT count(*) FROM plain; ROLLBACK", database)
    check(f"changes after {name}", changed.split() == ["742", "35000"], changed)


def program(server, name, *arguments):
    """Runs one of the server's programs; returns its completed process."""
    return run(as_server_user([server.bindir / name, *arguments]), check=False, cwd=str(server.base))


def freeze(server):
    """vacuumdb --all --freeze; its completed process."""
    return program(server, "vacuumdb", "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, "--all", "--freeze")


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


def pg_upgrade(old, new, *options):
    """Runs the new server's pg_upgrade over both data directories; returns its completed process, with what
    its logs say where it failed. Both servers are down."""
    done = run(as_server_user([new.bindir / "pg_upgrade", "-b", old.bindir, "-B", new.bindir, "-d", old.data, "-D", new.data, "-U", old.superuser,
                               "-s", new.socket_dir, "-p", old.port, "-P", old.port + 1, "--no-sync", *options]), check=False, cwd=str(new.base))
    if done.returncode != 0:
        output = new.data / "pg_upgrade_output.d"
        logs = [log for log in sorted(output.glob("*/log/pg_upgrade_dump_*.log")) if "error:" in log.read_text(errors="replace")]
        done.stdout = done.stdout[-300:] + "".join(f"\n{log.name}:\n{log.read_text(errors='replace')[-1500:]}" for log in [*sorted(output.glob("*/*.txt")), *logs])
    return done


def upgraded(old, new, *options):
    """Starts the new server, upgraded from the old one; ServerError where pg_upgrade fails."""
    old.stop()
    done = pg_upgrade(old, new, *options)
    if done.returncode != 0:
        raise ServerError(done.stdout)
    new.start()
