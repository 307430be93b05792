"""What the server's progress views and engine.packing_progress show while our tables are rewritten, indexed
and packed: each work is stopped by a function of an index that waits for a lock."""

import threading
import time

from harness.checks import Checks
from harness.server import ServerError

WAITS = """CREATE FUNCTION waits(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN
               IF k = 6500 THEN PERFORM pg_advisory_lock(7); PERFORM pg_advisory_unlock(7); END IF; RETURN k; END$$;
           CREATE TABLE t (k int, v text) USING colcompress WITH (stripe_row_limit = 1000, packing = off);
           INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 10000) g;"""


class Statement(threading.Thread):
    """A statement in a session of its own, that is going to wait for the lock."""

    def __init__(self, server, text):
        super().__init__(daemon=True)
        self.server, self.text, self.problem = server, text, None
        self.gate = server.session("one")
        self.gate.run("SELECT pg_advisory_lock(7)")
        self.start()
        end = time.time() + 30
        while server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'") == "0":
            assert self.is_alive() and time.time() < end, f"it does not wait: {self.problem}"
            time.sleep(0.05)

    def run(self):
        try:
            self.server.sql(self.text, "one")
        except ServerError as error:
            self.problem = error

    def finish(self):
        self.gate.run("SELECT pg_advisory_unlock(7)")
        self.gate.close()
        self.join(60)
        assert self.problem is None and not self.is_alive(), self.problem


def create_index(server):
    statement = Statement(server, "CREATE INDEX waiting ON t (waits(k))")
    shown = server.sql("SELECT relid::regclass, phase, blocks_total, blocks_done > 0 AND blocks_done < blocks_total FROM pg_stat_progress_create_index", "one")
    blocks = server.sql("SELECT sum(block_count) FROM engine.colcompress_stripes WHERE table_name = 't'::regclass", "one")
    statement.finish()
    assert shown == f"t|building index: scanning table|{blocks}|t", f"{shown} of {blocks} blocks"


def merge(server):
    """The index that waits is built when all rows are written."""
    total = server.sql("SELECT pg_relation_size('t') / 8192", "one")
    statement = Statement(server, "SELECT engine.colcompress_merge('t')")
    shown = server.sql(f"SELECT relid::regclass, command, phase, heap_tuples_scanned, heap_tuples_written, heap_blks_total, heap_blks_scanned > {int(total) // 2} FROM pg_stat_progress_cluster", "postgres")
    statement.finish()
    oid = server.sql("SELECT 't'::regclass::oid", "one")
    assert shown == f"{oid}|CLUSTER|rebuilding index|10000|10000|{total}|t", shown
    assert server.sql("SELECT count(*) FROM pg_stat_progress_cluster") == "0", "the command ended"


def repack(server):
    server.sql("INSERT INTO t SELECT g, 'x' FROM generate_series(6001, 6900) g", "one")
    statement = Statement(server, "CALL engine.colcompress_repack('t')")
    shown = server.sql("SELECT datname, activity, xact_start IS NOT NULL FROM engine.packing_progress", "one")
    hidden = server.sql("CREATE ROLE nobody; SET ROLE nobody; SELECT count(*) FROM engine.packing_progress", "one")
    statement.finish()
    assert shown == 'one|packing "public.t": 0 rows|t', shown
    assert hidden == "0", "shown to anybody"
    assert server.sql("SELECT count(*) FROM engine.packing_progress", "one") == "0", "the CALL ended"


def cancelled_repack(server):
    """A CALL that is cancelled is shown no more."""
    server.sql("INSERT INTO t SELECT g, 'x' FROM generate_series(6001, 6900) g", "one")
    statement = Statement(server, "CALL engine.colcompress_repack('t')")
    server.sql("SELECT pg_cancel_backend(pid) FROM engine.packing_progress", "one")
    statement.join(30)
    assert "canceling statement" in str(statement.problem), statement.problem
    assert server.sql("SELECT count(*) FROM engine.packing_calls()", "one") == "0", "shown after an error"
    statement.gate.close()


def main():
    checks = Checks("progress")
    with checks.server({"colonnade.packing": "off"}) as server:
        server.create_database("one")
        server.sql(WAITS, "one")
        for part in (create_index, merge, repack, cancelled_repack):
            with checks.part(part.__name__):
                part(server)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
