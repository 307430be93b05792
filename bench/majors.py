"""The events, TPC-H and ClickBench on PostgreSQL 15 to 18 at once, beside heap on each and beside DuckDB.

Called by scripts/bench.sh majors, which builds for each. All servers run side by side and have the same rows
in the same order. Each question goes to every one of them in turns, so that a slow moment of the machine hits
all majors. What counts is the ratio of a later major's time to that of the first.

MAJORS='15 16 17 18' names the versions, SUITES='events tpch clickbench' the suites. RUNS (7) is the number of
timed runs, HEAP_RUNS (3) that on heap, which is asked with one thread only. QUERIES="Q4 T3" asks only those.
ROWS (1,000,000) and SF (1) are the sizes. Figures go to target/bench/majors.json.
"""

import json
import os

import clickbench
import events
import tpch

from harness import kit, others, race, suite
from harness.server import TARGET, Server, ServerError, end_orderly, private_base, run_program

MAJORS = [int(word) for word in os.environ.get("MAJORS", "15 16 17 18").split()]
SUITES = os.environ.get("SUITES", "events tpch clickbench").split()
RUNS = int(os.environ.get("RUNS", "7"))
HEAP_RUNS = int(os.environ.get("HEAP_RUNS", "3"))
DATABASE = "majors"
SETTINGS = {**suite.SETTINGS, "shared_buffers": "2GB"}
METHODS = {"heap": "rows", "colcompress": "columns"}


class Work:
    """One suite: its tables (suite.Table); `create(duck)`, the statements that make them; `options` of all
    its columnar tables; `heap_indexes`; and `asked`: pairs of indexes that all engines get first, and a
    function of a server that gives the questions."""

    def __init__(self, tables, create, asked, options="", heap_indexes=""):
        self.tables, self.create, self.asked = tables, create, asked
        self.options, self.heap_indexes = options, heap_indexes

    def write(self, server):
        """One CSV file for each table, beside the server's data; {table: path}."""
        files = {table.name: server.base / f"{table.name}.csv" for table in self.tables}
        for table in self.tables:
            table.write(files[table.name])
        return files

    def load_duckdb(self, engine, files):
        for statement in suite.statements(self.create(True)):
            engine.ask(statement, rows=False)
        for table in self.tables:
            engine.ask(table.duck.format(path=files[table.name]), rows=False)
        engine.ask("CHECKPOINT", rows=False)


class Events(Work):
    """The events: a server makes their rows, and DuckDB has words of its own for some of their columns."""

    def __init__(self):
        scanned, keyed = ([q for q in questions if not tpch.ONLY or q.name in tpch.ONLY] for questions in events.questions())
        indexes = "CREATE INDEX by_id ON t (id); CREATE INDEX by_user ON t (user_id)"
        super().__init__([suite.Table("t", None, "FORMAT csv", None)], self.shape, [("", lambda _: scanned), (indexes, lambda _: keyed)],
                         "orderby = 'event_date', compression = 'zstd'")

    @staticmethod
    def shape(_duck):
        """The columns are those of a source of one row."""
        return f"\\set ROWS 1\n{(kit.SQL / 'events.sql').read_text()}\nCREATE TABLE t (LIKE events_source); DROP TABLE events_source"

    def write(self, server):
        files = {"t": server.base / "t.csv"}
        kit.make_events(server, DATABASE, events.ROWS, files["t"])
        server.sql("DROP TABLE events_source", DATABASE)
        return files

    def load_duckdb(self, engine, files):
        events.duck_table(engine, files["t"])


def works():
    return {
        "events": Events(),
        "tpch": Work(tpch.tables(), lambda _duck: (kit.SQL / "tpch.sql").read_text(), [("", lambda server: tpch.questions(server, DATABASE))],
                     heap_indexes=tpch.INDEXES),
        "clickbench": Work([clickbench.hits()], clickbench.create, [("", lambda server: clickbench.questions(server, DATABASE))]),
    }


def load_server(server, work, method, files):
    schema = METHODS[method]
    here = f"SET search_path = {schema}; SET default_table_access_method = {method}; SET maintenance_work_mem = '1GB';"
    server.sql(f"CREATE SCHEMA {schema}; {here}\n{work.create(False)}", DATABASE)
    for table in work.tables:
        if method == "colcompress" and work.options:
            server.sql(f"ALTER TABLE {schema}.{table.name} SET ({work.options})", DATABASE)
        # A file made anew in the same transaction is not logged when wal_level is minimal.
        server.sql(f"BEGIN; TRUNCATE {schema}.{table.name}; COPY {schema}.{table.name} FROM '{files[table.name]}' ({table.copy}); COMMIT", DATABASE)
    if method == "heap":
        server.sql(here + work.heap_indexes, DATABASE)
    server.sql("".join(f"VACUUM ANALYZE {schema}.{table.name};\n" for table in work.tables), DATABASE)


def engines_of(servers, method):
    setup = f"SET search_path = {METHODS[method]}"
    return [race.Postgres(f"{method} {major}", server, DATABASE, "t", setup) for major, server in servers.items()]


