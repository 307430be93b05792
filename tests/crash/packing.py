"""kill -9 while packing in the background reuses, moves and cuts off pages, and a standby beside it that is
read all the while: every batch of rows is there whole with the changes made to it, or not at all, in the
table, by its index, and on the standby, also once that is promoted.

Batches of every size are inserted, changed and deleted, each together with its line in an ordinary table;
some transactions roll back. A session vacuums, and the worker packs at once what it may. A reader at
REPEATABLE READ asks twice, on either server. The program also fails if it proves nothing: no stripe came to
lie on pages that rows had left, or the file never became shorter.
"""

import os
import random
import re
import threading
import time

from harness.checks import Checks
from harness.server import fresh_server
from harness.session import SqlError
from harness.standby import make_standby, promote, wait_for_replay

LONG = os.environ.get("COLONNADE_LONG") == "1"
CYCLES = int(os.environ.get("CYCLES") or (20 if LONG else 2))
# How many more there may be until a slow machine has proved something.
MORE_CYCLES = 8
# Seconds that a cycle may take longer for that.
MOST_WAIT = 20
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))
SIZES = [1, 30, 300, 3000, 9000, 9000, 15000]
GONE = "session ended|connection|terminat|closed|recovery|shutting down|starting up"

SETUP = """
CREATE TABLE t (batch int, row int, version int, body text, PRIMARY KEY (batch, row)) USING colcompress WITH (packing_rows = 300, stripe_row_limit = 5000);
CREATE INDEX ON t (version);
CREATE TABLE batches (batch int PRIMARY KEY, rows int, changes int);
"""
# Of each batch: its rows, and how often every seventh of them was changed.
FAULTS = """
SELECT count(*) FROM (SELECT batch, count(*) AS rows, sum(version) AS changed, sum(row::int8) AS total, count(DISTINCT row) AS different FROM t {where} GROUP BY batch) f
FULL JOIN batches b USING (batch) WHERE (f.rows, f.changed, f.total, f.different) IS DISTINCT FROM
    (b.rows::int8, b.changes * (b.rows / 7)::int8, b.rows * (b.rows + 1)::int8 / 2, b.rows::int8)
"""
BY_INDEX = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET colonnade.enable_scan = off;"
DIGEST = "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t"
# Stripes that lie before one that was written earlier.
REUSED = """
SELECT count(*) FROM (SELECT first_block, max(first_block) OVER (ORDER BY first_row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM engine.stripe
    WHERE storage_id = engine.colcompress_relation_storageid('t')) s WHERE first_block < before
"""


class Ledger:
    """Batches whose insertion was acknowledged and that nobody has begun to delete."""

    def __init__(self):
        self.lock, self.next, self.kept, self.dropped = threading.Lock(), 0, set(), set()

    def new(self):
        with self.lock:
            self.next += 1
            return self.next

    def any(self, chance):
        with self.lock:
            return chance.choice(sorted(self.kept)) if self.kept else None


class Worker(threading.Thread):
    """A session that does one thing over and over until its server is gone or it is told to stop."""

    def __init__(self, server, stop, body, ledger, seed):
        super().__init__(daemon=True)
        self.server, self.stop, self.body, self.ledger, self.chance, self.problem = server, stop, body, ledger, random.Random(seed), None

    def run(self):
        session = None
        try:
            session = self.server.session("crash")
            while not self.stop.is_set():
                try:
                    self.body(session, self.ledger, self.chance)
                except SqlError as error:
                    # A deadlock, a conflict of the standby's.
                    if not re.search("40P01|40001", str(error)):
                        raise
                    session.run("ROLLBACK")
        except (OSError, ValueError):
            pass
        except (SqlError, AssertionError) as error:
            if not re.search(GONE, str(error)):
                self.problem = str(error)
        finally:
            if session is not None:
                session.close()


def insert(session, ledger, chance):
    batch, size = ledger.new(), chance.choice(SIZES)
    session.run("BEGIN")
    session.run(f"INSERT INTO t SELECT {batch}, g, 0, repeat(md5(g::text), 2) FROM generate_series(1, {size}) g")
    session.run(f"INSERT INTO batches VALUES ({batch}, {size}, 0)")
    session.run("ROLLBACK" if chance.random() < 0.15 else "COMMIT")
    if session.value(f"SELECT count(*) FROM batches WHERE batch = {batch}") == "1":
        with ledger.lock:
            ledger.kept.add(batch)


def change(session, ledger, chance):
    batch = ledger.any(chance)
    if batch is None:
        time.sleep(0.05)
        return
    session.run("BEGIN")
    session.run(f"UPDATE t SET version = version + 1 WHERE batch = {batch} AND row % 7 = 0")
    session.run(f"UPDATE batches SET changes = changes + 1 WHERE batch = {batch}")
    session.run("ROLLBACK" if chance.random() < 0.2 else "COMMIT")


