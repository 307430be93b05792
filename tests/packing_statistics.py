"""What packing tells of itself: engine.packing_statistics counts what has committed, by table, in the
background and by CALL; it says why a table is not packed; who may see it; what a restart, a crash, DROP TABLE
and an OID that is used again make of it; and the lines in the log (colonnade.log_packing_min_duration)."""

import time

from harness.checks import Checks
from harness.server import ServerError, as_server_user, run

SETTINGS = {"colonnade.packing": "on", "colonnade.packing_naptime": "1", "colonnade.packing_rows": "500", "colonnade.log_packing_min_duration": "0"}


def until(what, holds, seconds=90):
    """Pauses of 16 naptimes may follow each other, the database's and the table's."""
    end = time.time() + seconds
    while True:
        found = holds()
        if found is True:
            return
        assert time.time() < end, f"{what}: not within {seconds} seconds: {found}"
        time.sleep(0.2)


def shown(server, table, columns, role=None):
    role = f"SET ROLE {role};" if role else ""
    return server.sql(f"{role} SELECT {columns} FROM engine.packing_statistics('{table}')", "one")


def state_is(server, table, state, detail=""):
    def holds():
        found = shown(server, table, "state, detail")
        return True if found.startswith(f"{state}|") and detail in found else found
    until(f"{table} is {state}", holds)


def log_of(server, text):
    """Lines of the log from the last one that has this text."""
    log = server.log.read_text(errors="replace")
    assert text in log, f"the log has no line {text!r}"
    return log[log.rindex(text):][:1200]


def counts_calls(server):
    server.sql("""CREATE TABLE called (k int, v text) USING colcompress WITH (packing = off);
                  DO $$BEGIN FOR n IN 1..4 LOOP INSERT INTO called SELECT g, 'text ' || g FROM generate_series(1, 300) g; END LOOP; END$$""", "one")
    assert shown(server, "called", "state, rows_packed, rounds, calls, last_call, counted_since") == "off|0|0|0||", shown(server, "called", "*")
    server.sql("CALL engine.colcompress_repack('called')", "one")
    found = shown(server, "called", "rows_packed, stripes_written, rounds, calls, last_call > now() - interval '1 minute', last_round, packed_bytes_before > 10 * packed_bytes_after, "
                  "packed_bytes_after = (SELECT sum(byte_length) FROM engine.stripe s WHERE s.storage_id = engine.colcompress_relation_storageid('called'))")
    assert found == "1200|1|0|1|t||t|t", found
    # Stripes without rows, those with dead rows.
    server.sql("DELETE FROM called WHERE k > 100", "one")
    server.sql("CALL engine.colcompress_repack('called')", "one")
    found = shown(server, "called", "rows_packed, calls, rows_rewritten, stripes_replaced, stripes_rewritten, rewritten_bytes_before > rewritten_bytes_after")
    assert found == "1200|2|400|1|1|t", found
    server.sql("DELETE FROM called", "one")
    server.sql("CALL engine.colcompress_repack('called')", "one")
    assert shown(server, "called", "stripes_taken_out, calls") == "1|3", shown(server, "called", "*")


def counts_rounds(server):
    """In the background; and the line in the log."""
    server.sql("CREATE TABLE busy (k int) USING colcompress; INSERT INTO busy SELECT generate_series(1, 700)", "one")
    until("a table was packed", lambda: shown(server, "busy", "rows_packed, rounds, calls, last_call, errors, last_look >= last_round") == "700|1|0||0|t" or shown(server, "busy", "*"))
    state_is(server, "busy", "idle")
    line = log_of(server, 'background packing of table "public.busy": 700 rows packed')
    for part in ("bytes of heap rows into 1 stripes of", "WAL usage: ", "CPU: user: "):
        assert part in line, line
    line = log_of(server, 'CALL engine.colcompress_repack() of table "public.called"')
    assert "1 stripes without rows taken out" in line, line


