"""SQLite libraries that load the extension, behind one way to ask them.

Who calls it: the programs of tests/sqlite. COLONNADE_SQLITE is the library under test, COLONNADE_HOST which
SQLite loads it: `debian`, the one that /usr/bin/python3 is linked with (3.40), or `apsw`, a newer one of
PyPI.
"""

import os
import sqlite3
import tempfile
from contextlib import contextmanager
from pathlib import Path

LIBRARY = os.environ.get("COLONNADE_SQLITE", "")
HOST = os.environ.get("COLONNADE_HOST", "debian")
if HOST == "apsw":
    import apsw


class SqlError(Exception):
    """An error that a statement has raised: its text."""


class Connection:
    """A connection with the extension loaded, without transactions of the driver's own."""

    def __init__(self, path=":memory:", timeout=5.0):
        if HOST == "apsw":
            self.db = apsw.Connection(str(path))
            self.db.enable_load_extension(True)
            self.db.load_extension(LIBRARY)
            self.db.set_busy_timeout(int(timeout * 1000))
            self.errors = (apsw.Error, TypeError)
        else:
            self.db = sqlite3.connect(path, isolation_level=None, timeout=timeout, check_same_thread=False)
            self.db.enable_load_extension(True)
            self.db.load_extension(LIBRARY)
            # Text need not be UTF-8.
            self.db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            self.errors = (sqlite3.Error, sqlite3.Warning)

    def sql(self, statement, values=()):
        """The rows of a statement."""
        try:
            return [tuple(row) for row in self.db.cursor().execute(statement, values)]
        except self.errors as error:
            text = str(error)
            # One of the hosts begins its texts with the name of the code.
            for name in ("SQLError: ", "ConstraintError: ", "MismatchError: ", "CorruptError: ", "BusyError: "):
                text = text.removeprefix(name)
            raise SqlError(text) from None

    def function(self, name, count, body):
        """Makes a function of SQL from one of Python with this many arguments."""
        if HOST == "apsw":
            self.db.create_scalar_function(name, body, count)
        else:
            self.db.create_function(name, count, body)

    def many(self, statement, rows):
        """Runs a statement once for each row of values."""
        try:
            self.db.cursor().executemany(statement, rows)
        except self.errors as error:
            raise SqlError(str(error)) from None

    def value(self, statement, values=()):
        """The first column of the first row."""
        return self.sql(statement, values)[0][0]

    def error(self, statement, values=()):
        """The text of the error that a statement raises. None if it raises none."""
        try:
            self.sql(statement, values)
        except SqlError as error:
            return str(error)
        return None

    def close(self):
        self.db.close()


def near(a, b):
    """Whether two values are the same, but for the order in which reals were added."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1)
    return type(a) is type(b) and a == b


def alike(plain, columnar):
    """Whether two lists of rows are so, in this order."""
    return len(plain) == len(columnar) and all(len(a) == len(b) and all(map(near, a, b)) for a, b in zip(plain, columnar))


def by_value(row):
    """The key by which rows are sorted that may come in any order."""
    return [(type(value).__name__ if value is not None else "", f"{value + 0.0:.12g}" if isinstance(value, float) else str(value)) for value in row]


def in_engine(db, query, values=()):
    """The rows of a query in the vectorised engine."""
    db.sql("DROP TABLE IF EXISTS temp.q")
    db.sql(f"CREATE VIRTUAL TABLE temp.q USING columnar_query('{query.replace(chr(39), chr(39) * 2)}')")
    return db.sql(f"SELECT * FROM q({', '.join('?' * len(values))})" if values else "SELECT * FROM q", values)


def statements(script):
    """The statements of a script, as the SQLite library tells where one ends."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text.strip()
            text = ""
    if text.strip():
        yield text.strip()


def version():
    """The SQLite library's version, as a tuple of numbers."""
    text = apsw.sqlitelibversion() if HOST == "apsw" else sqlite3.sqlite_version
    return tuple(int(part) for part in text.split("."))


@contextmanager
def database():
    """The path of a database file that goes at the end, with what belongs to it."""
    with tempfile.TemporaryDirectory(prefix="colonnade-sqlite-") as folder:
        yield Path(folder) / "test.db"


def count(rows):
    """SQL for a table `n(i)` of the numbers from 1 on."""
    return f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"


class Twins:
    """A columnar table `c` and a plain table `p` with the same definition, which are changed by the same
    statements. `@` stands for the table's name."""

    def __init__(self, connection, definition, options=""):
        self.on = connection
        columns = f"{definition}, {options}" if options else definition
        connection.sql(f"CREATE VIRTUAL TABLE c USING columnar({columns})")
        connection.sql(f"CREATE TABLE p({definition})")

    def run(self, statement, values=()):
        """Both answers, or the errors, which have to be alike. The answer of the plain table."""
        answers = [self.answer(statement.replace("@", name), values, name) for name in "pc"]
        assert answers[0] == answers[1], f"{statement}: {difference(*answers)}"
        return answers[0]

    def answer(self, statement, values, name):
        try:
            rows = self.on.sql(statement, values)
        except SqlError as error:
            return str(error).replace(f"{name}.", "@.")
        # Only ORDER BY says how rows come.
        return rows if "ORDER BY" in statement else sorted(rows, key=repr)

    def expect_same(self):
        """All rows are the same, with their ids and their storage classes."""
        self.run("SELECT rowid, * FROM @ ORDER BY rowid")


def difference(plain, columnar):
    """Where two answers differ first."""
    if isinstance(plain, str) or isinstance(columnar, str):
        return f"{str(columnar)[:300]} where a plain table gives {str(plain)[:300]}"
    for at, (a, b) in enumerate(zip(plain, columnar)):
        if a != b:
            return f"row {at} of {len(columnar)} is {b!r}, of a plain table's {len(plain)} {a!r}"
    return f"{len(columnar)} rows where a plain table gives {len(plain)}"
