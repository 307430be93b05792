"""Columnar extensions of others that the user's server has: found, never required.

Called by bench/events.py. Each gets a cluster of its own without Colonnade, with its library preloaded alone:
their hooks meet in one server, and storage_engine has our access methods' names. `PEERS=0` leaves them out.

What a peer cannot do ends no race: it has no time there, and `Race` keeps why. After a crash its server comes
up by itself, and the peer takes part again from the next question.
"""

import os
import time
from pathlib import Path

from . import kit, methods, race
from .server import Server, ServerError, end_orderly, pg_config, private_base
from .session import SqlError

DATABASE = "bench"
# What the harness raises where a server refuses a statement, or is gone.
REFUSALS = (ServerError, SqlError, OSError)
# A peer that never comes to an end is stopped in its load and its indexes, too.
SETTINGS = kit.SERVER_SETTINGS | {"statement_timeout": "30min"}


class Peer:
    """One access method of an extension. `before` and `after` are run around the load and `size` is its
    table's size, with %s for the table; `method` is None for an extension whose tables are heap tables that
    it takes over."""

    def __init__(self, name, extension, method, preload=None, before="", after="", size="pg_table_size('%s')", settings=None):
        self.name, self.extension, self.method, self.preload = name, extension, method, preload
        self.before, self.after, self.size, self.settings = before, after, size, settings or {}

    def is_there(self):
        """Whether the server has the extension's files. Its own server is asked, which `Loaded` starts: ours
        runs from a stage, which may be an older copy."""
        return (Path(pg_config("--sharedir")) / "extension" / f"{self.extension}.control").exists()


# What says nothing here is as the extension has it by default. That holds for index scans of colcompress and
# hydra, too: they are off, and on they made K7 and K8 of 200,000 rows 48 to 650 times as slow.
KNOWN = (
    Peer("storage_engine colcompress", "storage_engine", "colcompress", "storage_engine",
         "SELECT engine.alter_colcompress_table_set('%s', compression => 'zstd', orderby => 'event_date ASC')", "SELECT engine.colcompress_merge('%s')"),
    Peer("storage_engine rowcompress", "storage_engine", "rowcompress", "storage_engine",
         "SELECT engine.alter_rowcompress_table_set('%s', compression => 'zstd')"),
    Peer("citus_columnar", "citus_columnar", "columnar"),
    Peer("hydra", "columnar", "columnar"),
    Peer("pgcolumnar", "pgcolumnar", "pgcolumnar", "pgcolumnar"),
    # It would make an index of its own, which nobody has before the questions by key, and its library would
    # report the server to its makers.
    Peer("timescaledb", "timescaledb", None, "timescaledb",
         "SELECT create_hypertable('%s', 'event_date', chunk_time_interval => interval '1 month', create_default_indexes => false); "
         "ALTER TABLE %s SET (timescaledb.compress, timescaledb.compress_orderby = 'event_date, created_at')",
         "SELECT compress_chunk(c) FROM show_chunks('%s') c", "hypertable_size('%s')", {"timescaledb.telemetry_level": "off"}),
)


def found():
    """Those whose extension the server has, and whose access method AM does not give another name."""
    if os.environ.get("PEERS") == "0":
        return []
    return [peer for peer in KNOWN if peer.is_there() and methods.translated(peer.method or "") == (peer.method or "")]


def reason(problem):
    """What a refusal says, in a line."""
    text = str(problem)
    if "the session ended" in text or "closed the connection" in text:
        return "the server ended the session: a crash?"
    lines = [line for line in text.splitlines() if line.strip()] or [type(problem).__name__]
    line = next((line for line in lines if "ERROR:" in line or "FATAL:" in line), lines[0])
    return line[max(line.find("ERROR:"), line.find("FATAL:"), 0):]


class Engine(race.Postgres):
    """A peer in a race. Where it fails it has no answer, and `problem` says why."""

    def __init__(self, peer, server, table):
        self.problem, self.gone = None, False
        self.again = lambda: super(Engine, self).__init__(peer.name, server, DATABASE, table)
        self.again()

    def use(self, threads):
        if not self.gone:
            self.gone = not self._use(threads)

    def _use(self, threads, patience=120):
        """Opens a session anew where the last one has ended, as soon as the server is up again. Is there one?
        """
        try:
            super().use(threads)
            return True
        except REFUSALS:
            self.close()
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                self.again()
                super().use(threads)
                return True
            except REFUSALS:
                time.sleep(0.5)
        return False

    def run(self, text):
        if self.gone:
            self.problem = "its server did not come up again"
            return race.Run(None, None, None)
        try:
            run = super().run(text)
        except REFUSALS as problem:
            self.problem = reason(problem)
            # The session may have ended, which shows where it is used.
            self.use(self.threads)
            return race.Run(None, None, None)
        if run.wall is None:
            self.problem = "stopped: it took too long"
        return run

    def differs(self, run, expected, question):
        """What differs from heap's answer, or None."""
        try:
            return kit.compare(run.rows, expected, question.ordered, self.floats(self.words(question)))
        except REFUSALS as problem:
            return reason(problem)


