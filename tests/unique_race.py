"""A unique check that meets a load which commits while the check is looking: it must wait for the load and
then refuse the duplicate.

The check looks at the directory twice, for the load's reservation and for its stripe. Rows that mean nothing
make the second look take long; the process is stopped somewhere on the way, the load, which a lock held back
at its last row, writes its stripe and commits, and the process goes on.
"""

import os
import signal
import threading
import time

from harness.checks import Checks
from harness.server import fresh_server
from harness.session import SqlError

IDLE_ROWS = 200_000
ROWS = 5000
ROUNDS = 8
STEP = 0.01

SETUP = """
CREATE TABLE t (k int PRIMARY KEY, who text) USING colcompress WITH (stripe_row_limit = 1000000);
CREATE FUNCTION hold(i int, last int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF i = last THEN PERFORM pg_advisory_xact_lock(1); END IF;
    RETURN i;
END $$;
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO t SELECT -g, 'first' FROM generate_series(1, 1000) g;
INSERT INTO t SELECT -1000 - g, 'second' FROM generate_series(1, 1000) g;
INSERT INTO t SELECT -2000 - g, 'third' FROM generate_series(1, 1000) g;
"""
# Empty ranges between the last stripe and the numbers that the next load will get: the look-up of a stripe
# goes through them all.
IDLE = f"""
INSERT INTO engine.stripe
SELECT storage_id, g, 0, 0, 0, 0, 0, 0, 'r', ''
FROM (SELECT storage_id, max(first_row + row_count) AS stored FROM engine.stripe WHERE state = 's' GROUP BY 1) s, generate_series(stored, stored + {IDLE_ROWS}) g;
"""


def wait_for(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def round_of(server, number):
    """One load and one intruder. Complaints, and whether the intruder was stopped in the middle of its check.
    """
    first, last = number * ROWS, (number + 1) * ROWS - 1
    key = first + 5
    keeper, loader, intruder, watcher = (server.session("race") for _ in range(4))
    state = f"SELECT state || coalesce(wait_event, '') FROM pg_stat_activity WHERE pid = {intruder.pid}"
    # A process that is stopped while it holds a lock of the server would stop the load too: never for good.
    rescue = threading.Timer(20, lambda: os.kill(intruder.pid, signal.SIGCONT))
    try:
        loader.run("SET colonnade.stripe_threshold_rows = 0")
        keeper.run("BEGIN; SELECT pg_advisory_xact_lock(1)")
        loader.send(f"INSERT INTO t SELECT hold(g, {last}), 'load' FROM generate_series({first}, {last}) g")
        waiting = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {loader.pid} AND wait_event_type = 'Lock'"
        wait_for(lambda: watcher.value(waiting) == "1", "the premise: the load waits at its last row")
        rescue.start()
        intruder.send(f"INSERT INTO t VALUES ({key}, 'intruder')")
        time.sleep(STEP * (number + 1))
        os.kill(intruder.pid, signal.SIGSTOP)
        in_check = watcher.value(state) == "active"
        keeper.run("COMMIT")
        loader.wait()
        os.kill(intruder.pid, signal.SIGCONT)
        complaints = []
        try:
            intruder.wait()
            complaints.append("the intruder was let in")
        except SqlError as error:
            if "23505" not in str(error):
                complaints.append(f"the intruder was refused for another reason: {error}")
        watcher.run("SET enable_indexscan = off; SET enable_bitmapscan = off")
        found = watcher.run(f"SELECT who FROM t WHERE k = {key}").rows
        if found != [("load",)]:
            complaints.append(f"rows with the one key: {found}")
        return complaints, in_check
    finally:
        rescue.cancel()
        os.kill(intruder.pid, signal.SIGCONT)
        for session in (keeper, loader, intruder, watcher):
            session.close()


def main():
    server = fresh_server("unique_race", os.environ["COLONNADE_STAGE"], settings={"autovacuum": "off"})
    checks, stopped = Checks("unique_race"), 0
    try:
        server.create_database("race")
        server.sql(SETUP, "race")
        for number in range(ROUNDS):
            server.sql(IDLE, "race")
            complaints, in_check = round_of(server, number)
            stopped += in_check
            checks.say(f"round {number}, stopped {'in its check' if in_check else 'elsewhere'}", not complaints, "\n".join(complaints))
        checks.say(f"premise: {stopped} of {ROUNDS} rounds stopped a check half-way", stopped > 0)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
