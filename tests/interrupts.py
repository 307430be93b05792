"""Statements that are cancelled, timed out, terminated or fail at random moments end at once and leave
nothing behind.

Scans, aggregates, joins, sorts, spills, loads and index builds over columnar tables, in two threads. Latency
is from the request to the client's answer; as a busy machine delays everybody, the same statements on heap
tables take turns, and the bound is BOUND or three times heap's worst. What does not depend on others is the
CPU time that the backend still takes after a request to cancel: that has the bound in each of its two
threads. At the end: no thread, file descriptor, temporary file, lock or counted thread too many, no leak in
the server's log, and memory that no longer grows. Short in make test; ROUNDS=1000 of them are ended early in
its long form.
"""

import os
import random
import sys
import time
from pathlib import Path

from harness.server import fresh_server
from harness.session import SqlError

# Latency is measured.
ALONE = True
ROUNDS = int(os.environ.get("ROUNDS") or (1000 if os.environ.get("COLONNADE_LONG") == "1" else 30))
SEED = int(os.environ.get("SEED") or 20261122)
ROWS = int(os.environ.get("ROWS") or 50_000)
BOUND = 0.1
GROWTH_KB = 24 * 1024
DATABASE = "interrupts"
SMALL = "SET work_mem = '1MB'; SET hash_mem_multiplier = 1"
LARGE = "SET work_mem = '128MB'; SET hash_mem_multiplier = 1"

SETUP = f"""
CREATE TABLE big (id int, k int, s text, n numeric(12, 2), d double precision) USING {{method}};
INSERT INTO big SELECT g, (g::bigint * 7919) % 100000, md5((g % 150000)::text), g % 10000 / 100.0, g / 7.0 FROM generate_series(1, {ROWS}) g;
CREATE TABLE sink (LIKE big) USING {{method}};
ANALYZE big;
COPY big TO '{{file}}';
"""

# Name, settings, statement. Few rows come back: what is asked is how the server works, not how psql reads.
STATEMENTS = [
    ("scan", LARGE, "SELECT count(*) FROM big WHERE s LIKE '%zz%' OR s LIKE '%a%b%c%d%'"),
    ("aggregate", LARGE, "SELECT max(a) FROM (SELECT k % 1000, sum(n), avg(d) AS a FROM big GROUP BY 1) x"),
    ("aggregate that spills", SMALL, "SELECT max(c) FROM (SELECT s, k, count(*) AS c FROM big GROUP BY s, k) x"),
    ("join", LARGE, "SELECT count(*), sum(b.n) FROM big a JOIN big b ON a.k = b.k"),
    ("join that spills", SMALL, "SELECT count(*), sum(b.n) FROM big a JOIN big b ON a.s = b.s"),
    ("sort", LARGE, "SELECT * FROM (SELECT id, s FROM big ORDER BY s, id) x OFFSET {last}"),
    ("sort that spills", SMALL, "SELECT * FROM (SELECT * FROM big ORDER BY s, id) x OFFSET {last}"),
    ("distinct", SMALL, "SELECT count(DISTINCT s), count(DISTINCT k) FROM big"),
    ("percentile", LARGE, "SELECT max(p) FROM (SELECT k % 10, percentile_cont(0.9) WITHIN GROUP (ORDER BY d) AS p FROM big GROUP BY 1) x"),
    ("string_agg", LARGE, "SELECT max(length(t)) FROM (SELECT k % 3, string_agg(s, ',') AS t FROM big GROUP BY 1) x"),
    ("load", LARGE, "INSERT INTO sink SELECT * FROM big"),
    ("copy", LARGE, "COPY sink FROM '{file}'"),
    ("index", LARGE, "CREATE INDEX ON big (s)"),
    ("error", LARGE, "SELECT sum(1 / (id - {middle})) FROM big"),
    ("error in a join", LARGE, "SELECT sum(a.k / (b.id - {middle})) FROM big a JOIN big b USING (k)"),
]


