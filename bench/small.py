"""What small queries cost beside heap: single rows and scattered rows by key, counts and joins of small
tables, hot rows and cold ones.

Called by scripts/bench.sh small. pgbench asks each question of heap and of colcompress in turns, in the
simple and in the prepared protocol, RUNS (7) times, each after a restart of the server. Printed are medians
of the runs, and of the ratios of each turn: the latency that pgbench says (its log does not know that of
answers that were there at once), and the CPU time of the backend as the postmaster sees it when the backend
has ended. That is known in units of 10 ms, so a run has as many transactions as take about a second (or
TRANSACTIONS). Server and pgbench share one processor: a backend that another processor has to wake costs
twice as much, more or less, for reasons of the machine's. QUERIES="key join" asks only those; KIND=hot or
cold only these rows.
"""

import os
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from harness import kit
from harness.server import ServerError, as_server_user, clean_environment, fresh_server, run_program

RUNS = int(os.environ.get("RUNS", "7"))
TRANSACTIONS = int(os.environ.get("TRANSACTIONS", "0"))
SECONDS, FEWEST = 1.0, 200
CPU = 0
ONLY = os.environ.get("QUERIES", "").split()
KINDS = os.environ.get("KIND", "hot cold").split()
ROWS = 100_000
SMALL = 200
DATABASE = "bench"
# What heap's time may be multiplied with.
BOUNDS = {"hot": 1.10, "cold": 1.50}

TABLES = f"""
CREATE SCHEMA {{schema}};
SET search_path = {{schema}};
SET default_table_access_method = {{method}};
SET colonnade.stripe_threshold_rows = {{threshold}};
CREATE TABLE items (id int PRIMARY KEY, owner int, day date, amount numeric(12, 2), kind text, note text, done boolean, score double precision);
INSERT INTO items SELECT g, g % 1000, date '2024-01-01' + g % 365, g % 9999 / 100.0, 'kind ' || g % 20, md5(g::text), g % 3 = 0, g / 7.0
FROM generate_series(1, {ROWS}) g;
CREATE INDEX ON items (owner);
CREATE TABLE few (id int PRIMARY KEY, name text, v int);
INSERT INTO few SELECT g, 'name ' || g, g % 10 FROM generate_series(1, {SMALL}) g;
CREATE TABLE others (few_id int, w numeric(10, 2));
INSERT INTO others SELECT g % {SMALL} + 1, g / 3.0 FROM generate_series(1, {SMALL}) g;
VACUUM ANALYZE items;
VACUUM ANALYZE few;
VACUUM ANALYZE others;
"""

SCATTERED = "SELECT * FROM {{schema}}.items WHERE id = ANY (ARRAY(SELECT 1 + (random() * ({{rows}} - 1))::int FROM generate_series(1, {count})));\n"

QUERIES = {
    "key": ("one column by primary key", "\\set id random(1, {rows})\nSELECT amount FROM {schema}.items WHERE id = :id;\n"),
    "row": ("a whole row by primary key", "\\set id random(1, {rows})\nSELECT * FROM {schema}.items WHERE id = :id;\n"),
    "owner": ("100 rows by another index", "\\set id random(0, 999)\nSELECT sum(amount) FROM {schema}.items WHERE owner = :id;\n"),
    "rows": ("100 scattered whole rows by primary key", SCATTERED.format(count=100)),
    "many": ("1,000 scattered whole rows by primary key", SCATTERED.format(count=1000)),
    "count": ("count(*) of 200 rows", "SELECT count(*) FROM {schema}.few;\n"),
    "group": ("GROUP BY of 200 rows", "SELECT v, count(*) FROM {schema}.few GROUP BY v;\n"),
    "join": ("join of two tables of 200 rows", "SELECT name, w FROM {schema}.few JOIN {schema}.others ON few.id = few_id WHERE v = 3;\n"),
}


