"""kill -9 in the middle of concurrent loads, over and over: every acknowledged load is there whole, every
other one is there not at all (one whose COMMIT was under way may be either), and a streaming standby says the
same.

Loads of every size run in several sessions at once, into a table with a primary key and one without; some
roll back, some are prepared; VACUUM runs beside them. A ledger outside the server remembers what was
acknowledged.
"""

import os
import random
import threading
import time

from harness.checks import Checks
from harness.server import fresh_server
from harness.session import SqlError
from harness.standby import make_standby, wait_for_replay

LONG = os.environ.get("COLONNADE_LONG") == "1"
CYCLES = int(os.environ.get("CYCLES") or (20 if LONG else 4))
LOADERS = 3
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))
SIZES = [1, 40, 3000, 11000, 15000, 25000]
TABLES = ["keyed", "plain"]

SETUP = """
CREATE TABLE keyed (batch int, i int, v numeric(12,3), t text, PRIMARY KEY (batch, i)) USING colcompress;
CREATE TABLE plain (batch int, i int, v numeric(12,3), t text) USING colcompress WITH (stripe_row_limit = 20000);
"""


def rows_sql(batch, size):
    return (f"SELECT {batch}, g, (g % 1000) + 0.125, md5(({batch} * 7 + g)::text) FROM generate_series(1, {size}) g")


def expected(server, batch, size):
    return f"SELECT count(*), sum(i), sum(v), sum(hashtextextended(t, i)) FROM ({rows_sql(batch, size)}) r(batch, i, v, t)"


class Ledger:
    """What the server acknowledged, and what it may or may not have done when it died."""

    def __init__(self):
        self.lock = threading.Lock()
        self.next_batch = 1
        self.kept = {}
        self.doubtful = {}

    def new_batch(self):
        with self.lock:
            self.next_batch += 1
            return self.next_batch


def load_until_killed(server, ledger, table, seed):
    """Loads batch after batch; returns when the server is gone."""
    chance = random.Random(seed)
    session = None
    entry = None
    try:
        session = server.session("crash")
        while True:
            batch, size, fate = ledger.new_batch(), chance.choice(SIZES), chance.random()
            session.run("BEGIN")
            if fate < 0.2:
                session.run(f"SAVEPOINT s; INSERT INTO {table} {rows_sql(-batch, size)}; ROLLBACK TO s")
            session.run(f"INSERT INTO {table} {rows_sql(batch, size)}")
            if fate > 0.85:
                session.run("ROLLBACK")
                continue
            entry = (table, batch, size)
            if fate > 0.75:
                session.run(f"PREPARE TRANSACTION 'b{batch}'")
            with ledger.lock:
                ledger.doubtful[(table, batch)] = size
            session.run(f"COMMIT PREPARED 'b{batch}'" if fate > 0.75 else "COMMIT")
            with ledger.lock:
                del ledger.doubtful[(table, batch)]
                ledger.kept[(table, batch)] = size
    except (SqlError, OSError, ValueError):
        return entry
    finally:
        if session is not None:
            session.close()


def vacuum_until_killed(server):
    try:
        session = server.session("crash")
        while True:
            for table in TABLES:
                session.run(f"VACUUM {table}")
            time.sleep(0.05)
    except (SqlError, OSError, ValueError):
        return


# Pages that a savepoint's rollback has left count as unclaimed until VACUUM comes by.
FAULTS = "SELECT string_agg(v::text, ', ') FROM engine.verify('{table}') v WHERE kind <> 'unclaimed'"


def verify_until_killed(server, complaints):
    """engine.verify finds no fault in tables that are being loaded and vacuumed."""
    try:
        session = server.session("crash")
        while True:
            for table in TABLES:
                faults = session.value(FAULTS.format(table=table))
                if faults:
                    complaints.append(f"{table}, while loads go on, has faults: {faults[:300]}")
    except (SqlError, OSError, ValueError):
        return


