"""What single-row writes cost beside heap: pgbench's TPC-B and simple update, and INSERT, UPDATE and DELETE
by primary key, on hot rows.

Called by scripts/bench.sh oltp. Both arms have the same tables and do the same transactions (one seed a
turn), CLIENTS (8) at a time, TRANSACTIONS (1500) each, in turns, RUNS (5) times. After each turn the tables
of both arms are compared row by row, and pgbench's balances with its history. Printed are medians of the
throughput and of the CPU time of the backends, which the postmaster knows when they have ended. The
database's answers to commits are not waited for (synchronous_commit = off; SYNC=on waits), because a disk
would hide what is compared. SCALE (5) is pgbench's; WORK="update delete" asks only those.
"""

import os
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from harness import kit
from harness.server import ServerError, as_server_user, clean_environment, fresh_server, run_program

RUNS = int(os.environ.get("RUNS", "5"))
TRANSACTIONS = int(os.environ.get("TRANSACTIONS", "1500"))
CLIENTS = int(os.environ.get("CLIENTS", "8"))
SCALE = int(os.environ.get("SCALE", "5"))
ONLY = os.environ.get("WORK", "").split()
DATABASE = "bench"
ARMS = {"heap": "heap", "columns": "colcompress"}
# What colcompress has to reach of heap's throughput.
BOUND = 0.90

TABLES = """
CREATE TABLE {schema}.items (id bigint PRIMARY KEY, owner int, amount numeric(12, 2), note text, changed timestamptz);
INSERT INTO {schema}.items SELECT g, g % 1000, g % 9999 / 100.0, md5(g::text), '2026-01-01' FROM generate_series(1, {rows}) g;
CREATE TABLE {schema}.fresh (LIKE {schema}.items INCLUDING ALL);
"""

# Each client's own keys: its number and a counter that pgbench keeps from one transaction to the next.
OWN_KEY = "\\set n :n + 1\n\\set id :n * {clients} + :client_id + 1\n"
WORK = {
    "tpcb": ("pgbench TPC-B", None, "pgbench_accounts pgbench_tellers pgbench_branches"),
    "simple": ("pgbench simple update", None, "pgbench_accounts pgbench_tellers pgbench_branches"),
    "insert": ("INSERT of one row", OWN_KEY + "INSERT INTO fresh VALUES ({turn} * 10000000 + :id, :client_id, 1.25, 'a new row', '2026-01-02');\n", "fresh"),
    "update": ("UPDATE by primary key", "\\set id random(1, {rows})\nUPDATE items SET amount = amount + 1 WHERE id = :id;\n", "items"),
    "delete": ("DELETE by primary key", OWN_KEY + "DELETE FROM items WHERE id = {turn} * {each} + :id;\n", "items"),
}


class Arm:
    """One schema of pgbench's tables and ours, all hot."""

    def __init__(self, server, name, rows):
        self.server, self.name = server, name
        # Loaded rows stay hot: a transaction that writes few rows leaves them so, and this is about such
        # transactions.
        self.options = f"-c search_path={name} -c default_table_access_method={ARMS[name]} -c synchronous_commit={os.environ.get('SYNC', 'off')}"
        loading = f"{self.options} -c colonnade.stripe_threshold_rows=1000000000 -c colonnade.stripe_threshold_memory=1000000kB"
        server.sql(f"CREATE SCHEMA {name}", DATABASE)
        self.pgbench(["-i", "-q", "-I", "dtpG", "-s", SCALE], loading)
        server.sql(f"SET default_table_access_method = {ARMS[name]}; SET colonnade.stripe_threshold_rows = 1000000000; SET colonnade.stripe_threshold_memory = '1000000kB';"
                   + TABLES.format(schema=name, rows=rows) + f"ANALYZE {name}.items; ANALYZE {name}.pgbench_accounts", DATABASE)

    def pgbench(self, arguments, options=None):
        command = [self.server.bindir / "pgbench", "-h", self.server.socket_dir, "-p", self.server.port, "-U", self.server.superuser, *arguments, DATABASE]
        environment = {**clean_environment(), "PGOPTIONS": options or self.options}
        done = subprocess.run(list(map(str, as_server_user(command))), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd="/tmp")
        if done.returncode != 0:
            raise ServerError(done.stdout)
        return done.stdout

    def cold(self):
        """Rows in stripes of the tables that are written."""
        tables = ["pgbench_accounts", "items", "fresh"]
        counts = [self.server.sql(f"SELECT count(*) FROM {self.name}.{table} WHERE ctid >= '(2147483648,1)'", DATABASE) for table in tables]
        return sum(map(int, counts))

    def contents(self, tables):
        """All rows, as one sum for each table."""
        return [self.server.sql(f"SELECT count(*), md5(string_agg(md5(t::text), '' ORDER BY t::text COLLATE \"C\")) FROM {self.name}.{table} t", DATABASE) for table in tables.split()]

    def balances(self):
        """The four sums that TPC-B keeps equal, but for what simple update leaves out."""
        sums = ("sum(abalance) FROM {0}.pgbench_accounts", "sum(delta) FROM {0}.pgbench_history")
        return [self.server.sql("SELECT " + text.format(self.name), DATABASE) for text in sums]


