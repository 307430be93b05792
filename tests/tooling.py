"""The tools that judge everything else: the comparison of answers, the licence reader, the query files."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts")]

import check_licences  # noqa: E402
from harness import kit  # noqa: E402
from harness.checks import Checks  # noqa: E402

checks = Checks("tooling")
check = checks.say


def comparison():
    rows = [("a", "1.5"), ("b", None)]
    check("equal rows in another order agree", kit.compare(rows[::-1], rows, None, set()) is None)
    check("another value differs", kit.compare([("a", "1.6"), ("b", None)], rows, None, set()) is not None)
    check("NULL differs from a value", kit.compare([("a", "1.5"), ("b", "0")], rows, None, {1}) is not None)
    check("NULL differs from an empty text", kit.compare([("",)], [(None,)], None, set()) is not None)
    check("a missing row differs", kit.compare(rows[:1], rows, None, set()) is not None)
    check("a doubled row differs", kit.compare([rows[0], rows[0]], rows, None, set()) is not None)
    check("wrong order is seen where order counts", kit.compare([("2",), ("1",)], [("1",), ("2",)], 0, set()) is not None)
    check("floats may differ in the last digits", kit.compare([("0.30000000000000004",)], [("0.3",)], None, {0}) is None)
    check("floats may not differ by more", kit.compare([("0.3000001",)], [("0.3",)], None, {0}) is not None)
    check("exact types may not differ at all", kit.compare([("0.30",)], [("0.3",)], None, set()) is not None)
    check("NaN equals NaN", kit.compare([("NaN",)], [("nan",)], None, {0}) is None)
    check("NaN differs from a number", kit.compare([("NaN",)], [("1",)], None, {0}) is not None)


def licences():
    check("MIT OR GPL passes", check_licences.satisfied("MIT OR GPL-3.0-only"))
    check("MIT AND GPL fails", not check_licences.satisfied("MIT AND GPL-3.0-only"))
    check("an exception counts as part of its licence", check_licences.satisfied("Apache-2.0 WITH LLVM-exception"))
    check("the old slash is OR", check_licences.satisfied("GPL-2.0/MIT"))
    check("parentheses bind", not check_licences.satisfied("(MIT OR Apache-2.0) AND AGPL-3.0"))


def queries():
    names = [q.name for q in kit.read_queries(kit.SQL / "events_queries.sql")]
    names_wanted = [f"Q{i}" for i in range(1, 11)] + [f"K{i}" for i in range(1, 13)] + [f"W{i}" for i in range(1, 6)]
    check("Q1-Q10, K1-K12 and W1-W5 are read", sorted(names) == sorted(names_wanted))
    by_name = {q.name: q for q in kit.read_queries(kit.SQL / "events_queries.sql")}
    check("an ordered query knows its column", by_name["Q4"].ordered == 2 and by_name["Q1"].ordered is None)
    check("a query is asked of the table named", by_name["Q1"].on("some_table") == "SELECT count(*) FROM some_table")


comparison()
licences()
queries()
sys.exit(checks.status())
