"""What becomes of rows that arrive one by one, with packing in the background: size and queries beside the
same rows loaded at once.

Called by scripts/bench.sh packing. CLIENTS (8) sessions of pgbench insert ROWS (1,000,000) events, each row a
transaction, into a table without index and into one with a primary key, while packing is on, as it is by
default but for a naptime of NAPTIME (5) seconds. When nothing has changed for longer than the worker's
longest pause the tables are compared with ones that were loaded by one INSERT: their size with indexes, and
the questions of QUERIES (Q1 to Q5, Q9, Q10), RUNS (9) times in turns; every answer is compared.
"""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from harness import kit
from harness.server import ServerError, as_server_user, clean_environment, fresh_server, run_program

ROWS = int(os.environ.get("ROWS", "1000000"))
CLIENTS = int(os.environ.get("CLIENTS", "8"))
RUNS = int(os.environ.get("RUNS", "9"))
NAPTIME = int(os.environ.get("NAPTIME", "5"))
QUERIES = os.environ.get("QUERIES", "Q1 Q2 Q3 Q4 Q5 Q9 Q10").split()
# Rounds: more than the longest pause of the worker.
PAUSE = 18
DATABASE = "bench"
# What may be multiplied with the loaded table's size and time.
BOUND = 1.2
KINDS = {"plain": "", "keyed": ", PRIMARY KEY (id)"}


def insert_singly(server, table):
    """Inserts the events one by one; returns the transactions a second."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        script = Path(directory) / "insert.sql"
        script.write_text(f"\\set n :n + 1\n\\set id :n * {CLIENTS} + :client_id + 1\nINSERT INTO {table} SELECT * FROM events_source WHERE id = :id;\n")
        command = [server.bindir / "pgbench", "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, "-n", "-M", "prepared", "-c", CLIENTS, "-j", 1,
                   "-t", ROWS // CLIENTS, "-D", "n=-1", "-f", script, DATABASE]
        environment = {**clean_environment(), "PGOPTIONS": "-c synchronous_commit=off"}
        done = subprocess.run(list(map(str, as_server_user(command))), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd="/tmp")
        if done.returncode != 0:
            raise ServerError(done.stdout)
        return float(re.search(r"tps = ([\d.]+)", done.stdout)[1])


def total(server, table):
    return int(server.sql(f"SELECT pg_total_relation_size('{table}')", DATABASE))


def settle(server, table):
    """Waits until so many rounds have changed neither size nor stripes that the worker's longest pause is
    among them; returns the sizes seen, one a round."""
    stripes = f"SELECT string_agg(first_row || ' ' || first_block, ',' ORDER BY first_row) FROM engine.stripe WHERE storage_id = engine.colcompress_relation_storageid('{table}')"
    seen = []
    while len(seen) < PAUSE or len(set(seen[-PAUSE:])) > 1:
        time.sleep(NAPTIME)
        seen.append((total(server, table), server.sql(stripes, DATABASE)))
        if len(seen) > 400:
            raise ServerError(f"{table} does not settle: {[size for size, _ in seen[-10:]]}")
    return [size for size, _ in seen]


def main(stage):
    settings = {**kit.SERVER_SETTINGS, "jit": "off", "autovacuum": "on", "colonnade.packing": "on", "colonnade.packing_naptime": f"{NAPTIME}s"}
    server = fresh_server("packing", stage, settings)
    short = []
    try:
        server.create_database(DATABASE)
        kit.say(f"making {ROWS:,} events")
        kit.make_events(server, DATABASE, ROWS, server.base / "events.csv")
        server.sql("ALTER TABLE events_source ADD PRIMARY KEY (id); VACUUM ANALYZE events_source", DATABASE)
        queries = [query for query in kit.read_queries(kit.SQL / "events_queries.sql") if query.name in QUERIES]
        table = []
        for kind, key in KINDS.items():
            arms = [kit.Arm(f"{kind}_loaded", "colcompress"), kit.Arm(f"{kind}_single", "colcompress")]
            for arm in arms:
                server.sql(f"CREATE TABLE {arm.name} (LIKE events_source{key}) USING colcompress", DATABASE)
            loaded, single = (arm.name for arm in arms)
            server.sql(f"INSERT INTO {loaded} SELECT * FROM events_source ORDER BY id", DATABASE)
            rate = insert_singly(server, single)
            largest = total(server, single)
            sizes = settle(server, single)
            kit.say(f"{kind}: {rate:.0f} inserts a second; largest {max(largest, *sizes) / kit.MB:.0f} MB, settled after {(len(sizes) - PAUSE) * NAPTIME} s")
            hot = int(server.sql(f"SELECT count(*) FROM {single} WHERE ctid < '(2147483648,1)'", DATABASE))
            ratio = sizes[-1] / total(server, loaded)
            table.append([f"{kind}: size, MB", f"{total(server, loaded) / kit.MB:.1f}", f"{sizes[-1] / kit.MB:.1f}", f"{ratio:.2f}"])
            if ratio > BOUND:
                short.append(f"{kind}: {ratio:.2f} times as large")
            server.sql(f"ANALYZE {loaded}; ANALYZE {single}", DATABASE)
            timings = kit.time_queries(server, DATABASE, arms, queries, RUNS)
            for query in queries:
                different = kit.differences(server, DATABASE, query, arms[1], arms[0], timings[query.name])
                if different:
                    raise ServerError(f"{query.name}: {different}")
                cpu = {arm.name: kit.median(timings[query.name][arm.name].cpu) for arm in arms}
                ratio = cpu[single] / cpu[loaded]
                table.append([f"{kind}: {query.name} {query.title}, CPU ms", f"{cpu[loaded]:.1f}", f"{cpu[single]:.1f}", f"{ratio:.2f}"])
                if ratio > BOUND:
                    short.append(f"{kind}: {query.name} takes {ratio:.2f} times as long")
            stripes = server.sql(f"SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = '{single}'::regclass", DATABASE)
            kit.say(f"{kind}: {hot} heap rows left, {stripes} stripes")
            faults = server.sql(f"SELECT * FROM engine.verify('{single}')", DATABASE)
            if faults:
                raise ServerError(faults[:500])
        kit.report("packing", [f"{ROWS:,} rows", "loaded at once", "one by one, packed", "ratio"], table, table, short)
    finally:
        server.destroy()
    return 0


if __name__ == "__main__":
    run_program(main)
