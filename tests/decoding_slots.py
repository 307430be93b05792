"""While a database has a slot whose plugin does not go by publications, no way of writing a columnar table
makes a stripe.

No table is published here. The same statements run in a database of heap tables and in one of colcompress
tables, and test_decoding must give the same text. A slot that is made while a load runs must decode all of
the load or nothing of it. Rows that were in stripes before the slot are told of by WARNINGs.
"""

import os
import time

from harness.checks import Checks
from harness.server import fresh_server
from harness.session import SqlError

BEFORE = "CREATE TABLE hot (id int, v text); CREATE MATERIALIZED VIEW view AS SELECT g FROM generate_series(1, 10) g"
CHANGES = (
    "CREATE TABLE keyed (id int PRIMARY KEY, v text)",
    "INSERT INTO keyed SELECT g, 'bulk' FROM generate_series(1, 30000) g",
    "UPDATE keyed SET v = 'changed' WHERE id IN (25000, 5)",
    "DELETE FROM keyed WHERE id IN (26000, 6)",
    "CREATE TABLE plain (a int, b text)",
    "ALTER TABLE plain REPLICA IDENTITY FULL",
    "COPY plain FROM PROGRAM 'seq 1 20000 | sed \"s/$/\\tcopied/\"'",
    "UPDATE plain SET b = 'changed' WHERE a % 5000 = 0",
    "CREATE TABLE made AS SELECT g AS id, 'made' AS v FROM generate_series(1, 20000) g",
    "DELETE FROM made WHERE id > 19990",
    "REFRESH MATERIALIZED VIEW view",
    "ALTER TABLE keyed ALTER COLUMN v TYPE varchar(100)",
    "UPDATE keyed SET v = 'again' WHERE id = 20000",
    "CREATE TABLE later (a int) USING heap",
    "INSERT INTO later SELECT generate_series(1, 15000)",
    "ALTER TABLE later SET ACCESS METHOD {method}",
    "VACUUM FULL keyed",
    "CREATE UNLOGGED TABLE quick AS SELECT generate_series(1, 20000) AS a",
    "ALTER TABLE quick SET LOGGED",
    "INSERT INTO hot SELECT g, 'many' FROM generate_series(1, 20000) g",
)
STRIPES = "SELECT count(*) FROM engine.colcompress_stripes"
GET = ("SELECT replace(data, 'slots_', '') FROM pg_logical_slot_get_changes('{}', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1')"
       " WHERE data LIKE 'table public.%'")


def same_as_heap(server, checks):
    said = {}
    for method in ("heap", "colcompress"):
        database = f"slots_{method}"
        server.create_database(database)
        server.sql(f"ALTER DATABASE {database} SET default_table_access_method = {method}")
        server.sql(BEFORE, database)
        server.sql(f"SELECT pg_create_logical_replication_slot('{method}', 'test_decoding')", database)
        for change in CHANGES:
            server.sql(change.format(method=method), database)
        said[method] = server.sql(GET.format(method), database).splitlines()
        if method == "colcompress":
            checks.say("no statement made a stripe", server.sql(STRIPES, database) == "0")
            for call in ("SELECT engine.colcompress_merge('keyed')", "CALL engine.colcompress_repack('keyed')"):
                status, _, errors = server.sql(call, database, check=False)
                checks.say(f"{call.split('(')[0]} is refused", "replication slot" in errors and status != 0, errors)
            server.sql("CREATE UNLOGGED TABLE quick2 AS SELECT generate_series(1, 20000) AS a", database)
            checks.say("an unlogged table is not decoded and gets stripes", server.sql(STRIPES, database) != "0")
        server.sql(f"SELECT pg_drop_replication_slot('{method}')", database)
        server.sql("INSERT INTO hot SELECT g, 'many' FROM generate_series(1, 20000) g", database)
    checks.say("without the slot loads make stripes again", server.sql(STRIPES + " WHERE table_name = 'hot'::regclass", database) != "0")
    heap, ours = said["heap"], said["colcompress"]
    assert len(heap) > 100000 and any("UPDATE" in line for line in heap), f"the premise: heap's changes are decoded; {len(heap)} lines"
    differing = [(a, b) for a, b in zip(heap, ours) if a != b]
    checks.say(f"what is decoded is what heap says ({len(ours)} of {len(heap)} lines; {differing[:1]})", heap == ours)


