"""Random statements from sqlsmith (Debian's package of that name) against columnar tables of many types.

make test-sqlsmith DURATION=seconds. Passes when no server process crashes, nothing hangs past the statement
timeout that sqlsmith sets (one second), and no statement raises an internal error (SQLSTATE XX...) that the
same statement does not raise on the same tables in heap. What fails is written to target/sqlsmith/ with its
settings.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from harness.server import by_major, clean_environment, fail, fresh_server

DURATION = float(os.environ.get("DURATION") or 60)
SEED = int(os.environ.get("SEED") or time.time() // 1 % 10**6)
DATABASE = "smith"
# Seconds that a statement may run: its timeout, and what a busy machine adds.
HANG = 20.0
# One run of sqlsmith each, in turns: settings of the role it runs as.
SETTINGS = (
    {},
    {"work_mem": "64kB", "hash_mem_multiplier": "1"},
    {"max_parallel_workers_per_gather": "2", "parallel_setup_cost": "0", "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0"},
    {"enable_nestloop": "off", "enable_mergejoin": "off"},
    {"enable_hashjoin": "off", "enable_hashagg": "off"},
)
ROUND = 120
SQL = Path(__file__).with_suffix(".sql")
OUT = by_major("sqlsmith")
CRASHED = re.compile(r"terminated by signal|PANIC:|TRAP:|terminated by exception")
# A statement and what it came to, as log_error_verbosity = verbose writes it.
FAILED = re.compile(r"^\S+ \S+ \S+ \[\d+\] (XX...) (ERROR|FATAL): +(?:XX...: )?(.*?)$(.*?)STATEMENT: +(.*?)(?=^\d{4}-\d\d-\d\d )", re.M | re.S)


class Watch(threading.Thread):
    """Looks for statements that outlive their timeout."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.hung = []
        self.over = False

    def run(self):
        while not self.over:
            time.sleep(5)
            found = self.server.sql(
                "SELECT pid || ': ' || query FROM pg_stat_activity WHERE usename = 'smith' AND state = 'active'"
                f" AND query_start < now() - interval '{HANG} s'", DATABASE, check=False)
            if found[0] == 0 and found[1].strip():
                self.hung.append(found[1].strip())
                self.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'smith'", DATABASE, check=False)


def prepare(server):
    server.create_database(DATABASE)
    for schema, method in (("col", "colcompress"), ("heap", "heap")):
        done = subprocess.run([*server.psql_command(DATABASE), "-q", "-v", "ON_ERROR_STOP=1", "-v", f"schema={schema}", "-v", f"method={method}", "-f", "-"],
                              input=SQL.read_text(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=clean_environment())
        if done.returncode != 0:
            fail(done.stdout)
    server.sql("""
        CREATE ROLE smith LOGIN;
        GRANT ALL ON SCHEMA col TO smith;
        GRANT ALL ON ALL TABLES IN SCHEMA col TO smith;
        ALTER DATABASE smith SET search_path = col;
    """, DATABASE)
    cold = int(server.sql("SELECT sum(row_count) FROM engine.stripe", DATABASE))
    plan = server.sql("SET colonnade.vectorised_min_rows = 0; SET search_path = col; EXPLAIN SELECT whole, sum(money) FROM numbers GROUP BY whole", DATABASE)
    if cold < 10_000 or "Vectorised" not in plan:
        fail(f"the premise does not hold: {cold} cold rows, plan\n{plan}")


def set_role(server, settings):
    settings = {"colonnade.vectorised_min_rows": "0", **settings}
    server.sql("ALTER ROLE smith RESET ALL; " + "; ".join(f"ALTER ROLE smith SET {name} = '{value}'" for name, value in settings.items()))


def anonymous(message):
    """A message without its numbers and without a single character at the end: which row's value an error
    names depends on the order of rows, and on samples."""
    return re.sub(r": .$", ": N", re.sub(r"0x[0-9a-f]+|\d+", "N", message.strip()))


def internal_errors(server, log):
    """Statements that raised an internal error here and do not in heap: (statement, message)."""
    found = {}
    for state, _, message, location, statement in FAILED.findall(log + "\n2000-01-01 "):
        found.setdefault((state, anonymous(message)), (message + location, statement.strip()))
    session = ("SET statement_timeout = '20s'; SET colonnade.vectorised_min_rows = 0; BEGIN; ")
    ours = []
    for (state, _), (message, statement) in found.items():
        on_heap = server.sql(session + re.sub(r"\bcol\.", "heap.", statement), DATABASE, check=False)[2]
        if anonymous(message.splitlines()[0].strip()) not in anonymous(on_heap):
            ours.append((f"{state} {message.strip()}", statement))
    return ours


def main():
    program = shutil.which("sqlsmith") or fail("sqlsmith is not installed: apt-get install sqlsmith")
    server = fresh_server("sqlsmith", os.environ["COLONNADE_STAGE"], {
        "log_line_prefix": "%m [%p] %e ", "log_error_verbosity": "verbose", "log_min_error_statement": "error",
        "temp_file_limit": "1GB", "restart_after_crash": "on", "max_connections": "20"})
    OUT.mkdir(parents=True, exist_ok=True)
    statements = rounds = 0
    complaints = []
    try:
        prepare(server)
        watch = Watch(server)
        watch.start()
        end = time.monotonic() + DURATION
        while time.monotonic() < end:
            settings = SETTINGS[rounds % len(SETTINGS)]
            set_role(server, settings)
            target = f"host={server.socket_dir} port={server.port} user=smith dbname={DATABASE}"
            try:
                done = subprocess.run([program, f"--target={target}", f"--seed={SEED + rounds}", "--exclude-catalog", "--verbose"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                                      env=clean_environment(), timeout=min(ROUND, max(5, end - time.monotonic())))
                print(f"sqlsmith ended by itself ({done.returncode}): {done.stderr[-400:]}", flush=True)
                time.sleep(2)
            except subprocess.TimeoutExpired as stopped:
                counted = re.findall(r"queries: (\d+)", (stopped.stderr or b"").decode(errors="replace"))
                statements += int(counted[-1]) if counted else 0
            rounds += 1
            log = server.log.read_text(errors="replace")
            complaints = [f"crash: {line}" for line in log.splitlines() if CRASHED.search(line)]
            complaints += [f"hang: {text}" for text in watch.hung]
            complaints += [f"{message}\n{statement}" for message, statement in internal_errors(server, log)]
            (OUT / "failures.txt").write_text("\n\n".join(complaints))
            print(f"round {rounds}, seed {SEED + rounds - 1}, {settings}: {statements} statements, {len(complaints)} complaints", flush=True)
        watch.over = True
        shutil.copy(server.log, OUT / "server.log")
    finally:
        server.destroy()
    if statements < DURATION:
        complaints.append(f"the premise does not hold: {statements} statements only")
    for complaint in complaints:
        print(f"not ok sqlsmith: {complaint[:600]}")
    if not complaints:
        print(f"ok sqlsmith: {statements} statements in {rounds} rounds, seed {SEED}")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
