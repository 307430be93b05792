"""Packing in the background: single rows become stripes while they are inserted, changed and read, in every
database that has the extension; published, subscribed and temporary tables, those with few rows or the option
packing = false, and databases with a slot that would see rows deleted, are left alone; stripes that an order
was set for later are sorted; the pages that rows leave are used again; it steps aside for DROP DATABASE and
DDL, outlives errors and DROP EXTENSION, and stops with the server."""

import re
import threading
import time

from harness.checks import Checks
from harness.session import SqlError

ROWS, SESSIONS, FILLS = 6000, 3, 2
SETTINGS = {"colonnade.packing": "on", "colonnade.packing_naptime": "1", "colonnade.packing_rows": "500", "wal_level": "logical", "fsync": "off", "deadlock_timeout": "200ms"}
STRIPES = "SELECT coalesce(sum(row_count), 0) FROM engine.colcompress_stripes WHERE table_name = '{}'::regclass"
PACKERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'colonnade packing'"


def until(what, holds, seconds=60):
    end = time.time() + seconds
    while not holds():
        assert time.time() < end, f"{what}: not within {seconds} seconds"
        time.sleep(0.1)


class Writer(threading.Thread):
    """Inserts rows one by one, each a transaction, and changes and deletes some of its older ones."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.server, self.number, self.problem, self.rows = server, number, None, {}

    def run(self):
        try:
            session = self.server.session("one")
            for at in range(ROWS // SESSIONS):
                key = at * SESSIONS + self.number
                session.run(f"INSERT INTO t VALUES ({key}, 'row {key}', {at})")
                self.rows[key] = at
                if at % 3 == 0:
                    old = (at * 7 // 10) * SESSIONS + self.number
                    if old in self.rows:
                        session.run(f"UPDATE t SET n = n + 1000000 WHERE k = {old}")
                        self.rows[old] += 1000000
                if at % 11 == 0:
                    old = (at // 2) * SESSIONS + self.number
                    session.run(f"DELETE FROM t WHERE k = {old}")
                    self.rows.pop(old, None)
            session.close()
        except (SqlError, OSError) as error:
            self.problem = error


def is_default(server):
    shown = server.sql("SELECT name, boot_val FROM pg_settings WHERE name IN ('colonnade.packing', 'colonnade.packing_rows', 'colonnade.packing_naptime') ORDER BY 1", "one")
    assert shown == "colonnade.packing|on\ncolonnade.packing_naptime|30\ncolonnade.packing_rows|10000", shown


def busy_table(server):
    writers = [Writer(server, number) for number in range(SESSIONS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(240)
        assert writer.problem is None and not writer.is_alive(), f"a writer failed: {writer.problem}"
    rows = {key: value for writer in writers for key, value in writer.rows.items()}
    until("single rows were packed", lambda: int(server.sql(STRIPES.format("t"), "one")) > ROWS // 2)
    expected = f"{len(rows)}|{len(rows)}|{sum(rows)}|{sum(rows.values())}"
    for way in ("", "SET enable_seqscan = off; SET colonnade.enable_scan = off; SET enable_bitmapscan = off;"):
        found = server.sql(f"{way} SELECT count(*), count(DISTINCT k), sum(k), sum(n) FROM t WHERE k >= 0", "one")
        assert found == expected, f"{found} instead of {expected}"
    faults = server.sql("SELECT * FROM engine.verify('t') WHERE kind <> 'unclaimed'", "one")
    assert not faults, faults
    # Rows that were moved are neither new nor gone, and VACUUM, whoever asks for it, knows all of them.
    server.sql("VACUUM t", "one")
    counts = "SELECT n_tup_ins || ' ' || n_live_tup || ' ' || reltuples FROM pg_stat_user_tables JOIN pg_class USING (relname) WHERE relname = 't'"
    until("rows were counted once", lambda: server.sql(counts, "one") == f"{ROWS} {len(rows)} {len(rows)}")


def left_alone(server):
    """Two rounds after these tables have got their rows, none of them is packed, and the one made last is."""
    server.sql("""CREATE TABLE few (k int) USING colcompress; CREATE TABLE published (k int) USING colcompress; CREATE PUBLICATION p FOR TABLE published;
                  CREATE TABLE excluded (r int4range, EXCLUDE USING gist (r WITH &&)) USING colcompress;
                  INSERT INTO few SELECT generate_series(1, 499); INSERT INTO published SELECT generate_series(1, 5000);
                  INSERT INTO excluded SELECT int4range(g, g + 1) FROM generate_series(1, 2000) g;
                  CREATE FUNCTION fails(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN IF current_setting('search_path') ~ 'pg_catalog' THEN RAISE 'no index for you'; END IF; RETURN $1; END$$;
                  CREATE TABLE failing (k int) USING colcompress; CREATE INDEX ON failing (fails(k)); INSERT INTO failing SELECT generate_series(1, 1500);
                  CREATE TABLE off (k int) USING colcompress WITH (packing = off); INSERT INTO off SELECT generate_series(1, 5000);
                  CREATE TABLE soon (k int) USING colcompress WITH (packing_rows = 100); INSERT INTO soon SELECT generate_series(1, 150);
                  CREATE TABLE many (k int) USING colcompress; INSERT INTO many SELECT generate_series(1, 5000);""", "one")
    until("a table with packing_rows = 100 was packed", lambda: server.sql(STRIPES.format("soon"), "one") == "150")
    until("a table of 5,000 rows was packed", lambda: server.sql(STRIPES.format("many"), "one") == "5000")
    time.sleep(2.5)
    for table in ("few", "published", "excluded", "failing", "off"):
        found = server.sql(STRIPES.format(table), "one")
        assert found == "0", f"{found} rows of {table} were packed"
    assert "no index for you" in server.log.read_text(errors="replace"), "the premise: an index expression failed"
    assert server.sql("SELECT count(*), sum(k) FROM failing", "one") == f"1500|{1500 * 1501 // 2}"


def switched_off(server):
    server.sql("ALTER DATABASE two SET colonnade.packing = off", "postgres")
    server.sql("CREATE TABLE t (k int) USING colcompress; INSERT INTO t SELECT generate_series(1, 5000)", "two")
    time.sleep(2.5)
    assert server.sql(STRIPES.format("t"), "two") == "0", "packed where packing is off"
    server.sql("ALTER DATABASE two RESET colonnade.packing", "postgres")
    until("packing was switched on", lambda: server.sql(STRIPES.format("t"), "two") == "5000")


def replicated(server):
    """A table that a subscription writes to is packed (tests/subscriber.py says what comes of it), and, while
    there is a slot with another plugin, none of the database."""
    server.sql("SELECT pg_create_logical_replication_slot('sub', 'pgoutput')", "one")
    server.sql(f"""CREATE TABLE published (k int) USING colcompress; CREATE TABLE free (k int) USING colcompress;
                   CREATE SUBSCRIPTION sub CONNECTION 'host={server.socket_dir} port={server.port} user={server.superuser} dbname=one' PUBLICATION p
                       WITH (enabled = false, copy_data = false, create_slot = false, slot_name = 'sub')""", "two")
    server.sql("INSERT INTO published SELECT generate_series(1, 5000); INSERT INTO free SELECT generate_series(1, 5000)", "two")
    until("a table without subscription was packed", lambda: server.sql(STRIPES.format("free"), "two") == "5000")
    until("a table that a subscription writes to was packed", lambda: server.sql(STRIPES.format("published"), "two") == "5000")
    server.sql("ALTER SUBSCRIPTION sub SET (slot_name = NONE)", "two")
    server.sql("DROP SUBSCRIPTION sub", "two")
    server.sql("SELECT pg_drop_replication_slot('sub'); SELECT pg_create_logical_replication_slot('other', 'test_decoding')", "two")
    server.sql("INSERT INTO free SELECT generate_series(1, 5000)", "two")
    status, _, told = server.sql("CALL engine.colcompress_repack('free')", "two", check=False)
    assert status != 0 and "does not go by publications" in told, told
    time.sleep(1.5)
    assert server.sql(STRIPES.format("free"), "two") == "5000", "packed where a slot would see rows deleted"
    server.sql("SELECT pg_drop_replication_slot('other')", "two")
    until("packed without slot", lambda: server.sql(STRIPES.format("free"), "two") == "10000")


def space(server):
    """A table that is filled row by row and packed ends up as small as one that is loaded, and its pages are
    used again."""
    session = server.session("one")
    session.run("CREATE TABLE filled (k int PRIMARY KEY, v text) USING colcompress")
    largest = 0
    for part in range(FILLS):
        for at in range(part * 100, part * 100 + 100):
            session.run(f"INSERT INTO filled SELECT g, md5(g::text) FROM generate_series({at} * 400 + 1, {at} * 400 + 400) g")
        until("rows were packed", lambda: int(server.sql(STRIPES.format("filled"), "one")) > part * 40000 + 30000)
        largest = max(largest, int(session.value("SELECT pg_relation_size('filled')")))
    session.run("CREATE TABLE loaded USING colcompress AS SELECT * FROM filled ORDER BY k")
    size = lambda table: int(session.value(f"SELECT pg_relation_size('{table}')"))
    until("the file is as small as one that was loaded", lambda: size("filled") < 1.2 * size("loaded") + 64 * 8192, 180)
    # Filled once it takes 72 bytes a row in heap pages.
    assert largest < size("loaded") + 72 * 40000 * 2.5, f"the file grew to {largest} bytes, loaded it has {size('loaded')}"
    assert session.value("SELECT count(*) FROM filled JOIN loaded USING (k, v)") == str(FILLS * 40000)
    assert not session.run("SELECT * FROM engine.verify('filled')").rows
    session.close()


def torn(server):
    """A table that nobody writes to, with empty pages between its stripes in runs that none of these fits,
    becomes as small as its stripes."""
    session = server.session("one")
    session.run("SET colonnade.stripe_threshold_rows = 1")
    session.run("CREATE TABLE torn (k int, v text) USING colcompress WITH (stripe_row_limit = 8000)")
    value = "(SELECT string_agg(md5(g::text || n), '') FROM generate_series(1, 8) n)"
    for part in range(6):
        session.run(f"INSERT INTO torn SELECT -g, {value} FROM generate_series({part * 2000 + 1}, {part * 2000 + 2000}) g")
        session.run(f"INSERT INTO torn SELECT g, {value} FROM generate_series({part * 6000 + 1}, {part * 6000 + 6000}) g")
    session.run("DELETE FROM torn WHERE k < 0")
    pages = "SELECT sum(block_count) FROM engine.stripe WHERE storage_id = engine.colcompress_relation_storageid('torn')"
    until("the dead stripes went", lambda: session.value("SELECT sum(row_count) FROM engine.colcompress_stripes WHERE table_name = 'torn'::regclass") == "36000")
    least = int(session.value(pages + " AND row_count = 6000"))
    until("the file is as small as its stripes", lambda: int(session.value("SELECT pg_relation_size('torn') / 8192")) < 1.09 * least, 180)
    assert session.value("SELECT count(*) || ' ' || sum(k) || ' ' || count(DISTINCT v) FROM torn") == f"36000 {36000 * 36001 // 2} 36000"
    assert not session.run("SELECT * FROM engine.verify('torn') WHERE kind <> 'unclaimed'").rows
    session.close()


def sorts(server):
    """A table that gets an order later: its stripes are sorted beside a writer, by an order that statistics
    know and by one that they do not; then nothing is written any more."""
    session = server.session("one")
    session.run("CREATE TABLE sorted (k int PRIMARY KEY, n int, tags text[]) USING colcompress WITH (stripe_row_limit = 4000, chunk_group_row_limit = 1000)")
    session.run("INSERT INTO sorted SELECT (g::int8 * 7919) % 20011, g, ARRAY[md5(g::text)] FROM generate_series(1, 20000) g")
    until("all is in stripes", lambda: int(session.value(STRIPES.format("sorted"))) >= 20000)
    unsorted = "SELECT unsorted_stripes FROM engine.storage_health('sorted')"
    before = 0
    for orderby in ("k", "tags DESC"):
        session.run(f"ALTER TABLE sorted SET (orderby = '{orderby}')")
        assert session.value(unsorted) != "0", "stripes are sorted to begin with"
        other, at = server.session("one"), 0

        def changes():
            nonlocal at
            at += 1
            other.run(f"UPDATE sorted SET n = n + 1 WHERE k = {at % 19000}")
            return session.value(unsorted) == "0"

        until(f"stripes are sorted by {orderby}", changes, 90)
        other.close()
        assert session.value("SELECT count(*) || ' ' || count(DISTINCT k) || ' ' || sum(n) FROM sorted") == f"20000 20000 {20000 * 20001 // 2 + at + before}"
        before += at
        places = "SELECT string_agg(first_row::text, ' ' ORDER BY first_row) FROM engine.colcompress_stripes WHERE table_name = 'sorted'::regclass"
        last = session.value(places)

        def rests():
            nonlocal last
            time.sleep(3)
            found, last = last, session.value(places)
            return found == last

        until("packing is done", rests)
        assert session.value(unsorted) == "0"
    assert not session.run("SELECT * FROM engine.verify('sorted') WHERE kind <> 'unclaimed'").rows
    session.close()


def is_dropped(server):
    """A worker that is in the middle of a long batch makes room for DROP DATABASE."""
    server.sql("""CREATE FUNCTION slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN IF current_setting('search_path') ~ '^pg_catalog' THEN PERFORM pg_sleep(0.1); END IF; RETURN $1; END$$;
                  CREATE TABLE slow (k int) USING colcompress; CREATE INDEX ON slow (slow(k)); INSERT INTO slow SELECT generate_series(1, 600)""", "two")
    until("a worker is busy", lambda: server.sql(PACKERS + " AND query ~ 'slow'", "postgres") == "1")
    time.sleep(0.3)
    server.sql("DROP DATABASE two", "postgres")


def steps_aside(server):
    """A worker in the middle of a batch: DDL gets its lock, and the launcher goes on."""
    gate = server.session("two")
    gate.run("ALTER SYSTEM SET colonnade.packing_stop_at = 2")
    gate.run("SELECT pg_advisory_lock(55435)")
    gate.run("SELECT pg_reload_conf()")
    gate.run("INSERT INTO t SELECT generate_series(1, 5000)")
    until("a worker is stopped", lambda: server.sql(PACKERS + " AND wait_event = 'advisory'", "postgres") == "1")
    shown = server.sql("SELECT activity FROM engine.packing_progress", "two")
    assert re.search('packing "public.t": 0 rows', shown), f"progress shows {shown!r}"
    gate.run("ALTER SYSTEM RESET colonnade.packing_stop_at")
    gate.run("SELECT pg_reload_conf()")
    server.sql("ALTER TABLE t ADD COLUMN x int", "two")
    gate.run("SELECT pg_advisory_unlock(55435)")
    gate.close()
    until("what was interrupted is packed", lambda: server.sql(STRIPES.format("t"), "two") == "10000")
    server.sql("DROP EXTENSION colonnade CASCADE; CREATE EXTENSION colonnade", "two")
    server.sql("INSERT INTO many SELECT generate_series(1, 5000)", "one")
    until("packing goes on", lambda: server.sql(STRIPES.format("many"), "one") == "10000")


def stops(server):
    began = time.time()
    server.stop()
    assert time.time() - began < 20, "the server took long to stop"
    log = server.log.read_text(errors="replace")
    assert not re.search(r"PANIC|terminated by signal", log), "a process died"
    server.start()


def main():
    checks = Checks("packing")
    with checks.server(SETTINGS) as server:
        for database in ("one", "two"):
            server.create_database(database)
        server.sql("CREATE TABLE t (k int PRIMARY KEY, v text, n int) USING colcompress WITH (orderby = 'n'); CREATE INDEX ON t (n)", "one")
        for part in (is_default, busy_table, left_alone, switched_off, replicated, space, torn, sorts, steps_aside, is_dropped, stops):
            with checks.part(part.__name__):
                part(server)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
