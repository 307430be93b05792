"""The log has no FATAL lines in ordinary life: stops of the server while packing is at work, and databases
that are dropped beside it."""

import os
import time

from harness.checks import Checks
from harness.server import fresh_server

SETTINGS = {"colonnade.packing": "on", "colonnade.packing_naptime": "1s", "colonnade.packing_rows": "1000", "colonnade.packing_cost_delay": "200ms"}
WAIT = 30


def until(server, question, seconds=WAIT):
    """Asks until the answer is true; whether it was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.sql(question) == "t":
            return True
        time.sleep(0.1)
    return False


def fill(server, database, name="t"):
    """A table with heap rows enough to keep the worker busy for some seconds: a stripe of a thousand at a
    time, a pause after each."""
    server.sql(f"CREATE TABLE {name} (a int) USING colcompress WITH (stripe_row_limit = 1000); "
               f"DO $$BEGIN FOR n IN 1..80 LOOP INSERT INTO {name} SELECT generate_series(1, 500); END LOOP; END$$", database)


def main():
    server = fresh_server("quiet-log", os.environ["COLONNADE_STAGE"], SETTINGS)
    checks = Checks("quiet_log")
    try:
        at_work = "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'colonnade packing'"
        server.create_database("busy")
        fill(server, "busy")
        checks.say("the premise: packing is at work", until(server, at_work))
        for n in range(4):
            server.create_database(f"short_{n}")
            fill(server, f"short_{n}")
        until(server, at_work)
        for n in range(4):
            server.sql(f"DROP DATABASE short_{n} WITH (FORCE)")
            time.sleep(0.7)
        fill(server, "busy", "more")
        checks.say("packing is at work when the server stops", until(server, at_work))
        # A session whose client has left may still be ending: a stop would have the last word.
        while any(map(server.is_session, server.processes())):
            time.sleep(0.01)
        started = time.monotonic()
        server.stop()
        checks.say("the stop is quick", time.monotonic() - started < 10, f"{time.monotonic() - started:.1f} s")
        server.start()
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'colonnade packing launcher'")
        back = "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'colonnade packing launcher'"
        time.sleep(1)
        checks.say("a launcher that was terminated comes back", until(server, back))
        log = server.log.read_text(errors="replace").splitlines()
        loud = [line for line in log if any(word in line for word in ("PANIC", "FATAL", "ERROR"))]
        checks.say("no FATAL or ERROR line", not loud, "\n".join(loud))
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
