"""The data of a large suite in its engines: prepared once, asked many times.

Who calls it: bench/tpch.py and bench/clickbench.py. STEP chooses a part of the work, so that asking again takes minutes:

    prepare    makes a server and DuckDB's file below target/servers, loads them and stops; what is loaded already stays
    reference  asks heap for what is missing of its answers, and keeps them in target/bench/SUITE-heap.json
    race       starts the prepared server with the library as it is built now, and races
    remove     removes the server and its files; heap's kept answers stay
    (nothing)  all four

HEAP says what heap does: `fresh` races with the others; `kept` answers from the file, so that later runs load no heap;
`none` is not there at all, and DuckDB's answers are what colcompress is compared with. Rows come through a pipe from
the program that makes them, once for each engine: no file of them is ever on disk.
"""

import json
import os
import subprocess
from contextlib import contextmanager

from . import kit, race
from .server import TARGET, Server, ServerError, private_base, running_as_root, server_ids

STEPS = ("prepare", "reference", "race", "remove")
DATABASE = "suite"
SETTINGS = {**kit.SERVER_SETTINGS, "shared_buffers": "4GB", "max_wal_size": "2GB", "wal_level": "minimal", "max_wal_senders": "0"}
ARMS = {"rows": "heap", "columns": "colcompress"}
# A kept heap answer that took longer than this many milliseconds is of its first run.
ONCE = 60_000


class Table:
    """One table: the command that writes its rows as CSV, and what COPY and DuckDB are told of them. `duck` has {path}."""

    def __init__(self, name, command, copy, duck):
        self.name, self.command, self.copy, self.duck = name, command, copy, duck


