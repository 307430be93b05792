"""Columnar tables of SQLite beside plain tables and DuckDB, on the rows and questions of the seed document.

Called by scripts/bench.sh sqlite. The rows are those of sqlite-columnar's benchmark: nine integers, a real
and two integers that nobody asks for (ROWS, 1,000,000); WIDE=1 adds two texts of 256 bytes. All engines get
the same rows in the same order and are asked in turns, RUNS (7) times after one to warm up. Answers are
compared before times are printed: reals within 1e-9. Times are CPU time of this process and its threads
(DuckDB has one); a table has medians, the 95th percentile, the variance and a hash of the answer. Loads and
sizes come first.
"""

import hashlib
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import apsw
import duckdb
import pyarrow

ROWS = int(os.environ.get("ROWS", "1000000"))
RUNS = int(os.environ.get("RUNS", "7"))
LOADS = int(os.environ.get("LOADS", "5"))
WIDE = os.environ.get("WIDE") == "1"
ONLY = os.environ.get("QUERIES", "").split()
LIBRARY = sys.argv[1]
OUT = Path(sys.argv[2])

COLUMNS = ["ts", "id1", "id2", "id3", "id4", "id5", "id6", "v1", "v2", "v3", "cold0", "cold1"]
TYPES = {column: "REAL" if column == "v3" else "INTEGER" for column in COLUMNS}
# Numbers that look random and are the same for all.
NUMBERS = {"ts": "i", "id1": "i * 2654435761 % 100", "id2": "i * 2246822519 % 100", "id3": "i * 3266489917 % 10000",
           "id4": "i * 668265263 % 100", "id5": "i * 374761393 % 100000", "id6": "i % 7", "v1": "i * 2654435761 % 5 + 1",
           "v2": "i * 2246822519 % 15 + 1", "v3": "(i * 3266489917 % 1000000) / 10000.0", "cold0": "i * 3", "cold1": "i % 1000"}
TEXTS = ["text0", "text1"] if WIDE else []
# name, SQL, the function that gives the same.
QUESTIONS = [
    ("S1", "SELECT sum(v1) FROM t", "SELECT columnar_sum('t', 'v1')"),
    ("S2", "SELECT avg(v3) FROM t", "SELECT columnar_avg('t', 'v3')"),
    ("S3", "SELECT count(v1) FROM t", "SELECT columnar_count('t', 'v1')"),
    ("G1", "SELECT id1, sum(v1) FROM t GROUP BY id1", "SELECT k, sum FROM columnar_group_sum('t', 'id1', 'v1')"),
    ("G2", "SELECT id1, avg(v3) FROM t GROUP BY id1", "SELECT k, avg FROM columnar_group_avg('t', 'id1', 'v3')"),
    ("G3", "SELECT id1, count(*) FROM t GROUP BY id1", "SELECT k, count FROM columnar_group_count('t', 'id1')"),
    ("G4", "SELECT id1, sum(v1), avg(v1), count(v1) FROM t GROUP BY id1", "SELECT * FROM columnar_group_sum_avg_count('t', 'id1', 'v1')"),
    ("G5", "SELECT id3, sum(v1), avg(v3) FROM t GROUP BY id3", None),
    ("G6", "SELECT id3, max(v1) - min(v2) FROM t GROUP BY id3", "SELECT k, range FROM columnar_group_range('t', 'id3', 'v1', 'v2')"),
    ("G7", "SELECT id3, min(v1), max(v1), count(v1) FROM t GROUP BY id3", "SELECT * FROM columnar_group_min_max_count('t', 'id3', 'v1')"),
    ("G8", "SELECT id5, sum(v1) FROM t GROUP BY id5", "SELECT * FROM columnar_group_sum('t', 'id5', 'v1')"),
    ("F1", "SELECT sum(v1), avg(v1), count(v1) FROM t WHERE id2 BETWEEN 10 AND 20",
     "SELECT columnar_sum_where_range('t', 'v1', 'id2', 10, 20), columnar_avg_where_range('t', 'v1', 'id2', 10, 20), columnar_count_where_range('t', 'v1', 'id2', 10, 20)"),
    ("F2", f"SELECT sum(v1), avg(v1), count(v1) FROM t WHERE ts BETWEEN {ROWS // 2} AND {ROWS // 2 + ROWS // 100}",
     f"SELECT columnar_sum_where_range('t', 'v1', 'ts', {ROWS // 2}, {ROWS // 2 + ROWS // 100}), columnar_avg_where_range('t', 'v1', 'ts', {ROWS // 2}, {ROWS // 2 + ROWS // 100}), columnar_count_where_range('t', 'v1', 'ts', {ROWS // 2}, {ROWS // 2 + ROWS // 100})"),
    ("F3", f"SELECT id1, sum(v1) FROM t WHERE ts BETWEEN {ROWS // 2} AND {ROWS // 2 + ROWS // 100} GROUP BY id1",
     f"SELECT * FROM columnar_group_sum_where_range('t', 'id1', 'v1', 'ts', {ROWS // 2}, {ROWS // 2 + ROWS // 100})"),
    ("P1", "SELECT * FROM t WHERE rowid = 777", None),
    ("P2", f"SELECT * FROM t WHERE ts BETWEEN {ROWS // 3} AND {ROWS // 3 + 999}", None),
    ("O1", "SELECT v2, rowid FROM t ORDER BY v3 DESC, rowid LIMIT 10", None),
    ("O2", "SELECT count(DISTINCT id3) FROM t", None),
    ("O3", "SELECT max(v3) FROM t", None),
]


