"""Stripes are written anew where that pays: rows that were deleted give their room back, and small stripes
become one. Nobody has to ask for it, and nobody sees it."""

import sys

from harness.checks import Checks
from harness.sqlite import Connection, Twins, count, database

CHECKS = Checks("compaction")
OPTIONS = "stripe_rows=20000, chunk_rows=2000"
DEFINITION = "i INTEGER, name TEXT, x"
FILL = "INSERT INTO @ {numbers} SELECT i, 'name ' || (i * 7919 % 1000), CASE i % 3 WHEN 0 THEN i WHEN 1 THEN 'text' END FROM n"


def filled(rows, path=":memory:"):
    on = Connection(path)
    twins = Twins(on, DEFINITION, OPTIONS)
    twins.run(FILL.format(numbers=count(rows)))
    return on, twins


def stripes(on):
    return on.value("SELECT count(*) FROM c_stripe")


def expect_right(on, twins):
    twins.expect_same()
    for question in ("SELECT rowid, * FROM @ ORDER BY rowid", "SELECT count(*), sum(i), min(rowid), max(rowid) FROM @",
                     "SELECT rowid, * FROM @ WHERE rowid IN (1, 777, 12345, 33333, 59999)"):
        twins.run(question)
    assert on.sql("SELECT * FROM columnar_verify('c')") == []


def dead_rows():
    with CHECKS.part("deleted rows give their room back once half of a stripe is dead"):
        on, twins = filled(60_000)
        before = on.value("SELECT sum(length(data)) FROM c_bytes")
        twins.run("DELETE FROM @ WHERE i % 5 < 2")
        assert (stripes(on), on.value("SELECT sum(dead_rows) FROM c_stripe")) == (3, 24_000), "two fifths are not worth it"
        twins.run("DELETE FROM @ WHERE i % 5 < 3 AND i <= 40000")
        assert on.sql("SELECT rows, dead_rows FROM c_stripe ORDER BY id") == [(16_000, 0), (20_000, 8_000)], "two became one"
        assert on.value("SELECT sum(length(data)) FROM c_bytes") < before * 0.75
        expect_right(on, twins)
        twins.run("UPDATE @ SET name = 'changed' WHERE i % 5 > 2")
        twins.run("DELETE FROM @ WHERE i % 2")
        expect_right(on, twins)
        assert on.value("SELECT sum(dead_rows) * 2 < sum(rows) FROM c_stripe") == 1
        on.close()


def small_stripes():
    with CHECKS.part("small stripes become one, and rows keep their order"):
        on, twins = filled(1)
        for number in range(30):
            twins.run(f"INSERT INTO @ {count(5000 if number % 3 else 4000)} SELECT i + {number}, 'small', NULL FROM n")
        assert on.value("SELECT count(*) <= 8 AND max(rows) <= 20000 FROM c_stripe") == 1, on.sql("SELECT rows FROM c_stripe")
        assert on.sql("SELECT rowid FROM c") == on.sql("SELECT rowid FROM p ORDER BY rowid"), "order of rows"
        expect_right(on, twins)
        on.close()


def undone():
    with CHECKS.part("what a rollback undoes is as it was"), database() as path:
        on, twins = filled(60_000, path)
        for begin, end in (("BEGIN", ("ROLLBACK",)), ("SAVEPOINT a", ("ROLLBACK TO a", "RELEASE a"))):
            stamps = on.sql("SELECT id, stamp FROM c_stripe")
            on.sql(begin)
            twins.run("DELETE FROM @ WHERE i % 3")
            on.sql("SAVEPOINT inner")
            assert on.sql("SELECT id, stamp FROM c_stripe") != stamps, "premise: stripes were written anew"
            twins.run("UPDATE @ SET name = 'changed'")
            on.sql("ROLLBACK TO inner")
            expect_right(on, twins)
            for statement in end:
                on.sql(statement)
            assert on.sql("SELECT id, stamp FROM c_stripe") == stamps
            expect_right(on, twins)
        on.close()


def readers():
    with CHECKS.part("queries that are open read the rows that they began with"), database() as path:
        on, twins = filled(60_000, path)
        on.sql("PRAGMA journal_mode = WAL")
        other = Connection(path)
        on.sql("CREATE VIRTUAL TABLE temp.q USING columnar_query('SELECT i FROM c')")
        ways = ("SELECT i FROM c", "SELECT i FROM c ORDER BY name, i", "SELECT i FROM q")
        cursors = [iter(on.db.cursor().execute(way)) for way in ways] + [iter(other.db.cursor().execute(ways[0]))]
        begun = [[next(cursor)[0]] for cursor in cursors]
        stamps = on.sql("SELECT id, stamp FROM c_stripe")
        twins.run("DELETE FROM @ WHERE i % 3")
        assert on.sql("SELECT id, stamp FROM c_stripe") == stamps, "stripes went under a query"
        for seen, cursor in zip(begun, cursors):
            seen += [row[0] for row in cursor]
            assert sorted(seen) == list(range(1, 60_001)), f"{len(seen)} rows"
        # The inner table of a join is searched again for each row, and rows that are gone are not found.
        joined = iter(on.db.cursor().execute("SELECT a.i FROM c a JOIN c b ON a.i = b.i"))
        next(joined)
        twins.run("DELETE FROM @ WHERE i % 6")
        assert 9_999 <= len(list(joined)) <= 20_000
        del cursors, joined
        twins.run("DELETE FROM @ WHERE i = 6")
        assert on.value("SELECT sum(dead_rows) FROM c_stripe") <= 1, "stripes stay after the query has ended"
        expect_right(on, twins)
        assert other.value("SELECT count(*) FROM c") == 9_999
        other.close()
        on.close()


def through_the_tail():
    with CHECKS.part("rows with a CHECK become stripes of their size, and give their room back"):
        on = Connection()
        twins = Twins(on, "i INTEGER CHECK (i > 0), name TEXT, x", OPTIONS)
        twins.run(FILL.format(numbers=count(90_000)))
        assert on.value("SELECT max(rows) FROM c_stripe") == 20_000 and stripes(on) >= 4, on.sql("SELECT rows FROM c_stripe")
        twins.run("DELETE FROM @ WHERE i % 10")
        assert on.value("SELECT sum(dead_rows) FROM c_stripe") == 0
        expect_right(on, twins)
        on.close()


def long_rows():
    with CHECKS.part("long rows become no stripe that memory has no room for"):
        on = Connection()
        on.sql("CREATE VIRTUAL TABLE c USING columnar(i INTEGER, t TEXT)")
        for _ in range(12):
            on.sql(f"INSERT INTO c {count(900)} SELECT i, printf('%.*c', 50000, 'x') || i FROM n")
        assert on.value("SELECT max(rows) < 6000 AND sum(rows) > 9000 FROM c_stripe") == 1, on.sql("SELECT rows FROM c_stripe")
        assert on.value("SELECT sum(length(t)) FROM c") == 12 * sum(50_000 + len(str(i)) for i in range(1, 901))
        on.close()


def kinds():
    with CHECKS.part("stripes whose columns are of different kinds become one"):
        on, twins = filled(1)
        for value in ("i", "i + 0.5", "'text'", "NULL", "x'00ff'"):
            twins.run(f"INSERT INTO @ {count(4000)} SELECT i, i, {value} FROM n")
        assert stripes(on) <= 3
        expect_right(on, twins)
        on.close()


def main():
    for part in (dead_rows, small_stripes, undone, readers, through_the_tail, long_rows, kinds):
        part()
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
