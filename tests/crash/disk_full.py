"""A full disk: each command that writes fails with SQLSTATE 53100 or succeeds, loses nothing, and works once
there is room again.

A database lies on a small file system (tmpfs, which takes root to mount), with the access method's own
tables. A file fills it but for so many bytes; then one command after another is tried, alone, in a
transaction and below an exception handler. After each the rows must be those of before (or those of after,
where it succeeded), by table and by index; with room again `engine.verify` must find nothing. At the end the
server is killed on the full disk, and must come back when there is room.
"""

import os
import random
import subprocess
import time

from harness.checks import Checks
from harness.server import fresh_server, running_as_root, server_ids
from harness.session import SqlError

LONG = os.environ.get("COLONNADE_LONG") == "1"
SIZE = 96 << 20
ROWS = 12000 if LONG else 6000
FREE = (0, 8 << 10, 64 << 10, 300 << 10, 1 << 20, 3 << 20)
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))

SETUP = f"""
CREATE TABLE t (id int PRIMARY KEY, k int, v text) USING colcompress WITH (stripe_row_limit = 5000);
INSERT INTO t SELECT g, g % 100, md5(g::text) FROM generate_series(1, {ROWS}) g;
SELECT engine.colcompress_merge('t');
ANALYZE t;
"""
DIGEST = "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t"
BY_INDEX = "SET enable_seqscan = off; SET colonnade.enable_scan = off; SET enable_bitmapscan = off; SET enable_sort = off"
SOURCE = f"SELECT g, g % 100, md5(g::text) || repeat(md5((-g)::text), 8) FROM generate_series({ROWS + 1}, {ROWS + 40000}) g"
# A name, the command, and whether it can run in a transaction (then it is rolled back where it succeeds).
COMMANDS = (
    ("COPY", "COPY t FROM PROGRAM $$seq {first} {last} | awk '{{print $1 \"\\t1\\t\" $1*7919 \"-\" $1*104729 \"-\" $1*1299709}}'$$", True),
    ("INSERT of many rows", f"INSERT INTO t {SOURCE}", True),
    ("INSERT of rows that stay hot", f"SET LOCAL colonnade.stripe_threshold_rows = 1000000; INSERT INTO t {SOURCE}", True),
    ("UPDATE of rows in stripes", "UPDATE t SET v = repeat(v, 20)", True),
    ("UPDATE of a key", f"UPDATE t SET id = id + {10 * ROWS}, v = repeat(v, 10)", True),
    ("DELETE of rows in stripes", "DELETE FROM t", True),
    ("locks of rows in stripes", "SELECT count(*) FROM (SELECT FROM t FOR UPDATE) x", True),
    ("ON CONFLICT", "INSERT INTO t SELECT g, 1, repeat('x', 500) FROM generate_series(1, 30000) g ON CONFLICT (id) DO UPDATE SET v = repeat(t.v || excluded.v, 3)", True),
    ("merge", "SELECT engine.colcompress_merge('t')", False),
    ("unpack", "SELECT engine.unpack('t')", False),
    ("VACUUM FULL", "VACUUM FULL t", False),
    ("CLUSTER", "CLUSTER t USING t_pkey", False),
    ("VACUUM", "VACUUM (FREEZE) t", False),
    ("CREATE INDEX", "CREATE INDEX ON t (v, id)", True),
    ("REINDEX", "REINDEX TABLE t", False),
    ("ADD COLUMN", "ALTER TABLE t ADD COLUMN big text DEFAULT repeat(clock_timestamp()::text, 50)", True),
    ("SET ACCESS METHOD", "ALTER TABLE t SET ACCESS METHOD heap", True),
    ("CREATE TABLE AS", f"CREATE TABLE other (id, k, v) USING colcompress AS {SOURCE}", True),
    ("a sort that spills", f"SET LOCAL work_mem = '64kB'; SELECT count(*) FROM (SELECT a.id, b.v FROM t a, generate_series(1, 8) b(v) ORDER BY a.v, b.v OFFSET 1) x", True),
    ("groups that spill", "SET LOCAL work_mem = '64kB'; SET LOCAL hash_mem_multiplier = 1; SELECT count(*) FROM (SELECT v || n, count(*) FROM t, generate_series(1, 8) n GROUP BY 1) x", True),
    ("a join that spills", "SET LOCAL work_mem = '64kB'; SET LOCAL hash_mem_multiplier = 1; SELECT count(*) FROM t a JOIN t b ON a.v = b.v JOIN t c ON b.v = c.v WHERE a.k + c.k > -1", True),
)


class Disk:
    """The small file system, and the file that fills it."""

    def __init__(self, place):
        self.place, self.filler = place, place / "filler"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "colonnade", str(place)], check=True)
        os.chown(place, *server_ids())
        self.tablespace = place / "space"
        self.tablespace.mkdir()
        os.chown(self.tablespace, *server_ids())

    def fill(self, free):
        """Leaves so many bytes."""
        status = os.statvfs(self.place)
        count = max(0, status.f_bavail * status.f_frsize - free)
        try:
            with open(self.filler, "wb", buffering=0) as out:
                while count > 0:
                    count -= out.write(b"\0" * min(count, 1 << 20))
        except OSError:
            pass  # The server has written meanwhile: the disk is full.

    def clear(self):
        self.filler.unlink(missing_ok=True)

    def leave(self):
        subprocess.run(["umount", str(self.place)], check=False)


