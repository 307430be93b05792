"""COPY of TPC-DS's 24 tables into heap and colcompress, in turns: wall and CPU time of each, sizes, small and
wide tables among them.

Called by scripts/bench.sh loads. SF (1) is the scale factor, RUNS (5) the loads of each table,
TABLES="web_returns item" loads only those. Rows are made by PyPI's tpcgen-cli, their types read from its
Parquet files. No indexes and no `orderby`: what a plain COPY costs. The tables are compared row by row (as
sets) before a time is reported.
"""

import json
import os
import shutil
import subprocess

from harness import kit
from harness.race import PYTHON, geometric_mean
from harness.server import TARGET, ServerError, by_major, fresh_server, run_program

SF = os.environ.get("SF", "1")
RUNS = int(os.environ.get("RUNS", "5"))
ONLY = os.environ.get("TABLES", "").split()
DATABASE = "loads"
DESCRIBE = """
import duckdb, json, pathlib, sys
found = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
    found[path.stem] = [row[:2] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()]
print(json.dumps(found))
"""


def make(directory):
    """Writes every table as CSV; returns {table: [(column, type)]}. The types do not depend on the scale."""
    program = TARGET / "venv" / "bin" / "tpcgen-cli"
    if not program.exists():
        raise ServerError("tpcgen-cli is not installed: the Python package of that name could not be had")
    for form, scale in (("csv", SF), ("parquet", "1")):
        subprocess.run([str(program), "tpcds", form, "-s", scale, "-o", str(directory)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    types = json.loads(subprocess.run([str(PYTHON), "-c", DESCRIBE, str(directory)], check=True, stdout=subprocess.PIPE, text=True).stdout)
    # What the generator notes of itself is no table of the benchmark.
    types.pop("dbgen_version", None)
    for path in directory.glob("*.parquet"):
        path.unlink()
    return types


def main(stage):
    server = fresh_server("bench-loads", stage, kit.SERVER_SETTINGS)
    directory = server.base / "tpcds"
    try:
        server.create_database(DATABASE)
        directory.mkdir(mode=0o755)
        kit.say(f"making the tables of TPC-DS at scale factor {SF}")
        types = make(directory)
        rows, record = [], {}
        arms = [kit.Arm("as_heap", "heap"), kit.Arm("as_columns", "colcompress")]
        for table, columns in types.items():
            if ONLY and table not in ONLY:
                continue
            server.sql(f"DROP TABLE IF EXISTS as_made; CREATE TABLE as_made ({', '.join(f'{name} {kind}' for name, kind in columns)})", DATABASE)
            loads = kit.load_alternating(server, DATABASE, arms, "as_made", directory / f"{table}.csv", RUNS, "FORMAT csv, HEADER", progress=lambda _: None)
            differ = server.sql("SELECT count(*) FROM ((TABLE as_heap EXCEPT ALL TABLE as_columns) UNION ALL (TABLE as_columns EXCEPT ALL TABLE as_heap)) d", DATABASE)
            if differ != "0":
                raise ServerError(f"{table}: {differ} rows differ")
            count = int(server.sql("SELECT count(*) FROM as_heap", DATABASE))
            wall, cpu = ([kit.median([getattr(load, what) for load in loads[arm.name]]) for arm in arms] for what in ("wall", "cpu"))
            size = [kit.table_bytes(server, DATABASE, arm.name) / kit.MB for arm in arms]
            record[table] = {"rows": count, "columns": len(columns), "wall_s": wall, "cpu_s": cpu, "mb": size}
            rows.append((table, f"{count:,}", len(columns), *(f"{s:.3f}" for s in wall), f"{wall[1] / wall[0]:.2f}x",
                         *(f"{s:.3f}" for s in cpu), f"{cpu[1] / max(cpu[0], 0.001):.2f}x", *(f"{s:.2f}" for s in size)))
            kit.say(f"  {table}: wall {rows[-1][5]}, CPU {rows[-1][8]}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        server.destroy()
    print()
    kit.print_table(("COPY", "rows", "columns", "heap s", "colcompress s", "wall", "heap CPU s", "colcompress CPU s", "CPU", "heap MB", "colcompress MB"), rows)
    for what in ("wall_s", "cpu_s"):
        print(f"  geometric mean of {what}: {geometric_mean([entry[what][1] / max(entry[what][0], 0.001) for entry in record.values()]):.2f}x")
    out = by_major("bench") / "loads.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"scale": SF, "runs": RUNS, "tables": record}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    run_program(main)
