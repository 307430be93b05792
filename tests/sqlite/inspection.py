"""What a table is made of, conversions there and back, and damage: bytes that were changed are errors, never
wrong answers and never the end of the process."""

import os
import random
import sys

from harness.checks import Checks
from harness.sqlite import Connection, SqlError, count, database, version

SEED = int(os.environ.get("COLONNADE_SEED") or 20261127)
LONG = os.environ.get("COLONNADE_LONG") == "1"
FLIPS = 4000 if LONG else 400
CHECKS = Checks("inspection", SEED)
DEFINITION = "id INTEGER PRIMARY KEY, day TEXT COLLATE NOCASE NOT NULL, v REAL, d DECIMAL(5,2), x"
ROWS = f"{count(15_000)} SELECT i * 2, 'day ' || (i % 50), i * 0.5, i % 10 + (i % 3) * 0.5, CASE i % 4 WHEN 0 THEN 'text ' || i WHEN 1 THEN i END FROM n"


def conversions():
    with CHECKS.part("a plain table becomes columnar and plain again, with all that it holds"):
        on = Connection()
        on.sql(f"CREATE TABLE e({DEFINITION})")
        on.sql(f"INSERT INTO e {ROWS}")
        before = on.sql("SELECT *, typeof(d), typeof(x) FROM e ORDER BY id")
        assert on.value("SELECT columnar_convert('e', 'chunk_rows=2000')") == 15_000
        assert "VIRTUAL" in on.value("SELECT sql FROM sqlite_master WHERE name = 'e'")
        assert on.sql("SELECT *, typeof(d), typeof(x) FROM e ORDER BY id") == before
        assert on.error("INSERT INTO e VALUES (1, NULL, 1, 1, 1)") == "NOT NULL constraint failed: e.day"
        on.sql("DELETE FROM e WHERE id > 20000")
        assert on.value("SELECT columnar_revert('main.e')") == 10_000
        assert on.sql("SELECT type, name FROM sqlite_master") == [("table", "e")], "a shadow table is left"
        assert on.sql("SELECT *, typeof(d), typeof(x) FROM e ORDER BY id") == before[:10_000]
        for statement, says in (("CREATE INDEX i ON e(v)", "index i"), ("DROP INDEX i; CREATE TRIGGER g AFTER INSERT ON e BEGIN SELECT 1; END", "trigger g")):
            for part in statement.split("; ") if "TRIGGER" not in statement else ("DROP INDEX i", "CREATE TRIGGER g AFTER INSERT ON e BEGIN SELECT 1; END"):
                on.sql(part)
            error = on.error("SELECT columnar_convert('e')") or "no error"
            assert says in error, error
        for definition in ("a DEFAULT 5", "a UNIQUE", "a INTEGER PRIMARY KEY AUTOINCREMENT", "a CHECK (a > 0)", "a PRIMARY KEY) WITHOUT ROWID --"):
            on.sql(f"CREATE TABLE o({definition}\n)") if "--" not in definition else on.sql("CREATE TABLE o(a PRIMARY KEY) WITHOUT ROWID")
            assert on.error("SELECT columnar_convert('o')"), definition
            assert on.value("SELECT count(*) FROM o") == 0
            on.sql("DROP TABLE o")
        assert "no such table" in (on.error("SELECT columnar_convert('nothing')") or "")
        on.sql("CREATE TABLE parent(id INTEGER PRIMARY KEY)")
        on.sql("CREATE TABLE child(a REFERENCES parent(id) ON DELETE CASCADE)")
        assert "child references it" in (on.error("SELECT columnar_convert('parent')") or ""), "a table that others reference"
        on.sql("CREATE TABLE made(a INTEGER, b AS (a * 2))")
        assert "generated column" in (on.error("SELECT columnar_convert('made')") or "")
        on.sql("CREATE TABLE names(default_x INTEGER, check_y)")
        assert on.value("SELECT columnar_convert('names')") == 0, "a word in a name"
        on.sql("CREATE TABLE main.twice(a)")
        on.sql("CREATE VIRTUAL TABLE temp.twice USING columnar(a, b)")
        on.sql("INSERT INTO temp.twice VALUES (1, 2)")
        assert on.value("SELECT columnar_count('twice')") == 1, "temp comes first"
        assert on.value("SELECT columnar_revert('twice')") == 1
        assert on.sql("SELECT * FROM temp.twice") == [(1, 2)], "the columns of another table of that name"
        on.sql("CREATE TABLE two(a)")
        on.sql("INSERT INTO two VALUES (1)")
        assert on.error("SELECT columnar_convert('two', 'chunk_rows=1')"), "a bad option"
        assert "is not an option" in (on.error("SELECT columnar_convert('two', 'extra TEXT')") or "")
        assert on.sql("SELECT * FROM two") == [(1,)], "a conversion that failed left something"
        on.close()


