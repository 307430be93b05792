"""The data of a large suite in its engines: prepared once, asked many times.

Who calls it: bench/tpch.py and bench/clickbench.py. STEP chooses a part of the work, so that asking again
takes minutes:

    prepare    makes a server and others' files below target/servers, loads them and stops; what is loaded already stays
    reference  asks heap for what is missing of its answers, and keeps them in target/bench/SUITE-heap.json
    race       starts the prepared server with the library as it is built now, and races
    remove     removes the server and its files; heap's kept answers stay
    (nothing)  all four

HEAP says what heap does: `fresh` races with the others; `kept` answers from the file, so that later runs load
no heap; `none` is not there at all, and the first other's answers are what colcompress is compared with. Rows
come through a pipe from the program that makes them, once for each engine (Hyper reads no pipes: for it a
table's rows are on disk while it loads them).

Both column stores hold their rows in the same order. Where a suite has sort keys there are two races: of the
rows `made` as the program makes them, and of the rows `sorted` by those keys in both. ORDERS="made" or
"sorted" does only one of them.
"""

import json
import os
import subprocess
from contextlib import contextmanager

from . import kit, others, race
from .server import Server, ServerError, by_major, private_base, running_as_root, server_ids

STEPS = ("prepare", "reference", "race", "remove")
DATABASE = "suite"
SETTINGS = {**kit.SERVER_SETTINGS, "shared_buffers": "4GB", "max_wal_size": "2GB", "wal_level": "minimal", "max_wal_senders": "0"}
HEAP_SCHEMA = "rows"
# The orders of rows, and the schema of the columnar tables in each.
ORDERS = {"made": "columns", "sorted": "sorted_columns"}
# A kept heap answer that took longer than this many milliseconds is of its first run.
ONCE = 60_000


class Table:
    """One table: the command that writes its rows as CSV, and what COPY (DuckDB's and Hyper's too) is told of
    them. `duck` has {path}."""

    def __init__(self, name, command, copy, duck):
        self.name, self.command, self.copy, self.duck = name, command, copy, duck

    def write(self, path):
        """Writes the rows to a file that anybody may read."""
        with open(path, "wb") as file:
            subprocess.run([*map(str, self.command)], stdin=subprocess.DEVNULL, stdout=file, check=True)
        path.chmod(0o644)


def statements(text):
    """The statements of a script that has comments in lines of their own and no semicolon within a word."""
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement for statement in "\n".join(lines).split(";") if statement.strip()]


