"""DuckDB on the events: load and query times with one thread, as JSON. For information beside the benchmark.

Run with the Python of target/venv, which has duckdb: duckdb_events.py CSV RUNS
The questions are those of sql/events_queries.sql; the three on JSON and arrays are put in DuckDB's words.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "scripts")]
from harness import kit  # noqa: E402

TABLE = """CREATE TABLE events (id BIGINT, created_at TIMESTAMPTZ, event_date DATE, user_id BIGINT, session_id VARCHAR,
    amount DECIMAL(15,4), price DOUBLE, quantity INTEGER, duration_ms INTEGER, score FLOAT, country_code VARCHAR,
    browser VARCHAR, url VARCHAR, is_mobile BOOLEAN, event_type VARCHAR, metadata JSON, tags VARCHAR[])"""
WORDS = {
    "Q6": "SELECT count(*), avg(amount) FROM events WHERE metadata->>'$.os' = 'android'",
    "Q7": "SELECT metadata->>'$.campaign', count(*), sum(amount) FROM events WHERE json_exists(metadata, '$.campaign') "
          "GROUP BY 1 ORDER BY 3 DESC NULLS LAST",
    "Q8": "SELECT count(*), avg(price) FROM events WHERE list_contains(tags, 'tag_5')",
}


def load(connection, csv):
    connection.execute(TABLE)
    columns = [row[0] for row in connection.execute("DESCRIBE events").fetchall()]
    values = [f"string_split(trim({c}, '{{}}'), ',')" if c == "tags" else c for c in columns]
    types = {c: "VARCHAR" for c in columns}
    connection.execute(f"INSERT INTO events SELECT {', '.join(values)} FROM read_csv(?, header=false, columns={types})", [csv])
    connection.execute("CHECKPOINT")


def main(csv, runs):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.duckdb")
        connection = duckdb.connect(path, config={"threads": 1})
        connection.execute("SET TimeZone = 'UTC'")
        wall, cpu = time.perf_counter(), time.process_time()
        load(connection, csv)
        result = {"version": duckdb.__version__, "load_s": time.perf_counter() - wall, "load_cpu_s": time.process_time() - cpu,
                  "queries": {}}
        connection.close()
        result["bytes"] = os.path.getsize(path)
        connection = duckdb.connect(path, config={"threads": 1})
        for query in kit.read_queries(kit.SQL / "events_queries.sql"):
            text = WORDS.get(query.name, query.on("events"))
            connection.execute(text).fetchall()
            walls, cpus = [], []
            for _ in range(runs):
                wall, cpu = time.perf_counter(), time.process_time()
                connection.execute(text).fetchall()
                walls.append((time.perf_counter() - wall) * 1000)
                cpus.append((time.process_time() - cpu) * 1000)
            result["queries"][query.name] = {"wall_ms": statistics.median(walls), "cpu_ms": statistics.median(cpus)}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
