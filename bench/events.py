"""The events benchmark: sizes, loads and queries of heap and colcompress in turns, Parquet and DuckDB beside them.

Called by scripts/bench.sh. ROWS (1,000,000), LOADS (5) and RUNS (7) change the amount of work; AM the access
method; OUT the JSON file, target/bench/events.json unless it is given.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from harness import kit
from harness.server import ROOT, TARGET, ServerError, fail, fresh_server

ROWS = int(os.environ.get("ROWS", "1000000"))
LOADS = int(os.environ.get("LOADS", "5"))
RUNS = int(os.environ.get("RUNS", "7"))
DATABASE = "bench"

# What a column's values carry, in bytes a row, after everything that follows from the row's number is taken away:
# md5 is 128 random bits; random() has 52; a rounded one log2 of its values; a float4 of it 23 and an exponent's 2.
FLOOR = {"session_id": 16.0, "amount": 3.32, "price": 6.5, "duration_ms": 1.86, "score": 3.13, "metadata": 1.95}


def machine():
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(), "load_average": os.getloadavg(), "commit": commit}


def column_sizes(server, arm):
    """Each column alone in a table of the arm's kind: what the format makes of it, page headers included."""
    names = server.sql("SELECT attname FROM pg_attribute WHERE attrelid = 'events_source'::regclass AND attnum > 0 "
                       "ORDER BY attnum", DATABASE).splitlines()
    options = " WITH (compression='zstd')" if arm.options else ""
    sizes = {}
    for name in names:
        server.sql(f"DROP TABLE IF EXISTS one_column; CREATE TABLE one_column USING {arm.method}{options} AS "
                   f"SELECT {name} FROM events_source", DATABASE)
        sizes[name] = kit.table_bytes(server, DATABASE, "one_column")
    server.sql("DROP TABLE one_column", DATABASE)
    return sizes


def show_sizes(server, arms, csv):
    kit.say("sizes: tables, each column alone, and the same rows as zstd Parquet")
    tables = {arm.name: kit.table_bytes(server, DATABASE, arm.name) for arm in arms}
    directory = int(server.sql("SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c WHERE c.relkind = 'r' "
                               "AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'engine')", DATABASE))
    parquet = kit.parquet_sizes(csv, "events")
    known = isinstance(parquet, dict)
    rows = [(name, f"{size / kit.MB:.1f}") for name, size in tables.items()]
    rows.append(("side tables (engine.*)", f"{directory / kit.MB:.2f}"))
    rows.append(("zstd Parquet", f"{parquet['bytes'] / kit.MB:.1f}" if known else f"- ({parquet})"))
    kit.print_table(("size", "MB"), rows)
    columns = column_sizes(server, arms[1])
    rows = []
    for name, size in columns.items():
        floor = FLOOR.get(name, 0) * ROWS
        in_parquet = parquet["columns"].get(name, 0) if known else None
        rows.append((name, f"{size / kit.MB:.2f}", f"{floor / kit.MB:.2f}", f"{(size - floor) / kit.MB:.2f}",
                     "-" if in_parquet is None else f"{in_parquet / kit.MB:.2f}"))
    total = sum(FLOOR.values()) * ROWS
    rows.append(("all columns", f"{sum(columns.values()) / kit.MB:.2f}", f"{total / kit.MB:.2f}",
                 f"{(sum(columns.values()) - total) / kit.MB:.2f}",
                 f"{sum(parquet['columns'].values()) / kit.MB:.2f}" if known else "-"))
    kit.print_table(("column alone, MB", arms[1].method, "floor", "above it", "Parquet"), rows)
    return {"tables": tables, "side_tables": directory, "columns": columns, "floor_bytes_per_row": FLOOR,
            "parquet": parquet if known else None}


