"""Columnstore indexes in the background: a load is copied without being asked, also beside writers; blocks
with dead rows get their copies by a VACUUM of the worker's; settings and the option leave indexes alone; the
index's file stays small however often its copies are replaced; what is copied shows in
pg_stat_progress_create_index; a refresh that was stopped goes on where it was; an index that was built
CONCURRENTLY is filled at once; nothing is done between two rounds."""

import threading
import time
from contextlib import contextmanager

from harness.checks import Checks
from harness.session import SqlError
from harness.settle import SETTLE

SETTINGS = {"colonnade.packing_naptime": "1", "autovacuum": "off", "wal_level": "replica", "max_wal_senders": "5"}
ROWS = 200_000
CHECKS = Checks("columnstore_background")
SHARE = "SELECT coalesce(min(clean_blocks::float8 / nullif(heap_blocks, 0)), 0) FROM engine.columnstore_indexes WHERE table_name = '{}'::regclass"
VERIFY = "SELECT count(*) FROM engine.columnstore_verify('{}')"


def until(what, holds, seconds=90):
    end = time.time() + seconds
    while not holds():
        assert time.time() < end, f"{what}: not within {seconds} seconds"
        time.sleep(0.1)


def settle(server):
    """Waits until all that is committed is old for everybody; the worker, too, has snapshots."""
    server.sql("CALL harness.settle()", "d")


def share(server, table):
    return float(server.sql(SHARE.format(table), "d"))


def load(server, tell):
    server.sql("CREATE TABLE t (id bigint PRIMARY KEY, k int, name text) WITH (fillfactor = 90)", "d")
    server.sql("CREATE INDEX t_copy ON t USING columnstore (id, k, name)", "d")
    server.sql(f"INSERT INTO t SELECT g, g % 97, 'name ' || g FROM generate_series(1, {ROWS}) g", "d")
    began = time.time()
    until("95 % of the blocks are copied after a load", lambda: share(server, "t") >= 0.95)
    tell(f"after {time.time() - began:.1f} s")
    until("all blocks are copied once nobody writes", lambda: share(server, "t") == 1)
    assert server.sql(VERIFY.format("t_copy"), "d") == "0"


def beside_a_writer(server, tell):
    stop, problems, written = threading.Event(), [], [ROWS]

    def write():
        try:
            session = server.session("d")
            while not stop.is_set():
                session.run(f"INSERT INTO t SELECT g, 1, 'later' FROM generate_series({written[0] + 1}, {written[0] + 500}) g")
                written[0] += 500
            session.close()
        except (SqlError, OSError) as error:
            problems.append(error)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        time.sleep(3)
        until("four fifths of the blocks are copied beside a writer", lambda: problems or share(server, "t") > 0.8)
        beside = share(server, "t")
    finally:
        stop.set()
        writer.join()
    assert not problems, problems
    for setting in ("on", "off"):
        found = server.sql(f"SET enable_seqscan = off; SET colonnade.enable_columnstore_index = {setting}; SELECT count(*), sum(id) FROM t", "d")
        assert found == f"{written[0]}|{written[0] * (written[0] + 1) // 2}", f"{found} with copies {setting}"
    tell(f"{beside:.2f} of the blocks after {written[0] - ROWS} rows")


def dead_rows(server, tell):
    until("all blocks are copied", lambda: share(server, "t") == 1)
    server.sql("DELETE FROM t WHERE id % 100 = 0", "d")
    assert share(server, "t") < 0.5, "the premise: most blocks have dead rows"
    began = time.time()
    until("a VACUUM of the worker's brings the copies back", lambda: share(server, "t") == 1)
    assert server.sql("SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 't'", "d") == "1"
    tell(f"after {time.time() - began:.1f} s")
    # The next one would come after five minutes only.
    server.sql("DELETE FROM t WHERE id % 100 = 1", "d")
    time.sleep(4)
    assert server.sql("SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 't'", "d") == "1"


