"""Heap tables of one server replicated into columnar tables of another, which packs them all the while.

The subscriber's tables get their first rows by the initial copy, and then what sessions of the publisher
insert, update, delete and truncate at random. The subscriber packs in the background every second, and a
session of its own packs and joins stripes without a pause. After each round its rows must be the publisher's,
and its log must not know of a row that the replication worker has not found. ROUNDS=number; the default is
short.
"""

import os
import random
import threading
import time

from harness.checks import Checks
from harness.server import fresh_server
from harness.session import SqlError

ROUNDS = int(os.environ.get("ROUNDS", "2"))
# Small stripes, so that few rows make many of them.
OPTIONS = "USING colcompress WITH (stripe_row_limit = 1000, chunk_group_row_limit = 1000, packing_rows = 1000)"
KEYED = "(id int PRIMARY KEY, n int, code text, v text)"
TABLES = {
    # Name: columns, ends of the definitions on the publisher and on the subscriber, rows at the beginning.
    "keyed": (KEYED, "", OPTIONS, 12000),
    "coded": (KEYED, "", OPTIONS + "; CREATE UNIQUE INDEX ON coded (code); CREATE INDEX ON coded (n)", 8000),
    "whole": ("(id int, n int, code text, v text)", "; ALTER TABLE whole REPLICA IDENTITY FULL", OPTIONS, 1500),
    "parts": (KEYED, "", "PARTITION BY RANGE (id)", 8000),
    "short": (KEYED, "", OPTIONS, 3000),
}
PARTITIONS = "".join(
    f"; CREATE TABLE parts{at} PARTITION OF parts FOR VALUES FROM ({low}) TO ({high}) {OPTIONS}"
    for at, (low, high) in enumerate([("MINVALUE", 3000), (3000, 6000), (6000, "MAXVALUE")]))
FILL = "INSERT INTO {0} SELECT g, 0, 'c' || g, md5(g::text) FROM generate_series({1}, {2}) g"
CONTENT = "SELECT count(*), md5(string_agg(t::text, ';' ORDER BY t::text)) FROM {} t"
COLD = "SELECT count(*) FROM {} WHERE (ctid::text::point)[0] >= 2147483648"
PACKED = tuple(name for name in TABLES if name != "parts") + ("parts0", "parts1", "parts2")
MISSED = "did not find row"


def write(publisher, seed, seconds, problems):
    """Changes rows of the publisher at random, in statements of one row and of many."""
    chance = random.Random(seed)
    session = publisher.session("source")
    try:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            table = chance.choice(["keyed"] * 4 + ["coded"] * 3 + ["parts"] * 3 + ["whole"] * 2 + ["short"])
            most = TABLES[table][3]
            row = chance.randrange(1, most)
            many = f"id BETWEEN {row} AND {row + chance.choice([3, 30, 300 if table != 'whole' else 5])}"
            statement = chance.choice([
                f"UPDATE {table} SET n = n + 1 WHERE id = {row}",
                f"UPDATE {table} SET n = n + 1 WHERE id = {row}",
                f"UPDATE {table} SET n = n + 1, v = md5(v) WHERE {many}",
                f"BEGIN; UPDATE {table} SET n = n + 1 WHERE id = {row}; SAVEPOINT s; UPDATE {table} SET n = -1 WHERE {many}; ROLLBACK TO s; COMMIT",
                f"WITH gone AS (DELETE FROM {table} WHERE {many} RETURNING *) INSERT INTO {table} SELECT id + 0, n, code, v FROM gone WHERE false",
                f"INSERT INTO {table} SELECT g, 0, 'c' || g, 'new' FROM generate_series({row}, {row + 100}) g WHERE NOT EXISTS (SELECT FROM {table} WHERE id = g)",
                f"UPDATE {table} SET id = -id WHERE id = {row} AND NOT EXISTS (SELECT FROM {table} WHERE id = -{row})" if table not in ("whole", "coded") else "SELECT 1",
                "BEGIN; TRUNCATE short; " + FILL.format("short", 1, 3000) + "; COMMIT" if chance.random() < 0.1 else "SELECT 1",
            ])
            try:
                session.run(statement)
            except SqlError as problem:
                session.run("ROLLBACK")
                # Of two sessions that insert the same rows.
                if "deadlock" not in str(problem) and "duplicate key" not in str(problem):
                    problems.append(problem)
    finally:
        session.close()


