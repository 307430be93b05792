"""columnar_import and columnar_export: rows of Parquet and CSV files into tables, and of queries into files.
"""

import datetime
import decimal
import os
import random
import sys
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path

from harness.checks import Checks
from harness.spoil import spoiled
from harness.sqlite import HOST, Connection, SqlError, count

SEED = int(os.environ.get("COLONNADE_SEED") or 20261127)
FLIPS = 2000 if os.environ.get("COLONNADE_LONG") == "1" else 100
CHECKS = Checks("transfer", SEED)
DEFINITION = "i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC, z"
# Text that needs quotes, numbers at the ends of their ranges, NULL and what looks like it.
FILL = """INSERT INTO p {numbers} SELECT CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 9223372036854775807 WHEN 2 THEN -i ELSE i END,
    CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 1e300 WHEN 2 THEN 0.1 ELSE i / 7.0 END,
    CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'a,"b"' WHEN 3 THEN 'two' || char(10) || 'lines' WHEN 4 THEN 'é€😀' ELSE 'text ' || i END,
    CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN x'00ff22' ELSE x'' END, CASE i % 2 WHEN 0 THEN i ELSE i + 0.25 END, NULL FROM n"""


@contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="colonnade-sqlite-") as path:
        yield Path(path)


def filled(rows):
    on = Connection()
    on.sql(f"CREATE TABLE p({DEFINITION})")
    if rows:
        on.sql(FILL.format(numbers=count(rows)))
    return on


COLUMNS = "i, r, t, b, n * 1.0, z"


def same(on, columns=COLUMNS, table="c"):
    plain, found = (on.sql(f"SELECT {columns} FROM {name} ORDER BY rowid") for name in ("p", table))
    assert plain == found and list(map(repr, plain)) == list(map(repr, found)), [pair for pair in zip(plain, found) if repr(pair[0]) != repr(pair[1])][:3]


def there_and_back():
    for rows, options in ((0, ""), (1, ""), (1000, ", 'compression=snappy'"), (30_000, ", 'row_group_rows=7000'"), (30_000, ", 'compression=none'")):
        with CHECKS.part(f"{rows} rows go to Parquet and come back{options}"), folder() as place:
            on = filled(rows)
            assert on.value(f"SELECT columnar_export('p', ?{options})", (f"{place}/p.parquet",)) == rows
            assert sorted(path.name for path in place.iterdir()) == ["p.parquet"]
            if rows > 1:
                assert on.value("SELECT columnar_import('c', ?)", (f"{place}/p.parquet",)) == rows
                same(on)
                assert on.sql("SELECT * FROM columnar_verify('c')") == []
            on.sql(f"CREATE TABLE d({DEFINITION})")
            assert on.value("SELECT columnar_import('d', ?)", (f"{place}/p.parquet",)) == rows
            same(on, table="d")
            on.close()
    for rows, options in ((1000, ""), (30_000, ", 'delimiter=;', 'null=nil'"), (1000, ", 'header=no', 'delimiter=\t', 'quote=|'")):
        with CHECKS.part(f"{rows} rows go to CSV and come back{options!r}"), folder() as place:
            on = filled(rows)
            columns = "i, r, t, n"
            assert on.value(f"SELECT columnar_export('SELECT {columns} FROM p;', ?{options})", (f"{place}/p.csv",)) == rows
            assert on.value(f"SELECT columnar_import('c', ?{options}, 'stripe_rows=20000')", (f"{place}/p.csv",)) == rows
            if "header=no" in options:
                on.sql("CREATE VIEW v AS SELECT rowid, c1 AS i, c2 AS r, c3 AS t, c4 AS n FROM c")
                same(on, "i, r, t, n * 1.0", "v")
            else:
                assert [row[2] for row in on.sql("PRAGMA table_info(c)")] == ["INTEGER", "REAL", "TEXT", "REAL"]
                same(on, "i, r, t, n * 1.0")
            on.close()