def counts_committed(server):
    """A batch that is rolled back counts nothing; its error is shown."""
    server.sql("""CREATE FUNCTION fails(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN IF current_setting('search_path') ~ 'pg_catalog' AND $1 > 100 THEN RAISE 'no index for you, %', $1; END IF; RETURN $1; END$$;
                  CREATE TABLE failing (k int) USING colcompress; CREATE INDEX ON failing (fails(k)); INSERT INTO failing SELECT generate_series(1, 1500);""", "one")
    state_is(server, "failing", "failed", "no index for you, 101")
    found = shown(server, "failing", "rows_packed, stripes_written, rounds, errors > 0, last_error, last_error_time > now() - interval '1 minute', next_look > last_look")
    assert found == "0|0|0|t|no index for you, 101|t|t", found
    assert 'packing of table "public.failing" failed: no index for you' in server.log.read_text(errors="replace")


def tells_why(server):
    server.sql("""CREATE TABLE few (k int) USING colcompress; INSERT INTO few SELECT generate_series(1, 499);
                  CREATE TABLE excluded (r int4range, EXCLUDE USING gist (r WITH &&)) USING colcompress;
                  CREATE TABLE published (k int) USING colcompress; CREATE PUBLICATION p FOR TABLE published;
                  CREATE TABLE locked (k int) USING colcompress;""", "one")
    state_is(server, "few", "few rows", "499 heap rows wait, and packing_rows is 500")
    state_is(server, "excluded", "obstacle", "exclusion constraint")
    state_is(server, "published", "obstacle", "The table is published")
    old = server.session("one")
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    old.run("SELECT count(*) FROM few")
    server.sql("CREATE TABLE held (k int) USING colcompress; INSERT INTO held SELECT generate_series(1, 2000)", "one")
    state_is(server, "held", "old snapshot", "2000 heap rows are younger")
    assert shown(server, "held", "waiting_rows, too_young_rows") == "2000|2000"
    old.run("COMMIT")
    holder = server.session("one")
    holder.run("INSERT INTO locked SELECT generate_series(1, 2000)")
    holder.run("BEGIN")
    holder.run("SELECT count(*) FROM (SELECT FROM locked FOR UPDATE) rows")
    state_is(server, "locked", "rows locked", "2000 heap rows are locked")
    holder.run("COMMIT")
    holder.run("BEGIN")
    holder.run("LOCK locked IN SHARE UPDATE EXCLUSIVE MODE")
    state_is(server, "locked", "locked", "at once")
    # Whoever asks waits for nobody.
    holder.run("LOCK locked IN ACCESS EXCLUSIVE MODE")
    shown(server, "locked", "state")
    holder.run("COMMIT")
    server.sql("SELECT pg_create_logical_replication_slot('slot', 'test_decoding')", "one")
    state_is(server, "held", "obstacle", "replication slot")
    server.sql("SELECT pg_drop_replication_slot('slot')", "one")
    until("all was packed", lambda: server.sql("SELECT string_agg(table_name || ' ' || rows_packed, ', ' ORDER BY table_name::text) FROM engine.colcompress_packing_statistics WHERE table_name IN ('held'::regclass, 'locked'::regclass)",
                                               "one") == "held 2000, locked 2000" or [shown(server, table, "*") for table in ("held", "locked")])
    server.sql("ALTER DATABASE one SET colonnade.packing = off", "postgres")
    assert shown(server, "few", "state, detail") == "off|The setting colonnade.packing is off."
    server.sql("ALTER DATABASE one RESET colonnade.packing", "postgres")
    server.sql("CREATE TABLE heap (k int)", "one")
    try:
        shown(server, "heap", "*")
        raise AssertionError("a heap table has statistics")
    except ServerError as error:
        assert "is not a colcompress table" in str(error), error


