"""Analytic questions beside transactions, on heap, on heap with columnstore indexes of all columns, and on
colcompress.

Called by scripts/bench.sh htap. WORKLOADS ("balances ch") are pgbench's TPC-B beside the sums of its balances
(htap_balances.py) and TPC-C's transactions beside CH-benCHmark's 22 questions (htap_ch.py). The arms (ARMS)
take turns, RUNS (3) times, SECONDS (60) each: first the transactions alone, then with one session that asks
beside them. CLIENTS (8) is pgbench's. Answers are compared as the workloads say; one that differs ends the
benchmark. The background does what it does by default, in rounds every NAPTIME (30) seconds.

Printed are medians over the runs: transactions a second alone and beside the questions, how long an answer
takes (median and 95th percentile; of several questions the geometric mean), and for columnstore indexes the
share of blocks without a copy at its highest and at the end, and how long it takes then until 95 % have one.
The last turn of the indexes is shown over time. At the end rows are only inserted, and the time is taken
until 95 % of their table's blocks have a copy. The JSON has every answer's time.
"""

import os
import re
import statistics
import subprocess
import threading
import time

import htap_balances
import htap_ch
from harness import kit
from harness.race import geometric_mean
from harness.server import ServerError, as_server_user, clean_environment, fresh_server, run_program

WORKLOADS = {workload.name: workload for workload in (htap_balances.Balances, htap_ch.Ch)}
CHOSEN = os.environ.get("WORKLOADS", " ".join(WORKLOADS)).split()
RUNS = int(os.environ.get("RUNS", "3"))
SECONDS = int(os.environ.get("SECONDS", "60"))
CLIENTS = int(os.environ.get("CLIENTS", "8"))
NAPTIME = os.environ.get("NAPTIME", "30")
ARMS = os.environ.get("ARMS", "heap columnstore colcompress").split()
DATABASE = "bench"
SHARES = ("SELECT coalesce(sum(not_visible_blocks + not_copied_blocks)::float8 / nullif(sum(heap_blocks), 0), 0),"
          " coalesce(sum(checked_blocks)::float8 / nullif(sum(heap_blocks), 0), 0) FROM engine.columnstore_indexes"
          " WHERE table_name IN (SELECT oid FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relname ~ '{table}')")
SLICES = 10
COPIED = 0.95
WAIT = 180


class Asker(threading.Thread):
    """Asks again and again, and looks now and then how many blocks have no copy."""

    def __init__(self, arm):
        super().__init__(daemon=True)
        self.arm, self.stop, self.problem = arm, threading.Event(), None
        # Of answers: second, question, milliseconds. Of looks: second, share without a copy, share checked.
        self.times, self.looks = [], []

    def run(self):
        try:
            with self.arm.server.session(DATABASE) as session, self.arm.server.session(DATABASE) as looks:
                session.run(f"SET search_path = {self.arm.schema}")
                began, looked, number = time.monotonic(), 0.0, 0
                while not self.stop.is_set():
                    name, milliseconds = self.arm.workload.ask(session, self.arm.name, number)
                    self.times.append((time.monotonic() - began, name, milliseconds))
                    number += 1
                    if time.monotonic() - looked > 2:
                        looked = time.monotonic()
                        self.looks.append((looked - began, *self.arm.shares(looks)))
        except Exception as error:
            self.problem = error


class Arm:
    """One schema of a workload's tables."""

    def __init__(self, server, workload, name):
        self.server, self.workload, self.name, self.schema = server, workload, name, f"{workload.name}_{name}"
        self.method = "colcompress" if name == "colcompress" else "heap"
        server.sql(f"CREATE SCHEMA {self.schema}", DATABASE)
        workload.load(self)
        for table in workload.tables:
            if name == "columnstore":
                server.sql(f"SELECT engine.columnstore_create('{self.schema}.{table}')", DATABASE)
            server.sql(f"VACUUM ANALYZE {self.schema}.{table}", DATABASE)

    def sql(self, text):
        return self.server.sql(f"SET search_path = {self.schema}; SET default_table_access_method = {self.method}; {text}", DATABASE)

    def pgbench(self, arguments):
        command = [self.server.bindir / "pgbench", "-h", self.server.socket_dir, "-p", self.server.port, "-U", self.server.superuser, *arguments, DATABASE]
        options = f"-c search_path={self.schema} -c default_table_access_method={self.method} -c synchronous_commit=off"
        done = subprocess.run(list(map(str, as_server_user(command))), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**clean_environment(), "PGOPTIONS": options}, cwd="/tmp")
        if done.returncode != 0 or "aborted" in done.stdout:
            raise ServerError(done.stdout)
        return done.stdout

    def turn(self, number, asks):
        """Transactions a second, and what was asked beside them."""
        asker = Asker(self) if asks else None
        if asker:
            asker.start()
        out = self.pgbench(["-n", "-M", "prepared", "-c", CLIENTS, "-j", 1, "-T", SECONDS, f"--random-seed={number + 1}", *self.workload.transactions])
        if asker:
            asker.stop.set()
            asker.join()
            if asker.problem:
                raise asker.problem
        return float(re.search(r"tps = ([\d.]+)", out)[1]), asker

    def shares(self, session=None, table=""):
        """The shares of blocks without a copy and of checked ones, of all tables or of one."""
        text = SHARES.format(schema=self.schema, table=f"^{table}$" if table else "")
        row = session.run(text).rows[0] if session else self.server.sql(text, DATABASE).split("|")
        return tuple(map(float, row))

    def settled(self, table=""):
        """How many seconds it takes until 95 % of the blocks have a copy once nobody writes."""
        began = time.monotonic()
        while time.monotonic() - began < WAIT:
            if self.shares(table=table)[0] <= 1 - COPIED:
                return time.monotonic() - began
            time.sleep(0.5)
        return float("inf")