def left_alone(server, _tell):
    server.sql("CREATE TABLE alone (a int, b text); CREATE INDEX alone_copy ON alone USING columnstore (a, b) WITH (refresh = off)", "d")
    server.sql("INSERT INTO alone SELECT g, 'x' FROM generate_series(1, 50000) g", "d")
    server.sql("CREATE DATABASE off")
    server.sql("ALTER DATABASE off SET colonnade.columnstore_refresh = off")
    server.sql("CREATE EXTENSION colonnade; CREATE TABLE t (a int); CREATE INDEX i ON t USING columnstore (a); INSERT INTO t SELECT generate_series(1, 50000)", "off")
    time.sleep(4)
    server.sql("VACUUM alone", "d")
    server.sql("VACUUM t", "off")
    assert share(server, "alone") == 0, "refresh = off"
    assert server.sql(SHARE.format("t"), "off") == "0", "colonnade.columnstore_refresh = off"
    server.sql("CALL engine.columnstore_refresh('alone_copy')", "d")
    assert share(server, "alone") == 1, "CALL copies all the same"
    server.sql("ALTER INDEX alone_copy SET (refresh = on); INSERT INTO alone SELECT g, 'y' FROM generate_series(1, 50000) g", "d")
    until("the option is on again", lambda: share(server, "alone") > 0.9)
    server.sql("DROP TABLE alone; DROP DATABASE IF EXISTS off WITH (FORCE)".split(";")[0], "d")
    server.sql("DROP DATABASE off WITH (FORCE)")


def small_file(server, tell):
    server.sql("CREATE TABLE s (id int, name text) WITH (fillfactor = 50)", "d")
    server.sql("INSERT INTO s SELECT g, md5(g::text) FROM generate_series(1, 100000) g", "d")
    server.sql("CREATE INDEX s_copy ON s USING columnstore (id, name) WITH (refresh = off)", "d")
    first = int(server.sql("SELECT pg_relation_size('s_copy')", "d"))
    sizes = []
    for step in range(25):
        server.sql(f"UPDATE s SET name = md5(id::text || {step}) WHERE id % 25 = {step}", "d")
        server.sql("VACUUM s", "d")
        server.sql("CALL engine.columnstore_refresh('s_copy')", "d")
        sizes.append(int(server.sql("SELECT pg_relation_size('s_copy')", "d")))
    assert share(server, "s") == 1, "the premise: each round has copied"
    assert server.sql(VERIFY.format("s_copy"), "d") == "0"
    assert sizes[-1] < 5 * first, f"{first} bytes became {sizes}: pages of replaced copies are not used again"
    tell(f"{first} bytes became {sizes[-1]}")
    # Not while a snapshot may be reading them.
    old = server.session("d")
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    old.run("SET enable_seqscan = off")
    old.run("DECLARE c CURSOR FOR SELECT id, name FROM s")
    before = old.run("FETCH 10 FROM c").rows
    for _ in range(4):
        server.sql("INSERT INTO s SELECT g, 'more' FROM generate_series(1, 20000) g", "d")
        server.sql("CALL engine.columnstore_refresh('s_copy')", "d")
    rest = old.run("FETCH ALL FROM c").rows
    assert len(before) + len(rest) == 100_000, "the cursor's rows"
    old.run("COMMIT")
    old.close()


@contextmanager
def held(server, index):
    """A refresh that stops behind each copy that it has written, and the session that lets it go on."""
    with server.session("d") as copier, server.session("d") as gate:
        gate.run("SELECT pg_advisory_lock(55436)")
        copier.run("SET colonnade.columnstore_stop_at = 2")
        copier.send(f"CALL engine.columnstore_refresh('{index}')")
        yield gate, copier


def shown(server, _tell):
    server.sql("CREATE TABLE p (a int) WITH (autovacuum_enabled = off); INSERT INTO p SELECT generate_series(1, 100000)", "d")
    server.sql("CREATE INDEX p_copy ON p USING columnstore (a) WITH (refresh = off); INSERT INTO p SELECT generate_series(1, 1000)", "d")
    settle(server)
    query = "SELECT relid::regclass, index_relid::regclass, blocks_total, blocks_done FROM pg_stat_progress_create_index"
    with held(server, "p_copy") as (gate, copier):
        until("the copy is shown", lambda: server.sql(query, "d") == "p|p_copy|2048|0")
        gate.run("SELECT pg_advisory_unlock(55436)")
        copied = copier.wait().rows
        assert int(copied[0][0]) > 0, copied
        assert server.sql(query, "d") == ""