def kinds_that_change():
    with CHECKS.part("a column's type is found out however late its values come"), folder() as place:
        on = Connection()
        on.sql("CREATE TABLE p(a, b, c)")
        on.sql(f"INSERT INTO p {count(5000)} SELECT i, NULL, NULL FROM n")
        on.sql("INSERT INTO p VALUES (0.5, 'late', x'00')")
        assert on.value("SELECT columnar_export('p', ?, 'row_group_rows=1000')", (f"{place}/p.parquet",)) == 5001
        on.value("SELECT columnar_import('c', ?)", (f"{place}/p.parquet",))
        same(on, "a * 1.0, b, c")
        on.sql("INSERT INTO p VALUES (9007199254740993, '', NULL)")
        for rows, expected in ((1000, "reals beside integers past 2^53"), (1, "9007199254740993 stands beside reals")):
            assert expected in on.error(f"SELECT columnar_export('p', ?, 'row_group_rows={rows}')", (f"{place}/p.parquet",)), expected
        on.sql("UPDATE p SET a = 'text' WHERE a = 17")
        assert "column a has values of several classes" in on.error("SELECT columnar_export('p', ?)", (f"{place}/p.parquet",))
        # The file from before is whole still.
        assert on.value("SELECT columnar_import('d', ?)", (f"{place}/p.parquet",)) == 5001
        assert [path.name for path in place.iterdir()] == ["p.parquet"]
        on.close()


def guesses():
    with CHECKS.part("CSV: types of new tables, names, NULL and empty text"), folder() as place:
        on = Connection()
        (place / "a.csv").write_bytes(b'\xef\xbb\xbfid,zip,share,,"a ""name"""\r\n1,007,0.5,,x\r\n2,123,2,"",\r\n\r\n-3,5,1e3,y,""\r\n')
        assert on.value("SELECT columnar_import('a', ?)", (f"{place}/a.csv",)) == 3
        assert [row[1:3] for row in on.sql("PRAGMA table_info(a)")] == [("id", "INTEGER"), ("zip", "TEXT"), ("share", "REAL"), ("c4", "TEXT"), ('a "name"', "TEXT")]
        assert on.sql("SELECT * FROM a") == [(1, "007", 0.5, None, "x"), (2, "123", 2.0, "", None), (-3, "5", 1000.0, "y", "")]
        assert on.value("SELECT columnar_import('b', ?, 'columns=share,id', 'orderby=id')", (f"{place}/a.csv",)) == 3
        assert sorted(on.sql("SELECT * FROM b")) == [(0.5, 1), (2.0, 2), (1000.0, -3)]
        # Into a table that is there, by name; what it has more is NULL.
        on.sql("CREATE TABLE there(more, ZIP INTEGER, id)")
        on.value("SELECT columnar_import('main.there', ?, 'columns=id,zip')", (f"{place}/a.csv",))
        assert on.sql("SELECT * FROM there") == [(None, 7, "1"), (None, 123, "2"), (None, 5, "-3")]
        on.close()


