"""What a columnar table of SQLite holds and gives is what a plain table does: storage classes, affinities,
row ids, conditions, and changes of single rows and of many."""

import sys

from harness.checks import Checks
from harness.sqlite import Connection, SqlError, Twins, count

CHECKS = Checks("rows")
# A value of each storage class by turns.
MIXED = """CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN i + 0.5 WHEN 3 THEN 'text ' || i
    WHEN 4 THEN CAST('blob ' || i AS BLOB) ELSE CAST(i AS REAL) END"""
DEFINITION = "id INTEGER NOT NULL, region TEXT COLLATE NOCASE, name TEXT, amount REAL, price DECIMAL(10,2), flag BOOLEAN, x"
# Fewer rows stay in the tail; more become a stripe at once; many become several stripes.
SIZES = (500, 10_000, 60_000)
FILL = f"""INSERT INTO @ {{numbers}} SELECT i, CASE WHEN i % 2 THEN 'North ' ELSE 'north ' END || (i % 7), 'name ' || (i % 1000),
    i * 0.25, CASE WHEN i % 3 THEN i ELSE i + 0.25 END, i % 2, {MIXED} FROM n"""
QUESTIONS = (
    "SELECT * FROM @",
    "SELECT count(*), count(x), sum(id), total(amount), min(price), max(price) FROM @",
    "SELECT typeof(x), typeof(price), typeof(amount), count(*) FROM @ GROUP BY 1, 2, 3",
    "SELECT region, count(*) FROM @ GROUP BY region",
    "SELECT * FROM @ WHERE region = 'NORTH 3' AND id < 300",
    "SELECT count(*) FROM @ WHERE id BETWEEN 100 AND 199",
    "SELECT id FROM @ WHERE price > 17.5 AND price <= 30",
    "SELECT id FROM @ WHERE price = '18.25'",
    "SELECT id FROM @ WHERE name = 'name 77'",
    "SELECT id FROM @ WHERE name IN ('name 1', 'name 2', NULL)",
    "SELECT id FROM @ WHERE name > 'name 99' AND id < 2000",
    "SELECT id FROM @ WHERE name LIKE 'name 12%'",
    "SELECT id FROM @ WHERE name GLOB 'name 12*'",
    "SELECT id FROM @ WHERE x = 7",
    "SELECT id FROM @ WHERE x > 'text 5' AND id < 400",
    "SELECT id FROM @ WHERE x >= x'626c6f62' AND id < 400",
    "SELECT id FROM @ WHERE x IS NULL AND id < 400",
    "SELECT count(*) FROM @ WHERE x IS NOT NULL",
    "SELECT id FROM @ WHERE id IN (3, '4', 5.0, 6.5, 'x', NULL)",
    "SELECT id FROM @ WHERE id > 450.5 AND id < 460.25",
    "SELECT id FROM @ WHERE id = NULL",
    "SELECT rowid, id FROM @ WHERE rowid = 42",
    "SELECT rowid, id FROM @ WHERE rowid IN (1, 17, 40000, -3)",
    "SELECT rowid, id FROM @ WHERE rowid > 490 AND rowid <= 510",
    "SELECT id FROM @ WHERE flag AND amount BETWEEN 3 AND 5",
    "SELECT a.id, b.id FROM @ a JOIN @ b ON a.rowid = b.rowid + 1 WHERE a.id < 20",
    "SELECT id FROM @ WHERE amount > '20' AND amount < 25",
    "SELECT id FROM @ WHERE name = 5 OR id = '5'",
    "SELECT id, x FROM @ ORDER BY x, id LIMIT 50",
    "SELECT id, x FROM @ ORDER BY x DESC, id DESC LIMIT 50",
    "SELECT rowid, price FROM @ WHERE id < 900 ORDER BY price DESC, rowid",
    "SELECT id FROM @ ORDER BY name, amount DESC, id LIMIT 30 OFFSET 5",
    "SELECT id FROM @ ORDER BY region, id DESC LIMIT 30",
    "SELECT id FROM @ ORDER BY amount NULLS LAST, id LIMIT 10",
    "SELECT rowid FROM @ ORDER BY rowid DESC LIMIT 10",
    "SELECT id, amount FROM @ WHERE region = 'NORTH 3' ORDER BY amount DESC, id LIMIT 7",
    "SELECT id FROM @ WHERE id % 3 = 1 ORDER BY price, id LIMIT 7 OFFSET 2",
    "SELECT id FROM @ WHERE amount > 20 ORDER BY price DESC, id LIMIT 7 OFFSET 2",
    "SELECT id FROM @ WHERE id < 100 ORDER BY amount LIMIT -1 OFFSET 90",
    "SELECT id FROM @ ORDER BY amount LIMIT 0",
    "SELECT id FROM @ ORDER BY x DESC, id LIMIT 3 OFFSET 100000",
    "SELECT id FROM @ WHERE name IN ('name 1', 'name 2') ORDER BY id DESC LIMIT 3",
    "SELECT id FROM @ WHERE price = id ORDER BY amount, id LIMIT 12",
    "SELECT DISTINCT name FROM @",
    "SELECT DISTINCT flag FROM @ WHERE name > 'x' OR rowid > 400",
    "SELECT DISTINCT flag, price FROM @ WHERE id < 300 ORDER BY price",
    "SELECT DISTINCT typeof(x) FROM @",
    "SELECT max(amount), id FROM @",
    "SELECT max(name) FROM @",
    "SELECT min(id) FROM @",
    "SELECT min(x) FROM @ WHERE id > 7",
    "SELECT name, count(*), sum(id) FROM @ GROUP BY name",
    "SELECT flag, name, max(price), min(amount) FROM @ GROUP BY flag, name HAVING count(*) > 2",
    "SELECT name, sum(id) FROM @ GROUP BY name ORDER BY name DESC",
    "SELECT x, count(*) FROM @ WHERE typeof(x) <> 'real' GROUP BY x",
    "SELECT id, row_number() OVER (PARTITION BY name ORDER BY amount, id), lag(id) OVER (PARTITION BY name ORDER BY amount, id) FROM @ WHERE id < 400 ORDER BY id",
    "SELECT a.name, count(*) FROM @ a JOIN @ b ON a.id = b.id + 500 GROUP BY a.name ORDER BY a.name",
)
CHANGES = (
    "UPDATE @ SET amount = amount + 1 WHERE id BETWEEN 100 AND 300",
    "DELETE FROM @ WHERE id % 7 = 3",
    "INSERT INTO @ VALUES (-5, 'q', 'n', 1, 2, 0, x'00ff')",
    "INSERT INTO @(rowid, id) VALUES (-10, 1)",
    "UPDATE @ SET rowid = rowid + 1000000 WHERE id < 10",
    "UPDATE @ SET x = typeof(x), price = '12.0' WHERE id % 11 = 0",
    "INSERT OR REPLACE INTO @(rowid, id, name) VALUES (20, 77, 'in place of another')",
    "INSERT OR IGNORE INTO @(rowid, id, name) VALUES (20, 78, 'not there')",
    "INSERT INTO @(rowid, id, name) VALUES (20, 78, 'refused')",
    "INSERT INTO @ VALUES (NULL, 'NOT NULL', '', 1, 2, 0, 3)",
    "UPDATE OR IGNORE @ SET rowid = 21 WHERE rowid = 22",
    "UPDATE OR REPLACE @ SET rowid = 21 WHERE rowid = 22",
    "UPDATE @ SET id = NULL WHERE rowid = 25",
    "UPDATE OR FAIL @ SET rowid = 30 WHERE rowid BETWEEN 26 AND 29",
    "INSERT INTO @ SELECT * FROM @ WHERE id < 50 ORDER BY rowid",
    "DELETE FROM @ WHERE rowid > 400",
    "UPDATE @ SET id = 9007199254740993, price = 9007199254740993 WHERE rowid = 5",
    "DELETE FROM @",
)