class Suite:
    """A suite at one size. `create(duck)` gives the statements that make its empty tables, in DuckDB's words
    or the server's; `index` those that follow heap's load; `sort` the sort key of each table that has one.
    Without `peers`, engines of others take no part."""

    def __init__(self, name, size, stage, tables, create, index="", heap="kept", sort=None, peers=True):
        self.name, self.tables, self.create, self.index, self.sort = f"{name}-{size}", tables, create, index, sort or {}
        known = list(ORDERS) if self.sort else ["made"]
        self.orders = os.environ.get("ORDERS", "").split() or known
        if not set(self.orders) <= set(known):
            raise ServerError(f"ORDERS is of {', '.join(known)}, not {' '.join(self.orders)}")
        self.heap = os.environ.get("HEAP", heap)
        self.runs = int(os.environ.get("RUNS", "5"))
        self.timeout = int(os.environ.get("TIMEOUT", "300"))
        self.server = Server(private_base(f"bench-{self.name}"), stage=stage, settings=SETTINGS)
        # The other engines, by the order of their rows and by name.
        self.kinds = others.present() if peers else []
        self.others = {order: {} for order in self.orders}
        if self.heap not in ("fresh", "kept", "none"):
            raise ServerError(f"HEAP is fresh, kept or none, not {self.heap}")

    # -- steps -----------------------------------------------------------------------------------

    def run(self, questions):
        """The steps that STEP asks for; `questions(server, database)` makes the list once the rows are there.
        The exit status."""
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
                    for order in self.orders:
                        status |= self.race(order, asked)
        finally:
            for engines in self.others.values():
                for engine in engines.values():
                    engine.close()
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
        for order, engines in self.others.items():
            engines.update({kind.name: kind(self.server.base / f"{order}.{kind.name}") for kind in self.kinds})

    def prepare(self):
        loaded = self.loaded()
        loads = {}
        if self.heap == "fresh" or (self.heap == "kept" and not self.kept()):
            loads["heap"] = lambda: self.load_server(HEAP_SCHEMA, "heap", {})
        for order in self.orders:
            keys = self.sort if order == "sorted" else {}
            loads[f"colcompress, {order}"] = lambda order=order, keys=keys: self.load_server(ORDERS[order], "colcompress", keys)
            for name, engine in self.others[order].items():
                loads[f"{name}, {order}"] = lambda engine=engine, keys=keys: self.load_other(engine, keys)
        for name, load in loads.items():
            if name not in loaded:
                kit.say(f"{self.name}: loading {name}")
                loaded[name] = load()
                self.store(loaded)
        kit.print_table(("loaded", "seconds", "CPU seconds", "MB"),
                        [(name, f"{l['wall_s']:.1f}", f"{l['cpu_s']:.1f}", f"{l['bytes'] / kit.MB:.0f}") for name, l in loaded.items()])

    def reference(self, asked):
        """Adds heap's answers and times for what is missing, in every mode, and keeps them as they come."""
        answers = self.kept()
        engine = race.Postgres("heap", self.server, DATABASE, setup=f"SET search_path = {HEAP_SCHEMA}", timeout=self.timeout)
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

    def race(self, order, asked):
        """One race, of rows in one order; its exit status."""
        loaded = self.loaded()
        if f"colcompress, {order}" not in loaded:
            raise ServerError(f"nothing is prepared for rows {order}: run STEP=prepare first")

        def session(engine, schema):
            return race.Postgres(engine, self.server, DATABASE, setup=f"SET search_path = {schema}", timeout=self.timeout)
        engines = [session("colcompress", ORDERS[order])]
        if self.heap == "fresh":
            engines.insert(0, session("heap", HEAP_SCHEMA))
        elif self.heap == "kept":
            engines.insert(0, race.Stored("heap", self.kept()))
        else:
            engines.insert(0, race.Absent("heap"))
        engines += self.others[order].values()
        name = self.name if order == "made" else f"{self.name}-{order}"
        try:
            notes = {"kept": "; heap's times are kept ones", "none": "; no heap: answers are compared with the first other's"}
            kit.say(f"{len(asked)} questions to rows {order}, {self.runs} runs each in turns{notes.get(self.heap, '')}")
            contest = race.Race(name, engines, asked, self.runs)
            about = {"postgres": self.version(), "settings": SETTINGS, "heap": self.heap, "order": order, "sort": self.sort, "loaded": loaded}
            return race.finish(contest, contest.all_modes(), about)
        finally:
            for engine in engines[:2]:
                engine.close()

    # -- loads -----------------------------------------------------------------------------------

    def load_server(self, schema, method, keys):
        wall = cpu = 0.0
        sort = "".join(f"ALTER TABLE {table} SET (orderby = '{key}');\n" for table, key in keys.items())
        self.server.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema}; "
                        f"SET default_table_access_method = {method};\n{self.create(False)};\n{sort}", DATABASE)
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

    def load_other(self, engine, keys):
        wall = cpu = 0.0
        is_duck = engine.name == others.DuckDB.name

        def ask(statement):
            nonlocal wall, cpu
            answer = engine.ask(statement, rows=False)
            wall, cpu = wall + answer["wall_ms"] / 1000, cpu + answer["cpu_ms"] / 1000
        for statement in statements(self.create(is_duck)):
            engine.ask(statement)
        for table in self.tables:
            # Hyper reads no pipes.
            with self.rows_of(table, piped=is_duck) as path:
                ask(table.duck.format(path=path) if is_duck else f"COPY {table.name} FROM '{path}' WITH ({table.copy})")
            if table.name in keys:
                for statement in (f"CREATE TABLE in_order AS SELECT * FROM {table.name} ORDER BY {keys[table.name]}",
                                  f"DROP TABLE {table.name}", f"ALTER TABLE in_order RENAME TO {table.name}"):
                    ask(statement)
            kit.say(f"  {table.name} is loaded")
        if is_duck:
            ask("CHECKPOINT")
        return {"wall_s": wall, "cpu_s": cpu, "bytes": engine.path.stat().st_size}

    @contextmanager
    def rows_of(self, table, piped=True):
        """A pipe to read the table's rows from, while a program writes them; or a file of them."""
        path = self.server.base / f"{table.name}.csv"
        path.unlink(missing_ok=True)
        if not piped:
            try:
                table.write(path)
                yield path
            finally:
                path.unlink(missing_ok=True)
            return
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
        return by_major("bench") / f"{self.name}-heap.json"

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
