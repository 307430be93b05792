"""Snapshots of a standby that are older than any on its primary, which has replaced the stripes that they see
and done all that it may do with the old ones: each gives the answers that it gave before, or its session is
told of a conflict with recovery. Never fewer rows. What engine.verify has read goes, too, and is no fault.
"""

import os
import time

from harness.checks import Checks
from harness.server import fresh_server
from harness.session import SqlError
from harness.standby import make_standby, promote, wait_for_replay

MAKE = """
CREATE TABLE {0} (id int, g int) USING colcompress;
INSERT INTO {0} SELECT i, i % 50 FROM generate_series(1, 500) i;
INSERT INTO {0} SELECT i, i % 50 FROM generate_series(501, 1000) i;
CREATE INDEX ON {0} (id);
SET colonnade.stripe_threshold_rows = 100000;
INSERT INTO {0} SELECT i, i % 50 FROM generate_series(1001, 1100) i;
DELETE FROM {0} WHERE id IN (7, 8);
VACUUM {0};
VACUUM engine.stripe;
"""
# What happens to the directory after its stripes were joined, before VACUUM looks for what is dead in it.
WAYS = {
    "nothing": "",
    "a reader marks index entries dead": "SET enable_seqscan = off; SET enable_bitmapscan = off; "
    "SELECT count(*) FROM engine.stripe WHERE storage_id = engine.colcompress_relation_storageid('{0}'); "
    "SELECT count(*) FROM engine.stripe WHERE storage_id = engine.colcompress_relation_storageid('{0}');",
    "REINDEX": "REINDEX TABLE engine.stripe; REINDEX TABLE engine.row_proxy; REINDEX TABLE engine.delete_bitmap;",
    "REINDEX CONCURRENTLY": "REINDEX TABLE CONCURRENTLY engine.stripe;",
    "REINDEX of its index": "REINDEX INDEX {0}_id_idx;",
    "CREATE INDEX": "DROP INDEX {0}_id_idx; CREATE INDEX ON {0} (id);",
    "REINDEX CONCURRENTLY of its index": "REINDEX INDEX CONCURRENTLY {0}_id_idx;",
}
# By all rows, and by index.
QUESTIONS = [
    (("seqscan = on", "indexscan = off", "bitmapscan = off"), "on", "SELECT count(*) || ' ' || sum(id) FROM {0}"),
    (("seqscan = off", "indexscan = on", "bitmapscan = off"), "off", "SELECT count(*) || ' ' || sum(g) FROM {0} WHERE id > 0"),
]
CONFLICT = "conflict"
# Of what the primary has locked while replay waits for the session.
TOLD = ("conflict with recovery", "lock timeout")


def answers(session, table):
    """What a session says, or that it was told of a conflict."""
    try:
        found = []
        for settings, scan, question in QUESTIONS:
            for setting in (*(f"enable_{setting}" for setting in settings), f"colonnade.enable_scan = {scan}"):
                session.run(f"SET {setting}")
            found.append(session.value(question.format(table)))
        return found
    except SqlError as problem:
        if not any(told in str(problem) for told in TOLD):
            raise
        return CONFLICT


def check_unlogged(server, standby, checks):
    """An unlogged table has no file on a standby."""
    server.sql("CREATE UNLOGGED TABLE u (a int) USING colcompress; INSERT INTO u SELECT generate_series(1, 1000)", "db")
    wait_for_replay(server, standby)
    refused = "cannot access temporary or unlogged relations during recovery"
    for statement in ("SELECT count(*) FROM u", "EXPLAIN SELECT a FROM u", "SELECT * FROM engine.verify('u')"):
        checks.say(f"{statement} is refused", refused in standby.sql(statement, "db", check=False)[2])
    tables = standby.sql("SELECT string_agg(table_name::text, ' ' ORDER BY table_name::text) FROM engine.storage_health", "db")
    checks.say("engine.storage_health leaves it out", "t0" in tables.split() and "u" not in tables.split())
    stripes = standby.sql("SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'u'::regclass", "db")
    checks.say("engine.colcompress_stripes leaves it out", stripes == "0")