class Suite:
    """A suite at one size. `create(schema)` gives the statements that make empty tables in a schema of that name (None: in
    DuckDB); `index` those that follow heap's load."""

    def __init__(self, name, size, stage, tables, create, index="", heap="kept"):
        self.name, self.tables, self.create, self.index = f"{name}-{size}", tables, create, index
        self.heap = os.environ.get("HEAP", heap)
        self.runs = int(os.environ.get("RUNS", "5"))
        self.timeout = int(os.environ.get("TIMEOUT", "300"))
        self.server = Server(private_base(f"bench-{self.name}"), stage=stage, settings=SETTINGS)
        self.duck = None
        if self.heap not in ("fresh", "kept", "none"):
            raise ServerError(f"HEAP is fresh, kept or none, not {self.heap}")

    # -- steps -----------------------------------------------------------------------------------

    def run(self, questions):
        """The steps that STEP asks for; `questions(server, database)` makes the list once the rows are there. The exit status."""
        step = os.environ.get("STEP", "")
        if step and step not in STEPS:
            raise ServerError(f"STEP is one of {', '.join(STEPS)}, not {step}")
        wanted = (step,) if step else STEPS
        status = 0
        try:
            if wanted != ("remove",):
                self.start()
                if "prepare" in wanted:
                    self.prepare()
                asked = questions(self.server, DATABASE) if wanted != ("prepare",) else []
                if "reference" in wanted and self.heap == "kept":
                    self.reference(asked)
                if "race" in wanted:
                    status = self.race(asked)
        finally:
            if self.duck is not None:
                self.duck.close()
            if "remove" in wanted:
                self.server.destroy()
            else:
                self.server.stop()
        return status

    def start(self):
        """The server with the library as it is now; a new one where there is none."""
        if self.server.exists():
            self.server.stop()
            self.server.configure()
        else:
            self.server.init()
        self.server.start()
        if self.server.sql(f"SELECT count(*) FROM pg_database WHERE datname = '{DATABASE}'") == "0":
            self.server.create_database(DATABASE)
        if race.PYTHON.exists():
            self.duck = race.DuckDB(self.server.base / "suite.duckdb")

    def prepare(self):
        loaded = self.loaded()
        arms = dict(ARMS)
        if self.heap == "none" or (self.heap == "kept" and self.kept()):
            del arms["rows"]
        for schema, method in arms.items():
            if method not in loaded:
                kit.say(f"{self.name}: loading {method}")
                loaded[method] = self.load_server(schema, method)
                self.store(loaded)
        if self.duck is not None and "duckdb" not in loaded:
            kit.say(f"{self.name}: loading DuckDB")
            loaded["duckdb"] = self.load_duck()
            self.store(loaded)
        kit.print_table(("loaded", "seconds", "CPU seconds", "MB"),
                        [(name, f"{l['wall_s']:.1f}", f"{l['cpu_s']:.1f}", f"{l['bytes'] / kit.MB:.0f}") for name, l in loaded.items()])

    def reference(self, asked):
        """Adds heap's answers and times for what is missing, in every mode, and keeps them as they come."""
        answers = self.kept()
        engine = race.Postgres("heap", self.server, DATABASE, setup="SET search_path = rows", timeout=self.timeout)
        try:
            for threads in race.MODES.values():
                engine.use(threads)
                mode = answers.setdefault(str(threads), {})
                for question in (q for q in asked if q.text not in mode):
                    if "heap" not in self.loaded():
                        raise ServerError(f"heap's answer to {question.name} is not kept, and heap is not loaded: STEP=prepare HEAP=fresh loads it, HEAP=none does without")
                    run = engine.run(question.text)
                    if run.wall is not None and run.wall < ONCE:
                        run = engine.run(question.text)
                    mode[question.text] = {"wall_ms": run.wall, "cpu_ms": run.cpu, "rows": run.rows}
                    if question.ties and run.rows:
                        text = race.untied(question.text, len(run.rows[0]))
                        mode[text] = {"wall_ms": None, "cpu_ms": None, "rows": engine.run(text).rows}
                    kit.say(f"  {question.name} on heap, threads {threads}: {race.shown(run.wall)} ms")
                    self.kept_path().parent.mkdir(parents=True, exist_ok=True)
                    self.kept_path().write_text(json.dumps({"version": self.version(), "answers": answers}))
        finally:
            engine.close()

    def race(self, asked):
        loaded = self.loaded()
        if "colcompress" not in loaded:
            raise ServerError("nothing is prepared: run STEP=prepare first")
        engines = [race.Postgres("colcompress", self.server, DATABASE, setup="SET search_path = columns", timeout=self.timeout)]
        if self.heap == "fresh":
            engines.insert(0, race.Postgres("heap", self.server, DATABASE, setup="SET search_path = rows", timeout=self.timeout))
        elif self.heap == "kept":
            engines.insert(0, race.Stored("heap", self.kept()))
        else:
            engines.insert(0, race.Absent("heap"))
        if self.duck is not None:
            engines.append(self.duck)
        try:
            notes = {"kept": "; heap's times are kept ones", "none": "; no heap: answers are compared with DuckDB's"}
            kit.say(f"{len(asked)} questions, {self.runs} runs each in turns{notes.get(self.heap, '')}")
            contest = race.Race(self.name, engines, asked, self.runs)
            about = {"postgres": self.version(), "settings": SETTINGS, "heap": self.heap, "loaded": loaded}
            return race.finish(contest, contest.all_modes(), about)
        finally:
            for engine in engines[:2]:
                engine.close()

    # -- loads -----------------------------------------------------------------------------------

    def load_server(self, schema, method):
        wall = cpu = 0.0
        self.server.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema}; "
                        f"SET default_table_access_method = {method};\n{self.create(schema)}", DATABASE)
        with self.server.session(DATABASE) as session:
            for table in self.tables:
                # A file made anew in the same transaction is not logged when wal_level is minimal.
                session.run(f"BEGIN; TRUNCATE {schema}.{table.name}")
                with self.rows_of(table) as path:
                    before = session.cpu_seconds()
                    wall += session.run(f"COPY {schema}.{table.name} FROM '{path}' ({table.copy})").milliseconds / 1000
                wall += session.run("COMMIT").milliseconds / 1000
                cpu += session.cpu_seconds() - before
                kit.say(f"  {table.name} is loaded")
        if method == "heap" and self.index:
            self.server.sql(f"SET search_path = {schema}; SET maintenance_work_mem = '1GB'; {self.index}", DATABASE)
        self.server.sql("".join(f"VACUUM ANALYZE {schema}.{table.name};\n" for table in self.tables), DATABASE)
        size = sum(kit.table_bytes(self.server, DATABASE, f"{schema}.{table.name}") for table in self.tables)
        return {"wall_s": wall, "cpu_s": cpu, "bytes": size}

    def load_duck(self):
        wall = 0.0
        before = race.process_cpu(self.duck.process.pid)
        for statement in "\n".join(line for line in self.create(None).splitlines() if not line.startswith("--")).split(";"):
            if statement.strip():
                self.duck.ask(statement)
        for table in self.tables:
            with self.rows_of(table) as path:
                wall += self.duck.ask(table.duck.format(path=path), rows=False)["wall_ms"] / 1000
            kit.say(f"  {table.name} is loaded")
        self.duck.ask("CHECKPOINT")
        return {"wall_s": wall, "cpu_s": race.process_cpu(self.duck.process.pid) - before, "bytes": self.duck.path.stat().st_size}

    @contextmanager
    def rows_of(self, table):
        """A pipe to read the table's rows from, while a program writes them."""
        path = self.server.base / f"{table.name}.csv"
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        if running_as_root():
            os.chown(path, *server_ids())
        maker = subprocess.Popen(["sh", "-c", 'exec "$@" > "$0"', str(path), *map(str, table.command)], stdin=subprocess.DEVNULL)
        try:
            yield path
            if maker.wait(timeout=60) != 0:
                raise ServerError(f"the rows of {table.name} could not be made: {table.command[0]} failed")
        finally:
            maker.kill()
            maker.wait()
            path.unlink(missing_ok=True)

    # -- what is kept ----------------------------------------------------------------------------

    def version(self):
        return self.server.sql("SELECT version()")

    def kept_path(self):
        return TARGET / "bench" / f"{self.name}-heap.json"

    def kept(self):
        """Heap's kept answers, as far as they are this server's."""
        if not self.kept_path().exists():
            return {}
        stored = json.loads(self.kept_path().read_text())
        return stored["answers"] if stored["version"] == self.version() else {}

    def loaded(self):
        path = self.server.base / "loaded.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def store(self, loaded):
        (self.server.base / "loaded.json").write_text(json.dumps(loaded))