def goes_on(server, _tell):
    """A refresh that was stopped behind the first region: the next one begins there, or a table whose first
    regions change all the time would have no copies of the others."""
    server.sql("CREATE TABLE r (a int, filler text) WITH (autovacuum_enabled = off); ALTER TABLE r ALTER filler SET STORAGE PLAIN", "d")
    server.sql("CREATE INDEX r_copy ON r USING columnstore (a) WITH (refresh = off)", "d")
    server.sql("INSERT INTO r SELECT g, repeat('x', 5000) FROM generate_series(1, 4500) g", "d")

    def all_visible():
        server.sql("VACUUM (INDEX_CLEANUP ON) r", "d")
        return server.sql("SELECT not_visible_blocks + checked_blocks FROM engine.columnstore_indexes WHERE index_name = 'r_copy'::regclass", "d") == "0"

    until("VACUUM finds nothing that a snapshot may not see", all_visible)
    copied = "SELECT clean_blocks FROM engine.columnstore_indexes WHERE index_name = 'r_copy'::regclass"
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 55436 AND NOT granted AND mode = 'ShareLock'"

    def stopped_behind_one_region():
        with held(server, "r_copy") as (gate, copier), server.session("d") as next_gate:
            until("the first region is reached", lambda: server.sql(waits, "d") == "1")
            # It stands behind the copier: the gate is closed as soon as that has come through.
            next_gate.send("SELECT pg_advisory_lock(55436)")
            until("the next gate waits", lambda: server.sql(waits.replace("ShareLock", "ExclusiveLock"), "d") == "1")
            gate.run("SELECT pg_advisory_unlock(55436)")
            next_gate.wait()
            until("the second region is reached", lambda: server.sql(waits, "d") == "1")
            server.sql(f"SELECT pg_cancel_backend({copier.pid})", "d")
            try:
                copier.wait()
            except SqlError as error:
                assert "canceling statement" in str(error), error

    stopped_behind_one_region()
    assert int(server.sql(copied, "d")) == 2048, "the premise: one region is copied"
    server.sql("UPDATE r SET a = a WHERE a <= 100", "d")
    until("VACUUM has taken the old rows away", all_visible)
    before = int(server.sql(copied, "d"))
    assert before < 2048, "the premise: blocks of the first region have no copy"
    stopped_behind_one_region()
    after = int(server.sql(copied, "d"))
    assert after == before + 2048, f"{before} blocks had copies, {after} have: the second region was not the next"
    server.sql("CALL engine.columnstore_refresh('r_copy')", "d")
    assert share(server, "r") == 1 and server.sql(VERIFY.format("r_copy"), "d") == "0"


def concurrently(server, _tell):
    server.sql("CREATE TABLE c (a int); INSERT INTO c SELECT generate_series(1, 50000)", "d")
    settle(server)
    server.sql("CREATE INDEX CONCURRENTLY c_copy ON c USING columnstore (a)", "d")
    assert share(server, "c") == 1, "CREATE INDEX CONCURRENTLY"
    server.sql("REINDEX INDEX CONCURRENTLY c_copy", "d")
    assert share(server, "c") == 1, "REINDEX CONCURRENTLY"
    server.sql("REINDEX TABLE CONCURRENTLY c", "d")
    assert share(server, "c") == 1, "REINDEX TABLE CONCURRENTLY"


def between_rounds(server, _tell):
    """The server wakes the launcher at its start, and when a database is dropped: that begins no round."""
    server.create_database("d")
    server.sql("CREATE TABLE t (a int) WITH (autovacuum_enabled = off); CREATE INDEX i ON t USING columnstore (a); INSERT INTO t SELECT generate_series(1, 50000)", "d")
    server.sql("CREATE DATABASE other")
    server.sql("DROP DATABASE other")
    time.sleep(4)
    assert share(server, "t") == 0, "a round began before its time"


def main():
    with CHECKS.server(SETTINGS) as server:
        server.create_database("d")
        server.sql(SETTLE, "d")
        for what in (load, beside_a_writer, dead_rows, left_alone, small_file, shown, goes_on, concurrently):
            with CHECKS.part(what.__name__) as tell:
                what(server, tell)
        log = server.log.read_text(errors="replace")
        CHECKS.say("nothing failed in the background", " failed: " not in log, [line for line in log.splitlines() if " failed: " in line][:5])
    with CHECKS.server({**SETTINGS, "colonnade.packing_naptime": "3600"}) as server:
        with CHECKS.part("between_rounds") as tell:
            between_rounds(server, tell)
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