def slot_while_loading(server, checks):
    """A load decides before the slot is there; another one begins while the slot waits for the first."""
    server.create_database("race")
    server.sql("CREATE TABLE t (load int, g int) USING colcompress", "race")
    first, maker, second = (server.session("race") for _ in range(3))
    try:
        first.run("BEGIN; INSERT INTO t SELECT 1, g FROM generate_series(1, 15000) g")
        maker.send("SELECT 'made' FROM pg_create_logical_replication_slot('race', 'test_decoding')")
        waits = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_create_logical%' AND wait_event = 'transactionid'"
        checks.say("a slot waits for the load that was there before it", wait_for(lambda: server.sql(waits, "race") == "1"))
        second.run("INSERT INTO t SELECT 2, g FROM generate_series(1, 15000) g")
        first.run("INSERT INTO t SELECT 3, g FROM generate_series(1, 15000) g; COMMIT")
        maker.wait()
        second.run("INSERT INTO t SELECT 4, g FROM generate_series(1, 15000) g")
    finally:
        for session in (first, maker, second):
            session.close()
    got = server.sql(GET.format("race"), "race").splitlines()
    rows = [len([line for line in got if f"load[integer]:{load} " in line]) for load in (1, 2, 3, 4)]
    cold = server.sql("SELECT coalesce(string_agg(DISTINCT load::text, ','), '') FROM t WHERE (ctid::text::point)[0] >= 2147483648", "race")
    checks.say(f"of each load all is decoded or nothing: {rows}, in stripes {cold}", all(count in (0, 15000) for count in rows))
    checks.say("what is decoded is in heap pages", all(count == 0 for load, count in enumerate(rows, 1) if str(load) in cold.split(",")) and rows[3] == 15000)
    server.sql("SELECT pg_drop_replication_slot('race')", "race")


def slot_while_packing(server, checks):
    """A slot that comes before the mover has written anything would decode its deletions; one that comes
    later waits for it."""
    server.create_database("packing")
    server.sql("CREATE TABLE t (g int) USING colcompress; INSERT INTO t SELECT 1 FROM generate_series(1, 9); VACUUM t", "packing")
    waits = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{}%' AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'"
    await_one = lambda what: wait_for(lambda: server.sql(waits.format(what), "packing") == "1")
    holder, mover, maker = (server.session("packing") for _ in range(3))
    try:
        holder.run("SELECT pg_advisory_lock(55435)")
        mover.run("SET colonnade.packing_stop_at = 1")
        mover.send("CALL engine.colcompress_repack('t')")
        assert await_one("colcompress_repack"), "the premise: the mover waits"
        maker.run("SELECT 'made' FROM pg_create_logical_replication_slot('early', 'test_decoding')")
        holder.run("SELECT pg_advisory_unlock(55435)")
        try:
            mover.wait()
            problem = "no ERROR"
        except SqlError as error:
            problem = str(error)
        checks.say("a mover that has written nothing gives way to a slot", 'replication slot "early" has begun to decode' in problem, problem)
        got = server.sql("SELECT data FROM pg_logical_slot_get_changes('early', NULL, NULL) WHERE data LIKE 'table public.%'", "packing")
        checks.say("the slot sees nothing of it", got == "", got)
        server.sql("SELECT pg_drop_replication_slot('early')", "packing")
        holder.run("SELECT pg_advisory_lock(55435)")
        mover.run("SET colonnade.packing_stop_at = 2")
        mover.send("CALL engine.colcompress_repack('t')")
        assert await_one("colcompress_repack"), "the premise: the mover waits"
        maker.send("SELECT 'made' FROM pg_create_logical_replication_slot('late', 'test_decoding')")
        checks.say("a slot waits for a mover that has written", await_one("pg_create_logical"))
        holder.run("SELECT pg_advisory_unlock(55435)")
        try:
            mover.wait()
        except SqlError as error:
            # Its next batch meets the slot.
            assert "plugin does not go by publications" in str(error), error
        maker.wait()
        got = server.sql("SELECT data FROM pg_logical_slot_get_changes('late', NULL, NULL) WHERE data LIKE 'table public.%'", "packing")
        checks.say("and sees nothing of it", got == "" and server.sql(STRIPES, "packing") == "1", got)
        server.sql("SELECT pg_drop_replication_slot('late')", "packing")
    finally:
        for session in (holder, mover, maker):
            session.close()


