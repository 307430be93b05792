"""Btrees that packing leaves half empty are built anew in the background, where nobody writes: beside
readers, not beside older transactions for long, and with nothing left over.

Packed rows get index entries while their old ones are there, so a btree has twice its pages, or three times
after an UPDATE of all rows.
"""

import time

from harness.checks import Checks
from harness.session import SqlError

ROWS = 300_000
SETTINGS = {"colonnade.packing": "on", "colonnade.packing_naptime": "1", "colonnade.packing_cost_delay": "0", "fsync": "off", "deadlock_timeout": "200ms", "autovacuum": "off", "max_wal_size": "4GB"}
DATABASE = "rebuild"

checks = Checks("index_rebuild")
check = checks.say


def until(what, holds, seconds=90):
    end = time.time() + seconds
    while not holds():
        if time.time() > end:
            check(what, False, f"not within {seconds} seconds")
            return False
        time.sleep(0.2)
    check(what, True)
    return True


def rebuilt(server):
    def sql(text):
        return server.sql(text, DATABASE)

    def pages(index):
        return int(sql(f"SELECT pg_relation_size('{index}') / 8192"))

    def invalid(table):
        return sql(f"SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '{table}'::regclass AND NOT indisvalid")
    sql(f"CREATE TABLE fresh (id int PRIMARY KEY, v int) USING colcompress; INSERT INTO fresh SELECT g, 0 FROM generate_series(1, {ROWS}) g; REINDEX TABLE fresh")
    fresh = pages("fresh_pkey")
    assert fresh > 700, fresh
    # Switched off, and then on: single rows, and a change of all of them.
    server.sql("ALTER SYSTEM SET colonnade.packing_rebuilds_indexes = off; SELECT pg_reload_conf()")
    sql(f"SET colonnade.stripe_threshold_rows = 100000000; CREATE TABLE t (id int PRIMARY KEY, v int, note text) USING colcompress; "
        f"INSERT INTO t SELECT g, 0, 'note' || g FROM generate_series(1, {ROWS}) g; CREATE INDEX by_v ON t (v, id); CREATE INDEX \"Odd name\" ON t (lower(note)) WITH (fillfactor = 50)")
    until("single rows are packed", lambda: sql("SELECT hot_rows FROM engine.storage_health('t')") == "0")
    until("VACUUM has come", lambda: sql("SELECT file_bytes < 3000000 FROM engine.storage_health('t')") == "t")
    time.sleep(3)
    before = pages("t_pkey")
    check("the premise: packing leaves the btree half empty", before > 1.8 * fresh, f"{before} pages, {fresh} anew")
    # Beside an older transaction it is not begun. One that has written to the table is waited for, in vain;
    # whoever wants a lock that stands against that has its way soon, and nothing is left over.
    old = server.session(DATABASE)
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fresh")
    server.sql("ALTER SYSTEM SET colonnade.packing_rebuilds_indexes = on; SELECT pg_reload_conf()")
    time.sleep(6)
    check("it is not begun beside an older snapshot", pages("t_pkey") == before and invalid("t") == "" and "packing of index" not in server.log.read_text())
    old.run("COMMIT; BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE")
    trying = "SELECT count(*) FROM pg_stat_progress_create_index WHERE relid = 't'::regclass"
    until("a writer is waited for", lambda: sql(trying) == "1", 60)
    began = time.time()
    sql("ALTER TABLE t SET (packing_rows = 5000)")
    check("DDL does not wait for it", time.time() - began < 3, f"{time.time() - began:.1f} s")
    until("a writer is waited for in vain", lambda: "due to lock timeout" in server.log.read_text() or "packing of index" in server.log.read_text(), 60)
    check("the index is still there, and is used", sql("SET enable_seqscan = off; SET colonnade.enable_scan = off; SELECT v FROM t WHERE id = 777; EXPLAIN (COSTS OFF) SELECT v FROM t WHERE id = 777").startswith("0\nIndex Scan using t_pkey"))
    # A session whose snapshot the building waits for, and which then waits for the building: no deadlock.
    until("a writer is waited for again", lambda: sql(trying) == "1", 60)
    older = server.session(DATABASE)
    older.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fresh")
    old.close()
    snapshots = "SELECT count(*) FROM pg_stat_progress_create_index WHERE relid = 't'::regclass AND phase = 'waiting for old snapshots'"
    until("an older snapshot is waited for", lambda: sql(snapshots) == "1", 60)
    try:
        found = older.value("SELECT count(*) FROM engine.verify('t')")
    except SqlError as problem:
        found = str(problem)
    check("who holds it gets the lock, and no deadlock", found == "0", found)
    older.close()
    until("the primary key's btree is built anew", lambda: pages("t_pkey") <= 1.3 * fresh, 150)
    until("so is an index with an odd name and its own fill factor", lambda: invalid("t") == "" and "Odd name" in sql("SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 't'::regclass"), 60)
    # What a user's own attempt has left, or a crash, goes with the next one.
    old = server.session(DATABASE)
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fresh")
    server.sql("SET lock_timeout = '300ms'; REINDEX INDEX CONCURRENTLY by_v", DATABASE, check=False)
    check("the premise: an invalid index is left", "by_v_ccnew" in invalid("t"), invalid("t"))
    old.close()
    sql("UPDATE t SET v = v + 1")
    until("rows of a change of all are packed, and its btrees are built anew",
          lambda: pages("t_pkey") <= 1.3 * fresh and pages("by_v") <= 1.9 * fresh and sql("SELECT hot_rows FROM engine.storage_health('t')") == "0", 240)
    print(f"pages: {fresh} of a new btree, {before} packed, {pages('t_pkey')} at the end", flush=True)
    # Who wants a stronger lock has its way.
    sql("CREATE TABLE u (id int, v int) USING colcompress; INSERT INTO u SELECT g, g % 9 FROM generate_series(1, 1000) g")
    oids = sql("SELECT string_agg(indexrelid::text, ' ' ORDER BY indexrelid) FROM pg_index WHERE indrelid = 't'::regclass")
    time.sleep(6)
    check("no index is built anew again and again", oids == sql("SELECT string_agg(indexrelid::text, ' ' ORDER BY indexrelid) FROM pg_index WHERE indrelid = 't'::regclass"), oids)
    # What is left of an index that needs nothing goes, too.
    old = server.session(DATABASE)
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fresh")
    server.sql("SET lock_timeout = '300ms'; REINDEX INDEX CONCURRENTLY t_pkey", DATABASE, check=False)
    check("the premise: an invalid index is left of a full one", "t_pkey_ccnew" in invalid("t"), invalid("t"))
    old.close()
    sql("INSERT INTO t VALUES (0, 0, 'new')")
    until("it is dropped", lambda: invalid("t") == "", 60)
    sql("CREATE INDEX t_pkey_ccold ON t (id); UPDATE pg_index SET indisvalid = false, indisready = false, indislive = false WHERE indexrelid = 't_pkey_ccold'::regclass; ALTER TABLE t SET (packing_rows = 6000)")
    sql("UPDATE t SET note = 'newer' WHERE id = 0")
    until("so is one that is dead already", lambda: invalid("t") == "", 60)
    status, _, errors = server.sql("INSERT INTO t VALUES (777, 0, 'twice')", DATABASE, check=False)
    check("the key is unique", status != 0 and "t_pkey" in errors, errors)
    check("rows are there", sql("SELECT count(*), sum(v), count(DISTINCT note) FROM t") == f"{ROWS + 1}|{ROWS}|{ROWS + 1}", sql("SELECT count(*), sum(v), count(DISTINCT note) FROM t"))
    faults = sql("SELECT kind, detail FROM engine.verify('t') WHERE severity = 'error'")
    check("engine.verify finds nothing", faults == "", faults)
    check("no index is invalid", invalid("t") == "", invalid("t"))


def main():
    with checks.server(SETTINGS) as server:
        server.create_database(DATABASE)
        rebuilt(server)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