def measure(arm, name, script, turn):
    """Transactions a second, and CPU microseconds of the backends a transaction."""
    builtin = {"tpcb": "tpcb-like", "simple": "simple-update"}.get(name)
    what = ["-b", builtin] if builtin else ["-f", script, "-D", "n=-1"]
    before = arm.server.ended_backends_cpu()
    out = arm.pgbench(["-n", "-M", "prepared", "-c", CLIENTS, "-j", 1, "-t", TRANSACTIONS, f"--random-seed={turn + 1}", *what])
    cpu = arm.server.ended_backends_cpu() - before
    done, rate = re.search(r"processed: (\d+)/(\d+)", out), re.search(r"tps = ([\d.]+)", out)
    if not done or done[1] != done[2] or not rate:
        raise ServerError(out)
    return float(rate[1]), cpu * 1e6 / int(done[1])


def main(stage):
    server = fresh_server("oltp", stage, {**kit.SERVER_SETTINGS, "jit": "off"})
    try:
        server.create_database(DATABASE)
        rows = 100_000 * SCALE
        each = CLIENTS * TRANSACTIONS
        kit.say(f"loading both arms, {rows:,} accounts and items")
        arms = [Arm(server, name, rows) for name in ARMS]
        if arms[1].cold() != 0:
            raise ServerError("the premise does not hold: there are cold rows")
        report, table, short = {}, [], []
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            for name, (title, text, tables) in WORK.items():
                if ONLY and name not in ONLY:
                    continue
                figures = {arm.name: [] for arm in arms}
                for turn in range(RUNS + 1):
                    script = Path(directory) / f"{name}.sql"
                    script.write_text((text or "").format(clients=CLIENTS, rows=rows, turn=turn, each=each))
                    for arm in (arms if turn % 2 == 0 else arms[::-1]):
                        figures[arm.name].append(measure(arm, name, script, turn))
                    if arms[0].contents(tables) != arms[1].contents(tables):
                        raise ServerError(f"{name}: the arms differ after turn {turn}")
                # The first turn is to warm up.
                report[name] = {"title": title, **{arm: [{"tps": tps, "cpu_us": cpu} for tps, cpu in runs[1:]] for arm, runs in figures.items()}}
                medians = {arm: [statistics.median(run[at] for run in runs[1:]) for at in (0, 1)] for arm, runs in figures.items()}
                throughput = statistics.median(ours[0] / heaps[0] for ours, heaps in list(zip(figures["columns"], figures["heap"]))[1:])
                cpu = medians["columns"][1] / medians["heap"][1]
                table.append([title, f"{medians['heap'][0]:.0f}", f"{medians['columns'][0]:.0f}", f"{throughput:.2f}",
                              f"{medians['heap'][1]:.0f}", f"{medians['columns'][1]:.0f}", f"{cpu:.2f}"])
                if throughput < BOUND:
                    short.append(f"{title}: {throughput:.2f} of heap's throughput, less than {BOUND:.2f}")
                kit.say(title)
        for arm in arms:
            accounts, history = arm.balances()
            if accounts != history and not ONLY:
                raise ServerError(f"{arm.name}: accounts hold {accounts}, their history says {history}")
        about = f"{CLIENTS} clients, medians of {RUNS}"
        kit.report("oltp", [about, "heap tps", "ours", "ratio", "heap CPU µs", "ours", "ratio"], table, report, short)
        print(f"cold rows at the end: {arms[1].cold()}")
    finally:
        server.destroy()
    return 0


if __name__ == "__main__":
    run_program(main)
