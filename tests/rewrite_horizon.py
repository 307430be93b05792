"""What merge and unpack take for young, and what they keep for whom: writers in other databases hold nobody's
rows back, old snapshots in this one keep theirs.

Counts where rows are after a merge, which isolation/rewrite/old_snapshot leaves open, and what only a program
can arrange: other databases, prepared transactions, exported snapshots, values out of line, columns that came
and went, unlogged and temporary tables, old_snapshot_threshold, a crash afterwards.
"""

import os

from harness.checks import Checks
from harness.server import fresh_server, major
from harness.session import SqlError

REWRITES = {"merge": "SELECT engine.colcompress_merge('t')", "unpack": "SELECT engine.unpack('t')", "VACUUM FULL": "VACUUM FULL t", "CLUSTER": "CLUSTER t USING t_id"}
SEEN = "SELECT count(*) || ' ' || coalesce(sum(id), 0) || ' ' || coalesce(sum(length(wide)), 0) || ' ' || md5(coalesce(string_agg(t::text, ',' ORDER BY id, n), '')) FROM t"
WHERE = "SELECT (SELECT count(*) FROM t WHERE ctid < '(2147483648,0)') || ' hot, ' || (SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 't'::regclass) || ' stripes'"
VALUES = "g % 7, repeat(md5(g::text), CASE WHEN g % 50 = 0 THEN 400 ELSE 1 END)"


def make(session, kind=""):
    """A table with rows in stripes and hot ones, some wide; columns have come and gone."""
    session.run("DROP TABLE IF EXISTS t; SET colonnade.stripe_threshold_rows = 1000")
    session.run(f"CREATE {kind} TABLE t (gone text, id int, n int, wide text) USING colcompress WITH (orderby = 'id')")
    session.run("ALTER TABLE t ALTER wide SET STORAGE EXTERNAL")
    session.run(f"INSERT INTO t SELECT 'gone' || g, g, {VALUES} FROM generate_series(1, 3000) g")
    session.run(f"INSERT INTO t SELECT 'gone' || g, g, {VALUES} FROM generate_series(3001, 3100) g")
    session.run("ALTER TABLE t DROP COLUMN gone, ADD COLUMN later text DEFAULT 'added'")
    session.run("CREATE UNIQUE INDEX t_id ON t (id)")


def change(session):
    """Changes of all kinds, few of them."""
    session.run("DELETE FROM t WHERE id IN (50, 3050) OR id BETWEEN 1000 AND 1400")
    session.run("UPDATE t SET n = n + 1 WHERE id IN (100, 3100, 101, 3099)")
    session.run("UPDATE t SET wide = wide || 'x' WHERE id BETWEEN 3080 AND 3100")
    for at in range(40):
        session.run(f"INSERT INTO t SELECT g, {VALUES}, 'single' FROM generate_series({10000 + at}, {10000 + at}) g")
    session.run(f"INSERT INTO t SELECT g, {VALUES}, 'many' FROM generate_series(20001, 21500) g")


def placed(checks, server):
    """Where rows are after a merge."""
    with server.session("one") as a, server.session("one") as b, server.session("two") as other, server.session("one") as idle:
        make(a)
        other.run("CREATE TABLE w (x int); BEGIN; INSERT INTO w VALUES (1)")
        idle.run("BEGIN; SELECT pg_current_xact_id()")
        change(a)
        a.run("SELECT engine.colcompress_merge('t')")
        found = a.value(WHERE)
        checks.say("writers of another database, and one without a snapshot, hold nothing back", found == "0 hot, 1 stripes", found)
        other.run("ROLLBACK; DROP TABLE w")
        idle.run("ROLLBACK")

        a.run(f"BEGIN; INSERT INTO t SELECT g, {VALUES}, 'own' FROM generate_series(30001, 30010) g; SAVEPOINT s; INSERT INTO t SELECT g, {VALUES}, 'own' FROM generate_series(30011, 30020) g; "
              "UPDATE t SET n = 0 WHERE id IN (1, 30001); DELETE FROM t WHERE id IN (2, 30002); SELECT engine.colcompress_merge('t'); COMMIT")
        found = a.value(WHERE)
        checks.say("the own transaction's rows make one stripe", found.startswith("0 hot, "), found)

        make(a)
        b.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_am")
        for at in range(60):
            a.run(f"INSERT INTO t SELECT g, {VALUES}, 'single' FROM generate_series({10000 + at}, {10000 + at}) g")
        a.run(f"INSERT INTO t SELECT g, {VALUES}, 'many' FROM generate_series(20001, 21500) g")
        a.run("SELECT engine.colcompress_merge('t')")
        found = a.value(WHERE)
        checks.say("rows of single insertions stay hot, those of one large make a stripe", found == "60 hot, 2 stripes", found)
        b.run("COMMIT")
        a.run("SELECT engine.colcompress_merge('t')")
        found = a.value(WHERE)
        checks.say("all are in one when nobody looks any more", found == "0 hot, 1 stripes", found)


