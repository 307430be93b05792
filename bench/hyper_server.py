"""Tableau's Hyper as one of the engines of a benchmark: takes statements as JSON lines, gives times and rows
as JSON lines.

Run with the Python of target/venv, which has tableauhyperapi; harness.others is the caller. The engine is a
process of its own below this one, and CPU time is that one's. Its threads are settings of its start, so a
change of them starts it anew.
"""

import datetime
import decimal
import json
import os
import sys
import time
from pathlib import Path

from tableauhyperapi import Connection, CreateMode, Date, HyperException, HyperProcess, Telemetry, Timestamp, __version__


def text(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Timestamp):
        return value.to_datetime().isoformat(sep=" ")
    if isinstance(value, Date):
        return value.to_date().isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


class Engine:
    """The process and its connection, with so many threads a query."""

    def __init__(self, path, threads):
        limits = {name: str(threads) for name in ("hard_concurrent_query_thread_limit", "soft_concurrent_query_thread_limit")}
        self.process = HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters={**limits, "default_database_version": "4", "log_config": ""})
        self.connection = Connection(self.process.endpoint, path, CreateMode.CREATE_IF_NOT_EXISTS)
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        # Linux numbers every process's CPU clock so.
        self.clock = (~int(children[-1])) << 3 | 2

    def ask(self, sql, rows):
        wall, cpu = time.perf_counter(), time.clock_gettime(self.clock)
        with self.connection.execute_query(sql) as result:
            found = list(result)
        answer = {"wall_ms": (time.perf_counter() - wall) * 1000, "cpu_ms": (time.clock_gettime(self.clock) - cpu) * 1000}
        return {**answer, "rows": [[text(value) for value in row] for row in found]} if rows else answer

    def close(self):
        self.connection.close()
        self.process.close()


def main(path):
    engine = Engine(path, 1)
    print(json.dumps({"version": __version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "threads" in request:
                engine.close()
                engine = Engine(path, request["threads"])
                answer = {}
            else:
                answer = engine.ask(request["sql"], request["rows"])
        except HyperException as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1])