def mistakes():
    with CHECKS.part("mistakes are errors that change nothing"), folder() as place:
        on = Connection()
        on.sql("CREATE TABLE p(a INTEGER PRIMARY KEY, b TEXT CHECK (b <> 'bad'))")
        on.sql("INSERT INTO p VALUES (1, 'one')")
        on.sql("CREATE VIRTUAL TABLE c USING columnar(a INTEGER NOT NULL, b)")
        on.sql("CREATE TABLE rolls(a UNIQUE ON CONFLICT ROLLBACK)")
        files = {"short.csv": b"a,b\n2,x\n3\n", "bad.csv": b"a,b\n2,x\n3,bad\n", "twice.csv": b"a,b\n2,x\n1,y\n", "other.csv": b"a,z\n1,2\n",
                 "null.csv": b"a,b\n1,2\n,3\n", "empty.csv": b"", "bad.parquet": b"PAR1 is not all", "no.ending": b"a\n1\n", "open.csv": b'a,b\n1,x\n2,"abc\n3,def\n', "same.csv": b"A,a\n1,2\n", "rolls.csv": b"a\n1\n1\n"}
        for name, content in files.items():
            (place / name).write_bytes(content)
        for table, name, options, expected in (
                ("p", "short.csv", "", "record 3 has 1 fields where the first has 2"), ("p", "bad.csv", "", "CHECK constraint failed"),
                ("p", "twice.csv", "", "UNIQUE constraint failed: p.a"), ("p", "other.csv", "", "p has no column z"),
                ("c", "null.csv", "", "NOT NULL constraint failed: c.a"), ("new", "empty.csv", "", "has no columns"),
                ("new", "bad.parquet", "", "bad.parquet: "), ("new", "no.ending", "", "add 'format=csv' or 'format=parquet'"),
                ("new", "missing.csv", "", "missing.csv: No such file"), ("new", "bad.csv", ", 'colums=a'", "columnar has no option 'colums'"),
                ("p", "bad.csv", ", 'orderby=a'", "is no option of an import into a table that is there"),
                ("new", "bad.csv", ", 'header'", "'header' is not an option"), ("new", "bad.csv", ", 'header=maybe'", "header must be yes or no"),
                ("new", "bad.csv", ", 'delimiter=ab'", "delimiter must be one byte"), ("new", "bad.csv", ", 'columns=a,x'", "the file has no column x"),
                ("new", "open.csv", "", "record 3: a quote is not closed"), ("new", "same.csv", "", "the file has two columns A"),
                ("p", "bad.csv", ", 'columns=a,A'", "the file has two columns a"), ("new", "bad.csv", ", 'null=x,y'", "null must have no delimiter"),
                ("new", "bad.csv", ", 'quote=;', 'delimiter=;'", "delimiter and quote must differ"), ("rolls", "rolls.csv", "", "UNIQUE constraint failed: rolls.a"),
                ("new", "bad.parquet", ", 'null=x'", "'null' is an option of the other format"), ("new", "bad.csv", ", 'progress=nobody'", "no such function: nobody")):
            error = on.error(f"SELECT columnar_import('{table}', ?{options})", (f"{place}/{name}",))
            assert error and expected in error, f"{name}{options}: {error}"
            assert on.sql("SELECT * FROM p") == [(1, "one")] and on.value("SELECT count(*) FROM c") == 0, name
            assert on.value("SELECT count(*) FROM sqlite_schema WHERE name = 'new'") == 0, name
        for what, name, options, expected in (
                ("absent", "x.csv", "", "no such table: absent"), ("DELETE FROM p", "x.csv", "", "takes a table or a SELECT"), ("SELECT 1; SELECT 2", "x.csv", "", "one statement is expected"), ("SELECT absent", "x.csv", "", "no such column"),
                ("p", "none/x.csv", "", "none/x.csv: No such file"), ("p", "x.csv", ", 'compression=zstd'", "'compression' is an option of the other format"),
                ("p", "x.parquet", ", 'compression=zip'", "compression must be one of none, snappy"), ("SELECT NULL", "x.csv", "", "needs a text that stands for it")):
            error = on.error(f"SELECT columnar_export('{what}', ?{options})", (f"{place}/{name}",))
            assert error and expected in error, f"{what} {name}{options}: {error}"
        assert sorted(path.name for path in place.iterdir()) == sorted(files), "something was left behind"
        for function in ("columnar_import('p', 'x.csv')", "columnar_export('p', 'x.csv')"):
            on.sql(f"CREATE VIEW v AS SELECT {function}")
            assert "unsafe use" in on.error("SELECT * FROM v"), "called by a view"
            on.sql("DROP VIEW v")
        # In a transaction of the user's, what came before stays.
        on.sql("BEGIN")
        on.sql("INSERT INTO p VALUES (5, 'five')")
        assert on.error("SELECT columnar_import('p', ?)", (f"{place}/twice.csv",))
        on.sql("COMMIT")
        assert on.sql("SELECT a FROM p") == [(1,), (5,)]
        on.close()


