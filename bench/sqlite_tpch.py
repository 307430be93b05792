"""TPC-H in SQLite: columnar_query on columnar tables beside DuckDB, answers compared.

Called by scripts/bench.sh sqlite-tpch. SF (1) is the scale factor, RUNS (5) the timed runs of each query
after one to warm up, QUERIES="T1 T6" asks only those, THREADS (1) is for both, PLAIN=1 loads plain tables as
well and compares with these. Both get the same rows in the same order. Times are CPU time of this process and
its threads with one thread, else the clock's; the engines take turns. Databases are kept in target/bench and
made anew with FRESH=1.
"""

import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

import apsw
import duckdb

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from harness import sqlite_tpch  # noqa: E402

SCALE = os.environ.get("SF", "1")
RUNS = int(os.environ.get("RUNS", "5"))
ONLY = os.environ.get("QUERIES", "").split()
THREADS = int(os.environ.get("THREADS", "1"))
PLAIN = os.environ.get("PLAIN") == "1"
LIBRARY = sys.argv[1]
OUT = Path(sys.argv[2])
FOLDER = OUT.parent / f"sqlite-tpch-{SCALE}"
BATCH = 50_000
INDEXES = ("lineitem(l_orderkey)", "lineitem(l_partkey)", "orders(o_custkey)", "orders(o_orderkey)", "partsupp(ps_partkey)", "part(p_partkey)", "supplier(s_suppkey)", "customer(c_custkey)")


def sqlite(path):
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(LIBRARY)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000", "mmap_size = 4000000000"):
        db.execute(f"PRAGMA {pragma}")
    return db


def load(path, table_sql):
    """The rows of all tables, into new tables of SQLite."""
    db = sqlite(path)
    for table, definition in sqlite_tpch.definitions().items():
        db.execute(table_sql.format(table=table, definition=definition))
        db.execute("BEGIN")
        batch = []
        for row in sqlite_tpch.rows(table, SCALE):
            batch.append(row)
            if len(batch) == BATCH:
                db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", batch)
                batch = []
        if batch:
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(batch[0]))})", batch)
        db.execute("COMMIT")
    return db


def load_duckdb(path):
    db = duckdb.connect(str(path))
    db.execute((sqlite_tpch.SQL / "tpch.sql").read_text())
    for table in sqlite_tpch.TABLES:
        file = FOLDER / f"{table}.csv"
        with open(file, "w", encoding="utf-8") as out:
            sqlite_tpch.write_csv(table, SCALE, out)
        db.execute(f"COPY {table} FROM '{file}' (FORMAT csv, HEADER)")
        file.unlink()
    db.execute("CHECKPOINT")
    return db


def kept(name, make, opened):
    path = FOLDER / f"{name}.db"
    if path.exists() and os.environ.get("FRESH") != "1":
        return opened(path)
    path.unlink(missing_ok=True)
    print(f"loading {name}", flush=True)
    started = time.process_time()
    db = make(path)
    print(f"  {time.process_time() - started:.0f} s of CPU time, {path.stat().st_size / 1e6:.0f} MB", flush=True)
    return db


def plain(path):
    db = load(path, "CREATE TABLE {table}({definition})")
    for index in INDEXES:
        db.execute(f"CREATE INDEX {index.replace('(', '_').replace(')', '')} ON {index}")
    db.execute("ANALYZE")
    return db


def same(a, b):
    if a is None or b is None or isinstance(a, str):
        return a == b
    return abs(float(a) - float(b)) <= 1e-9 * max(1, abs(float(a)))


def value_of(value):
    """DuckDB pads char(n) in no way, and dates are text in SQLite."""
    return value if value is None or isinstance(value, (int, float, str)) else (str(value) if hasattr(value, "year") else float(value))


def expect_same(name, expected, got):
    def key(row):
        return [f"{value:.5g}" if isinstance(value, (int, float)) else str(value) for value in row]
    expected = sorted(([value_of(value) for value in row] for row in expected), key=key)
    got = sorted(([value_of(value) for value in row] for row in got), key=key)
    if len(expected) != len(got) or not all(all(map(same, a, b)) for a, b in zip(expected, got)):
        sys.exit(f"{name}: answers differ: {got[:2]} and {expected[:2]}, {len(got)} and {len(expected)} rows")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    columnar = kept("columnar", lambda path: load(path, "CREATE VIRTUAL TABLE {table} USING columnar({definition})"), sqlite)
    duck = kept("duckdb", load_duckdb, lambda path: duckdb.connect(str(path)))
    rows = kept("plain", plain, sqlite) if PLAIN else None
    duck.execute(f"SET threads = {THREADS}")
    columnar.execute(f"SELECT columnar_threads({THREADS})").fetchall()
    clock = time.process_time if THREADS == 1 else time.perf_counter
    sizes = {name: (FOLDER / f"{name}.db").stat().st_size for name in ("columnar", "duckdb")}
    print(f"TPC-H SF {SCALE}, SQLite {apsw.sqlitelibversion()}, DuckDB {duckdb.__version__}, {THREADS} threads, {'CPU' if THREADS == 1 else 'wall'} time; "
          f"columnar {sizes['columnar'] / 1e6:.0f} MB, DuckDB {sizes['duckdb'] / 1e6:.0f} MB")
    print(f"  {'ms':4} {'columnar':>10} {'duckdb':>10} {'ratio':>7}")
    from harness import kit
    originals = {query.name: query.text.replace(":FRACTION", f"{0.0001 / float(SCALE):.10f}") for query in kit.read_queries(kit.SQL / "tpch_queries.sql")}
    results, ratios = {}, []
    for name, text, _ordered in sqlite_tpch.queries(SCALE):
        if ONLY and name not in ONLY:
            continue
        columnar.execute("DROP TABLE IF EXISTS temp.q")
        columnar.execute(f"CREATE VIRTUAL TABLE temp.q USING columnar_query({text})")
        ways = {"columnar": lambda: columnar.execute("SELECT * FROM q").fetchall(), "duckdb": lambda: duck.execute(originals[name]).fetchall()}
        answers = {way: run() for way, run in ways.items()}
        expect_same(name, answers["duckdb"], answers["columnar"])
        if rows:
            expect_same(name, rows.execute(text).fetchall(), answers["columnar"])
        times = {way: [] for way in ways}
        for _ in range(RUNS):
            for way, run in ways.items():
                started = clock()
                run()
                times[way].append((clock() - started) * 1000)
        median = {way: statistics.median(values) for way, values in times.items()}
        ratio = median["columnar"] / median["duckdb"]
        ratios.append(ratio)
        print(f"  {name:4} {median['columnar']:10.1f} {median['duckdb']:10.1f} {ratio:7.2f}", flush=True)
        results[name] = {"times_ms": times, "median_ms": median}
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"  geometric mean {mean:.2f}")
    drawn = {name: {**{engine: {"wall_ms": one["times_ms"][way]} for engine, way in (("duckdb", "duckdb"), ("columnar_query", "columnar"))}, "equal": True} for name, one in results.items()}
    modes = {f"{THREADS} threads": {"questions": drawn, "geometric_means": {"all, to duckdb": mean}}}
    OUT.write_text(json.dumps({"suite": f"sqlite, TPC-H SF {SCALE}", "engines": ["duckdb", "columnar_query"], "modes": modes, "scale": SCALE, "threads": THREADS, "bytes": sizes, "questions": results, "mean": mean}, indent=1))


if __name__ == "__main__":
    main()
