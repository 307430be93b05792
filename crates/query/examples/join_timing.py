"""DuckDB's time for the joins of join_timing.rs, on one thread, over the same rows in memory."""
import sys
import time

import duckdb

connection = duckdb.connect()
connection.execute("SET threads = 1")
KEYS = {
    "dense": "k + 1",
    "sparse": "CAST(hash(k) >> 1 AS BIGINT)",
    "text": "printf('key%08d', k)",
    "long": "printf('a longer key %08d', k)",
}
CASES = [
    ("dense", 1500000, 1500000, "inner"),
    ("dense", 100, 1500000, "inner"),
    ("dense", 100, 100, "inner"),
    ("dense", 1500000, 1500000, "semi"),
    ("sparse", 1500000, 1500000, "inner"),
    ("sparse", 100, 100, "inner"),
    ("text", 1500000, 1500000, "inner"),
    ("text", 100, 100, "inner"),
    ("long", 1500000, 1500000, "inner"),
]
wanted = sys.argv[1] if len(sys.argv) > 1 else ""
for name, build, distinct, kind in CASES:
    if not name.startswith(wanted):
        continue
    key = KEYS[name]
    connection.execute(f"""CREATE OR REPLACE TABLE probe AS SELECT {key} AS key, p FROM (
        SELECT range AS p, CAST(xor((range * 2654435761), range >> 7) % {distinct} AS BIGINT) AS k FROM range(6000000))""")
    connection.execute(f"CREATE OR REPLACE TABLE kept AS SELECT {key} AS key, k AS p FROM (SELECT range AS k FROM range({build}))")
    query = ("SELECT count(*), sum(probe.p) + sum(kept.p) FROM probe JOIN kept USING (key)" if kind == "inner"
             else "SELECT count(*), sum(p) * 2 FROM probe WHERE key IN (SELECT key FROM kept)")
    best = cpu = 1e9
    for _ in range(3):
        started, cpu_started = time.perf_counter(), time.process_time()
        answer = connection.execute(query).fetchone()
        best = min(best, time.perf_counter() - started)
        cpu = min(cpu, time.process_time() - cpu_started)
    print(f"{name:7} {kind} x {build} ({distinct} keys): {best * 1000:6.0f} ms, CPU {cpu * 1000:6.0f} ms  {answer}", flush=True)
