"""COPY of TPC-H's lineitem to and from Parquet files, beside DuckDB's and beside COPY from CSV.

Called by scripts/bench.sh parquet-copy. SF (1) is the scale factor, RUNS (5) how often each is timed, in
turns. DuckDB has the rows in a table of its own, of one thread and of two; all of them write snappy, and read
the same file. Before a time is told, rows went from colcompress to DuckDB by one file and back by another,
and are the same.
"""

import os

import tpch
from harness import kit, others, suite
from harness.server import fresh_server, run_program

SF = os.environ.get("SF", "1")
RUNS = int(os.environ.get("RUNS", "5"))
DATABASE = "copies"
TABLE = "lineitem"
ROWS = "SELECT count(*) || ' ' || sum(hashtextextended(r::text, 0)) FROM {} r"
PARQUET, CSV = "FORMAT parquet", "FORMAT csv, HEADER"
THREADS = (1, 2)


class Copies:
    """A server and DuckDB, both with the rows, and the files between them."""

    def __init__(self, server, session, duck):
        self.server, self.session, self.duck = server, session, duck
        self.ours, self.theirs, self.csv = (server.base / name for name in ("ours.parquet", "theirs.parquet", "lineitem.csv"))

    def fill(self):
        (table,) = [table for table in tpch.tables() if table.name == TABLE]
        table.write(self.csv)
        (create,) = [text for text in suite.statements((kit.SQL / "tpch.sql").read_text()) if f"TABLE {TABLE} " in text]
        self.session.run(kit.SESSION_SETTINGS)
        for method in ("heap", "colcompress"):
            self.session.run(f"SET default_table_access_method = {method}")
            self.session.run(create)
            self.session.run(f"ALTER TABLE {TABLE} RENAME TO {method}_rows")
            self.session.run(f"COPY {method}_rows FROM '{self.csv}' ({CSV})")
            self.session.run(f"VACUUM ANALYZE {method}_rows")

    def check(self):
        """Rows go to DuckDB and come back."""
        self.write("colcompress")
        self.duck.ask(f"CREATE TABLE {TABLE} AS FROM '{self.ours}'")
        self.duck.ask(f"CREATE TABLE filled AS FROM {TABLE} LIMIT 0")
        self.duck_writes()
        self.read("colcompress", self.theirs, PARQUET)
        expected, found = (self.session.value(ROWS.format(table)) for table in ("heap_rows", "filled"))
        assert expected == found, f"rows and their sum are {found} by way of Parquet, {expected} on heap"

    def write(self, method):
        self.ours.unlink(missing_ok=True)
        return self.session.run(f"COPY {method}_rows TO '{self.ours}' ({PARQUET})").milliseconds

    def read(self, method, path, form):
        self.session.run(f"DROP TABLE IF EXISTS filled; CREATE TABLE filled (LIKE {method}_rows) USING {method}; CHECKPOINT")
        return self.session.run(f"COPY filled FROM '{path}' ({form})").milliseconds

    def duck_writes(self):
        self.theirs.unlink(missing_ok=True)
        wall = self.duck.ask(f"COPY {TABLE} TO '{self.theirs}' (FORMAT parquet, COMPRESSION snappy)", rows=False)["wall_ms"]
        self.theirs.chmod(0o644)
        return wall

    def duck_reads(self):
        self.duck.ask("TRUNCATE filled")
        return self.duck.ask(f"COPY filled FROM '{self.theirs}' (FORMAT parquet)", rows=False)["wall_ms"]

    def arms(self):
        """What is timed, by name."""
        def threads(count, what):
            def timed():
                self.duck.use(count)
                return what()
            return timed
        arms = {f"{method} to Parquet": lambda method=method: self.write(method) for method in ("heap", "colcompress")}
        arms |= {f"duckdb to Parquet, threads {count}": threads(count, self.duck_writes) for count in THREADS}
        arms |= {f"Parquet to {method}": lambda method=method: self.read(method, self.theirs, PARQUET) for method in ("heap", "colcompress")}
        arms |= {f"CSV to {method}": lambda method=method: self.read(method, self.csv, CSV) for method in ("heap", "colcompress")}
        return arms | {f"Parquet to duckdb, threads {count}": threads(count, self.duck_reads) for count in THREADS}


def main(stage):
    server = fresh_server("bench-parquet-copy", stage, {**kit.SERVER_SETTINGS, "max_wal_size": "8GB"})
    duck = None
    try:
        server.base.chmod(0o777)
        server.create_database(DATABASE)
        duck = others.DuckDB(server.base / "duck.db")
        with server.session(DATABASE) as session:
            copies = Copies(server, session, duck)
            kit.say(f"lineitem at scale factor {SF}")
            copies.fill()
            copies.check()
            kit.say("rows are the same after DuckDB had them")
            times = {name: [] for name in copies.arms()}
            for turn in range(RUNS):
                for name, timed in copies.arms().items():
                    times[name].append(timed())
                kit.say(f"  turn {turn + 1} of {RUNS}")
            sizes = {name: path.stat().st_size for name, path in (("ours", copies.ours), ("duckdb", copies.theirs), ("CSV", copies.csv))}
        record = {"scale": SF, "duckdb": duck.version, "times_ms": times, "bytes": sizes}
    finally:
        if duck is not None:
            duck.close()
        server.destroy()
    rows = [(name, f"{kit.median(walls):,.0f}", f"{min(walls):,.0f}", f"{max(walls):,.0f}") for name, walls in times.items()]
    print("  " + ", ".join(f"{name} {size / kit.MB:.0f} MB" for name, size in sizes.items()))
    kit.report("parquet-copy", ("COPY, milliseconds", "median", "least", "most"), rows, record, [])
    return 0


if __name__ == "__main__":
    run_program(main)
