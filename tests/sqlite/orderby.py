"""Tables with `orderby`: rows of a stripe are sorted, so conditions on the column leave out chunks. Answers
stay the same."""

import sys

from harness.checks import Checks
from harness.sqlite import Connection, Twins, count

CHECKS = Checks("orderby")
OPTIONS = "stripe_rows=20000, chunk_rows=2000"
DEFINITION = "id INTEGER PRIMARY KEY, k INTEGER, name TEXT, x"
FILL = """INSERT INTO @ {numbers} SELECT i, i * 7919 % 60013, 'name ' || (i * 31 % 1000),
    CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN i / 2.0 WHEN 3 THEN 'text ' || i ELSE x'00ff' END FROM n"""


def sorted_stripes():
    for orderby in ("k", "name, k DESC", "x DESC", "K asc,id"):
        with CHECKS.part(f"orderby='{orderby}' gives what a plain table gives"):
            on = Connection()
            twins = Twins(on, DEFINITION, f"{OPTIONS}, orderby='{orderby}'")
            twins.run(FILL.format(numbers=count(60_000)))
            keys = orderby.replace("asc", "")
            # Rows come as they lie: all of them were sorted together.
            assert on.sql(f"SELECT {keys.replace('DESC', '')} FROM c") == on.sql(f"SELECT {keys.replace('DESC', '')} FROM p ORDER BY {orderby}")
            for change in ("UPDATE @ SET name = 'changed', k = -k WHERE id % 7 = 3", "DELETE FROM @ WHERE k % 3", "INSERT INTO @ VALUES (0, 0, '', 0)",
                           "INSERT INTO @ SELECT id + 100000, k, name, x FROM @", "DELETE FROM @ WHERE id < 20000"):
                twins.run(change)
                twins.expect_same()
                for question in ("SELECT * FROM @ WHERE id IN (5, 7000, 107000, 59999)", "SELECT count(*), sum(id) FROM @ WHERE k BETWEEN 100 AND 300",
                                 "SELECT id FROM @ WHERE name = 'changed' ORDER BY id LIMIT 50", "SELECT id FROM @ ORDER BY id DESC LIMIT 5"):
                    twins.run(question)
                assert on.sql("SELECT * FROM columnar_verify('c')") == []
            on.close()


def pruning():
    with CHECKS.part("a condition on the column leaves out chunks that it could not leave out before"):
        on = Connection()
        for name, option, expected in (("plain", "", "Chunks: read 30, pruned 0"), ("ordered", ", orderby='k'", "Stripes: read 1, pruned 2")):
            on.sql(f"CREATE VIRTUAL TABLE {name} USING columnar({DEFINITION}, {OPTIONS}{option})")
            on.sql(FILL.replace("@", name).format(numbers=count(60_000)))
            question = f"SELECT count(name) FROM {name} WHERE k BETWEEN 100 AND 300"
            plan = [row[0].strip() for row in on.sql("SELECT plan FROM columnar_explain(?)", (question,))]
            assert expected in plan and "Conditions: k >= 100 AND k <= 300" in plan, plan
        on.close()


def through_the_tail():
    with CHECKS.part("single rows and rows with a CHECK are sorted once they become a stripe"):
        on = Connection()
        on.sql(f"CREATE VIRTUAL TABLE c USING columnar(k INTEGER CHECK (k >= 0), {OPTIONS}, orderby='k DESC')")
        on.sql(f"INSERT INTO c {count(17_000)} SELECT i * 7919 % 60013 FROM n")
        assert on.value("SELECT count(*) FROM c_stripe") == 1
        rows = [row[0] for row in on.sql("SELECT k FROM c")]
        assert rows == sorted(rows, reverse=True)
        assert "CHECK constraint failed" in on.error("INSERT INTO c VALUES (-1)")
        on.close()


def mistakes():
    with CHECKS.part("what is no column is refused, and nothing is left behind"):
        on = Connection()
        for option, expected in (("orderby='z'", "orderby names no column: z"), ("orderby=''", "orderby names a column"),
                                 ("orderby='k,'", "orderby names a column"), ("orderby='k sideways'", "orderby names no column: k sideways")):
            error = on.error(f"CREATE VIRTUAL TABLE c USING columnar(k INTEGER, {option})")
            assert error and expected in error, f"{option}: {error}"
            assert on.value("SELECT count(*) FROM sqlite_schema") == 0, option
        on.sql("""CREATE VIRTUAL TABLE c USING columnar("a b" INTEGER, k, orderby='"a b" desc, k')""")
        on.close()


def converted():
    with CHECKS.part("columnar_convert takes it"):
        on = Connection()
        on.sql("CREATE TABLE t(a INTEGER, b INTEGER)")
        on.sql(f"INSERT INTO t {count(10_000)} SELECT i * 7919 % 101, -i FROM n")
        assert on.value("SELECT columnar_convert('t', 'orderby=a desc, b')") == 10_000
        rows = on.sql("SELECT a, b FROM t")
        assert rows == sorted(rows, key=lambda row: (-row[0], row[1]))
        on.close()


def main():
    for part in (sorted_stripes, pruning, through_the_tail, mistakes, converted):
        part()
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