def index(indexes, servers, duck):
    """Makes indexes in all engines."""
    for server in servers.values():
        for schema in METHODS.values():
            server.sql(f"SET search_path = {schema}; {indexes}; ANALYZE", DATABASE)
    for statement in suite.statements(indexes):
        duck.ask(statement, rows=False)


def ask(name, work, servers, duck):
    """Both modes of one suite: {mode: {question: record}}, and what was wrong."""
    heaps, columns = engines_of(servers, "heap"), engines_of(servers, "colcompress")
    found, wrong = {mode: {} for mode in race.MODES}, []
    try:
        for indexes, questions in work.asked:
            if indexes:
                index(indexes, servers, duck)
            asked = questions(next(iter(servers.values())))
            for mode, threads in race.MODES.items():
                # With two threads only the first heap is asked, for the answers.
                of_heap = heaps if threads == 1 else heaps[:1]
                contest = race.Race(name, [of_heap[0], columns[0], *of_heap[1:], *columns[1:], duck], asked, RUNS,
                                    fewer={engine.name: HEAP_RUNS for engine in heaps})
                kit.say(f"{name}, {mode}: {len(asked)} questions")
                found[mode].update(contest.one_mode(threads))
                wrong += contest.wrong
    finally:
        for engine in heaps + columns:
            engine.close()
    return found, wrong


def means(record, majors):
    """Geometric means by major: to the first one, to its own heap, to DuckDB; wall and CPU time."""
    def mean(over, under, measure):
        pairs = [(entry[over][measure], entry[under][measure]) for entry in record.values() if over in entry and under in entry]
        return race.geometric_mean([race.ratio(race.median(a), race.median(b)) for a, b in pairs if a and b])
    rows = {}
    for major in majors:
        column = f"colcompress {major}"
        against = {"to the first": f"colcompress {majors[0]}", "to its heap": f"heap {major}", "to DuckDB": "duckdb"}
        rows[major] = {f"{title}{kind}": mean(column, other, measure) for title, other in against.items()
                       for kind, measure in (("", "wall_ms"), (", CPU", "cpu_ms"))}
        rows[major]["heap to the first heap"] = mean(f"heap {major}", f"heap {majors[0]}", "wall_ms")
    return rows


def show(name, mode, record, values):
    """One mode of a suite: `values` are what `means` says, by major."""
    first, *later = values
    titles = list(values[first])
    kit.print_table((f"{name}, {mode}", *titles), [(str(major), *(race.ratio_text(values[major][title]) for title in titles)) for major in values])
    slower = []
    for question, entry in record.items():
        before = race.median(entry[f"colcompress {first}"]["wall_ms"])
        for major in later:
            quotient = race.ratio(race.median(entry[f"colcompress {major}"]["wall_ms"]), before)
            if quotient and quotient > 1.15:
                slower.append(f"{question} on {major} {quotient:.2f}x of {before:.1f} ms")
    print("  more than 1.15x of the first: " + ("; ".join(slower) or "none") + "\n", flush=True)


def start(servers):
    """Adds a server of each major, with the library that scripts/bench.sh staged for it. The chosen one is
    15: the stages of others bring their server along."""
    for number, major in enumerate(MAJORS):
        stage = (TARGET if major == 15 else TARGET / f"pg{major}") / "stage" / os.environ.get("PROFILE", "release")
        servers[major] = server = Server(private_base(f"majors-{major}", temporary=True), port=54330 + number, stage=stage, settings=SETTINGS)
        if not server.pg_config("--version").startswith(f"PostgreSQL {major}"):
            raise ServerError(f"the stage {stage} is not of PostgreSQL {major}")
        server.init()
        server.start()
        server.create_database(DATABASE)
        kit.say(server.sql("SELECT version()"))


def run(name, work, servers):
    """Loads, asks and drops one suite; its report, and what was wrong."""
    first = servers[MAJORS[0]]
    kit.say(f"{name}: loading")
    duck = others.DuckDB(first.base / f"{name}.duckdb")
    try:
        files = work.write(first)
        work.load_duckdb(duck, files)
        for server in servers.values():
            for method in METHODS:
                load_server(server, work, method, files)
            kit.say(f"  {server.base.name} is loaded")
        for path in files.values():
            path.unlink()
        found, wrong = ask(name, work, servers, duck)
    finally:
        duck.close()
    report = {mode: {"questions": record, "means": means(record, MAJORS)} for mode, record in found.items()}
    print()
    for mode, entry in report.items():
        show(name, mode, entry["questions"], entry["means"])
    for server in servers.values():
        for schema in METHODS.values():
            server.sql(f"DROP SCHEMA {schema} CASCADE", DATABASE)
    return report, wrong


def main():
    end_orderly()
    servers, report, wrong = {}, {"machine": race.machine(), "settings": SETTINGS, "suites": {}}, []
    try:
        start(servers)
        report["versions"] = {major: server.sql("SELECT version()") for major, server in servers.items()}
        for name, work in works().items():
            if name in SUITES:
                report["suites"][name], faults = run(name, work, servers)
                wrong += faults
    finally:
        for server in servers.values():
            server.destroy()
    out = TARGET / "bench" / "majors.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    for fault in wrong:
        print(f"DIFFERENT {fault}")
    return 1 if wrong else 0


if __name__ == "__main__":
    run_program(main)
