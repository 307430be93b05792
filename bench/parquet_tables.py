"""TPC-H on foreign tables over Parquet files, beside DuckDB on the same files, colcompress and heap.

Called by scripts/bench.sh parquet-tables. DuckDB writes the files, with zstd, of the rows as the program
makes them; its views read them, and so do foreign tables. One thread, and two. SF (1), QUERIES, RUNS, TIMEOUT
and STEP are those of bench/tpch.py and harness.suite. Every answer is compared with heap's.
"""

import tpch
from harness import kit, others, race, suite
from harness.server import end_orderly, run_program

SCHEMA = "parquet_files"
# Time to DuckDB's on the same files.
TIME = 1.2


class OnFiles(others.DuckDB):
    """DuckDB whose tables are views of the files."""

    name = "duckdb_files"


class Unpadded(race.Postgres):
    """The server, whose answers lose the blanks that char(n) has at its end: files have text."""

    def run(self, text):
        run = super().run(text)
        run.rows = run.rows and [tuple(value and value.rstrip(" ") for value in row) for row in run.rows]
        return run


class Tables(suite.Suite):
    """The suite with foreign tables beside the others."""

    def file(self, table):
        return self.server.base / f"{table.name}.parquet"

    def race(self, order, asked):
        self.make(order)
        on_files = OnFiles(self.server.base / "views.duckdb")

        def session(name, schema):
            return Unpadded(name, self.server, suite.DATABASE, setup=f"SET search_path = {schema}", timeout=self.timeout)
        engines = [session("heap", suite.HEAP_SCHEMA), session("parquet", SCHEMA), on_files, session("colcompress", suite.ORDERS[order])]
        try:
            for table in self.tables:
                on_files.ask(f"CREATE OR REPLACE VIEW {table.name} AS FROM '{self.file(table)}'", rows=False)
            contest = race.Race(self.name, engines, asked, self.runs)
            modes = contest.all_modes()
            sizes = {table.name: self.file(table).stat().st_size for table in self.tables}
            status = race.finish(contest, modes, {"postgres": self.version(), "sizes": sizes})
            self.tell(modes, engines)
        finally:
            for engine in engines:
                engine.close()
        return status

    def tell(self, modes, engines):
        """The figures, and the bounds that are missed."""
        rows, short = [], []
        for mode, record in modes.items():
            for engine in engines:
                total = sum(kit.median(entry[engine.name]["wall_ms"]) for entry in record.values()) / 1000
                to_files = race.geometric_mean([race.ratio(kit.median(e[engine.name]["wall_ms"]), kit.median(e[OnFiles.name]["wall_ms"])) for e in record.values()])
                rows.append((mode, engine.name, f"{total:.2f}", f"{to_files:.2f}"))
                short += [f"{mode}: {to_files:.2f} of DuckDB's time, more than {TIME}"] * (engine.name == "parquet" and to_files > TIME)
        kit.print_table(("mode", "tables", "22 queries s", "time to DuckDB's on the files"), rows)
        for text in short:
            kit.say(f"missed: {text}")

    def make(self, order):
        """The files, and foreign tables over them."""
        (duck,) = [engine for engine in self.others[order].values() if engine.name == others.DuckDB.name]
        with self.server.session(suite.DATABASE) as session:
            session.run(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")
            session.run("DO $$ BEGIN CREATE SERVER parquet FOREIGN DATA WRAPPER parquet_fdw; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
            for table in self.tables:
                path = self.file(table)
                if not path.exists():
                    duck.ask(f"COPY {table.name} TO '{path}' (FORMAT parquet, COMPRESSION zstd)", rows=False)
                    path.chmod(0o644)
                columns = session.value(f"SELECT string_agg(quote_ident(column_name) || ' ' || data_type, ', ') FROM engine.parquet_schema('{path}')")
                session.run(f"CREATE FOREIGN TABLE {SCHEMA}.{table.name} ({columns}) SERVER parquet OPTIONS (filename '{path}')")
                session.run(f"ANALYZE {SCHEMA}.{table.name}")


def main(stage):
    end_orderly()
    tables = Tables("parquet-tables", tpch.SF, stage, tpch.tables(), lambda _duck: (kit.SQL / "tpch.sql").read_text(), tpch.INDEXES, heap="fresh")
    return tables.run(tpch.questions)


if __name__ == "__main__":
    run_program(main)
