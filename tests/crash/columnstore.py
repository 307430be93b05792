"""kill -9 while a heap table with columnstore indexes is changed, vacuumed, refreshed and asked, and a
standby beside it: every answer is the heap's in the same snapshot, on the server, after each crash, on the
standby and after its promotion; `engine.columnstore_verify` finds nothing.

Writers insert, update, delete and roll back; some transactions are prepared. Two maintainers VACUUM and
refresh. Readers ask at REPEATABLE READ, with copies and without, in one transaction.
"""

import os
import threading
import time

from harness.checks import Checks
from harness.session import SqlError
from harness.standby import make_standby, promote, wait_for_replay
from harness.workers import Worker, end, expect, transaction, wait_for_steps, work

LONG = os.environ.get("COLONNADE_LONG") == "1"
ROUNDS = int(os.environ.get("CYCLES") or (100 if LONG else 3))
SECONDS = 3 if LONG else 2
WRITERS = 3
ROWS = 30_000
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))
CHECKS = Checks("columnstore", SEED)

SETUP = [
    "CREATE TABLE t (id bigint PRIMARY KEY, k int, name text, amount numeric(12,2), filler text) WITH (fillfactor = 80, autovacuum_enabled = off)",
    f"INSERT INTO t SELECT g, g % 97, 'name ' || g % 1000, g / 3.0, repeat('f', 60) FROM generate_series(1, {ROWS}) g",
    # The first and the third question read both.
    "CREATE INDEX wide ON t USING columnstore (id, k, name)",
    "CREATE INDEX narrow ON t USING columnstore (k, amount) WITH (compression_type = lz4)",
]
QUESTIONS = (
    "SELECT count(*), sum(id), sum(k), max(name), sum(amount) FROM t",
    "SELECT k, count(*), sum(amount) FROM t GROUP BY k",
    "SELECT id, name FROM t WHERE k = 13 AND amount > 100",
    "SELECT count(*), min(amount), max(amount) FROM t WHERE k < 50",
)
ASK = "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(r::text, 0)), 0) FROM ({}) r"
VERIFY = "SELECT coalesce(string_agg(i || ' block ' || block || ': ' || detail, E'\\n'), '') FROM (SELECT 'wide' AS i, * FROM engine.columnstore_verify('wide') UNION ALL SELECT 'narrow', * FROM engine.columnstore_verify('narrow')) v"


class Writer(Worker):
    def step(self, session):
        chance = self.chance
        first = chance.randrange(1, ROWS * 2)
        with transaction(session, chance, "40P01|40001|23505"):
            kind = chance.random()
            if kind < 0.3:
                session.run(f"UPDATE t SET k = k + 1, amount = amount + 1 WHERE id BETWEEN {first} AND {first + chance.randrange(40)}")
            elif kind < 0.45:
                session.run(f"UPDATE t SET filler = filler || 'x' WHERE id BETWEEN {first} AND {first + 5}")
            elif kind < 0.65:
                session.run(f"DELETE FROM t WHERE id BETWEEN {first} AND {first + chance.randrange(60)}")
            elif kind < 0.9:
                session.run(f"INSERT INTO t SELECT g, g % 97, 'new ' || g % 1000, g, 'f' FROM generate_series({first}, {first + chance.randrange(60)}) g ON CONFLICT DO NOTHING")
            else:
                session.run("SAVEPOINT s")
                session.run(f"DELETE FROM t WHERE id BETWEEN {first} AND {first + 500}")
                session.run("ROLLBACK TO s")
                session.run(f"INSERT INTO t VALUES ({first}, 1, 'one', 1, 'f') ON CONFLICT (id) DO UPDATE SET k = excluded.k")


class Maintainer(Worker):
    def step(self, session):
        session.run(self.chance.choice(("VACUUM (INDEX_CLEANUP ON) t", "VACUUM t", "CALL engine.columnstore_refresh('wide')", "CALL engine.columnstore_refresh('narrow')",
                                        "VACUUM (TRUNCATE ON) t")))