class Race(race.Race):
    """A race in which a peer's failure costs only that peer its time: `record[question][peer]["problem"]`
    says what it was."""

    def peers(self):
        return [engine for engine in self.engines if isinstance(engine, Engine)]

    def ask(self, question):
        for peer in self.peers():
            peer.problem = None
        record = super().ask(question)
        for peer in self.peers():
            if peer.problem:
                record[peer.name] = {"wall_ms": [], "cpu_ms": [], "problem": peer.problem}
                kit.say(f"  {question.name}: {peer.name}: {peer.problem}")
        return record

    def compare(self, question, words, first):
        """Peers are compared first, and taken out where they differ: their answers say nothing of ours."""
        expected = first[self.engines[0].name].rows
        for peer in self.peers():
            run = first[peer.name]
            if run.rows is None or expected is None:
                continue
            fault = peer.differs(run, expected, question)
            if fault:
                peer.problem = f"differs: {fault}"
                first[peer.name] = race.Run(None, None, None)
        return super().compare(question, words, first)


def problems(modes, unloaded):
    """What peers could not do, a line for each peer and reason: the load, or questions, in whichever mode."""
    found = {(name, why): ["the load"] for name, why in unloaded.items()}
    for record in modes.values():
        for question, entry in record.items():
            for name, of in entry.items():
                if isinstance(of, dict) and "problem" in of:
                    asked = found.setdefault((name, of["problem"]), [])
                    asked += [question] if question not in asked else []
    return [f"{name}, {', '.join(asked)}: {why}" for (name, why), asked in found.items()]


class Loaded:
    """A peer's cluster with the rows of a CSV file in one table, and what that took."""

    def __init__(self, peer, source, csv):
        self.peer, self.table = peer, "events_peer"
        end_orderly()
        settings = SETTINGS | peer.settings | ({"shared_preload_libraries": peer.preload} if peer.preload else {})
        self.server = Server(private_base(f"peer_{peer.extension}", temporary=True), settings=settings)
        try:
            self.server.init()
            self.server.start()
            self._load(source, csv)
        except BaseException:
            self.server.destroy()
            raise

    def _load(self, source, csv):
        self.server.sql(f"CREATE DATABASE {DATABASE}")
        self.server.sql(f"CREATE EXTENSION {self.peer.extension} CASCADE", DATABASE)
        self.version = self.server.sql(f"SELECT extversion FROM pg_extension WHERE extname = '{self.peer.extension}'", DATABASE)
        using = f" USING {self.peer.method}" if self.peer.method else ""
        self.server.sql(f"{source}; CREATE TABLE {self.table} (LIKE events_source){using}", DATABASE)
        if self.peer.before:
            self.server.sql(self.peer.before.replace("%s", self.table), DATABASE)
        with self.server.session(DATABASE) as session:
            session.run(kit.SESSION_SETTINGS)
            before = session.cpu_seconds()
            self.load_ms = session.run(f"COPY {self.table} FROM '{csv}' (FORMAT csv)").milliseconds
            if self.peer.after:
                self.load_ms += session.run(self.peer.after.replace("%s", self.table)).milliseconds
            self.load_cpu = session.cpu_seconds() - before
        self.server.sql(f"VACUUM ANALYZE {self.table}", DATABASE)
        self.bytes = int(self.server.sql(f"SELECT {self.peer.size.replace('%s', self.table)}", DATABASE))

    def engine(self):
        return Engine(self.peer, self.server, self.table)

    def index(self):
        """Both indexes of the questions by key, where the extension takes them."""
        for column in ("id", "user_id"):
            try:
                self.server.sql(f"CREATE INDEX ON {self.table} ({column})", DATABASE)
            except ServerError as problem:
                kit.say(f"  {self.peer.name} has no index on {column}: {reason(problem)}")

    def destroy(self):
        self.server.destroy()