def by_question(turns):
    """Milliseconds of the answers to each question."""
    found = {}
    for turn in turns:
        for _, name, milliseconds in turn["times"]:
            found.setdefault(name, []).append(milliseconds)
    return found


def latency(turns):
    """Median and 95th percentile in milliseconds; of several questions the geometric means."""
    ordered = [sorted(times) for times in by_question(turns).values()]
    return tuple(geometric_mean([times[min(int(len(times) * share), len(times) - 1)] for times in ordered]) for share in (0.5, 0.95))


def over_time(turn):
    """The last turn in slices: answers to their question's median, and the shares of blocks."""
    medians = {name: statistics.median(times) for name, times in by_question([turn]).items()}
    width, rows = SECONDS / SLICES, []
    for slice_number in range(SLICES):
        begin, end = slice_number * width, (slice_number + 1) * width
        answers = [ms / medians[name] for at, name, ms in turn["times"] if begin <= at < end]
        looks = [look for look in turn["looks"] if begin <= look[0] < end]
        if answers and looks:
            rows.append([f"{begin:.0f} to {end:.0f} s", len(answers), f"{geometric_mean(answers):.2f}", f"{looks[-1][1]:.3f}", f"{looks[-1][2]:.3f}"])
    kit.print_table(["columnstore, last turn", "answers", "to their medians", "no copy", "checked"], rows)


def run(server, workload):
    """All arms of a workload in turns."""
    kit.say(f"{workload.name}: loading {', '.join(ARMS)}, scale {workload.scale}")
    arms = [Arm(server, workload, name) for name in ARMS]
    report = {arm.name: {"alone_tps": [], "tps": [], "turns": []} for arm in arms}
    for number in range(RUNS):
        for arm in arms:
            figures = report[arm.name]
            figures["alone_tps"].append(arm.turn(2 * number, asks=False)[0])
            tps, asker = arm.turn(2 * number + 1, asks=True)
            figures["tps"].append(tps)
            figures["turns"].append({"times": asker.times, "looks": asker.looks})
            kit.say(f"{arm.name}: {figures['alone_tps'][-1]:.0f} tps alone, {tps:.0f} beside {len(asker.times)} answers, {workload.compared(arm.name)}")
    table, short = [], []
    for arm in arms:
        figures, indexed = report[arm.name], arm.name == "columnstore"
        figures["median_ms"], figures["late_ms"] = latency(figures["turns"])
        looks = [look for turn in figures["turns"] for look in turn["looks"]]
        figures["settled_s"] = arm.settled() if indexed else None
        table.append([arm.name, f"{statistics.median(figures['alone_tps']):.0f}", f"{statistics.median(figures['tps']):.0f}",
                      str(sum(len(turn["times"]) for turn in figures["turns"])), f"{figures['median_ms']:.1f}", f"{figures['late_ms']:.1f}",
                      f"{max(share for _, share, _ in looks):.2f}, {looks[-1][1]:.2f}" if indexed else "", f"{figures['settled_s']:.0f} s" if indexed else ""])
    if {"heap", "columnstore"} <= set(report):
        ratio = statistics.median(ours / heap for ours, heap in zip(report["columnstore"]["alone_tps"], report["heap"]["alone_tps"]))
        report["throughput"] = ratio
        kit.say(f"transactions alone beside columnstore indexes: {ratio:.3f} of heap's")
        if ratio < workload.bound:
            short.append(f"transactions alone beside columnstore indexes: {ratio:.2f} of heap's, less than {workload.bound:.2f}")
    for arm in arms:
        if arm.name == "columnstore":
            over_time(report[arm.name]["turns"][-1])
            arm.sql(workload.insert)
            report["inserted_settled_s"] = arm.settled(workload.inserted)
            kit.say(f"rows that were only inserted: {COPIED:.0%} of {workload.inserted} copied after {report['inserted_settled_s']:.0f} s")
            if report["inserted_settled_s"] > 60:
                short.append(f"95 % of rows that were only inserted are copied after {report['inserted_settled_s']:.0f} s, more than 60")
    kit.report(f"htap-{workload.name}", [f"{workload.name}: {CLIENTS} clients, {SECONDS} s", "tps alone", "tps", "answers", "median ms", "95 % ms", "no copy: most, last", "95 % copied after"], table, report, short)


def main(stage):
    settings = {**kit.SERVER_SETTINGS, "jit": "off", "autovacuum": "on", "colonnade.packing": "on", "colonnade.packing_naptime": NAPTIME}
    server = fresh_server("htap", stage, settings)
    try:
        server.create_database(DATABASE)
        for name in CHOSEN:
            run(server, WORKLOADS[name](server.base))
    finally:
        server.destroy()
    return 0


if __name__ == "__main__":
    run_program(main)