def sqlite(path):
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(LIBRARY)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -300000"):
        db.execute(f"PRAGMA {pragma}")
    return db


def cpu():
    return time.process_time()


def timed(work):
    started = cpu()
    result = work()
    return cpu() - started, result


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and abs(float(a) - float(b)) <= 1e-9 * max(1, abs(float(a)))
    return a == b


def expect_same(name, engine, expected, got):
    expected, got = sorted(expected, key=repr), sorted(got, key=repr)
    if len(expected) != len(got) or not all(len(a) == len(b) and all(map(same, a, b)) for a, b in zip(expected, got)):
        sys.exit(f"{name}: {engine} answers otherwise: {got[:2]} where a plain table gives {expected[:2]}")


def main():
    folder = tempfile.TemporaryDirectory(prefix="colonnade-bench-sqlite-")
    files = {name: Path(folder.name) / f"{name}.db" for name in ("source", "row", "columnar", "duckdb")}
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})"
    fill = ", ".join([f"{NUMBERS[column]} AS {column}" for column in COLUMNS] + [f"printf('%.256c', 'x') AS {text}" for text in TEXTS])
    definition = ", ".join([f"{column} {TYPES[column]}" for column in COLUMNS] + [f"{text} TEXT" for text in TEXTS])
    source = sqlite(files["source"])
    source.execute(f"CREATE TABLE t({definition})")
    source.execute(f"INSERT INTO t {numbers} SELECT {fill} FROM n")
    source.close()
    loads, sizes, connections = {}, {}, {}
    for name, how in (("row", f"CREATE TABLE t({definition})"), ("columnar", f"CREATE VIRTUAL TABLE t USING columnar({definition})")):
        db = sqlite(files[name])
        db.execute(f"ATTACH '{files['source']}' AS source")
        db.execute(how)
        db.execute("INSERT INTO main.t SELECT * FROM source.t")
        sizes[name], connections[name] = files[name].stat().st_size, db
    # Between two tables of the same columns SQLite copies rows without looking into them, but for an
    # expression.
    shapes = {"": "SELECT * FROM source.t", " computed": f"SELECT ts + 0, {', '.join((COLUMNS + TEXTS)[1:])} FROM source.t"}
    for _ in range(LOADS):
        for shape, select in shapes.items():
            for name, db in connections.items():
                db.execute(f"CREATE TABLE main.l({definition})" if name == "row" else f"CREATE VIRTUAL TABLE main.l USING columnar({definition})")
                loads.setdefault(name + shape, []).append(timed(lambda: db.execute(f"INSERT INTO main.l {select}"))[0])
                db.execute("DROP TABLE main.l")
    loads = {name: statistics.median(times) for name, times in loads.items()}
    for db in connections.values():
        db.execute("DETACH source")
    duck = duckdb.connect(str(files["duckdb"]), config={"threads": 1})
    reader = apsw.Connection(str(files["source"]))
    names = COLUMNS + TEXTS
    columns = list(zip(*reader.execute("SELECT * FROM t")))
    duck.register("arrow", pyarrow.table(dict(zip(names, columns))))
    loads["duckdb"], _ = timed(lambda: (duck.execute("CREATE TABLE t AS SELECT * FROM arrow"), duck.execute("CHECKPOINT")))
    sizes["duckdb"] = files["duckdb"].stat().st_size
    duck.unregister("arrow")
    del columns
    print(f"{ROWS:,} rows, SQLite {apsw.sqlitelibversion()}, DuckDB {duckdb.__version__}, CPU time")
    print(f"  {'':10} {'load s':>8} {'us a row':>9} {'computed':>9} {'MB':>8} {'to row':>7}")
    for name in ("row", "columnar", "duckdb"):
        computed = f"{loads[f'{name} computed'] / ROWS * 1e6:9.2f}" if f"{name} computed" in loads else " " * 9
        print(f"  {name:10} {loads[name]:8.2f} {loads[name] / ROWS * 1e6:9.2f} {computed} {sizes[name] / 1e6:8.1f} {sizes[name] / sizes['row']:7.2f}")
    print(f"  loads are medians of {LOADS}; computed: an expression in the place of the first column; to row: {loads['columnar'] / loads['row']:.2f}, computed "
          f"{loads['columnar computed'] / loads['row computed']:.2f}")
    row, columnar = connections["row"], connections["columnar"]
    columnar.execute("SELECT columnar_threads(1)").fetchall()
    print(f"\n  {'ms':4} {'row':>9} {'generic':>9} {'query':>9} {'function':>9} {'duckdb':>9} {'row/gen':>8} {'row/fun':>8} {'que/duck':>8} {'fun/duck':>8}  p95 of row, generic, query; hash")
    results, ratios = {}, []
    for name, sql, function in QUESTIONS:
        if ONLY and name not in ONLY:
            continue
        ways = {"row": lambda: list(row.execute(sql)), "generic": lambda: list(columnar.execute(sql))}
        if "rowid" not in sql:
            columnar.execute("DROP TABLE IF EXISTS temp.q")
            columnar.execute(f"CREATE VIRTUAL TABLE temp.q USING columnar_query({sql})")
            ways["query"] = lambda: list(columnar.execute("SELECT * FROM q"))
        if function:
            ways["function"] = lambda: list(columnar.execute(function))
        if name not in ("P1", "O1"):
            ways["duckdb"] = lambda: duck.execute(sql).fetchall()
        answers = {way: run() for way, run in ways.items()}
        for way, answer in answers.items():
            expect_same(name, way, answers["row"], answer)
        times = {way: [] for way in ways}
        for _ in range(RUNS):
            for way, run in ways.items():
                times[way].append(timed(run)[0] * 1000)
        median = {way: statistics.median(values) for way, values in times.items()}
        digest = hashlib.sha256(repr(sorted(answers["row"], key=repr)).encode()).hexdigest()[:8]
        p95 = ", ".join(f"{sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]:.1f}" for values in list(times.values())[:3])

        def ratio(a, b):
            return f"{median[a] / max(median[b], 1e-3):8.2f}" if a in median and b in median else f"{'-':>8}"

        def value(way):
            return f"{median[way]:9.2f}" if way in median else f"{'-':>9}"
        print(f"  {name:4} {value('row')} {value('generic')} {value('query')} {value('function')} {value('duckdb')} {ratio('row', 'generic')} {ratio('row', 'function')} {ratio('query', 'duckdb')} {ratio('function', 'duckdb')}  {p95}; {digest}", flush=True)
        if "query" in median and "duckdb" in median:
            ratios.append(median["query"] / median["duckdb"])
        results[name] = {"times_ms": times, "median_ms": median, "hash": digest, "variance": {way: statistics.pvariance(values) for way, values in times.items()}}
    if ratios:
        print(f"  columnar_query to DuckDB, geometric mean: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    update, _ = timed(lambda: columnar.execute("UPDATE t SET v1 = v1 + 1 WHERE rowid BETWEEN 500 AND 509"))
    print(f"  UPDATE of 10 rows: {update * 1000:.2f} ms; columnar_sum then: {timed(lambda: list(columnar.execute(QUESTIONS[0][2])))[0] * 1000:.2f} ms")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    engines = {"plain table": "row", "columnar_query": "query", "columnar, same SQL": "generic", "function": "function", "duckdb": "duckdb"}
    drawn = {name: {**{engine: {"wall_ms": one["times_ms"].get(way, [])} for engine, way in engines.items()}, "equal": True} for name, one in results.items()}
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    modes = {"one thread, CPU time": {"questions": drawn, "geometric_means": {"all, to duckdb": mean}}}
    OUT.write_text(json.dumps({"suite": "sqlite", "engines": list(engines), "modes": modes, "rows": ROWS, "wide": WIDE, "load_s": loads, "bytes": sizes, "questions": results}, indent=1))
    folder.cleanup()


if __name__ == "__main__":
    main()