def information():
    with CHECKS.part("columnar_info, columnar_stripes, columnar_verify and columnar_analyze"):
        on = Connection()
        on.sql(f"CREATE VIRTUAL TABLE c USING columnar({DEFINITION}, stripe_rows=5000, chunk_rows=1000)")
        assert on.sql("SELECT * FROM columnar_stripes('c')") == []
        on.sql(f"INSERT INTO c {ROWS}")
        on.sql("DELETE FROM c WHERE id = 4")
        on.sql("INSERT INTO c VALUES (1, 'tail', 1, 1, 1)")
        columns = on.sql("SELECT name, declared, stripes, rows, nulls, kinds FROM columnar_info('c')")
        assert [row[:2] for row in columns] == [("id", "INTEGER"), ("day", "TEXT"), ("v", "REAL"), ("d", "DECIMAL(5,2)"), ("x", "")], columns
        assert columns[4][2:] == (3, 15_000, 7500, "mixed") and columns[3][5] == "number", columns
        assert on.value("SELECT sum(bytes) FROM columnar_info('c')") < on.value("SELECT sum(bytes) FROM columnar_stripes('c')")
        assert on.sql("SELECT rows, dead_rows, least_rowid, greatest_rowid FROM columnar_stripes('c')")[0] == (5000, 1, 2, 10_000)
        assert on.sql("SELECT * FROM columnar_verify('c')") == []
        assert on.value("SELECT columnar_analyze('c')") == 0
        on.close()


def damage():
    questions = ("SELECT count(*), sum(id), sum(v), sum(d), count(x), min(day) FROM c", "SELECT * FROM c WHERE id = 4002", "SELECT * FROM c WHERE v > 7490",
                 "SELECT day, count(*) FROM c GROUP BY day", "SELECT columnar_sum('c', 'v')", "SELECT * FROM columnar_group_sum('c', 'day', 'd')", "SELECT x FROM c WHERE id BETWEEN 100 AND 140")
    with CHECKS.part(f"{FLIPS} changes of stored bytes are errors or change no answer") as tell, database() as path:
        rng = random.Random(SEED)
        on = Connection(path)
        on.sql(f"CREATE VIRTUAL TABLE c USING columnar({DEFINITION}, stripe_rows=5000, chunk_rows=1000)")
        on.sql(f"INSERT INTO c {ROWS}")
        right = [on.sql(question) for question in questions]
        segments = [row[0] for row in on.sql("SELECT id FROM c_bytes")]
        errors = found = 0
        for _ in range(FLIPS):
            table, column = rng.choice((("c_bytes", "data"), ("c_bytes", "data"), ("c_bytes", "data"), ("c_stripe", "summary"), ("c_stripe", "kinds")))
            key = rng.choice(segments) if table == "c_bytes" else rng.randint(1, 3)
            whole = on.value(f"SELECT {column} FROM {table} WHERE id = ?", (key,))
            data = bytearray(whole)
            kind = rng.random()
            if kind < 0.9:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            else:
                del data[rng.randrange(len(data)):]
            on.sql(f"UPDATE {table} SET {column} = ? WHERE id = ?", (bytes(data), key))
            # It remembers nothing.
            other = Connection(path)
            for question, expected in zip(questions, right):
                try:
                    answer = other.sql(question)
                except SqlError:
                    errors += 1
                else:
                    assert answer == expected, f"{table} {key}: {question} gives {answer[:2]} where {expected[:2]} is right"
            try:
                found += bool(other.sql("SELECT * FROM columnar_verify('c')"))
            except SqlError:
                found += 1
            if version() >= (3, 44):
                faults = other.sql("PRAGMA integrity_check")
                assert faults, "integrity_check says nothing"
            other.close()
            on.sql(f"UPDATE {table} SET {column} = ? WHERE id = ?", (whole, key))
        tell(f"{errors} errors, verify finds {found}")
        assert found > FLIPS * 0.9 and errors > FLIPS, "premise: damage was met"
        on.close()


def main():
    for part in (conversions, information, damage):
        part()
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
