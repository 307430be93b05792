"""A subscriber without a usable index finds the rows it is to change by reading the table under a dirty
snapshot. For a cold row that snapshot has to say who is still at work on the row or its stripe, and nothing
that was left in it by the rows before.
"""

import os
import time

from harness.checks import Checks
from harness.server import fresh_server

PUBLISHER = """
CREATE TABLE t (id int, s text);
ALTER TABLE t REPLICA IDENTITY FULL;
CREATE PUBLICATION p FOR TABLE t;
INSERT INTO t VALUES (1, 'row'), (2, 'row'), (3, 'load');
SELECT pg_create_logical_replication_slot('s', 'pgoutput');
"""
SUBSCRIBER = """
CREATE TABLE t (id int, s text) USING colcompress;
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO t VALUES (0, 'hot');
INSERT INTO t SELECT g, 'row' FROM generate_series(1, 2) g;
"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' AND wait_event = 'transactionid'"


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def main():
    settings = {"autovacuum": "off", "wal_retrieve_retry_interval": "500ms", "max_logical_replication_workers": "4"}
    server = fresh_server("replication", os.environ["COLONNADE_STAGE"], settings=settings)
    checks = Checks("replication")
    check = checks.say
    sessions = []
    try:
        for name in ("publisher", "subscriber"):
            server.create_database(name)
        server.sql(PUBLISHER, "publisher")
        server.sql(SUBSCRIBER, "subscriber")
        cold = server.sql("SELECT count(*) FROM t WHERE (ctid::text::point)[0] >= 2147483648", "subscriber")
        assert cold == "2", f"the premise: two cold rows; found {cold}"
        # Somebody else's row in a heap page, not committed: the last thing that the search sees before the
        # cold rows.
        writer = server.session("subscriber")
        sessions.append(writer)
        writer.run("BEGIN; INSERT INTO t VALUES (100, 'uncommitted')")
        connection = f"host={server.socket_dir} port={server.port} user={server.superuser} dbname=publisher"
        server.sql(f"CREATE SUBSCRIPTION sub CONNECTION '{connection}' PUBLICATION p "
                   "WITH (create_slot = false, slot_name = 's', copy_data = false)", "subscriber")
        server.sql("DELETE FROM t WHERE id = 1", "publisher")
        gone = lambda row: server.sql(f"SELECT count(*) FROM t WHERE id = {row}", "subscriber") == "0"
        check("a finished stripe's row is deleted at once, whoever writes beside it", wait_for(lambda: gone(1)))
        check("nobody waits for that writer", server.sql(WAITING, "subscriber") == "0")
        writer.run("ROLLBACK")
        # Somebody else deletes a cold row, and thinks better of it.
        writer.run("BEGIN; DELETE FROM t WHERE id = 2")
        server.sql("UPDATE t SET s = 'changed' WHERE id = 2", "publisher")
        check("who is deleting a row is waited for", wait_for(lambda: server.sql(WAITING, "subscriber") == "1"))
        writer.run("ROLLBACK")
        changed = "SELECT string_agg(s, ',') FROM t WHERE id = 2"
        check("and then the row is updated", wait_for(lambda: server.sql(changed, "subscriber") == "changed"))
        # A stripe whose loader has not ended.
        loader = server.session("subscriber")
        sessions.append(loader)
        loader.run("SET colonnade.stripe_threshold_rows = 0")
        loader.run("BEGIN; INSERT INTO t SELECT 3, 'load'; SELECT count(*) FROM t")
        server.sql("DELETE FROM t WHERE id = 3", "publisher")
        check("a row that is being loaded is waited for", wait_for(lambda: server.sql(WAITING, "subscriber") == "1"))
        loader.run("ROLLBACK")
        target = server.sql("SELECT pg_current_wal_lsn()", "publisher")
        applied = f"SELECT confirmed_flush_lsn >= '{target}' FROM pg_replication_slots WHERE slot_name = 's'"
        check("after a rollback there is no such row, and replication goes on", wait_for(lambda: server.sql(applied, "publisher") == "t"))
    finally:
        for session in sessions:
            session.close()
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
