"""Records of the server's that we write ourselves, as a standby replays them: line pointers of a catalog that
VACUUM makes dead, and the horizon of rows that are about to go.

They are written with the layout of the server's own. It differs between major versions, and neither compiler
nor primary notices a wrong one. So the standby compares each page that it replays with the primary's, and
lengths are held against those of the version.
"""

import os

from harness.checks import Checks
from harness.server import fresh_server, major
from harness.session import SqlError
from harness.standby import make_standby, wait_for_replay

MAKE = """
CREATE EXTENSION pageinspect;
CREATE EXTENSION pg_walinspect;
CREATE TABLE t (id int PRIMARY KEY, g int) USING colcompress;
INSERT INTO t SELECT i, i % 50 FROM generate_series(1, 1000) i;
"""
# Locks rows in stripes, which leaves proxies that nobody needs.
LOCK = "BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id % 10 = 0 FOR UPDATE) s; ROLLBACK"
# The line pointers of the proxies: normal ones, dead ones.
POINTERS = """
SELECT count(*) FILTER (WHERE lp_flags = 1) || ' ' || count(*) FILTER (WHERE lp_flags = 3)
FROM generate_series(0, pg_relation_size('engine.row_proxy') / 8192 - 1) AS block,
    heap_page_items(get_raw_page('engine.row_proxy', block::int))
"""
PRUNED = "resource_manager = 'Heap2' AND record_type LIKE 'PRUNE%'"
REUSED = "resource_manager = 'Btree' AND record_type = 'REUSE_PAGE'"
CONFLICTS = "SELECT confl_snapshot FROM pg_stat_database_conflicts WHERE datname = 'db'"


def records(server, since, which):
    """How many records of a kind were written since a place in the log, and how long their main data are."""
    lengths = server.sql(
        f"SELECT main_data_length FROM pg_get_wal_records_info('{since}', pg_current_wal_flush_lsn()) WHERE {which}", "db"
    )
    return [int(length) for length in lengths.split()]


def here(server):
    """The present end of the log, all of which is written out."""
    server.sql("SELECT pg_logical_emit_message(true, 'test', '')", "db")
    return server.sql("SELECT pg_current_wal_flush_lsn()", "db")


def dead_pointers(server, standby, checks):
    server.sql(LOCK.replace("; ", ";\n"), "db")
    before = server.sql(POINTERS, "db")
    since = here(server)
    server.sql("VACUUM t", "db")
    here(server)
    # Main data of a horizon, two counts, and since 16 a flag. From 17 on: a reason's byte and one of flags.
    length = {15: 8, 16: 9}.get(major(), 2)
    found = records(server, since, PRUNED)
    checks.say("VACUUM of a table prunes proxies", before == "100 0" and bool(found), f"{before}, {found}")
    checks.say("pruning has the length of the version's record", set(found) == {length}, found)
    wait_for_replay(server, standby)
    now = server.sql(POINTERS, "db")
    checks.say("the primary has dead pointers", now == "0 100", now)
    then = standby.sql(POINTERS, "db")
    checks.say("so has the standby", then == now, then)


def horizon(server, standby, checks):
    with standby.session("db") as old:
        old.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        checks.say("the standby sees all rows", old.value("SELECT count(*) FROM t") == "1000")
        conflicts = int(standby.sql(CONFLICTS, "db"))
        since = here(server)
        server.sql("DELETE FROM t WHERE id <= 100", "db")
        server.sql("VACUUM t", "db")
        here(server)
        # File, block, and a horizon of 8 bytes; since 16 a flag.
        length = 24 if major() == 15 else 25
        found = records(server, since, REUSED)
        checks.say("VACUUM logs its horizon", bool(found))
        checks.say("the horizon has the length of the version's record", set(found) == {length}, found)
        wait_for_replay(server, standby)
        try:
            seen = old.value("SELECT count(*) FROM t")
        except SqlError as problem:
            seen = str(problem)
        checks.say("an older snapshot of the standby is told of the conflict", "conflict with recovery" in seen, seen)
    told = int(standby.sql(CONFLICTS, "db")) - conflicts
    checks.say("it is a conflict of snapshots", told == 1, told)
    with standby.session("db") as now:
        checks.say("a new snapshot sees what is left", now.value("SELECT count(*) FROM t") == "900")
    faults = standby.sql("SELECT string_agg(v::text, ', ') FROM engine.verify('t') v", "db")
    checks.say("the verifier finds nothing on the standby", not faults, faults)


def main():
    settings = {"autovacuum": "off", "colonnade.stripe_threshold_rows": "0", "colonnade.packing": "off",
                "wal_consistency_checking": "heap,heap2,btree"}
    server = fresh_server("replayed_records", os.environ["COLONNADE_STAGE"], settings=settings)
    checks = Checks("replayed_records")
    standby = None
    try:
        server.create_database("db")
        standby = make_standby(server, hot_standby_feedback="off", max_standby_streaming_delay="100ms")
        server.sql(MAKE, "db")
        dead_pointers(server, standby, checks)
        horizon(server, standby, checks)
        checks.show_log(standby)
    finally:
        if standby is not None:
            standby.stop("immediate")
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
