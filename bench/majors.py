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
import subprocess

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
    """One suite: `tables` with the programs that write their rows, `create` the statements that make them,
    `options` of the columnar ones, `heap_indexes`, and the questions to ask: a list of pairs of the indexes
    that all engines get first, and a function that gives the questions."""

    def __init__(self, tables, create, ask, duck, options="", heap_indexes=""):
        self.tables, self.create, self.ask, self.duck = tables, create, ask, duck
        self.options, self.heap_indexes = options, heap_indexes


def works():
    scanned, keyed = ([q for q in questions if not tpch.ONLY or q.name in tpch.ONLY] for questions in events.questions())
    return {
        "events": Work([suite.Table("t", None, "FORMAT csv", None)], None,
                       [("", lambda _: scanned), ("CREATE INDEX by_id ON t (id); CREATE INDEX by_user ON t (user_id)", lambda _: keyed)],
                       lambda engine, files: events.duck_table(engine, files["t"]), "orderby = 'event_date', compression = 'zstd'"),
        "tpch": Work(tpch.tables(), lambda duck: (kit.SQL / "tpch.sql").read_text(), [("", lambda server: tpch.questions(server, DATABASE))],
                     None, heap_indexes=tpch.INDEXES),
        "clickbench": Work([clickbench.hits()], clickbench.create, [("", lambda server: clickbench.questions(server, DATABASE))], None),
    }


def write_rows(server, work, folder):
    """One CSV file for each table; {table: path}."""
    files = {table.name: folder / f"{table.name}.csv" for table in work.tables}
    if work.create is None:
        kit.make_events(server, DATABASE, events.ROWS, files["t"])
        return files
    for table in work.tables:
        with open(files[table.name], "wb") as out:
            subprocess.run([str(part) for part in table.command], stdout=out, check=True)
        files[table.name].chmod(0o644)
    return files


def load_server(server, work, method, files):
    schema = METHODS[method]
    server.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}", DATABASE)
    before = f"SET search_path = {schema}; SET default_table_access_method = {method}; SET maintenance_work_mem = '1GB';"
    if work.create is None:
        # The columns are those of a table of one row; the rows are the same everywhere.
        shape = (kit.SQL / "events.sql").read_text().replace(":ROWS", "1")
        options = f" WITH ({work.options})" if method == "colcompress" else ""
        server.sql(f"SET search_path = {schema}; DROP TABLE IF EXISTS events_source; {shape}; "
                   f"CREATE TABLE t (LIKE events_source) USING {method}{options}; DROP TABLE events_source", DATABASE)
    else:
        server.sql(f"{before} {work.create(False)}", DATABASE)
    for table in work.tables:
        server.sql(f"BEGIN; TRUNCATE {schema}.{table.name}; COPY {schema}.{table.name} FROM '{files[table.name]}' ({table.copy}); COMMIT", DATABASE)
    if method == "heap":
        server.sql(before + work.heap_indexes, DATABASE)
    server.sql("".join(f"VACUUM ANALYZE {schema}.{table.name};\n" for table in work.tables), DATABASE)


def load_duckdb(engine, work, files):
    if work.duck:
        work.duck(engine, files)
        return
    lines = [line for line in work.create(True).splitlines() if not line.startswith("--")]
    for statement in filter(str.strip, "\n".join(lines).split(";")):
        engine.ask(statement, rows=False)
    for table in work.tables:
        engine.ask(table.duck.format(path=files[table.name]), rows=False)
    engine.ask("CHECKPOINT", rows=False)


def engines_of(servers, method):
    found = []
    for major, server in servers.items():
        runs = HEAP_RUNS if method == "heap" else RUNS
        found.append(race.Postgres(f"{method} {major}", server, DATABASE, "t", f"SET search_path = {METHODS[method]}", runs=runs))
    return found


def ask(name, work, servers, duck):
    """Both modes of one suite: {mode: {question: record}}, and what was wrong."""
    heaps, columns = engines_of(servers, "heap"), engines_of(servers, "colcompress")
    found, wrong = {mode: {} for mode in race.MODES}, []
    try:
        for indexes, questions in work.ask:
            if indexes:
                for server in servers.values():
                    for schema in METHODS.values():
                        server.sql(f"SET search_path = {schema}; {indexes}; ANALYZE t", DATABASE)
                for statement in indexes.split(";"):
                    duck.ask(statement, rows=False)
            asked = questions(next(iter(servers.values())))
            for mode, threads in race.MODES.items():
                # With two threads only the first heap is asked, for the answers.
                of_heap = heaps if threads == 1 else heaps[:1]
                contest = race.Race(name, [of_heap[0], columns[0], *of_heap[1:], *columns[1:], duck], asked, RUNS)
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


def show(name, mode, record, majors):
    titles = list(means(record, majors)[majors[0]])
    rows = [(str(major), *(race.ratio_text(values[title]) for title in titles)) for major, values in means(record, majors).items()]
    kit.print_table((f"{name}, {mode}", *titles), rows)
    slower = []
    for question, entry in record.items():
        first = race.median(entry[f"colcompress {majors[0]}"]["wall_ms"])
        for major in majors[1:]:
            quotient = race.ratio(race.median(entry[f"colcompress {major}"]["wall_ms"]), first)
            if quotient and quotient > 1.15:
                slower.append(f"{question} on {major} {quotient:.2f}x of {first:.1f} ms")
    print("  more than 1.15x of the first: " + ("; ".join(slower) or "none") + "\n", flush=True)


def start():
    """A server of each major, with the library that scripts/bench.sh staged for it. The chosen one is 15: the
    stages of others bring their server along."""
    servers = {}
    for number, major in enumerate(MAJORS):
        stage = (TARGET if major == 15 else TARGET / f"pg{major}") / "stage" / os.environ.get("PROFILE", "release")
        servers[major] = server = Server(private_base(f"majors-{major}", temporary=True), port=54330 + number, stage=stage, settings=SETTINGS)
        if not server.pg_config("--version").startswith(f"PostgreSQL {major}"):
            raise ServerError(f"the stage {stage} is not of PostgreSQL {major}")
        server.init()
        server.start()
        server.create_database(DATABASE)
        kit.say(server.sql("SELECT version()"))
    return servers


def main():
    end_orderly()
    servers, report, wrong = {}, {"machine": race.machine(), "settings": SETTINGS, "suites": {}}, []
    try:
        servers = start()
        report["versions"] = {major: server.sql("SELECT version()") for major, server in servers.items()}
        first = servers[MAJORS[0]]
        for name, work in works().items():
            if name not in SUITES:
                continue
            kit.say(f"{name}: loading")
            files = write_rows(first, work, first.base)
            duck = others.DuckDB(first.base / f"{name}.duckdb")
            try:
                load_duckdb(duck, work, files)
                for server in servers.values():
                    for method in METHODS:
                        load_server(server, work, method, files)
                    kit.say(f"  {server.base.name} is loaded")
                for path in files.values():
                    path.unlink()
                found, faults = ask(name, work, servers, duck)
            finally:
                duck.close()
            wrong += faults
            report["suites"][name] = {mode: {"questions": record, "means": means(record, MAJORS)} for mode, record in found.items()}
            print()
            for mode, record in found.items():
                show(name, mode, record, MAJORS)
            for server in servers.values():
                for schema in METHODS.values():
                    server.sql(f"DROP SCHEMA {schema} CASCADE", DATABASE)
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