def kept(checks, server, kind=""):
    """What old snapshots find after each rewrite."""
    for name, rewrite in REWRITES.items():
        what = f"{kind.lower()} {name}".strip()
        with server.session("one") as a, server.session("one") as old, server.session("one") as middle:
            make(a, kind)
            before = a.value(SEEN)
            old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_am")
            change(a)
            between = a.value(SEEN)
            middle.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_am")
            a.run(f"UPDATE t SET wide = wide || 'y' WHERE id % 100 = 0; DELETE FROM t WHERE id % 100 = 1; INSERT INTO t SELECT g, {VALUES}, 'last' FROM generate_series(40001, 40010) g")
            after = a.value(SEEN)
            for again in ("", " again"):
                a.run(rewrite)
                a.run("VACUUM engine.stripe, engine.row_proxy, engine.delete_bitmap")
                found = a.value(SEEN)
                checks.say(f"{what}{again}: nothing changes for new snapshots", found == after, f"{found}, {after}")
            found = (old.value(SEEN), middle.value(SEEN))
            checks.say(f"{what}: older ones find what they found", found == (before, between), f"{found}, {(before, between)}")
            found = a.value("SELECT count(*) FROM engine.verify('t') WHERE kind <> 'unclaimed'")
            checks.say(f"{what}: nothing is wrong with the table", found == "0", found)
            old.run("COMMIT")
            middle.run("COMMIT")
            a.run("VACUUM (FREEZE) t")
            found = a.value(SEEN)
            checks.say(f"{what}: nor after VACUUM", found == after, f"{found}, {after}")


def temporary(checks, server):
    """A temporary table, in one session."""
    with server.session("one") as a:
        make(a, "TEMP")
        for name in ("merge", "unpack"):
            change(a)
            before = a.value(SEEN)
            a.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            a.run("DELETE FROM t WHERE id = 7; INSERT INTO t VALUES (7, 1, 'again', 'x')")
            mid = a.value(SEEN)
            a.run(REWRITES[name])
            found = a.value(SEEN)
            a.run("ROLLBACK")
            checks.say(f"a temporary table's {name}", (found, a.value(SEEN)) == (mid, before))
            a.run(REWRITES[name])
            checks.say(f"and again: {name}", a.value(SEEN) == before)
            a.run("DELETE FROM t WHERE id >= 10000")


def threshold(checks, stage):
    """A server that gives old snapshots an ERROR: that, or all their rows. PostgreSQL 17 has this no more."""
    if major() >= 17:
        return
    server = fresh_server("rewrite_threshold", stage, {"old_snapshot_threshold": "0"})
    try:
        server.create_database("one")
        for name, rewrite in REWRITES.items():
            with server.session("one") as a, server.session("one") as old:
                make(a)
                before = a.value(SEEN)
                old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_am")
                a.run("DELETE FROM t WHERE id <= 2000 OR id > 3050; UPDATE t SET n = 0 WHERE id > 3040")
                a.run("SELECT txid_current()")
                a.run(rewrite)
                try:
                    found = old.value(SEEN)
                except SqlError as problem:
                    found = before if "snapshot too old" in str(problem) else str(problem)
                checks.say(f"old_snapshot_threshold: {name} leaves an old snapshot its rows, or an ERROR", found == before, f"{found}, {before}")
    finally:
        server.destroy()


def main():
    checks = Checks("rewrite_horizon")
    stage = os.environ["COLONNADE_STAGE"]
    server = fresh_server("rewrite_horizon", stage, {"autovacuum": "off"})
    try:
        for name in ("one", "two"):
            server.create_database(name)
        placed(checks, server)
        kept(checks, server)
        kept(checks, server, "UNLOGGED")
        temporary(checks, server)
        with server.session("one") as a:
            make(a)
            change(a)
            a.run("SELECT engine.colcompress_merge('t')")
            a.run(f"BEGIN; INSERT INTO t SELECT g, {VALUES}, 'prepared' FROM generate_series(50001, 50010) g; DELETE FROM t WHERE id = 3; SELECT engine.colcompress_merge('t'); "
                  f"DELETE FROM t WHERE id = 4; PREPARE TRANSACTION 'merged'")
        server.kill9()
        server.start()
        with server.session("one") as a:
            a.run("COMMIT PREPARED 'merged'")
            found = a.value("SELECT count(*) || ' ' || count(*) FILTER (WHERE later = 'prepared') || ' ' || count(*) FILTER (WHERE id IN (3, 4)) FROM t")
            checks.say("a merge that was prepared is there after a crash", found == f"{3100 - 403 + 1540 + 10 - 2} 10 0", found)
    finally:
        checks.show_log(server)
        server.destroy()
    threshold(checks, stage)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
