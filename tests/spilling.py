"""Statements whose state is many times work_mem stay within a stated memory, give heap's answers and leave no
file behind.

Aggregates of very many groups, joins of every kind with duplicates and one key that has a large part of the
rows, sorts, windows, DISTINCT, set operations, grouping sets and CTEs, with work_mem = 1MB, in one thread and
in two. What the backend's private memory grows by is sampled while each statement runs, once in vectorised
operators and once in the server's own executor over a heap table of the same rows. Temporary files have to be
in the server's directory, be counted in pg_stat_database, respect temp_file_limit and be gone afterwards.
Times are CPU time of the backend and its threads. ROWS=10000000 is the long form (make test-spilling), with
the optimised build, in which no statement in one thread may take longer than heap's; ONLY='name name' runs
some of the statements, COMPARE=0 leaves heap out.
"""

import os
import sys
import threading
import time
from pathlib import Path

from harness.race import process_cpu
from harness.server import fresh_server
from harness.session import SqlError

# Memory and times are measured.
ALONE = True
LONG = os.environ.get("COLONNADE_LONG") == "1"
ROWS = int(os.environ.get("ROWS") or (10_000_000 if LONG else 60_000))
ONLY = os.environ.get("ONLY", "").split()
COMPARE = os.environ.get("COMPARE", "1") == "1"
DATABASE = "spilling"
# What a statement may add to the backend's private memory, in MB: operators of a statement times their
# memory, decoded chunks, files' buffers.
BOUND = int(os.environ.get("BOUND") or (64 if ROWS > 1_000_000 else 24))
# How many times of heap's CPU time a statement may take: what other work on the machine makes of equal times.
TOLERANCE = 1.1

SETUP = f"""
CREATE TABLE big (id int, k int, skew int, s text, n numeric(12, 2), d double precision, f int) USING {{method}};
INSERT INTO big SELECT g, (g::bigint * 7919 % {ROWS})::int, CASE WHEN g % 3 = 0 THEN 0 ELSE g END, md5((g % ({ROWS} / 2))::text), g % 100000 / 100.0, (g::bigint * 31 % {ROWS}) / 7.0, g % 7
  FROM generate_series(1, {ROWS}) g;
CREATE TABLE few (skew int, t text) USING {{method}};
INSERT INTO few SELECT CASE WHEN g <= 2 THEN 0 ELSE g * 3 + 1 END, md5(g::text) FROM generate_series(1, {ROWS} / 10) g;
ANALYZE big;
ANALYZE few;
"""