def all_rows():
    for options, rows in (("", 132_000), (", 'stripe_rows=5000', 'chunk_rows=1000'", 12_000), (", 'stripe_rows=5000', 'chunk_rows=1000', 'orderby=t DESC'", 100_000)):
        with CHECKS.part(f"{rows} rows are there after the end of the connection{options}"), folder() as place:
            on = Connection(f"{place}/a.db")
            on.sql("CREATE TABLE p(i INTEGER, t TEXT)")
            on.sql(f"INSERT INTO p {count(rows)} SELECT i, 'text ' || (i * 7919 % 1000) FROM n")
            on.value("SELECT columnar_export('p', ?, 'row_group_rows=50000')", (f"{place}/p.parquet",))
            on.value("SELECT columnar_export('p', ?)", (f"{place}/p.csv",))
            for name in ("parquet", "csv"):
                assert on.value(f"SELECT columnar_import('{name}', ?{options})", (f"{place}/p.{name}",)) == rows
            on.close()
            on = Connection(f"{place}/a.db")
            for name in ("parquet", "csv"):
                assert on.sql(f"SELECT count(*), sum(i), sum(length(t)) FROM {name}") == on.sql("SELECT count(*), sum(i), sum(length(t)) FROM p"), name
                assert on.value(f"SELECT max(rows) FROM {name}_stripe") <= (5000 if options else 131_072)
                on.sql(f"INSERT INTO {name} VALUES (1, 'x')")
                assert on.sql(f"SELECT * FROM columnar_verify('{name}')") == []
            on.close()


def cut_short():
    def is_open(on):
        return on.db.in_transaction
    for in_transaction in (False, True):
        with CHECKS.part(f"an import that is interrupted leaves nothing{' in a transaction' * in_transaction}"), folder() as place:
            (place / "a.csv").write_text("a,b\n" + "".join(f"{i},text {i}\n" for i in range(400_000)))
            on = Connection(f"{place}/a.db")
            on.sql("CREATE VIRTUAL TABLE t USING columnar(a, b)")
            on.sql("CREATE TABLE p(a, b)")
            on.function("stop", 2, lambda rows, share: on.db.interrupt())
            for table in ("t", "p", "made"):
                if in_transaction:
                    on.sql("BEGIN")
                    on.sql("INSERT INTO p VALUES (1, 2)")
                try:
                    on.sql(f"SELECT columnar_import('{table}', ?, 'progress=stop')", (f"{place}/a.csv",))
                    raise AssertionError("it went on")
                except Exception as error:
                    assert "interrupt" in str(error).lower(), error
                assert not is_open(on), f"{table}: a transaction is open"
                assert on.sql("SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM p)") == [(0, 0)], table
                assert on.value("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'made%'") == 0
            assert on.value("SELECT columnar_import('made', ?)", (f"{place}/a.csv",)) == 400_000
            on.close()
    with CHECKS.part("an import that cannot be committed leaves nothing"), folder() as place:
        (place / "a.csv").write_text("a\n1\n2\n")
        on, other = Connection(f"{place}/a.db", timeout=0.1), Connection(f"{place}/a.db")
        on.sql("CREATE VIRTUAL TABLE t USING columnar(a)")
        on.sql("CREATE TABLE p(a)")
        on.sql("INSERT INTO p VALUES (1), (2), (3)")
        reader = iter(other.db.cursor().execute("SELECT * FROM p"))
        next(reader)
        for statement in ("SELECT columnar_import('t', ?)", "SELECT columnar_import('made', ?)"):
            assert "locked" in on.error(statement, (f"{place}/a.csv",)), statement
            assert not is_open(on), "a transaction is open"
        assert "locked" in on.error("SELECT columnar_convert('p')")
        assert not is_open(on), "a transaction is open"
        del reader
        other.close()
        assert on.value("SELECT count(*) FROM t") == 0 and on.value("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'made%'") == 0
        assert on.value("SELECT columnar_convert('p')") == 3
        on.close()