def rows_of(size):
    with CHECKS.part(f"{size} rows"):
        on = Connection()
        twins = Twins(on, DEFINITION, "stripe_rows=20000, chunk_rows=2000")
        twins.run(FILL.format(numbers=count(size)))
        twins.expect_same()
        for question in QUESTIONS:
            twins.run(question)
        if size >= 20_000:
            assert on.value("SELECT count(*) FROM c_stripe") == 3, "stripes"
        for change in CHANGES:
            twins.run(change)
            twins.expect_same()
            twins.run("SELECT count(*) FROM @")
        assert on.value("SELECT count(*) + (SELECT count(*) FROM c_bytes) FROM c_stripe") == 0, "all rows are dead"
        on.close()


def values():
    with CHECKS.part("values of every kind come back as they are"):
        on = Connection()
        twins = Twins(on, "a, b TEXT, c REAL, d NUMERIC, e INTEGER, f BLOB")
        odd = [None, 0, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0.0, -0.0, 1e308, 5e-324, float("inf"), -float("inf"),
               1e15, 1e16, 0.1, "", "7", " 7 ", "7.0", "7e2", "0x10", "seven", "a\0b", "ü", b"", b"7", b"\0\xff", "1e400", "-", "9223372036854775808"]
        for turn in range(3):
            for first in odd:
                twins.run("INSERT INTO @ VALUES (?1, ?1, ?1, ?1, ?1, ?1)", (first,))
            twins.expect_same()
            # So many that they become a stripe.
            twins.run(f"INSERT INTO @ {count(20_000)} SELECT r.* FROM n, (SELECT * FROM @ WHERE rowid <= {len(odd)}) r WHERE n.i % {len(odd)} = r.rowid - 1 OR {turn} = 2 LIMIT 20000")
            twins.expect_same()
        on.sql("INSERT INTO c(b) VALUES (CAST(x'ff41' AS TEXT))")
        assert on.value("SELECT hex(b) FROM c WHERE rowid = (SELECT max(rowid) FROM c)") == "FF41", "text that is not UTF-8"
        on.sql("DELETE FROM c WHERE rowid = (SELECT max(rowid) FROM c)")
        for constant in ("5", "'5'", "'7'", "7", "7.0", "''", "x'37'", "9007199254740993", "1e16", "-1e400", "9223372036854775807.0"):
            for column in "abcdef":
                for operator in ("=", "<", "<=", ">", ">="):
                    twins.run(f"SELECT count(*), min(rowid), max(rowid) FROM @ WHERE {column} {operator} {constant}")
                twins.run(f"SELECT count(*), max(rowid) FROM @ WHERE {column} IN ({constant}, 8)")
        on.close()