def keeps_rights(server):
    server.sql("CREATE ROLE nobody; CREATE ROLE reader; CREATE ROLE watcher; GRANT pg_monitor TO watcher; GRANT SELECT ON few TO reader", "one")
    view = "SELECT coalesce(string_agg(table_name::text, ' ' ORDER BY table_name::text), '') FROM engine.colcompress_packing_statistics"
    for role, seen in (("nobody", ""), ("reader", "few"), ("watcher", "busy called excluded failing few held locked published")):
        found = server.sql(f"SET ROLE {role}; {view}", "one")
        assert found == seen, f"{role}: {found}"
    server.sql("ALTER TABLE few ENABLE ROW LEVEL SECURITY", "one")
    assert server.sql(f"SET ROLE reader; {view}", "one") == "", "row security hides rows"
    for role, what in (("nobody", "SELECT * FROM engine.packing_statistics('busy')"), ("watcher", "SELECT engine.packing_statistics_reset()")):
        try:
            server.sql(f"SET ROLE {role}; {what}", "one")
            raise AssertionError(f"{role} may {what}")
        except ServerError as error:
            assert "permission denied" in str(error), error


def outlives_restarts(server):
    before = server.sql("SELECT rows_packed, rounds, counted_since FROM engine.packing_statistics('held')", "one")
    server.stop()
    server.start()
    assert server.sql("SELECT rows_packed, rounds, counted_since FROM engine.packing_statistics('held')", "one") == before, "figures after a restart"
    # The OID of a table that was dropped is given to another.
    oid = int(server.sql("SELECT 'held'::regclass::oid", "one"))
    server.sql("DROP TABLE held; CHECKPOINT; VACUUM pg_class", "one")
    server.stop()
    run(as_server_user([server.bindir / "pg_resetwal", "-o", oid - 50, "-D", server.data]))
    server.start()
    # Large objects take one OID each.
    server.sql(f"DO $$DECLARE taken oid; BEGIN LOOP taken := lo_creat(-1); EXIT WHEN taken >= {oid - 1}; END LOOP; END$$; CREATE TABLE reused (k int) USING colcompress", "one")
    assert int(server.sql("SELECT 'reused'::regclass::oid", "one")) == oid, f"the premise: OID {oid} is used again: " + server.sql("SELECT 'reused'::regclass::oid", "one")
    assert shown(server, "reused", "rows_packed, rounds") == "0|0", shown(server, "reused", "*")
    server.sql("SELECT engine.packing_statistics_reset('locked')", "one")
    assert shown(server, "locked", "rows_packed, counted_since > now() - interval '1 minute'") == "0|t"
    assert shown(server, "called", "rows_packed") == "1200"
    server.sql("SELECT engine.packing_statistics_reset()", "one")
    assert shown(server, "called", "rows_packed, calls") == "0|0"
    server.sql("CALL engine.colcompress_repack('few')", "one")
    server.kill9()
    server.start()
    assert shown(server, "few", "rows_packed, calls") == "0|0", "figures after a crash"


def is_silent(server):
    server.sql("SET colonnade.log_packing_min_duration = -1; CREATE TABLE silent (k int) USING colcompress WITH (packing = off); INSERT INTO silent VALUES (1); CALL engine.colcompress_repack('silent')", "one")
    server.sql("RESET colonnade.log_packing_min_duration; SET colonnade.log_packing_min_duration = '1h'; INSERT INTO silent VALUES (2); CALL engine.colcompress_repack('silent')", "one")
    assert shown(server, "silent", "rows_packed") == "2"
    assert '"public.silent"' not in server.log.read_text(errors="replace"), "a line below the threshold"
    assert server.sql("SELECT boot_val, unit FROM pg_settings WHERE name = 'colonnade.log_packing_min_duration'", "one") == "600000|ms"


def main():
    checks = Checks("packing_statistics")
    with checks.server(SETTINGS) as server:
        server.create_database("one")
        for part in (counts_calls, counts_rounds, counts_committed, tells_why, keeps_rights, is_silent, outlives_restarts):
            with checks.part(part.__name__):
                part(server)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