class Arm:
    """One access method: a schema, a session, what was measured."""

    def __init__(self, server, method, file):
        self.server, self.method, self.file = server, method, file
        self.latencies = []
        self.worst = (0.0, "")
        self.fresh()
        self.run(f"CREATE SCHEMA {method}; SET search_path = {method}; SET colonnade.stripe_threshold_rows = 0")
        for statement in SETUP.format(method=method, file=file).strip().split(";\n"):
            self.run(statement)
        self.lengths = {}
        self.cpu = []

    def measure(self, name, settings, text):
        """Notes the seconds that a statement takes when nobody ends it; a moment is chosen within its first
        second."""
        self.run(settings)
        self.run("BEGIN")
        started = time.monotonic()
        try:
            self.run(self.text(text))
        except SqlError as problem:
            assert "error" in name, problem
        self.lengths[name] = min(time.monotonic() - started, 1.0)
        self.run("ROLLBACK")

    def text(self, statement):
        return statement.format(last=ROWS - 5, middle=ROWS // 2, file=self.file)

    def fresh(self):
        self.session = self.server.session(DATABASE)
        self.run(f"SET search_path = {self.method}; SET max_parallel_workers_per_gather = 1; SET colonnade.vectorised_min_rows = 0")

    def run(self, statement):
        return self.session.run(statement)

    def ask(self, admin, mode, name, settings, text, moment):
        """Sends one statement and ends it after a share of the time that it takes. Returns the seconds until
        it had ended, None if it was done before."""
        delay = moment * self.lengths[name]
        self.run(settings)
        self.run("BEGIN")
        timeout = max(1, int(delay * 1000))
        if mode == "timeout":
            self.run(f"SET LOCAL statement_timeout = {timeout}")
        started = time.monotonic()
        self.session.send(self.text(text))
        if mode == "timeout":
            requested = started + timeout / 1000
        elif mode == "error":
            requested = None
        else:
            time.sleep(delay)
            requested, cpu = time.monotonic(), self.session.cpu_seconds()
            admin.send(f"SELECT pg_{mode}_backend({self.session.pid})")
        ended = False
        try:
            self.session.wait()
        except SqlError as problem:
            ended = "57014" in str(problem) or "57P01" in str(problem) or "session ended" in str(problem)
            assert ended or "22012" in str(problem), f"{name}: {problem}"
        answered = time.monotonic()
        if not ended and "error" not in name:
            self.lengths[name] = min(answered - started, self.lengths[name])
        if mode == "cancel" and ended:
            self.cpu.append((self.session.cpu_seconds() - cpu, name))
        if mode in ("cancel", "terminate"):
            admin.wait()
        if mode == "terminate":
            gone = time.monotonic() + 10
            while Path(f"/proc/{self.session.pid}").exists():
                assert time.monotonic() < gone, f"{name}: the terminated backend is still there"
                time.sleep(0.002)
            self.session.close()
            self.fresh()
        else:
            self.quiet()
        if requested is None or not ended:
            return None
        latency = answered - requested
        self.latencies.append(latency)
        self.worst = max(self.worst, (latency, f"{mode} of {name} after {delay * 1000:.0f} ms"))
        return latency

    def quiet(self):
        """A cancel that came too late may hit the next statement."""
        while True:
            try:
                self.run("ROLLBACK")
                return
            except SqlError as problem:
                assert "57014" in str(problem), problem

    def footprint(self):
        """Private memory in kB, threads, file descriptors of the backend; locks that it holds."""
        status = Path(f"/proc/{self.session.pid}/status").read_text()
        memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))
        base = Path(f"/proc/{self.session.pid}")
        return memory, len(list((base / "task").iterdir())), len(list((base / "fd").iterdir()))


def temporary_files(server):
    return [path for folder in server.data.glob("base/pgsql_tmp") for path in folder.iterdir()]