def places():
    with CHECKS.part("a link stays, rights stay, and names that look like queries are tables"), folder() as place:
        on = Connection()
        for name in ("values_2024", "with_tax", "select1", "select me"):
            on.sql(f'CREATE TABLE "{name}"(a)')
            on.sql(f'INSERT INTO "{name}" VALUES (5)')
            assert on.value("SELECT columnar_export(?, ?)", (name, f"{place}/x.csv")) == 1
        assert on.value("SELECT columnar_export('/* all of it */ SELECT a FROM select1; -- no more', ?)", (f"{place}/x.csv",)) == 1
        (place / "x.csv").chmod(0o600)
        (place / "link.csv").symlink_to(place / "x.csv")
        on.value("SELECT columnar_export('SELECT 7 AS b', ?)", (f"{place}/link.csv",))
        assert (place / "link.csv").is_symlink() and (place / "x.csv").read_text() == "b\n7\n" and (place / "x.csv").stat().st_mode & 0o777 == 0o600
        on.sql("CREATE TEMP TABLE o(x)")
        on.sql("CREATE TEMP TRIGGER select1 AFTER INSERT ON o BEGIN SELECT 1; END")
        (place / "y.csv").write_text("a\n6\n")
        on.value("SELECT columnar_import('select1', ?)", (f"{place}/y.csv",))
        assert on.sql("SELECT a FROM main.select1") == [(5,), ("6",)]
        assert "not UTF-8" in on.error("SELECT columnar_export('SELECT CAST(x''ff'' AS TEXT) AS t', ?)", (f"{place}/z.parquet",))
        on.close()


