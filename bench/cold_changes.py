"""What changing and locking rows in stripes costs beside heap: bulk DELETE and UPDATE, FOR UPDATE, foreign
keys, single rows by key.

Called by scripts/bench.sh cold. Each statement runs RUNS (3) times on heap and on colcompress in turns, each
time on ROWS (1,000,000) fresh rows, which are all in stripes there; printed are medians of the backend's CPU
time (user and system) and of the elapsed time. Before a figure counts, both tables have to hold the same rows
afterwards. Single rows by primary key: 8 clients of pgbench, SECONDS (10) a run, in transactions a second.
STATEMENTS="delete lock" measures only those.
"""

import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from harness import kit
from harness.server import ServerError, as_server_user, clean_environment, fresh_server, run_program

ROWS = int(os.environ.get("ROWS", "1000000"))
RUNS = int(os.environ.get("RUNS", "3"))
SECONDS = int(os.environ.get("SECONDS", "10"))
ONLY = os.environ.get("STATEMENTS", "").split()
CLIENTS = 8
DATABASE = "bench"
ARMS = {"heap": "heap", "cold": "colcompress"}

SETUP = """
DROP SCHEMA IF EXISTS {schema} CASCADE;
CREATE SCHEMA {schema};
SET search_path = {schema};
CREATE TABLE items (id int PRIMARY KEY, owner int, amount numeric(12, 2), note text) USING {method};
INSERT INTO items SELECT g, g % 1000, g % 9999 / 100.0, md5(g::text) FROM generate_series(1, {rows}) g;
"""
CHILD = "CREATE TABLE {schema}.child (id int REFERENCES {schema}.items) USING {method}"
COLD = "SELECT engine.colcompress_merge('cold.items')"
DIGEST = "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(i::text, 0)), 0) FROM {schema}.items i"

# Name: title, statement, at most so many times heap's CPU time.
STATEMENTS = {
    "delete": ("DELETE of half the rows", "DELETE FROM {schema}.items WHERE id % 2 = 0", 1.0),
    "update": ("UPDATE of a third, no key", "UPDATE {schema}.items SET amount = amount + 1 WHERE id % 3 = 0", 2.0),
    "lock": ("SELECT ... FOR UPDATE of all", "SELECT sum(id) FROM (SELECT id FROM {schema}.items FOR UPDATE) i", None),
    "children": ("load of as many children", "INSERT INTO {schema}.child SELECT g FROM generate_series(1, {rows}) g", None),
}
# Name: title, script of pgbench, at least this part of heap's throughput.
SINGLE = {
    "update one": ("UPDATE by primary key", "\\set id random(1, {rows})\nUPDATE {schema}.items SET amount = amount + 1 WHERE id = :id;\n", 0.5),
    "delete one": ("DELETE by primary key", "\\set id random(1, {rows})\nDELETE FROM {schema}.items WHERE id = :id;\n", 0.5),
}


def prepare(server, schema):
    """Fresh rows, in stripes where they can be."""
    server.sql(SETUP.format(schema=schema, method=ARMS[schema], rows=ROWS), DATABASE)
    if schema == "cold":
        server.sql(COLD, DATABASE)
        stored = server.sql("SELECT count(*) FROM cold.items WHERE ctid >= '(2147483648,1)'", DATABASE)
        if int(stored) != ROWS:
            raise ServerError(f"the premise does not hold: {stored} of {ROWS} rows are in stripes")
    for command in (f"VACUUM ANALYZE {schema}.items", "CHECKPOINT"):
        server.sql(command, DATABASE)


def measure(server, schema, statement):
    """CPU and elapsed seconds of one statement, and what the table holds then."""
    prepare(server, schema)
    if ".child" in statement:
        server.sql(CHILD.format(schema=schema, method=ARMS[schema]), DATABASE)
    session = server.session(DATABASE)
    try:
        session.run(kit.SESSION_SETTINGS)
        before, started = session.cpu_seconds(), time.monotonic()
        session.run(statement.format(schema=schema, rows=ROWS))
        figures = session.cpu_seconds() - before, time.monotonic() - started
    finally:
        session.close()
    return figures, server.sql(DIGEST.format(schema=schema), DATABASE)


def throughput(server, schema, script, directory):
    """Transactions a second of CLIENTS sessions that change single rows."""
    prepare(server, schema)
    path = Path(directory) / "script.sql"
    path.write_text(script.format(schema=schema, rows=ROWS))
    command = as_server_user([server.bindir / "pgbench", "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, "-n", "-M", "prepared",
                              "-c", CLIENTS, "-j", 2, "-T", SECONDS, "-f", path, DATABASE])
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean_environment(), cwd=directory)
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if done.returncode != 0 or not found:
        raise ServerError(done.stdout)
    return float(found[1])


def wanted(name):
    return not ONLY or name in ONLY or name.replace(" ", "-") in ONLY


def main(stage):
    server = fresh_server("coldbench", stage, {**kit.SERVER_SETTINGS, "jit": "off", "checkpoint_timeout": "1h"})
    report, rows, missed = {}, [], []
    try:
        server.create_database(DATABASE)
        for name, (title, statement, bound) in STATEMENTS.items():
            if not wanted(name):
                continue
            figures = {schema: [] for schema in ARMS}
            for turn in range(RUNS):
                answers = {}
                for schema in (list(ARMS) if turn % 2 == 0 else list(ARMS)[::-1]):
                    found, answers[schema] = measure(server, schema, statement)
                    figures[schema].append(found)
                if len(set(answers.values())) != 1:
                    raise ServerError(f"{title}: the tables differ afterwards: {answers}")
            report[name] = {"title": title, **figures}
            (heap_cpu, heap_wall), (cold_cpu, cold_wall) = ([statistics.median(run[at] for run in figures[schema]) for at in (0, 1)] for schema in ARMS)
            rows.append([title, f"{heap_cpu:.2f} s", f"{cold_cpu:.2f} s", f"{cold_cpu / heap_cpu:.2f}", f"{cold_wall / heap_wall:.2f}"])
            if bound and cold_cpu > bound * heap_cpu:
                missed.append(f"{title}: {cold_cpu / heap_cpu:.2f}x of heap's CPU time, more than {bound:.2f}x")
            kit.say(title)
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            for name, (title, script, bound) in SINGLE.items():
                if not wanted(name):
                    continue
                figures = {schema: [] for schema in ARMS}
                for turn in range(RUNS):
                    for schema in (list(ARMS) if turn % 2 == 0 else list(ARMS)[::-1]):
                        figures[schema].append(throughput(server, schema, script, directory))
                report[name] = {"title": title, **figures}
                heap, cold = (statistics.median(figures[schema]) for schema in ARMS)
                rows.append([f"{title}, {CLIENTS} clients", f"{heap:.0f} tps", f"{cold:.0f} tps", "", f"{heap / cold:.2f}"])
                if cold < bound * heap:
                    missed.append(f"{title}: {cold / heap:.2f} of heap's throughput, less than {bound:.2f}")
                kit.say(title)
        kit.report("cold_changes", [f"{ROWS:,} rows, medians of {RUNS}", "heap", "cold rows", "CPU ratio", "time ratio"], rows, {"rows": ROWS, **report}, missed)
    finally:
        server.destroy()
    return 0


if __name__ == "__main__":
    run_program(main)
