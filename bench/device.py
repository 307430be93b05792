"""TPC-H from the device: each query with nothing in memory, beside the same one with everything there.

Called by scripts/bench.sh device. SF (10) is the scale factor, RUNS (3) the runs of each query, QUERIES="T1
T6" asks only those; STEP is that of harness.suite (prepare, race, remove; nothing: all). The server has 1 GB
of shared buffers. Before each cold run it is stopped and the system's page cache is dropped, which only root
can do. Answers are compared with DuckDB's, as heap of this size takes its time; bench-tpch compares with
heap's.

What counts is how fast bytes come: those that all processes of the server have read from the device, by the
wall time of the cold run. Beside it stands what `dd` gets of lineitem's first segment, cold as well. Where a
query computes for longer than the device needs, the cold run should take as long as the warm one.
"""

import os
import subprocess
import time
from pathlib import Path

import tpch
from harness import kit, race, suite
from harness.server import ServerError, end_orderly, run_program

RUNS = int(os.environ.get("RUNS", "3"))
THREADS = int(os.environ.get("THREADS", "2"))
SCHEMA = suite.ORDERS["made"]


def drop_caches():
    if not kit.drop_caches():
        raise ServerError("the system's page cache could not be dropped: only root can")


def read_bytes(server):
    """Bytes that the server's processes, as they are now, have had from the device."""
    total = 0
    for process in server.processes():
        for line in Path(f"/proc/{process}/io").read_text().splitlines():
            if line.startswith("read_bytes:"):
                total += int(line.split()[1])
    return total


def dd_rate(server):
    """MB/s of reading the first segment of lineitem's file by `dd`."""
    path = server.data / server.sql(f"SELECT pg_relation_filepath('{SCHEMA}.lineitem')", suite.DATABASE)
    rates = []
    for _ in range(RUNS):
        drop_caches()
        began = time.monotonic()
        subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=1M"], check=True, stderr=subprocess.DEVNULL)
        rates.append(path.stat().st_size / kit.MB / (time.monotonic() - began))
    return kit.median(rates)


class Device(suite.Suite):
    """The suite of bench/tpch.py, raced against nobody but the device."""

    def engine(self):
        engine = race.Postgres("colcompress", self.server, suite.DATABASE, setup=f"SET search_path = {SCHEMA}", timeout=self.timeout)
        engine.use(THREADS)
        return engine

    def cold(self, question):
        """Milliseconds, bytes and rows of one run with nothing in memory."""
        self.server.stop()
        drop_caches()
        self.server.start()
        engine = self.engine()
        try:
            # What every session reads: catalogs, programs.
            engine.run("SELECT count(*) FROM region")
            before = read_bytes(self.server)
            run = engine.run(question.text)
            return run.wall, read_bytes(self.server) - before, run.rows
        finally:
            engine.close()

    def warm(self, question):
        engine = self.engine()
        try:
            engine.run(question.text)
            return kit.median([engine.run(question.text).wall for _ in range(RUNS)])
        finally:
            engine.close()

    def race(self, order, asked):
        duck = self.others[order].get("duckdb") or next(iter(self.others[order].values()), None)
        if duck is None:
            raise ServerError("DuckDB is not there, whose answers are to be compared")
        expected = {question.name: duck.run(question.text).rows for question in asked}
        rate = dd_rate(self.server)
        kit.say(f"dd reads lineitem at {rate:.0f} MB/s")
        rows, record = [], {"dd_mb_s": rate, "postgres": self.version(), "questions": {}}
        for question in asked:
            runs = [self.cold(question) for _ in range(RUNS)]
            fault = race.loosely(runs[0][2], expected[question.name], duck.slack)
            if fault:
                raise ServerError(f"{question.name} differs: {fault}")
            wall, megabytes, warm = kit.median([run[0] for run in runs]), kit.median([run[1] for run in runs]) / kit.MB, self.warm(question)
            record["questions"][question.name] = {"cold_ms": wall, "warm_ms": warm, "read_mb": megabytes}
            rows.append((question.name, f"{wall:.0f}", f"{warm:.0f}", f"{wall / warm:.2f}x", f"{megabytes:.0f}", f"{megabytes / wall * 1000:.0f}",
                         f"{max(warm, megabytes / rate * 1000) / wall:.2f}"))
            kit.say(f"  {question.name}: cold {wall:.0f} ms, warm {warm:.0f} ms, {megabytes:.0f} MB read")
        heads = ("median ms", "cold", "warm", "cold to warm", "MB read", "MB/s", "of the possible")
        kit.report(self.name.replace("tpch", "device"), heads, rows, record, [])
        print(f"  dd of lineitem: {rate:.0f} MB/s; of the possible: the longer one of warm time and MB read at that rate, by the cold time")
        return 0


def main(stage):
    end_orderly()
    os.environ.setdefault("HEAP", "none")
    os.environ.setdefault("ORDERS", "made")
    work = Device("tpch", tpch.SF, stage, tpch.tables(), lambda _duck: (kit.SQL / "tpch.sql").read_text())
    work.server.settings["shared_buffers"] = "1GB"
    return work.run(tpch.questions)


if __name__ == "__main__":
    run_program(main)
