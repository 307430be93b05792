"""The functions that compute aggregates of whole columns: the same answers as SQL on a plain table, for every
storage class, collation and size, with rows in stripes and in the tail, dead ones among them."""

import sys

from harness.checks import Checks
from harness.sqlite import Connection, SqlError, Twins, alike, count, difference

CHECKS = Checks("functions")
DEFINITION = "id INTEGER, k INTEGER, name TEXT, folded TEXT COLLATE NOCASE, trimmed TEXT COLLATE RTRIM, price NUMERIC, amount REAL, x"
FILL = f"""INSERT INTO @ {{numbers}} SELECT i, CASE WHEN i % 13 = 0 THEN NULL ELSE i % 10 END, 'name ' || (i % 20),
    CASE i % 3 WHEN 0 THEN 'Alpha' WHEN 1 THEN 'ALPHA' ELSE 'beta' END, 'end' || substr('    ', 1, i % 4),
    CASE WHEN i % 3 THEN i % 50 ELSE (i % 50) + 0.5 END, CASE WHEN i % 17 THEN i * 0.25 END,
    CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN i % 5 WHEN 2 THEN (i % 5) * 1.0 WHEN 3 THEN (i % 5) + 0.5 WHEN 4 THEN '12abc' WHEN 5 THEN i % 5 || '' ELSE x'3132' END
    FROM n"""
COLUMNS = ("id", "k", "name", "folded", "trimmed", "price", "amount", "x")


def compare(on, about, function, sql, keyed=False):
    """`function` on the columnar table gives what `sql` gives on the plain one. Where keys are equal without
    being the same (1 and 1.0, two spellings), any of them may stand for its group."""
    columnar, plain = on.sql(function), on.sql(sql)
    if keyed:
        def fold(row):
            key = row[0]
            if isinstance(key, str):
                key = key.lower().rstrip(" ") if about in ("folded", "trimmed") else key
            return (repr(float(key) if type(key) in (int, float) else key), *row[1:])
        columnar, plain = sorted(map(fold, columnar), key=repr), sorted(map(fold, plain), key=repr)
    assert alike(plain, columnar), f"{function}: {difference(plain, columnar)}"


def ask(on):
    for value in COLUMNS:
        compare(on, value, f"SELECT columnar_sum('c', '{value}'), columnar_avg('c', '{value}'), columnar_count('c', '{value}')",
                f"SELECT sum({value}), avg({value}), count({value}) FROM p")
        for filter_column, low, high in (("id", "100", "900"), ("name", "'name 1'", "'name 15'"), ("price", "3", "7.5"), ("folded", "'alpha'", "'ALPHA'"), ("x", "2", "'9'"), ("id", "NULL", "5"), ("k", "7", "3")):
            compare(on, value, f"SELECT columnar_sum_where_range('c', '{value}', '{filter_column}', {low}, {high}), columnar_avg_where_range('c', '{value}', '{filter_column}', {low}, {high}), columnar_count_where_range('c', '{value}', '{filter_column}', {low}, {high})",
                    f"SELECT sum({value}), avg({value}), count({value}) FROM p WHERE {filter_column} BETWEEN {low} AND {high}")
    assert on.value("SELECT columnar_count('c')") == on.value("SELECT count(*) FROM p")
    for key in ("k", "name", "folded", "trimmed", "price", "x"):
        for value in COLUMNS:
            group = f"FROM p GROUP BY {key}"
            for function, result in (("sum", f"sum({value})"), ("avg", f"avg({value})"), ("count", f"count({value})"), ("min", f"min({value})"), ("max", f"max({value})"),
                                     ("sum_avg_count", f"sum({value}), avg({value}), count({value})"), ("min_max_count", f"min({value}), max({value}), count({value})")):
                if function in ("min", "max", "min_max_count") and value in ("folded", "trimmed", "x"):
                    # Any of the equal ones may be the least.
                    continue
                compare(on, key, f"SELECT * FROM columnar_group_{function}('c', '{key}', '{value}')", f"SELECT {key}, {result} {group}", keyed=True)
            compare(on, key, f"SELECT * FROM columnar_group_sum_where_range('c', '{key}', '{value}', 'id', 50, 700)", f"SELECT {key}, sum({value}) FROM p WHERE id BETWEEN 50 AND 700 GROUP BY {key}", keyed=True)
        compare(on, key, f"SELECT * FROM columnar_group_count('c', '{key}')", f"SELECT {key}, count(*) FROM p GROUP BY {key}", keyed=True)
        compare(on, key, f"SELECT * FROM columnar_group_range('c', '{key}', 'price', 'amount')",
                f"SELECT {key}, max(price) - min(amount), max(price), min(amount), sum(price IS NOT NULL OR amount IS NOT NULL) FROM p GROUP BY {key}", keyed=True)