def digests(session):
    """The rows by a scan and by the index."""
    whole = session.run(DIGEST).rows[0]
    session.run(f"BEGIN; {BY_INDEX.replace('SET ', 'SET LOCAL ')}")
    by_index = session.run("SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t WHERE id > -1").rows[0]
    session.run("ROLLBACK")
    assert whole == by_index, f"a scan gives {whole}, the index {by_index}"
    return whole


def attempt(session, command, transactional, way):
    """Runs the command on the full disk; its SQLSTATE, None where it succeeded."""
    if way == "handler":
        # What fails below an exception handler is rolled back there, and the transaction goes on.
        text = command.replace("'", "''")
        told = session.value("SELECT caught FROM (SELECT 1) x, LATERAL try_it('" + text + "') caught")
        return told or None
    try:
        if transactional:
            session.run("BEGIN")
        for part in command.split("; "):
            session.run(part)
    except SqlError as problem:
        found = str(problem).split("ERROR:")[1].split(":")[0].strip() if "ERROR:" in str(problem) else str(problem)
        session.run("ROLLBACK")
        return found
    if transactional:
        session.run("ROLLBACK")
    return None


HANDLER = """
CREATE FUNCTION try_it(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE part text;
BEGIN
  BEGIN
    FOREACH part IN ARRAY string_to_array(command, '; ') LOOP EXECUTE part; END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'P0999';
  EXCEPTION WHEN OTHERS THEN
    RETURN nullif(SQLSTATE, 'P0999');
  END;
END $$;
"""


def one(server, disk, command, transactional, free, way):
    """One command on the full disk; whether it failed."""
    command = command.replace("{first}", str(ROWS + 1)).replace("{last}", str(ROWS + 90000)).replace("{{", "{").replace("}}", "}")
    session = server.session("small")
    try:
        before = digests(session)
        disk.fill(free)
        code = attempt(session, command, transactional, way)
        assert code in (None, "53100"), f"SQLSTATE {code}"
        assert digests(session) == before, "the rows are others"
        disk.clear()
        assert digests(session) == before, "the rows are others, with room again"
        found = session.run("SELECT kind, block, detail FROM engine.verify('t') WHERE kind <> 'unclaimed'").rows
        assert not found, f"engine.verify finds {found[:3]}"
        session.run("VACUUM t")
        found = session.run("SELECT kind, block, detail FROM engine.verify('t')").rows
        assert not found, f"engine.verify finds {found[:3]} after VACUUM"
        again = attempt(session, command, transactional, way)
        assert again is None, f"it fails with {again} when there is room"
        session.run("SELECT engine.colcompress_merge('t')")
        session.run("VACUUM engine.row_proxy")
        assert digests(session) == before
        return code is not None
    finally:
        disk.clear()
        session.close()


def killed(server, disk):
    """kill -9 while the disk is full; it comes back when there is room, with the rows that it had."""
    session = server.session("small")
    before = digests(session)
    disk.fill(100 << 10)
    try:
        session.run(f"INSERT INTO t {SOURCE}")
        raise AssertionError("the premise: the disk is full")
    except SqlError as problem:
        assert "53100" in str(problem), problem
    server.kill9()
    session.close()
    disk.clear()
    server.start()
    with server.session("small") as session:
        assert digests(session) == before, "the rows are others after a crash on a full disk"
        session.run("VACUUM t")
        found = session.run("SELECT kind, block, detail FROM engine.verify('t')").rows
        assert not found, f"engine.verify finds {found[:3]}"


def main():
    if not running_as_root():
        print("   disk_full: only root can mount a small file system; nothing was tested")
        return 0
    chance = random.Random(SEED)
    server = fresh_server("full", os.environ["COLONNADE_STAGE"], {"autovacuum": "off", "shared_buffers": "32MB"})
    checks, disk, full = Checks("disk_full", SEED), None, 0
    try:
        disk = Disk(server.base / "small")
        server.sql(f"CREATE TABLESPACE small LOCATION '{disk.tablespace}'")
        server.sql("CREATE DATABASE small TABLESPACE small")
        server.sql("CREATE EXTENSION colonnade;" + SETUP + HANDLER, "small")
        cases = [(command, free, way) for command in COMMANDS for free in FREE for way in ("plain", "handler")
                 if way == "plain" or (command[2] and "PROGRAM" not in command[1])]
        if not LONG:
            # One for each command.
            cases = [chance.choice([case for case in cases if case[0] == command and case[1] <= 300 << 10]) for command in COMMANDS]
        for (name, command, transactional), free, way in cases:
            before = checks.failed
            with checks.part(f"{name}, {free >> 10} kB free, {way}", (AssertionError, SqlError)):
                full += one(server, disk, command, transactional, free, way)
            if checks.failed > before:
                server.sql("DROP TABLE IF EXISTS t, other;" + SETUP, "small")
        with checks.part("killed"):
            killed(server, disk)
        log = server.log.read_text(errors="replace")
        checks.say("no backend crashed", "terminated by signal" not in log and "PANIC" not in log)
        checks.say("premise: most commands met the full disk", full * 2 > len(cases))
    finally:
        server.stop("immediate")
        if disk is not None:
            disk.leave()
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