def delete(session, ledger, chance):
    batch = ledger.any(chance)
    if batch is None or len(ledger.kept) < 10:
        time.sleep(0.05)
        return
    keeps = chance.random() < 0.2
    if not keeps:
        with ledger.lock:
            ledger.kept.discard(batch)
    session.run("BEGIN")
    session.run(f"DELETE FROM t WHERE batch = {batch}")
    session.run(f"DELETE FROM batches WHERE batch = {batch}")
    session.run("ROLLBACK" if keeps else "COMMIT")


def read(session, _ledger, chance):
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    for _ in range(2):
        wrong = session.value(FAULTS.format(where=""))
        assert wrong == "0", f"a reader sees {wrong} incomplete batches"
        time.sleep(chance.random() * 0.3)
    session.run("COMMIT")


def vacuum(session, _ledger, chance):
    # Autovacuum may not come by within a cycle of a slow machine, and without it no page is ever left empty.
    time.sleep(0.5 + chance.random())
    session.run("VACUUM t")


def check(server, ledger):
    known = set(server.sql("SELECT batch FROM batches", "crash").split())
    lost = [batch for batch in ledger.kept if str(batch) not in known]
    assert not lost, f"acknowledged batches are gone: {lost[:5]}"
    for settings, where in (("", ""), (BY_INDEX, "WHERE batch > 0")):
        wrong = server.sql(settings + FAULTS.format(where=where), "crash")
        assert wrong == "0", f"{wrong} batches are wrong {where}"
    faults = server.sql("SELECT v FROM engine.verify('t') v WHERE kind <> 'unclaimed'", "crash")
    assert not faults, f"engine.verify finds {faults[:500]}"


def compare(server, standby):
    """What both say while nothing is packed."""
    server.sql("ALTER SYSTEM SET colonnade.packing = off; ALTER DATABASE crash SET colonnade.packing = off")
    try:
        wait_for_replay(server, standby)
        here, there = (one.sql(DIGEST, "crash") for one in (server, standby))
        assert here == there and here, f"the primary has {here}, the standby {there}"
        faults = standby.sql("SELECT v FROM engine.verify('t') v WHERE kind <> 'unclaimed'", "crash")
        assert not faults, f"on the standby engine.verify finds {faults[:500]}"
    finally:
        server.sql("ALTER SYSTEM RESET colonnade.packing; ALTER DATABASE crash RESET colonnade.packing")


def cycle(server, standby, ledger, number, sizes, waits):
    """`waits`: a slow machine is given more time, until a stripe lies on pages that rows had left."""
    stop = threading.Event()
    bodies = [(server, body) for body in (insert, insert, change, change, delete, delete, read, vacuum)] + [(standby, read)]
    workers = [Worker(where, stop, body, ledger, SEED * 100 + number * 10 + at) for at, (where, body) in enumerate(bodies)]
    for worker in workers:
        worker.start()
    end = time.time() + random.Random(SEED + number).uniform(3.0, 5.0)
    while time.time() < end or (waits and time.time() < end + MOST_WAIT and server.sql(REUSED, "crash") == "0"):
        sizes.append(int(server.sql("SELECT pg_relation_size('t')", "crash")))
        time.sleep(0.2)
    server.kill9()
    stop.set()
    for worker in workers:
        worker.join(60)
        assert worker.problem is None, worker.problem
    server.start()
    check(server, ledger)
    compare(server, standby)


def main():
    print(f"seed {SEED} (COLONNADE_SEED repeats it)")
    settings = {"wal_level": "replica", "max_wal_senders": "4", "wal_keep_size": "4GB", "colonnade.packing": "on", "colonnade.packing_naptime": "1s", "colonnade.packing_cost_delay": "0",
                "autovacuum_naptime": "5s", "wal_consistency_checking": "heap,heap2,btree" if LONG else "heap,heap2"}
    server = fresh_server("crash_packing", os.environ["COLONNADE_STAGE"], settings)
    checks, standby, ledger, sizes, reused, shorter = Checks("packing", SEED), None, Ledger(), [], 0, 0
    try:
        server.create_database("crash")
        server.sql(SETUP, "crash")
        standby = make_standby(server, max_standby_streaming_delay="2s")
        for number in range(CYCLES + MORE_CYCLES):
            with checks.part(f"cycle {number}") as tell:
                cycle(server, standby, ledger, number, sizes, not reused)
                reused += int(server.sql(REUSED, "crash"))
                tell(f"{len(ledger.kept)} batches, {sizes[-1] >> 10} kB")
            shorter = sum(later < before for before, later in zip(sizes, sizes[1:]))
            if checks.failed or (number + 1 >= CYCLES and reused and (shorter or not LONG)):
                break
        checks.say(f"stripes lie on pages that rows had left: {reused}", reused > 0)
        checks.say(f"the file became shorter: {shorter} times", shorter > 0 or not LONG)
        with checks.part("the standby is promoted"):
            promote(standby)
            check(standby, ledger)
            standby.sql("INSERT INTO t SELECT -1, g, 0, 'new' FROM generate_series(1, 9000) g; DELETE FROM t WHERE batch = -1; VACUUM t", "crash")
            check(standby, ledger)
        checks.show_log(server)
    finally:
        if standby is not None:
            standby.stop("immediate")
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