def what_is_told(server, checks):
    """Rows that were in stripes before the slot are told of: to who makes the slot, in the log, in
    storage_health, to who changes them."""
    server.create_database("told")
    server.sql("CREATE TABLE t (g int) USING colcompress; INSERT INTO t SELECT generate_series(1, 20000); ANALYZE t", "told")
    said = lambda text: server.sql(text, "told", check=False)[2]
    quiet = said("SELECT pg_create_logical_replication_slot('pub', 'pgoutput')")
    checks.say("a slot that goes by publications is told nothing of", "WARNING" not in quiet, quiet)
    warning = 'WARNING:  replication slot "{}" does not see rows of table "public.t"'
    for name, text in (("told", "SELECT pg_create_logical_replication_slot('told', 'test_decoding')"),
                       ("copied", "SELECT * FROM pg_copy_logical_replication_slot('told', 'copied')"),
                       ("block", "DO $$ BEGIN PERFORM pg_create_logical_replication_slot('block', 'test_decoding'); END $$")):
        heard = said(text)
        checks.say(f"a WARNING at {text.split('(')[0]}", heard.count("WARNING") == 1 and warning.format(name) in heard, heard)
    heard = said("DELETE FROM t WHERE g = 1; UPDATE t SET g = -2 WHERE g = 2")
    checks.say("a WARNING, one a session, when a row of a stripe is changed", heard.count("WARNING") == 1 and "does not see rows of table" in heard, heard)
    advice = server.sql("SELECT advice FROM engine.storage_health('t')", "told")
    checks.say("storage_health advises", "does not see the 20000 rows in stripes" in advice and "repack" not in advice, advice)
    server.sql("ALTER SYSTEM SET colonnade.packing = on")
    server.sql("ALTER SYSTEM SET colonnade.packing_naptime = '1s'")
    server.sql("SELECT pg_reload_conf()")
    line = 'LOG:  replication slot "told" does not see rows of table "public.t" in stripes'
    count = lambda: server.log.read_text(errors="replace").count(line)
    checks.say("and the log says it", wait_for(lambda: count() > 0))
    server.sql("INSERT INTO t VALUES (0)", "told")
    time.sleep(3)
    checks.say("once", count() == 1, count())
    server.sql("SELECT engine.unpack('t')", "told")
    advice = server.sql("ANALYZE t; SELECT advice FROM engine.storage_health('t')", "told")
    checks.say("after unpack its rows stay heap rows", "keeps rows out of stripes" in advice and server.sql(STRIPES, "told") == "0", advice)


def what_is_refused(server, checks):
    """Who publishes all tables, or a schema, is told of each table that is in the way."""
    server.create_database("refused")
    for name in "abc":
        server.sql(f"CREATE TABLE {name} (g int) USING colcompress; INSERT INTO {name} SELECT generate_series(1, 20000)", "refused")
    for what, message in (("ALL TABLES", "cannot publish all tables because of table"), ("TABLES IN SCHEMA public", "cannot publish the tables of a schema because of table")):
        _, _, errors = server.sql(f"CREATE PUBLICATION p FOR {what}", "refused", check=False)
        named = all(f'"public.{name}"' in errors for name in "abc")
        checks.say(f"FOR {what} names the tables in the way", message in errors and named and "FOR TABLE" in errors and "not compressed" in errors, errors)


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def main():
    settings = {"wal_level": "logical", "autovacuum": "off", "max_replication_slots": "8", "colonnade.packing": "off"}
    server = fresh_server("decoding_slots", os.environ["COLONNADE_STAGE"], settings)
    checks = Checks("decoding_slots")
    try:
        same_as_heap(server, checks)
        slot_while_loading(server, checks)
        slot_while_packing(server, checks)
        what_is_told(server, checks)
        what_is_refused(server, checks)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