# Name and query. Its rows are compared by number and a sum over them that does not depend on their order;
# those of an ordered query by their order, too.
STATEMENTS = {
    "aggregate": "SELECT s, k % 2 AS p, count(*) AS c, sum(n) AS t, avg(d) AS a, min(id) AS l FROM big GROUP BY s, k % 2",
    "aggregate of integers": "SELECT k, count(*) AS c, sum(n) AS t FROM big GROUP BY k",
    "distinct aggregates": "SELECT k / 4 AS q, count(DISTINCT s) AS c, count(DISTINCT id) AS i, sum(DISTINCT n) AS t FROM big GROUP BY k / 4",
    "one distinct": "SELECT count(DISTINCT s) AS c, count(DISTINCT id) AS i FROM big",
    "string_agg": "SELECT k / 4 AS q, string_agg(s, ',' ORDER BY id) AS t FROM big GROUP BY k / 4",
    "string_agg of few groups": "SELECT f, md5(string_agg(substr(s, 1, 8), ',' ORDER BY id)) AS t FROM big WHERE id % 8 = 0 GROUP BY f",
    "percentiles": "SELECT k / 4 AS q, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) AS m, percentile_cont(0.9) WITHIN GROUP (ORDER BY d) AS c FROM big GROUP BY k / 4",
    "percentiles of few groups": "SELECT f, percentile_disc(0.5) WITHIN GROUP (ORDER BY s) AS m, percentile_cont(0.9) WITHIN GROUP (ORDER BY d) AS c FROM big GROUP BY f",
    "inner join": "SELECT a.id, b.id AS j, b.s FROM big a JOIN big b ON a.k = b.k",
    "join with duplicates": "SELECT a.id, b.id AS j FROM big a JOIN big b ON a.s = b.s",
    "join with skew": "SELECT a.t, b.id, b.s FROM few a JOIN big b ON a.skew = b.skew",
    "left join with skew": "SELECT a.t, b.id, b.s FROM few a LEFT JOIN big b ON a.skew = b.skew",
    "left join": "SELECT a.id, b.id AS j FROM big a LEFT JOIN big b ON a.id = b.k * 2",
    "full join": "SELECT a.id, b.id AS j, b.s FROM big a FULL JOIN big b ON a.id = b.k * 2",
    "semi join": "SELECT id, s FROM big a WHERE EXISTS (SELECT FROM big b WHERE b.id = a.k * 2)",
    "anti join": "SELECT id, s FROM big a WHERE NOT EXISTS (SELECT FROM big b WHERE b.id = a.k * 2)",
    "sort": "SELECT id, s, n FROM big ORDER BY s, id",
    "sort of integers": "SELECT id, k FROM big ORDER BY k",
    "window": "SELECT id, sum(n) OVER (PARTITION BY s ORDER BY id) AS t, row_number() OVER (PARTITION BY s ORDER BY id) AS r FROM big",
    "window of one partition": "SELECT id, sum(n) OVER (ORDER BY id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS t, lag(s) OVER (ORDER BY id) AS l FROM big",
    "window of ranges": "SELECT id, f, avg(d) OVER (PARTITION BY f ORDER BY id RANGE BETWEEN 20 PRECEDING AND 20 FOLLOWING) AS t FROM big",
    "distinct": "SELECT DISTINCT s, k % 2 AS p FROM big",
    "union": "SELECT s, f FROM big UNION SELECT s, f + 1 FROM big",
    "intersect": "SELECT k, s FROM big INTERSECT SELECT id, s FROM big",
    "except": "SELECT k FROM big EXCEPT SELECT id * 2 FROM big",
    "grouping sets": "SELECT k / 4 AS q, s, count(*) AS c, sum(n) AS t FROM big GROUP BY GROUPING SETS ((k / 4), (s), ())",
    "materialized CTE": "WITH m AS MATERIALIZED (SELECT id, s, n FROM big) SELECT s, count(*) AS c, sum(n) AS t FROM m GROUP BY s",
    "limit and offset": f"SELECT id, s FROM big ORDER BY d, id OFFSET {ROWS // 2} LIMIT {ROWS // 4}",
}
DIGEST = "SELECT count(*), sum(hashtextextended(x::text, 0)) FROM ({query}) x"
ORDERED = "SELECT count(*), sum(hashtextextended(x::text, o)) FROM (SELECT x, row_number() OVER () AS o FROM ({query}) x) y"


class Failures(list):
    """What was wrong, said as soon as it is found: a run takes an hour, and what comes later must not hide
    it."""

    def append(self, fault):
        super().append(fault)
        print(f"not ok spilling: {fault}", flush=True)


class Watch(threading.Thread):
    """Samples a process's private memory: the most there was."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.status = Path(f"/proc/{pid}/status")
        self.start_kb = self.memory()
        self.peak_kb, self.over = self.start_kb, False
        self.start()

    def memory(self):
        return next(int(line.split()[1]) for line in self.status.read_text().splitlines() if line.startswith("RssAnon:"))

    def run(self):
        while not self.over:
            self.peak_kb = max(self.peak_kb, self.memory())
            time.sleep(0.002)

    def end(self):
        self.peak_kb = max(self.peak_kb, self.memory())
        self.over = True
        self.join()
        return (self.peak_kb - self.start_kb) / 1024


def temporary_files(folder):
    return list(folder.iterdir()) if folder.exists() else []


class Arm:
    """One way to run the statements, a fresh backend for each, so that memory that an earlier one freed does
    not hide what this one takes."""

    def __init__(self, server, schema, settings):
        self.server, self.schema, self.settings = server, schema, settings
        self.folder = server.data / "base/pgsql_tmp"

    def session(self, more=""):
        session = self.server.session(DATABASE)
        session.run(f"SET search_path = {self.schema}; SET work_mem = '1MB'; SET colonnade.vectorised_min_rows = 0; {self.settings}; {more}")
        return session

    def ask(self, query):
        """The digest of a query's rows, what memory grew by in MB, bytes written to files, seconds of CPU
        time, the plan."""
        text = (ORDERED if "ORDER BY s, id" in query else DIGEST).format(query=query)
        with self.session() as session:
            # What a first statement loads (catalogs, code) is not this one's.
            session.run(DIGEST.format(query="SELECT id FROM big WHERE id < 10 ORDER BY s"))
            plan = "\n".join(row[0] for row in session.run(f"EXPLAIN {text}").rows)
            written = counted_bytes(session)
            watch = Watch(session.pid)
            before = process_cpu(session.pid)
            try:
                answer = session.run(text).rows
            finally:
                grown = watch.end()
            taken = process_cpu(session.pid) - before
            return answer, grown, counted_bytes(session) - written, taken, plan


def counted_bytes(session):
    """Bytes of all files of the database so far, those of the session's last statement included."""
    session.run("SELECT pg_stat_force_next_flush()")
    return int(session.run(f"SELECT temp_bytes FROM pg_stat_database WHERE datname = '{DATABASE}'").rows[0][0])