def comparisons():
    with CHECKS.part("comparisons with columns and parameters use the affinities that SQLite's rules say"):
        on = Connection()
        twins = Twins(on, "t TEXT, n NUMERIC, b")
        on.sql("CREATE TABLE other(t TEXT, n NUMERIC, b)")
        for name in ("@", "other"):
            for row in (("5", 5, 5), ("05", 5.5, "5"), ("!", "!", "!"), ("abc", "abc", b"abc"), ("7", 7, 7.0), (None, None, None)):
                if name == "@":
                    twins.run("INSERT INTO @ VALUES (?, ?, ?)", row)
                else:
                    on.sql("INSERT INTO other VALUES (?, ?, ?)", row)
        for left in "tnb":
            for right in "tnb":
                for operator in ("=", "<", ">=", "IN"):
                    condition = f"c.{left} IN (SELECT {right} FROM other)" if operator == "IN" else f"c.{left} {operator} o.{right}"
                    rows = "@ c" if operator == "IN" else "@ c, other o"
                    twins.run(f"SELECT c.rowid, count(*) FROM {rows} WHERE {condition} GROUP BY 1")
            # A CAST has an affinity, which the planner does not tell.
            for cast in ("CAST('5' AS INTEGER)", "CAST('5' AS TEXT)", "CAST(5 AS BLOB)", "CAST(5 AS REAL)", "(SELECT CAST('5' AS INTEGER))"):
                for operator in ("=", "<", ">"):
                    twins.run(f"SELECT rowid FROM @ WHERE {left} {operator} {cast}")
            for kind in ("INTEGER", "TEXT", "REAL"):
                twins.run(f"SELECT rowid FROM @ WHERE {left} < CAST(? AS {kind})", ("7",))
            for value in (5, "5", 5.0, "05", b"5", "!", None, 5.5):
                for operator in ("=", "<", ">", "<=", ">="):
                    twins.run(f"SELECT rowid FROM @ WHERE {left} {operator} ?", (value,))
        on.close()


