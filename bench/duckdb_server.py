"""DuckDB as one of the engines of a benchmark: takes statements as JSON lines, gives times and rows as JSON
lines.

Run with the Python of target/venv, which has duckdb; harness.race is the caller. A process of its own, so
that its memory and CPU time are its own. Values are written as psql writes them, as far as both know the same
types.
"""

import datetime
import decimal
import json
import sys
import time

import duckdb


def text(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (list, tuple)):
        return "{" + ",".join("NULL" if part is None else text(part) for part in value) + "}"
    return str(value)


def main(path):
    connection = duckdb.connect(path, config={"threads": 1})
    print(json.dumps({"version": duckdb.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            wall, cpu = time.perf_counter(), time.process_time()
            rows = connection.execute(request["sql"]).fetchall()
            answer = {"wall_ms": (time.perf_counter() - wall) * 1000, "cpu_ms": (time.process_time() - cpu) * 1000}
            if request["rows"]:
                answer["rows"] = [[text(value) for value in row] for row in rows]
        except duckdb.Error as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