def contents(server, table, settings=""):
    """Per batch: count, sums and a digest of all text in its place, as text."""
    text = server.sql(f"{settings} SELECT batch, count(*), sum(i), sum(v), sum(hashtextextended(t, i)) FROM {table} GROUP BY batch", "crash")
    return {int(line.split("|")[0]): line.split("|", 1)[1] for line in text.splitlines()}


def check(server, ledger, want_cache):
    """Compares the tables with the ledger; settles what was in doubt. Returns a list of complaints."""
    complaints = []
    for prepared in server.sql("SELECT gid FROM pg_prepared_xacts", "crash").split():
        server.sql(f"ROLLBACK PREPARED '{prepared}'", "crash")
    for table in TABLES:
        found = contents(server, table)
        for batch, digest in found.items():
            size = ledger.kept.get((table, batch)) or ledger.doubtful.get((table, batch))
            if size is None:
                complaints.append(f"{table}: batch {batch} was never committed but is there: {digest}")
                continue
            if (batch, size) not in want_cache:
                want_cache[(batch, size)] = server.sql(expected(server, batch, size), "crash")
            if digest != want_cache[(batch, size)]:
                complaints.append(f"{table}: batch {batch} of {size} rows is {digest}, not {want_cache[(batch, size)]}")
            ledger.kept[(table, batch)] = size
        for (of, batch), size in ledger.kept.items():
            if of == table and batch not in found:
                complaints.append(f"{table}: committed batch {batch} of {size} rows is gone")
        by_key = contents(server, table, "SET enable_seqscan = off; SET colonnade.enable_scan = off;") if table == "keyed" else found
        if by_key != found:
            complaints.append(f"{table}: the primary key finds other rows than the scan")
    ledger.doubtful.clear()
    return complaints


def cycle(server, standby, ledger, number, want_cache):
    threads = [threading.Thread(target=load_until_killed, args=(server, ledger, TABLES[n % len(TABLES)], SEED * 1000 + number * 10 + n))
               for n in range(LOADERS)]
    threads.append(threading.Thread(target=vacuum_until_killed, args=(server,)))
    complaints = []
    threads.append(threading.Thread(target=verify_until_killed, args=(server, complaints)))
    for thread in threads:
        thread.start()
    time.sleep(random.Random(SEED + number).uniform(1.0, 4.0))
    server.kill9()
    for thread in threads:
        thread.join()
    acknowledged = len(ledger.kept)
    server.start()
    complaints += check(server, ledger, want_cache)
    wait_for_replay(server, standby)
    for table in TABLES:
        if contents(standby, table) != contents(server, table):
            complaints.append(f"{table}: the standby has other rows than its primary")
        for name, where in (("primary", server), ("standby", standby)):
            faults = where.sql(FAULTS.format(table=table), "crash")
            if faults:
                complaints.append(f"{table} on the {name} has faults: {faults[:300]}")
    return acknowledged, complaints


def main():
    print(f"seed {SEED} (COLONNADE_SEED repeats it)")
    # A standby that lags behind on a busy machine still finds the log that it needs after the primary's
    # checkpoints.
    settings = {"max_wal_senders": "4", "autovacuum_naptime": "1s", "wal_keep_size": "1GB", "colonnade.packing": "on", "colonnade.packing_naptime": "1s", "colonnade.packing_rows": "100"}
    server = fresh_server("crash_loads", os.environ["COLONNADE_STAGE"], settings)
    standby = None
    checks = Checks("concurrent_loads", SEED)
    try:
        server.create_database("crash")
        server.sql(SETUP, "crash")
        standby = make_standby(server)
        ledger, want_cache = Ledger(), {}
        for number in range(CYCLES):
            acknowledged, complaints = cycle(server, standby, ledger, number, want_cache)
            stripes = server.sql("SELECT count(*) FROM engine.stripe", "crash")
            if acknowledged == 0 or stripes == "0":
                complaints.append(f"this proves nothing: {acknowledged} loads were acknowledged, {stripes} stripes exist")
            checks.say(f"cycle {number}: {acknowledged} loads, {stripes} stripes", not complaints, "\n".join(complaints[:10]))
        standby.stop("immediate")
    finally:
        if standby is not None:
            standby.stop("immediate")
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
