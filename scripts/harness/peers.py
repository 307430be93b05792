"""Columnar extensions of others that the user's server has: found, never required.

Called by bench/events.py. Each gets a cluster of its own without Colonnade, with its library preloaded alone:
their hooks meet in one server, and storage_engine has our access methods' names. `PEERS=0` leaves them out.
"""

import os
from pathlib import Path

from . import kit, methods
from .race import Postgres
from .server import Server, ServerError, end_orderly, pg_config, private_base

DATABASE = "bench"


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


class Loaded:
    """A peer's cluster with the rows of a CSV file in one table, and what that took."""

    def __init__(self, peer, source, csv):
        self.peer, self.table = peer, "events_peer"
        end_orderly()
        settings = kit.SERVER_SETTINGS | peer.settings | ({"shared_preload_libraries": peer.preload} if peer.preload else {})
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
        return Postgres(self.peer.name, self.server, DATABASE, self.table)

    def index(self):
        """Both indexes of the questions by key, where the extension takes them."""
        for column in ("id", "user_id"):
            try:
                self.server.sql(f"CREATE INDEX ON {self.table} ({column})", DATABASE)
            except ServerError as problem:
                kit.say(f"  {self.peer.name} has no index on {column}: {str(problem).splitlines()[0]}")

    def destroy(self):
        self.server.destroy()