def main():
    chance = random.Random(SEED)
    server = fresh_server("interrupts", os.environ["COLONNADE_STAGE"], {"autovacuum": "off", "max_wal_size": "4GB", "wal_level": "minimal", "max_wal_senders": "0"})
    failed = []
    try:
        server.create_database(DATABASE)
        admin = server.session(DATABASE)
        ours, heap = (Arm(server, method, server.base / f"{method}.copy") for method in ("colcompress", "heap"))
        plans = [ours.run(f"EXPLAIN {ours.text(text)}").rows for name, _, text in STATEMENTS if text.startswith("SELECT")]
        vectorised = sum("Vectorised" in str(plan) for plan in plans)
        if vectorised < len(plans) - 2:
            failed.append(f"the premise does not hold: {vectorised} of {len(plans)} statements are vectorised")
        # What stays and is only interrupted: here a leak would add up.
        keeper = Arm.__new__(Arm)
        keeper.__dict__.update(ours.__dict__)
        keeper.fresh()
        keeper.latencies, keeper.cpu, keeper.worst = [], [], (0.0, "")
        # Whose first run also opens the files and fills the caches that the session keeps.
        for arm in (keeper, heap):
            for name, settings, text in STATEMENTS:
                arm.measure(name, settings, text)
        early = None
        ended = 0
        number = 0
        while ended < ROUNDS and number < 4 * ROUNDS:
            number += 1
            name, settings, text = chance.choice(STATEMENTS)
            mode = "error" if name.startswith("error") and chance.random() < 0.5 else chance.choice(["cancel", "cancel", "timeout", "terminate"])
            moment = chance.random()
            arm = ours if mode == "terminate" else keeper
            ended += arm.ask(admin, mode, name, settings, text, moment) is not None
            if number % 4 == 0:
                heap.ask(admin, mode, name, settings, text, moment)
            if early is None and ended > ROUNDS // 3:
                early = keeper.footprint()
            if number % 100 == 0:
                print(f"{number} rounds, {ended} ended early, worst {max(ours.worst, keeper.worst)}, heap's worst {heap.worst}, footprint {keeper.footprint()}", flush=True)
        late = keeper.footprint()
        early = early or late
        worst = max(ours.worst, keeper.worst)
        latencies = sorted(ours.latencies + keeper.latencies)
        bound = max(BOUND, 3 * heap.worst[0])
        print(f"{number} rounds, {ended} ended early: median {latencies[len(latencies) // 2] * 1000:.1f} ms, 99 % {latencies[len(latencies) * 99 // 100] * 1000:.1f} ms, "
              f"worst {worst[0] * 1000:.1f} ms ({worst[1]}); heap's worst {heap.worst[0] * 1000:.1f} ms ({heap.worst[1]})")
        print(f"memory {early[0]} -> {late[0]} kB, threads {early[1]} -> {late[1]}, file descriptors {early[2]} -> {late[2]}")
        cpu = max(keeper.cpu, default=(0.0, "nothing"))
        print(f"CPU time after a request to cancel: worst {cpu[0] * 1000:.1f} ms ({cpu[1]}), heap's worst {max(heap.cpu, default=(0.0, ''))[0] * 1000:.1f} ms")
        if cpu[0] > 2 * BOUND:
            failed.append(f"{cpu[1]} took {cpu[0] * 1000:.0f} ms of CPU time after it was cancelled")
        if ended < ROUNDS:
            failed.append(f"the premise does not hold: only {ended} of {number} statements were ended early")
        if worst[0] > bound:
            failed.append(f"{worst[1]} took {worst[0] * 1000:.0f} ms")
        if late[0] > early[0] + GROWTH_KB:
            failed.append(f"memory grew from {early[0]} to {late[0]} kB")
        if late[1] > early[1]:
            failed.append(f"threads: {early[1]} and then {late[1]}")
        if late[2] > early[2] + 8:
            failed.append(f"file descriptors: {early[2]} and then {late[2]}")
        locks = admin.run(f"SELECT locktype, mode FROM pg_locks WHERE pid = {keeper.session.pid} AND locktype <> 'virtualxid'").rows
        if locks:
            failed.append(f"locks: {locks}")
        if temporary_files(server):
            failed.append(f"temporary files: {temporary_files(server)}")
        # Threads that were counted are free again: a query gets as many as it may have.
        plan = "\n".join(row[0] for row in keeper.run("EXPLAIN (ANALYZE, COSTS OFF) SELECT sum(n) FROM big").rows)
        if "Threads: 2" not in plan:
            failed.append(f"a query does not get its second thread:\n{plan}")
        for arm in (ours, heap):
            arm.session.close()
        keeper.session.close()
        log = server.log.read_text(errors="replace")
        for line in log.splitlines():
            if "leak" in line or "PANIC" in line or "terminated by signal" in line or " XX0" in line:
                failed.append(line)
    finally:
        server.destroy()
    for line in failed:
        print(f"not ok interrupts: {line}")
    if not failed:
        print(f"ok interrupts: {ended} statements ended early")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
