"""kill -9 while rows are being inserted: every acknowledged row is there afterwards, and no other."""

import os
import time

from harness.checks import Checks
from harness.server import fresh_server
from harness.session import SqlError

ROUNDS = 20 if os.environ.get("COLONNADE_LONG") == "1" else 3
ACCESS_METHOD = os.environ.get("AM", "colcompress")


def one_round(server, number):
    """Commits for a while, kills, restarts, compares. The premise: something was acknowledged before the
    kill."""
    server.sql(f"CREATE TABLE t{number} (id int, filler text) USING {ACCESS_METHOD}", "crash")
    session = server.session("crash")
    acknowledged = 0
    deadline = time.monotonic() + 0.5 + 0.1 * number
    try:
        while time.monotonic() < deadline:
            session.run(f"INSERT INTO t{number} VALUES ({acknowledged + 1}, repeat('x', 100))")
            acknowledged += 1
        session.send(f"INSERT INTO t{number} SELECT -g, 'uncommitted' FROM generate_series(1, 2000000) g")
        time.sleep(0.2)
    finally:
        server.kill9()
    try:
        session.wait()
        acknowledged = -1  # the last insert ended before the kill: this round proves nothing
    except SqlError:
        pass
    server.start()
    rows = server.sql(f"SELECT count(*), min(id), max(id), count(DISTINCT id) FROM t{number}", "crash")
    assert acknowledged > 0, "nothing was acknowledged before the kill"
    assert rows == f"{acknowledged}|1|{acknowledged}|{acknowledged}", f"{acknowledged} acknowledged, table has {rows}"


def main():
    # fsync stays off: only the server's processes die, and the kernel keeps what they wrote.
    server = fresh_server("crash", os.environ["COLONNADE_STAGE"])
    checks = Checks("committed_rows")
    try:
        server.create_database("crash")
        for number in range(ROUNDS):
            with checks.part(f"round {number}"):
                one_round(server, number)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
