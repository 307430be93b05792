"""Sessions that work on a server beside each other until they are told to stop, or the server is killed.

Who calls it: tests/crash/columnstore.py, tests/crash/column_files.py, tests/crash/cold_changes.py,
tests/column_files.py.
"""

import contextlib
import random
import re
import threading
import time

from .session import SqlError

STEPS = 3  # what each worker does at least, however slow the machine is


class Worker(threading.Thread):
    """Does steps until it is told to stop or the server is gone. A kind of it has `step`, and may have
    `begin`."""

    DATABASE = "crash"

    def __init__(self, server, stop, seed):
        super().__init__(daemon=True)
        self.server, self.stop, self.chance, self.problem, self.done = server, stop, random.Random(seed), None, 0

    def run(self):
        session = None
        try:
            session = self.server.session(self.DATABASE)
            self.begin(session)
            while not self.stop.is_set() and self.problem is None:
                self.step(session)
                self.done += 1
        except (SqlError, OSError, ValueError) as error:
            self.problem = error
        finally:
            if session is not None:
                session.close()

    def begin(self, session):
        pass


@contextlib.contextmanager
def transaction(session, chance, expected="40P01|40001"):
    """Runs the block in a transaction. It ends in COMMIT, ROLLBACK or by way of PREPARE, as `chance` has it.
    An error whose SQLSTATE matches `expected`, a pattern, rolls it back."""
    session.run("BEGIN")
    try:
        yield
        name = f"p{session.pid}"
        if chance.random() < 0.1:
            session.run(f"PREPARE TRANSACTION '{name}'")
            session.run(f"{chance.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{name}'")
        else:
            session.run(chance.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK")))
    except SqlError as error:
        if not re.search(expected, str(error)):
            raise
        session.run("ROLLBACK")


def expect(workers, killed):
    """No worker had a problem but that the server was gone."""
    for problem in [worker.problem for worker in workers if worker.problem]:
        gone = isinstance(problem, (OSError, ValueError)) or re.search("session ended|connection|terminat|closed", str(problem))
        assert killed and gone, f"a session failed: {problem}"


def work(server, seed, kinds, seconds):
    """Has a worker of each kind work for so many seconds at least. Returns what stops them, and them."""
    stop = threading.Event()
    workers = [kind(server, stop, seed + at) for at, kind in enumerate(kinds)]
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    wait_for_steps(workers)
    return stop, workers


def wait_for_steps(workers):
    """Until each worker has done some steps or has a problem, which `expect` reports."""
    until = time.monotonic() + 120
    while any(worker.done < STEPS and worker.problem is None for worker in workers):
        assert time.monotonic() < until, f"the premise: steps done by each worker: {[worker.done for worker in workers]}"
        time.sleep(0.05)


def end(stop, workers):
    """Stops workers."""
    stop.set()
    for worker in workers:
        worker.join(60)