def show_loads(arms, loads):
    medians = {arm.name: (kit.median([l.wall for l in loads[arm.name]]), kit.median([l.cpu for l in loads[arm.name]]),
                          max(l.private_kb for l in loads[arm.name])) for arm in arms}
    rows = [(name, f"{wall:.2f}", f"{cpu:.2f}", f"{memory / 1000:.0f}") for name, (wall, cpu, memory) in medians.items()]
    heap, column = (medians[arm.name] for arm in arms)
    rows.append(("ratio to heap", f"{column[0] / heap[0]:.2f}x", f"{column[1] / heap[1]:.2f}x", ""))
    kit.print_table((f"COPY, median of {LOADS} in turns", "wall s", "CPU s", "peak private MB"), rows)
    return {name: [{"wall_s": l.wall, "cpu_s": l.cpu, "private_kb": l.private_kb} for l in runs] for name, runs in loads.items()}


def duckdb(csv):
    """DuckDB's own times for the same questions, for information; a sentence where it is not to be had."""
    python = TARGET / "venv" / "bin" / "python"
    if not python.exists():
        return "no Python environment"
    done = subprocess.run([str(python), str(ROOT / "bench" / "duckdb_events.py"), str(csv), str(RUNS)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(done.stdout)


def show_queries(server, arms, csv):
    queries = kit.read_queries(kit.SQL / "events_queries.sql")
    kit.say(f"{len(queries)} queries, {RUNS} runs each in turns: serial, JIT off, no indexes")
    timings = kit.time_queries(server, DATABASE, arms, queries, RUNS, lambda q, _: kit.say(f"  {q.name} done"))
    kit.say("the same questions in DuckDB, one thread")
    other = duckdb(csv)
    known = isinstance(other, dict)
    heap, column = arms
    rows, record, wrong = [], {}, 0
    for query in queries:
        pair = timings[query.name]
        difference = kit.differences(server, DATABASE, query, column, heap, pair)
        wrong += difference is not None
        wall = [kit.median(pair[arm.name].wall) for arm in arms]
        cpu = [kit.median(pair[arm.name].cpu) for arm in arms]
        duck = other["queries"].get(query.name) if known else None
        rows.append((query.name, f"{wall[0]:.1f}", f"{wall[1]:.1f}", f"{wall[1] / wall[0]:.2f}x", f"{cpu[0]:.1f}", f"{cpu[1]:.1f}",
                     f"{cpu[1] / cpu[0]:.2f}x", "-" if duck is None else f"{duck['cpu_ms']:.1f}",
                     "equal" if difference is None else "DIFFERENT"))
        if difference is not None:
            print(f"  {query.name} differs: {difference}", file=sys.stderr)
        record[query.name] = {arm.name: {"wall_ms": pair[arm.name].wall, "cpu_ms": pair[arm.name].cpu} for arm in arms}
        record[query.name]["equal"] = difference is None
        if duck is not None:
            record[query.name]["duckdb"] = duck
    kit.print_table(("median ms", "heap wall", "columns wall", "ratio", "heap CPU", "columns CPU", "ratio", "DuckDB CPU", "answer"), rows)
    if known:
        print(f"  DuckDB {other['version']}: load {other['load_s']:.1f} s (CPU {other['load_cpu_s']:.1f} s), file {other['bytes'] / kit.MB:.1f} MB\n")
    else:
        print(f"  (no DuckDB: {other})\n")
    return record, wrong


def main(stage):
    server = fresh_server("bench", stage, kit.SERVER_SETTINGS)
    try:
        server.create_database(DATABASE)
        csv = server.base / "events.csv"
        kit.say(f"generating {ROWS:,} events and their CSV")
        kit.make_events(server, DATABASE, ROWS, csv)
        arms = [kit.Arm("events_heap", "heap"), kit.column_arm("events", "event_date")]
        kit.say(f"loading the CSV into both tables, {LOADS} times each in turns")
        loads = kit.load_alternating(server, DATABASE, arms, "events_source", csv, LOADS)
        print()
        record = {"rows": ROWS, "machine": machine(), "postgres": server.sql("SELECT version()"), "settings": kit.SERVER_SETTINGS,
                  "arms": {arm.name: {"method": arm.method, "options": arm.options} for arm in arms}}
        record["loads"] = show_loads(arms, loads)
        record["sizes"] = show_sizes(server, arms, csv)
        record["queries"], wrong = show_queries(server, arms, csv)
    finally:
        server.destroy()
    out = Path(os.environ.get("OUT", TARGET / "bench" / "events.json"))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n")
    kit.say(f"written: {out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except ServerError as problem:
        fail(problem)
