"""kill -9 while foreign tables over column files are loaded, emptied, made and dropped: after each crash, and
in each snapshot before it, a foreign table has the rows of its twin, a heap table that the same transactions
changed. So no load is lost, and none is there in part.

Loaders insert and roll back, with savepoints; some transactions are prepared. The file as it says itself what
is in it is never ahead of the table, and once a load has ended it is never behind.
"""

import os
import subprocess
import time

from harness.checks import Checks
from harness.place import ROOT
from harness.session import SqlError
from harness.workers import Worker, end, expect, transaction, work

LONG = os.environ.get("COLONNADE_LONG") == "1"
ROUNDS = int(os.environ.get("CYCLES") or (100 if LONG else 3))
SECONDS = 3 if LONG else 2
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))
CHECKS = Checks("column_files", SEED)

SETUP = [
    "CREATE SERVER files FOREIGN DATA WRAPPER cstore_fdw",
    "CREATE FOREIGN TABLE t (id bigint, k int, name text, amount numeric(12,2)) SERVER files OPTIONS (compression 'lz4', stripe_row_count '1000', block_row_count '1000')",
    "CREATE TABLE h (LIKE t)",
]
SUM = "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(r::text, 0)), 0) FROM {} r"


class Loader(Worker):
    def step(self, session):
        chance = self.chance
        with transaction(session, chance):
            for _ in range(chance.randrange(1, 4)):
                first, rows = chance.randrange(10**9), chance.choice((1, 5, 300, 2500))
                sub = chance.random()
                if sub < 0.3:
                    session.run("SAVEPOINT s")
                for table in ("t", "h"):
                    session.run(f"INSERT INTO {table} SELECT g, g % 97, 'name ' || g % 1000, g / 3.0 FROM generate_series({first}, {first + rows}) g")
                if sub < 0.15:
                    session.run("ROLLBACK TO s")
            if chance.random() < 0.05:
                session.run("TRUNCATE h, t")
                session.run("INSERT INTO t VALUES (1); INSERT INTO h VALUES (1)")


class Maker(Worker):
    """Makes, loads and drops a table of its own, which now and then is left by a crash."""

    def step(self, session):
        name = f"own_{session.pid}"
        session.run(f"CREATE FOREIGN TABLE IF NOT EXISTS {name} (a int) SERVER files")
        session.run(f"INSERT INTO {name} SELECT g FROM generate_series(1, 10) g")
        session.run("BEGIN")
        session.run(f"DROP FOREIGN TABLE {name}")
        session.run(self.chance.choice(("COMMIT", "ROLLBACK")))


class Looker(Worker):
    """Reads tables while their first load runs, commits or is rolled back, and while they are dropped."""

    def step(self, session):
        names = session.value("SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class WHERE relname LIKE 'own_%' AND relkind = 'f'").split()
        for name in names:
            try:
                rows = int(session.value(f"SELECT count(*) FROM {name}"))
                if rows % 10:
                    self.problem = f"{rows} rows in {name}"
            except SqlError as error:
                # It was dropped meanwhile.
                if "42P01" not in str(error):
                    raise


def compare(session):
    """Both tables in one snapshot: how they differ."""
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    # Before there is a snapshot: TRUNCATE of a heap table is seen by older ones, too.
    session.run("LOCK TABLE h IN ACCESS SHARE MODE")
    sums = [session.value(SUM.format(table)) for table in ("h", "t")]
    session.run("COMMIT")
    return None if sums[0] == sums[1] else f"rows and their sum: {sums[0]} in heap, {sums[1]} in the file"


class Reader(Worker):
    def step(self, session):
        self.problem = compare(session)


KINDS = [Loader] * 2 + [Maker, Looker] + [Reader] * 2


def file_of(server, table):
    """The file of a table below the data directory."""
    place = server.sql(f"SELECT 'cstore_fdw/' || d.oid || '/' || '{table}'::regclass::oid FROM pg_database d WHERE datname = current_database()", "crash")
    return server.data / place


def check(server, tell):
    session = server.session("crash")
    try:
        differs = compare(session)
        assert differs is None, differs
        # One more load, after which the file has to say itself what the table has.
        session.run("INSERT INTO t VALUES (0); INSERT INTO h VALUES (0)")
        rows = int(session.value("SELECT count(*) FROM t"))
    finally:
        session.close()
    orphans = int(server.sql("SELECT count(*) FROM engine.stripe WHERE storage_id NOT IN (SELECT storage_id FROM engine.column_file)", "crash"))
    assert orphans == 0, f"{orphans} stripes of files that are no table's"
    program = ROOT / "target" / "debug" / "colonnade"
    if program.exists():
        said = subprocess.run([program, "verify", file_of(server, "t")], capture_output=True, text=True, check=False)
        assert said.returncode == 0 and said.stdout.startswith(f"{rows} rows"), f"{rows} rows in the table; the file: {said.stdout} {said.stderr}"
    return rows


def crash(server, number, tell):
    stop, workers = work(server, SEED + number * 20, KINDS, SECONDS)
    server.kill9()
    end(stop, workers)
    expect(workers, killed=True)
    server.start()
    for prepared in server.sql("SELECT gid FROM pg_prepared_xacts", "crash").split():
        server.sql(f"{'COMMIT' if number % 2 else 'ROLLBACK'} PREPARED '{prepared}'", "crash")
    rows = check(server, tell)
    for name in server.sql("SELECT relname FROM pg_class WHERE relname LIKE 'own_%'", "crash").split():
        count = int(server.sql(f"SELECT count(*) FROM {name}", "crash"))
        assert count % 10 == 0, f"{count} rows in {name}"
        server.sql(f"DROP FOREIGN TABLE {name}", "crash")
    tell(f"{sum(worker.done for worker in workers)} steps, {rows} rows")


def main():
    with CHECKS.server({"max_prepared_transactions": "10", "deadlock_timeout": "50ms"}) as server:
        server.create_database("crash")
        for statement in SETUP:
            server.sql(statement, "crash")
        for number in range(ROUNDS):
            with CHECKS.part(f"round {number}") as tell:
                crash(server, number, tell)
            if not server.running():
                break
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