def check_looked_up(server, standby, checks):
    """A session of a standby looks single rows up again and again. Nothing tells it of changes but the side
    tables themselves, before it is promoted and after."""
    server.sql("CREATE TABLE k (id int PRIMARY KEY, v int) USING colcompress; INSERT INTO k SELECT g, 1 FROM generate_series(1, 1000) g", "db")
    wait_for_replay(server, standby)
    changes = {
        "one row is deleted": "DELETE FROM k WHERE id = 5",
        "one row is updated": "UPDATE k SET v = 2 WHERE id = 10",
        "rows are deleted in bulk": "DELETE FROM k WHERE id BETWEEN 100 AND 400",
        "the stripe is replaced": "CALL engine.colcompress_repack('k'); VACUUM k; VACUUM engine.stripe",
        "the table is emptied and loaded": "TRUNCATE k; INSERT INTO k SELECT g, 3 FROM generate_series(1, 500) g",
    }
    keys = (1, 5, 10, 200, 700)

    def found(session):
        return [session.value(f"SELECT coalesce(sum(v), 0) || ' ' || count(*) FROM k WHERE id = {key}") for key in keys]

    with standby.session("db") as there, server.session("db") as here:
        for session in (there, here):
            for setting in ("enable_seqscan", "enable_bitmapscan", "colonnade.enable_scan"):
                session.run(f"SET {setting} = off")
        for name, change in changes.items():
            found(there), found(there)
            server.sql(change.replace("; ", ";\n"), "db")
            wait_for_replay(server, standby)
            checks.say(f"look-ups of a standby after {name}", found(there) == found(here))
        found(there), found(there)
        promote(standby)
        standby.sql("DELETE FROM k WHERE id = 1; UPDATE k SET v = 4 WHERE id = 5", "db")
        checks.say("the same session after it was promoted", found(there) == ["0 0", "4 1", "3 1", "3 1", "0 0"])
        standby.sql("DELETE FROM k WHERE id = 10", "db")
        checks.say("and after one more change", found(there) == ["0 0", "4 1", "0 0", "3 1", "0 0"])


# A row's indexed expression waits while somebody has the advisory lock 7.
LATE = """
CREATE TABLE late (id int, filler text) USING colcompress;
CREATE FUNCTION waits(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
  RETURN id;
END $$;
INSERT INTO late SELECT g, 'y' FROM generate_series(1001, 3000) g;
SET colonnade.stripe_threshold_rows = 100000;
INSERT INTO late SELECT g, repeat('x', 500) FROM generate_series(1, 100) g;
CREATE INDEX ON late (waits(id));
"""


def check_verified(server, standby, checks):
    """engine.verify waits on a standby for a row's indexed expression, after it has read the index. Meanwhile
    VACUUM takes away the entries that it has read and their rows, and a stripe takes the rows' pages."""
    server.sql(LATE, "db")
    server.sql("DELETE FROM late WHERE id BETWEEN 31 AND 90", "db")
    size = server.sql("SELECT pg_relation_size('late')", "db")
    wait_for_replay(server, standby)
    with server.session("db") as reader, standby.session("db") as holder, standby.session("db") as verifier:
        # Nothing is removed on the primary that the standby would have to wait for.
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.run("SELECT")
        holder.run("SELECT pg_advisory_lock(7)")
        verifier.send("SELECT count(*) || coalesce(min(detail), '') FROM engine.verify('late')")
        deadline = time.monotonic() + 60
        while standby.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "db") != "1":
            assert time.monotonic() < deadline, "engine.verify does not come to the expression"
            time.sleep(0.05)
        server.sql("VACUUM late;", "db")
        server.sql("CALL engine.colcompress_repack('late')", "db")
        checks.say("a stripe takes the pages of dead rows", server.sql("SELECT pg_relation_size('late')", "db") == size)
        wait_for_replay(server, standby)
        holder.run("SELECT pg_advisory_unlock(7)")
        found = verifier.wait().rows[0][0]
        checks.say("engine.verify finds no fault where replay has passed it by", found == "0", found)


def main():
    settings = {"autovacuum": "off", "colonnade.stripe_threshold_rows": "0", "colonnade.packing": "off"}
    server = fresh_server("standby_snapshots", os.environ["COLONNADE_STAGE"], settings=settings)
    checks = Checks("standby_snapshots")
    standby = None
    try:
        server.create_database("db")
        standby = make_standby(server, hot_standby_feedback="off", max_standby_streaming_delay="-1")
        for at, (name, way) in enumerate(WAYS.items()):
            table = f"t{at}"
            server.sql(MAKE.format(table), "db")
            wait_for_replay(server, standby)
            with standby.session("db") as old:
                # The snapshot is there, but nothing else of the table.
                old.run("SET lock_timeout = '2s'")
                old.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
                old.value("SELECT count(*) FROM pg_class WHERE relname = 'stripe'")
                with standby.session("db") as now:
                    before = answers(now, table)
                server.sql(f"CALL engine.colcompress_repack('{table}')", "db")
                server.sql(way.format(table).replace("; ", ";\n"), "db")
                for after in (name, f"{name} and VACUUM"):
                    # Replay waits for the session, or has passed it by.
                    time.sleep(1)
                    then = answers(old, table)
                    checks.say(f"after {after} an old snapshot sees what it saw, or is told of the conflict", then in (before, CONFLICT))
                    if then == CONFLICT:
                        break
                    server.sql(f"VACUUM {table};", "db")
            wait_for_replay(server, standby)
            with standby.session("db") as now:
                checks.say(f"a new snapshot sees all rows after {name}", answers(now, table) == before)
            with server.session("db") as now:
                checks.say(f"as on the primary after {name}", answers(now, table) == before)
        check_unlogged(server, standby, checks)
        check_verified(server, standby, checks)
        check_looked_up(server, standby, checks)
    finally:
        if standby is not None:
            standby.stop("immediate")
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