def row_ids():
    with CHECKS.part("INTEGER PRIMARY KEY is another name of the row's id"):
        on = Connection()
        twins = Twins(on, "a TEXT, id INTEGER PRIMARY KEY, b")
        for statement in ("INSERT INTO @(id) VALUES (1), (2), (10)", "INSERT OR REPLACE INTO @(a, id) VALUES ('a', 3), ('b', 10), ('c', NULL)", "DELETE FROM @",
                          "INSERT INTO @(a) VALUES ('first')", "INSERT INTO @ VALUES ('x', 10, 1)", "INSERT INTO @(a) VALUES ('next')",
                          "INSERT INTO @ VALUES ('again', 10, 2)", "INSERT INTO @ VALUES ('text', '12', 2)", "INSERT INTO @ VALUES ('no', 'x', 2)",
                          "INSERT OR REPLACE INTO @ VALUES ('other', 10, 3)", "UPDATE @ SET id = id + 100 WHERE id >= 10", "UPDATE @ SET b = id",
                          "SELECT * FROM @ WHERE id = 110", "SELECT * FROM @ WHERE id > 5", f"INSERT INTO @(b) {count(10_000)} SELECT i FROM n",
                          "SELECT id, b FROM @ WHERE id BETWEEN 5000 AND 5010", "DELETE FROM @ WHERE id % 2", "SELECT count(*) FROM @",
                          "INSERT INTO @(id) VALUES (9223372036854775807)"):
            twins.run(statement)
            twins.expect_same()
        on.sql("INSERT INTO c(a) VALUES ('a random id'), ('another')")
        assert on.value("SELECT count(DISTINCT id) FROM c WHERE a LIKE 'a%' AND id BETWEEN 1 AND 4611686018427387904") >= 2, "no id past the greatest one"
        on.close()


def checks():
    with CHECKS.part("CHECK is enforced"):
        on = Connection()
        twins = Twins(on, "a INTEGER CHECK (a > 0), b TEXT COLLATE NOCASE, CHECK (b <> 'never')")
        for statement in ("INSERT INTO @ VALUES (1, 'x')", "INSERT INTO @ VALUES (0, 'x')", "INSERT INTO @ VALUES (1, 'NEVER')",
                          "INSERT OR IGNORE INTO @ VALUES (0, 'x')", f"INSERT INTO @ {count(20_000)} SELECT i, 'y' FROM n", "UPDATE @ SET a = a - 5 WHERE a = 3",
                          "UPDATE @ SET a = a + 1 WHERE a % 5 = 0", "UPDATE OR IGNORE @ SET a = a - 3 WHERE a < 6", "INSERT OR REPLACE INTO @(rowid, a) VALUES (9, 9)",
                          "INSERT OR REPLACE INTO @(rowid, a) VALUES (9, -9)", "UPDATE OR REPLACE @ SET rowid = 12 WHERE rowid = 13", "DELETE FROM @ WHERE a > 100"):
            twins.run(statement)
            twins.expect_same()
        on.close()


def declarations():
    with CHECKS.part("what cannot be kept to is refused, and leaves nothing"):
        on = Connection()
        for definition, says in (("a DEFAULT 5", "DEFAULT"), ("a UNIQUE", "UNIQUE"), ("a TEXT PRIMARY KEY", "PRIMARY KEY"),
                                 ("a, b, PRIMARY KEY (a, b)", "PRIMARY KEY"), ("a, b AS (a + 1)", "generated"), ("a REFERENCES o(a)", "REFERENCES"),
                                 ("a, chunk_rows=7", "chunk_rows"), ("a, nothing=7", "nothing"), ("chunk_rows=2000", "at least one column"),
                                 ("a, a", "duplicate"), ("a CHECK (", "parenthes|near|incomplete"), ("a NOT NULL ON CONFLICT IGNORE", "ON CONFLICT")):
            error = on.error(f"CREATE VIRTUAL TABLE t USING columnar({definition})") or "no error"
            assert any(part in error for part in says.split("|")), f"{definition}: {error}"
            assert on.sql("SELECT name FROM sqlite_master") == [], f"{definition} leaves something"
        on.sql('CREATE VIRTUAL TABLE "odd ""name""" USING columnar("a ""b""" TEXT, [c d] INTEGER, rowid)')
        on.sql('INSERT INTO "odd ""name""" VALUES (1, 2, 3)')
        assert on.sql('SELECT * FROM "odd ""name""" WHERE [c d] = 2') == [("1", 2, 3)]
        on.sql('ALTER TABLE "odd ""name""" RENAME TO even')
        on.sql("INSERT INTO even VALUES (4, 5, 6)")
        assert on.sql("SELECT * FROM even") == [("1", 2, 3), ("4", 5, 6)]
        on.sql("DROP TABLE even")
        assert on.sql("SELECT name FROM sqlite_master") == [], "a table leaves something"
        on.close()


def main():
    for size in SIZES:
        rows_of(size)
    for part in (values, comparisons, row_ids, checks, declarations):
        part()
    return CHECKS.status()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SqlError as error:
        print(f"not ok rows: {error}")
        sys.exit(1)