def check_files(server, arm, failed):
    """Files are counted, limited and removed, also where the statement fails or is terminated in the middle.
    """
    query = DIGEST.format(query=STATEMENTS["aggregate"])
    with arm.session() as session:
        before = counted_bytes(session)
        session.run(query)
        counted = counted_bytes(session) - before
    if counted < ROWS * 10:
        failed.append(f"files are not counted: temp_bytes grew by {counted}")
    with arm.session("SET temp_file_limit = '1MB'") as session:
        try:
            session.run(query)
            failed.append("temp_file_limit has no effect")
        except SqlError as problem:
            if "53400" not in str(problem) or "temp_file_limit" not in str(problem):
                failed.append(f"temp_file_limit: {problem}")
    session = arm.session()
    session.send(query)
    until = time.monotonic() + 60
    while not temporary_files(arm.folder) and time.monotonic() < until:
        time.sleep(0.002)
    if not temporary_files(arm.folder):
        failed.append(f"the premise does not hold: no file in {arm.folder}")
    server.sql(f"SELECT pg_terminate_backend({session.pid})")
    until = time.monotonic() + 10
    while temporary_files(arm.folder) and time.monotonic() < until:
        time.sleep(0.01)
    session.close()
    if temporary_files(arm.folder):
        failed.append(f"files stay behind a terminated backend: {temporary_files(arm.folder)}")


def main():
    server = fresh_server("spilling", os.environ["COLONNADE_STAGE"],
                          {"autovacuum": "off", "max_wal_size": "8GB", "wal_level": "minimal", "max_wal_senders": "0", "max_parallel_workers_per_gather": "0"})
    failed, passed = Failures(), 0
    try:
        server.create_database(DATABASE)
        for method in ("heap", "colcompress"):
            with server.session(DATABASE) as session:
                session.run(f"CREATE SCHEMA {method}; SET search_path = {method}; SET colonnade.stripe_threshold_rows = 0")
                for statement in SETUP.format(method=method).strip().split(";\n"):
                    session.run(statement)
        heap = Arm(server, "heap", "SET colonnade.enable_vectorised = off")
        arms = {"one thread": Arm(server, "colcompress", "SET max_parallel_workers_per_gather = 0"),
                "two threads": Arm(server, "colcompress", "SET max_parallel_workers_per_gather = 1")}
        print(f"{'':28}{'heap MB':>9}{'s':>7}" + "".join(f"{name:>14} MB{'s':>7}{'files MB':>9}" for name in arms), flush=True)
        for name, query in STATEMENTS.items():
            if ONLY and name not in ONLY and name.replace(" ", "_") not in ONLY:
                continue
            line = f"{name:28}"
            expected = None
            if COMPARE:
                expected, grown, _, heaps, _ = heap.ask(query)
                line += f"{grown:9.1f}{heaps:7.1f}"
            else:
                line += f"{'':16}"
            for threads, arm in arms.items():
                try:
                    answer, grown, in_files, seconds, plan = arm.ask(query)
                except SqlError as problem:
                    failed.append(f"{name}, {threads}: {problem}")
                    continue
                line += f"{grown:17.1f}{seconds:7.1f}{in_files / 2**20:9.1f}"
                if "Operators: " not in plan:
                    failed.append(f"the premise does not hold: {name} is not vectorised\n{plan}")
                if expected is not None and answer != expected:
                    failed.append(f"{name}, {threads}: {answer} and not {expected}")
                if LONG and COMPARE and threads == "one thread" and seconds > heaps * TOLERANCE:
                    failed.append(f"{name}: {seconds:.1f} s where heap takes {heaps:.1f} s")
                if grown > BOUND:
                    failed.append(f"{name}, {threads}: memory grew by {grown:.1f} MB, more than {BOUND}")
                if ROWS > 1_000_000 and in_files == 0:
                    failed.append(f"the premise does not hold: {name}, {threads} did not spill")
                passed += 1
                if temporary_files(arm.folder):
                    failed.append(f"{name}, {threads}: files stay behind: {temporary_files(arm.folder)}")
            print(line, flush=True)
        if not ONLY:
            check_files(server, arms["two threads"], failed)
    finally:
        server.destroy()
    if not failed:
        print(f"ok spilling: {passed} runs of {ROWS} rows")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
