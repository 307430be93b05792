"""Analytic questions beside transactions: pgbench's TPC-B, and one session that asks for the sums of all four
balance columns in one snapshot. They are equal in every snapshot, so each answer is a test of freshness.

Called by scripts/bench.sh htap. The arms are heap, heap with columnstore indexes of all columns that are
asked for, and colcompress, in turns, RUNS (3) times, SECONDS (60) each: first the transactions alone, then
with the session beside them. CLIENTS (8) and SCALE (20) are pgbench's. An answer that is not equal ends the
benchmark. The background of each arm does what it does by default, but goes round every NAPTIME (5) seconds.
Printed are medians over the runs: transactions a second alone and beside the questions, how long an answer
takes (median, 95th percentile), and for columnstore indexes the share of blocks without a copy, at its
highest and at the end. The JSON has every answer's time.
"""

import os
import re
import statistics
import subprocess
import threading
import time

from harness import kit
from harness.server import ServerError, as_server_user, clean_environment, fresh_server, run_program

RUNS = int(os.environ.get("RUNS", "3"))
SECONDS = int(os.environ.get("SECONDS", "60"))
CLIENTS = int(os.environ.get("CLIENTS", "8"))
SCALE = int(os.environ.get("SCALE", "20"))
NAPTIME = os.environ.get("NAPTIME", "30")
ARMS = os.environ.get("ARMS", "heap columnstore colcompress").split()
DATABASE = "bench"
BALANCES = {"pgbench_accounts": "abalance", "pgbench_tellers": "tbalance", "pgbench_branches": "bbalance", "pgbench_history": "delta"}
QUESTION = "SELECT " + ", ".join(f"(SELECT coalesce(sum({column}), 0) FROM {table})" for table, column in BALANCES.items())
LOOSE = ("SELECT coalesce(max((not_visible_blocks + not_copied_blocks)::float8 / nullif(heap_blocks, 0)), 0) FROM engine.columnstore_indexes"
         " WHERE table_name = '{}.pgbench_accounts'::regclass")
# What the arm with columnstore indexes has to reach of heap's throughput, where no question is asked.
BOUND = 0.95


class Asker(threading.Thread):
    """Asks again and again, and looks now and then how many blocks have no copy."""

    def __init__(self, arm):
        super().__init__(daemon=True)
        self.arm, self.stop, self.problem, self.times, self.loose = arm, threading.Event(), None, [], []

    def run(self):
        try:
            with self.arm.server.session(DATABASE) as session, self.arm.server.session(DATABASE) as looks:
                session.run(f"SET search_path = {self.arm.name}")
                began, looked = time.monotonic(), 0.0
                while not self.stop.is_set():
                    answer = session.run(QUESTION)
                    sums = answer.rows[0]
                    if len(set(sums)) != 1:
                        raise ServerError(f"{self.arm.name}: the sums of one snapshot are {sums}")
                    self.times.append(answer.milliseconds)
                    if time.monotonic() - looked > 2:
                        looked = time.monotonic()
                        self.loose.append((looked - began, float(looks.value(LOOSE.format(self.arm.name)))))
        except Exception as error:
            self.problem = error


class Arm:
    """One schema of pgbench's tables."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        method = "colcompress" if name == "colcompress" else "heap"
        self.options = f"-c search_path={name} -c default_table_access_method={method} -c synchronous_commit=off"
        server.sql(f"CREATE SCHEMA {name}", DATABASE)
        self.pgbench(["-i", "-q", "-I", "dtgp", "-s", SCALE])
        for table in BALANCES:
            if name == "columnstore":
                server.sql(f"SELECT engine.columnstore_create('{name}.{table}')", DATABASE)
            server.sql(f"VACUUM ANALYZE {name}.{table}", DATABASE)

    def pgbench(self, arguments):
        command = [self.server.bindir / "pgbench", "-h", self.server.socket_dir, "-p", self.server.port, "-U", self.server.superuser, *arguments, DATABASE]
        done = subprocess.run(list(map(str, as_server_user(command))), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**clean_environment(), "PGOPTIONS": self.options}, cwd="/tmp")
        if done.returncode != 0:
            raise ServerError(done.stdout)
        return done.stdout

    def turn(self, number, asks):
        """Transactions a second, and what was asked beside them."""
        asker = Asker(self) if asks else None
        if asker:
            asker.start()
        out = self.pgbench(["-n", "-M", "prepared", "-c", CLIENTS, "-j", 1, "-T", SECONDS, f"--random-seed={number + 1}"])
        if asker:
            asker.stop.set()
            asker.join()
            if asker.problem:
                raise asker.problem
        return float(re.search(r"tps = ([\d.]+)", out)[1]), asker

    def settled(self, seconds=120):
        """How long it takes until 95 % of the blocks are read from copies once nobody writes."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if float(self.server.sql(LOOSE.format(self.name), DATABASE)) <= 0.05:
                return time.monotonic() - began
            time.sleep(0.5)
        return float("inf")


def main(stage):
    settings = {**kit.SERVER_SETTINGS, "jit": "off", "autovacuum": "on", "colonnade.packing": "on", "colonnade.packing_naptime": NAPTIME}
    server = fresh_server("htap", stage, settings)
    try:
        server.create_database(DATABASE)
        kit.say(f"loading {', '.join(ARMS)}, scale {SCALE}")
        arms = [Arm(server, name) for name in ARMS]
        report = {arm.name: {"alone_tps": [], "tps": [], "answers_ms": [], "loose": []} for arm in arms}
        for number in range(RUNS):
            for arm in arms:
                figures = report[arm.name]
                figures["alone_tps"].append(arm.turn(2 * number, asks=False)[0])
                tps, asker = arm.turn(2 * number + 1, asks=True)
                figures["tps"].append(tps)
                figures["answers_ms"].append(asker.times)
                figures["loose"].append(asker.loose)
                kit.say(f"{arm.name}: {figures['alone_tps'][-1]:.0f} tps alone, {tps:.0f} beside {len(asker.times)} answers, all equal")
        table, short = [], []
        for arm in arms:
            figures = report[arm.name]
            times = sorted(ms for run in figures["answers_ms"] for ms in run)
            loose = [share for run in figures["loose"] for _, share in run]
            is_index = arm.name == "columnstore"
            figures["settled_s"] = arm.settled() if is_index else None
            table.append([arm.name, f"{statistics.median(figures['alone_tps']):.0f}", f"{statistics.median(figures['tps']):.0f}", str(len(times)),
                          f"{statistics.median(times):.1f}", f"{times[int(len(times) * 0.95)]:.1f}",
                          f"{max(loose):.2f}, {loose[-1]:.2f}" if is_index else "", f"{figures['settled_s']:.0f} s" if is_index else ""])
        if {"heap", "columnstore"} <= set(report):
            ratio = statistics.median(ours / heap for ours, heap in zip(report["columnstore"]["alone_tps"], report["heap"]["alone_tps"]))
            report["throughput"] = ratio
            if ratio < BOUND:
                short.append(f"transactions alone beside columnstore indexes: {ratio:.2f} of heap's, less than {BOUND:.2f}")
        kit.report("htap", [f"{CLIENTS} clients, {SECONDS} s", "tps alone", "tps", "answers", "median ms", "95 % ms", "no copy: most, last", "95 % copied after"], table, report, short)
    finally:
        server.destroy()
    return 0


if __name__ == "__main__":
    run_program(main)