def answers():
    for size in (0, 30, 1000, 12_000):
        with CHECKS.part(f"{size} rows"):
            on = Connection()
            twins = Twins(on, DEFINITION, "stripe_rows=5000, chunk_rows=1000")
            if size:
                twins.run(FILL.format(numbers=count(size)))
            ask(on)
            twins.run("DELETE FROM @ WHERE id % 9 = 1")
            twins.run("UPDATE @ SET amount = -amount, k = 99 WHERE id % 40 = 2")
            twins.run("INSERT INTO @(id, k, name, price) VALUES (-1, NULL, NULL, 'no number'), (-2, 3, 'name 3', 4)")
            ask(on)
            on.close()


def great_sums():
    with CHECKS.part("integers past 2^53 are summed up exactly, and too great sums are errors"):
        on = Connection()
        on.sql("CREATE VIRTUAL TABLE c USING columnar(k, v INTEGER)")
        on.sql(f"INSERT INTO c {count(10_000)} SELECT i % 10, CASE i % 10 WHEN 1 THEN 9007199254740993 ELSE 4611686018427387904 END FROM n")
        assert on.sql("SELECT * FROM columnar_group_sum_where_range('c', 'k', 'v', 'k', 1, 1)") == [(1, 1000 * 9007199254740993)]
        assert on.error("SELECT columnar_sum('c', 'v')") == "integer overflow"
        assert on.value("SELECT columnar_avg('c', 'v')") > 2e18
        on.close()


def errors():
    with CHECKS.part("what is not there is an error, and makes nothing"):
        on = Connection()
        on.sql("CREATE TABLE plain(a)")
        on.sql("CREATE VIRTUAL TABLE c USING columnar(a, b)")
        before = on.sql("SELECT name FROM sqlite_master")
        for statement, says in (("SELECT columnar_sum('nothing', 'a')", "no such table: nothing"), ("SELECT columnar_sum('plain', 'a')", "plain is not a columnar table"),
                                ("SELECT columnar_sum('c', 'z')", "no such column: c.z"), ("SELECT columnar_sum('c', 7)", "no such column: c.7"),
                                ("SELECT columnar_sum('c', -1)", "column index must be non-negative"), ("SELECT columnar_sum('', 'a')", "invalid table reference"),
                                ("SELECT columnar_sum(NULL, 'a')", "invalid table reference"), ("SELECT columnar_sum('a.b.c', 'a')", "invalid table reference"),
                                ("SELECT columnar_sum('c')", "wrong number of arguments"), ("SELECT * FROM columnar_group_sum('c', 'a')", "requires table, key column, value column"),
                                ("SELECT * FROM columnar_group_sum('c', 'a', 'b', 'c')", "too many arguments"), ("SELECT * FROM columnar_group_sum", "requires table")):
            error = on.error(statement) or "no error"
            assert says in error, f"{statement}: {error}"
        assert on.sql("SELECT name FROM sqlite_master") == before
        on.sql("INSERT INTO c VALUES (1, 2), (1, 3)")
        assert on.sql("SELECT k, sum FROM columnar_group_sum('main.c', 0, 'B')") == [(1, 5)], "numbers and names of columns"
        assert on.sql("SELECT t.a, g.sum FROM (SELECT 'a' AS a) t JOIN columnar_group_sum('c', t.a, 'b') g") == [("a", 5)], "arguments from a join"
        on.sql("BEGIN")
        on.sql("INSERT INTO c VALUES (1, 10)")
        assert on.value("SELECT columnar_sum('c', 'b')") == 15, "own rows that wait"
        on.sql("ROLLBACK")
        assert on.value("SELECT columnar_sum('c', 'b')") == 5
        on.close()


def arguments_of_a_join():
    """An argument that may be left out comes from a table that is read before."""
    with CHECKS.part("arguments of a join", (AssertionError, SqlError)):
        on = Connection()
        on.sql("CREATE VIRTUAL TABLE t USING columnar(k INTEGER, v INTEGER)")
        on.sql("INSERT INTO t VALUES (1, NULL), (1, 2), (2, 3)")
        on.sql("CREATE TABLE d(c TEXT)")
        on.sql("INSERT INTO d VALUES ('k'), ('v')")
        found = on.sql("SELECT d.c, g.k, g.count FROM d, columnar_group_count('t', 'k', d.c) g ORDER BY 1, 2")
        assert found == [("k", 1, 2), ("k", 2, 1), ("v", 1, 1), ("v", 2, 1)], found


def main():
    for part in (answers, great_sums, errors, arguments_of_a_join):
        part()
    return CHECKS.status()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SqlError as error:
        print(f"not ok functions: {error}")
        sys.exit(1)