def pack(subscriber, stop, problems):
    """Packs and joins stripes without a pause."""
    session = subscriber.session("target")
    try:
        while not stop.is_set():
            for table in PACKED:
                try:
                    session.run(f"CALL engine.colcompress_repack('{table}')")
                except SqlError as problem:
                    problems.append(problem)
    finally:
        session.close()


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def caught_up(publisher):
    target = publisher.sql("SELECT pg_current_wal_lsn()", "source")
    applied = f"SELECT coalesce(bool_and(confirmed_flush_lsn >= '{target}'), false) FROM pg_replication_slots WHERE slot_name = 'sub'"
    return wait_for(lambda: publisher.sql(applied, "source") == "t")


def main():
    stage = os.environ["COLONNADE_STAGE"]
    publisher = fresh_server("publisher", stage, {"autovacuum": "off", "colonnade.packing": "off"})
    subscriber = None
    checks = Checks("subscriber")
    problems = []
    try:
        subscriber = fresh_server("subscriber", stage, port=54322, settings={
            "autovacuum": "on", "autovacuum_naptime": "1s", "wal_retrieve_retry_interval": "500ms", "colonnade.packing": "on", "colonnade.packing_naptime": "1s",
            "colonnade.packing_cost_delay": "0", "max_worker_processes": "16", "log_min_messages": "debug1"})
        publisher.create_database("source", extension=False)
        subscriber.create_database("target")
        for name, (columns, source_end, target_end, rows) in TABLES.items():
            publisher.sql(f"CREATE TABLE {name} {columns} {source_end}", "source")
            publisher.sql(FILL.format(name, 1, rows), "source")
            subscriber.sql(f"CREATE TABLE {name} {columns} {target_end}", "target")
        subscriber.sql(PARTITIONS.lstrip("; "), "target")
        publisher.sql("CREATE PUBLICATION p FOR TABLE " + ", ".join(TABLES), "source")
        connection = f"host={publisher.socket_dir} port={publisher.port} user={publisher.superuser} dbname=source"
        subscriber.sql(f"CREATE SUBSCRIPTION sub CONNECTION '{connection}' PUBLICATION p", "target")
        ready = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'"
        checks.say("the initial copy ends", wait_for(lambda: subscriber.sql(ready, "target") == "0"))
        cold = lambda name: int(subscriber.sql(COLD.format(name), "target"))
        checks.say("what was copied is packed in the background", wait_for(lambda: all(cold(name) >= 1000 for name in TABLES)))
        for turn in range(ROUNDS):
            stop = threading.Event()
            packer = threading.Thread(target=pack, args=(subscriber, stop, problems))
            writers = [threading.Thread(target=write, args=(publisher, turn * 10 + at, 6, problems)) for at in range(2)]
            for thread in (packer, *writers):
                thread.start()
            for thread in writers:
                thread.join()
            checks.say(f"round {turn}: the subscriber catches up", caught_up(publisher))
            stop.set()
            packer.join()
            for name in TABLES:
                theirs, ours = publisher.sql(CONTENT.format(name), "source"), subscriber.sql(CONTENT.format(name), "target")
                checks.say(f"round {turn}: {name} is the publisher's", theirs == ours, f"{theirs} and {ours}")
            checks.say(f"round {turn}: no statement failed", not problems, problems)
            problems.clear()
        # A table may have been truncated and filled again a moment ago.
        packed = wait_for(lambda: all(cold(name) > 0 for name in TABLES))
        checks.say("there are rows in stripes in the end", packed, [(name, cold(name)) for name in TABLES])
        subscriber.sql("ALTER SYSTEM SET colonnade.packing = off", "target")
        subscriber.sql("SELECT pg_reload_conf()", "target")
        for table in PACKED * 2:
            subscriber.sql(f"VACUUM {table}", "target")
        found = subscriber.sql("SELECT string_agg(c.relname || ': ' || v.detail, '; ') FROM pg_class c JOIN pg_am a ON a.oid = relam, engine.verify(c.oid) v "
                               "WHERE amname = 'colcompress' AND c.relkind = 'r'", "target")
        checks.say("engine.verify finds nothing", found == "", found)
        log = subscriber.log.read_text(errors="replace").splitlines()
        missed = [line for line in log if MISSED in line]
        checks.say("no row was missed by the replication worker", not missed, f"{len(missed)}: {missed[:3]}")
        errors = [line for line in log if " ERROR: " in line and "canceling" not in line]
        checks.say("the subscriber's log has no ERROR", not errors, errors[:3])
    finally:
        if subscriber is not None:
            checks.show_log(subscriber)
            subscriber.destroy()
        publisher.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