def measure(server, script, protocol, directory, transactions):
    """Latency and CPU time of one transaction, in microseconds: means of the run."""
    before = server.ended_backends_cpu()
    command = as_server_user(["taskset", "-c", CPU, server.bindir / "pgbench", "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, "-n", "-M", protocol,
                              "-t", transactions, "-f", script, DATABASE])
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean_environment(), cwd=directory)
    if done.returncode != 0 or not re.search(rf"processed: {transactions}/{transactions}", done.stdout):
        raise ServerError(done.stdout)
    cpu = (server.ended_backends_cpu() - before) * 1e6 / transactions
    return 1e6 / float(re.search(r"tps = ([\d.]+)", done.stdout)[1]), cpu


def begin_turn(server):
    """Starts the server anew: where its libraries and memory lie decides a tenth of what these queries take,
    and all its sessions inherit that."""
    server.restart()
    subprocess.run(["taskset", "-a", "-c", "-p", str(CPU), str(server.postmaster_pid())], check=True, stdout=subprocess.DEVNULL)
    server.sql("SELECT count(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace IN ('heap'::regnamespace, 'hot'::regnamespace, 'cold'::regnamespace)", DATABASE)


def main(stage):
    server = fresh_server("small", stage, {**kit.SERVER_SETTINGS, "jit": "off"})
    failed = []
    try:
        server.create_database(DATABASE)
        server.sql("CREATE EXTENSION pg_prewarm", DATABASE)
        arms = {"heap": ("heap", 0), "hot": ("colcompress", 10**9), "cold": ("colcompress", 0)}
        for schema, (method, threshold) in arms.items():
            server.sql(TABLES.format(schema=schema, method=method, threshold=threshold), DATABASE)
        cold = {schema: int(server.sql(f"SELECT count(*) FROM {schema}.items WHERE ctid >= '(2147483648,1)'", DATABASE)) for schema in ("hot", "cold")}
        if cold != {"hot": 0, "cold": ROWS}:
            raise ServerError(f"the premise does not hold: cold rows {cold}")
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            asked = [(name, protocol) for name in QUERIES if not ONLY or name in ONLY for protocol in ("simple", "prepared")]
            schemas = ["heap", *KINDS]
            report = {f"{name}, {protocol}": {"title": QUERIES[name][0], **{schema: [] for schema in schemas}} for name, protocol in asked}
            for turn in range(RUNS):
                begin_turn(server)
                for name, protocol in asked:
                    entry = report[f"{name}, {protocol}"]
                    scripts = {}
                    for schema in schemas:
                        scripts[schema] = Path(directory) / f"{schema}.sql"
                        scripts[schema].write_text(QUERIES[name][1].format(schema=schema, rows=ROWS))
                    if "transactions" not in entry:
                        latency, _ = measure(server, scripts["heap"], protocol, directory, FEWEST)
                        entry["transactions"] = TRANSACTIONS or max(FEWEST, int(SECONDS * 1e6 / latency))
                    for schema in (schemas if turn % 2 == 0 else schemas[::-1]):
                        entry[schema].append(measure(server, scripts[schema], protocol, directory, entry["transactions"]))
                kit.say(f"turn {turn + 1} of {RUNS}")
        rows = []
        for name, entry in report.items():
            heap = [statistics.median(run[at] for run in entry["heap"]) for at in (0, 1)]
            line = [f"{entry['title']}, {name.split(', ')[1]}", f"{heap[0]:.0f}", f"{heap[1]:.0f}"]
            for kind in KINDS:
                latency, cpu = (statistics.median(run[at] / max(beside[at], 1e-9) for run, beside in zip(entry[kind], entry["heap"])) for at in (0, 1))
                line += [f"{latency:.2f}", f"{cpu:.2f}"]
                if cpu > BOUNDS[kind]:
                    failed.append(f"{name}, {kind} rows: {cpu:.2f}x of heap's CPU time, more than {BOUNDS[kind]:.2f}x")
            rows.append(line)
        head = ["median of the runs", "heap µs", "CPU µs"]
        for kind in KINDS:
            head += [f"{kind} ratio", f"{kind} CPU"]
        kit.report("small", head, rows, report, failed)
    finally:
        server.destroy()
    return 0


if __name__ == "__main__":
    run_program(main)