def progress():
    with CHECKS.part("a function is told how far it is, and may end it"), folder() as place:
        on = Connection()
        told = []
        on.function("tell", 2, lambda rows, share: told.append((rows, share)))
        (place / "a.csv").write_text("a,b\n" + "".join(f"{i},text {i}\n" for i in range(400_000)))
        on.value("SELECT columnar_import('a', ?, 'progress=tell')", (f"{place}/a.csv",))
        assert told[-1] == (400_000, 1.0) and told == sorted(told) and all(0 < share <= 1 for _, share in told), told
        told.clear()
        on.value("SELECT columnar_export('a', ?, 'progress=tell')", (f"{place}/b.parquet",))
        assert told[-1] == (400_000, 1.0)
        on.function("refuse", 2, lambda rows, share: 1 // 0)
        try:
            on.sql("SELECT columnar_import('b', ?, 'progress=refuse')", (f"{place}/a.csv",))
            raise AssertionError("the import went on")
        except (SqlError, ZeroDivisionError):
            pass
        assert on.value("SELECT count(*) FROM sqlite_schema WHERE name = 'b'") == 0
        on.close()


def others():
    if HOST != "apsw":
        return
    import duckdb
    with CHECKS.part("DuckDB reads what was written, and what DuckDB writes is read"), folder() as place:
        on, duck = filled(20_000), duckdb.connect()
        for codec in ("none", "snappy", "lz4", "zstd", "gzip", "brotli"):
            on.value(f"SELECT columnar_export('SELECT i, r, t, b, n FROM p', ?, 'compression={codec}', 'row_group_rows=6000')", (f"{place}/{codec}.parquet",))
            assert duck.execute(f"SELECT * FROM '{place}/{codec}.parquet'").fetchall() == on.sql("SELECT i, r, t, b, n * 1.0 FROM p ORDER BY rowid"), codec
        on.value("SELECT columnar_export('SELECT i, r, t FROM p', ?)", (f"{place}/p.csv",))
        assert duck.execute(f"SELECT i, r, t FROM read_csv('{place}/p.csv', allow_quoted_nulls = false)").fetchall() == on.sql("SELECT i, r, t FROM p ORDER BY rowid")
        duck.execute("""CREATE TABLE t AS SELECT i::TINYINT AS i8, i::UINTEGER AS u32, (i * 9007199254740993)::UBIGINT AS u64, i % 2 = 0 AS truth, i / 7.0::FLOAT AS f32,
            DATE '2000-02-28' + i::INTEGER AS day, TIME '00:00:00' + to_microseconds(i * 86399) AS clock, TIMESTAMP '1969-12-31 23:59:59' + to_milliseconds(i * 501) AS moment,
            (i / 7.0)::DECIMAL(9, 2) AS small, (i * 12345678901234567)::DECIMAL(38, 3) AS great, ('00000000-0000-0000-0000-' || lpad(i::TEXT, 12, '0'))::UUID AS id,
            CASE WHEN i % 3 THEN 'text ' || i END AS text, {'a': i, 'b': CASE WHEN i % 2 THEN 'x' END} AS pair FROM range(100) r(i)""")
        for number, options in enumerate(("", ", COMPRESSION snappy, PARQUET_VERSION v2", ", ROW_GROUP_SIZE 50")):
            duck.execute(f"COPY t TO '{place}/t.parquet' (FORMAT parquet{options})")
            assert on.value(f"SELECT columnar_import('t{number}', ?)", (f"{place}/t.parquet",)) == 100
            expected = duck.execute("SELECT i8, u32, u64, truth, f32, day, clock, moment, small::DOUBLE, great, id, text, pair.a, pair.b FROM t").fetchall()
            for wanted, row in zip(expected, on.sql(f"SELECT * FROM t{number}")):
                # Dates and times are ISO 8601 text, decimals past 15 digits and UUIDs are text.
                shown = [value.isoformat(*" "[:isinstance(value, datetime.datetime)]) if isinstance(value, (datetime.date, datetime.time))
                         else str(value) if isinstance(value, (uuid.UUID, decimal.Decimal)) else value for value in wanted]
                assert shown == list(row), (shown, row)
        # Lists are JSON, and structs if they are asked for; intervals are not read.
        duck.execute(f"COPY (SELECT i8, [1, i8] AS many, pair, INTERVAL 1 DAY AS length FROM t) TO '{place}/t.parquet' (FORMAT parquet)")
        assert "is an interval" in on.error("SELECT columnar_import('u', ?)", (f"{place}/t.parquet",))
        assert on.value("SELECT columnar_import('u', ?, 'columns=I8,Many,pair')", (f"{place}/t.parquet",)) == 100
        found = [tuple(row) for row in on.sql("SELECT typeof(many), many, pair FROM u WHERE i8 = 6")]
        assert found == [("text", "[1,6]", '{"a":6,"b":null}')], found
        on.close()


def spoiled_files():
    with CHECKS.part("spoiled Parquet files are errors, or rows") as tell, folder() as place:
        on = filled(500)
        rng = random.Random(SEED)
        # The reader's assertions are caught. Where each was raised would fill pages.
        os.environ["RUST_BACKTRACE"] = "0"
        errors = 0
        for codec in ("none", "zstd", "snappy"):
            on.value(f"SELECT columnar_export('p', ?, 'compression={codec}')", (f"{place}/p.parquet",))
            whole = (place / "p.parquet").read_bytes()
            for _ in range(FLIPS):
                (place / "s.parquet").write_bytes(spoiled(whole, rng))
                errors += on.error("SELECT columnar_import('s', ?)", (f"{place}/s.parquet",)) is not None
                on.sql("DROP TABLE IF EXISTS s")
        tell(f"{errors} of {3 * FLIPS} were errors")
        on.close()


def main():
    for part in (there_and_back, all_rows, kinds_that_change, guesses, mistakes, cut_short, places, progress, others, spoiled_files):
        part()
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