def compare(session, questions):
    """Asks in one snapshot, with copies and without: where the answers differ."""
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    for question in questions:
        answers = []
        for setting in ("on", "off"):
            session.run(f"SET LOCAL colonnade.enable_columnstore_index = {setting}")
            answers.append(session.value(ASK.format(question)))
        if answers[0] != answers[1]:
            return f"{question}: {answers[0]} with copies, {answers[1]} without"
    session.run("COMMIT")
    return None


class Reader(Worker):
    def begin(self, session):
        session.run("SET enable_seqscan = off")

    def step(self, session):
        self.problem = compare(session, self.chance.sample(QUESTIONS, 2))


class StandbyReader(Reader):
    """Asks again where replay was in the way: such a query is cancelled, or its session ends; it is never
    wrong."""

    cancelled = 0

    def run(self):
        while not self.stop.is_set():
            super().run()
            if "conflict with recovery" not in str(self.problem):
                return
            self.cancelled += 1
            self.problem = None


def check(server):
    session = server.session("crash")
    try:
        session.run("SET enable_seqscan = off")
        differs = compare(session, QUESTIONS)
        assert differs is None, differs
        faults = session.value(VERIFY)
        assert not faults, f"engine.columnstore_verify finds {faults[:500]}"
    finally:
        session.close()


KINDS = [Writer] * WRITERS + [Maintainer] * 2 + [Reader] * 2


def crash(server, number, tell):
    stop, workers = work(server, SEED + number * 20, KINDS, SECONDS)
    server.kill9()
    end(stop, workers)
    expect(workers, killed=True)
    server.start()
    for prepared in server.sql("SELECT gid FROM pg_prepared_xacts", "crash").split():
        server.sql(f"ROLLBACK PREPARED '{prepared}'", "crash")
    check(server)
    server.sql("VACUUM (INDEX_CLEANUP ON) t", "crash")
    check(server)
    clean = int(server.sql("SELECT sum(clean_blocks) FROM engine.columnstore_indexes", "crash"))
    assert clean > 500, f"the premise: {clean} blocks are read from copies after VACUUM"
    tell(f"{sum(worker.done for worker in workers)} steps, {clean} clean blocks")


def standby(server, tell):
    copy = make_standby(server)
    try:
        stop, workers = work(server, SEED + ROUNDS * 20, KINDS, SECONDS)
        own = threading.Event()
        readers = [StandbyReader(copy, own, SEED + 1000 + at) for at in range(2)]
        for reader in readers:
            reader.start()
        time.sleep(SECONDS)
        end(stop, workers)
        wait_for_steps(readers)
        end(own, readers)
        expect(workers, killed=False)
        expect(readers, killed=False)
        wait_for_replay(server, copy)
        check(copy)
        promote(copy)
        check(copy)
        copy.sql("VACUUM (INDEX_CLEANUP ON) t", "crash")
        check(copy)
        tell(f"{sum(worker.done for worker in workers)} steps, {sum(reader.done for reader in readers)} questions on the standby, {sum(reader.cancelled for reader in readers)} cancelled")
    finally:
        copy.stop("immediate")


def main():
    with CHECKS.server({"wal_level": "replica", "max_wal_senders": "5", "wal_keep_size": "1GB", "max_prepared_transactions": "10", "deadlock_timeout": "50ms",
                        "max_standby_streaming_delay": "1s", "autovacuum": "off"}) as server:
        server.create_database("crash")
        for statement in SETUP:
            server.sql(statement, "crash")
        clean = int(server.sql("SELECT sum(clean_blocks) FROM engine.columnstore_indexes", "crash"))
        assert clean > 500, f"the premise: {clean} blocks are read from copies"
        for number in range(ROUNDS):
            with CHECKS.part(f"round {number}") as tell:
                crash(server, number, tell)
            if not server.running():
                break
        else:
            with CHECKS.part("standby") as tell:
                standby(server, tell)
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
