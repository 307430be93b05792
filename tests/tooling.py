"""The tools that judge everything else: the comparison of answers, the licence readers, the query files, the
check of META.json."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts")]

import check_licences  # noqa: E402
import check_meta  # noqa: E402
import package_copyright  # noqa: E402
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


def meta():
    right = json.loads((ROOT / "META.json").read_text(encoding="utf-8"))
    check("META.json passes", not [*check_meta.check_spec(right), *check_meta.check_versions(right)])
    one = right["provides"]["colonnade"]
    wrong = {
        **{f"without {field}": {name: value for name, value in right.items() if name != field} for field in check_meta.REQUIRED},
        "a version of two numbers": {**right, "version": "0.2"},
        "another version": {**right, "version": "9.0.0"},
        "a licence that PGXN does not know": {**right, "license": "apache"},
        "a maintainer without a name": {**right, "maintainer": [""]},
        "an unknown field": {**right, "licence": "apache_2_0"},
        "an extension of another version": {**right, "provides": {"colonnade": {**one, "version": "9.0.0"}}},
        "an extension without a file": {**right, "provides": {"colonnade": {"version": one["version"]}}},
        "a file that is not there": {**right, "provides": {"colonnade": {**one, "docfile": "docs/nothing.md"}}},
        "a script of another version": {**right, "provides": {"colonnade": {**one, "file": "crates/postgres/sql/colonnade--0.1.sql"}}},
        "a server of no version": {**right, "prereqs": {"runtime": {"requires": {"PostgreSQL": "15+"}}}},
        "an unknown phase": {**right, "prereqs": {"running": {}}},
    }
    for what, content in wrong.items():
        check(f"META.json {what} fails", any([*check_meta.check_spec(content), *check_meta.check_versions(content)]))


def copyrights():
    named, holders = package_copyright.short_names, package_copyright.owners
    check("MIT is Expat in a copyright file", named("MIT/Apache-2.0") == "Expat or Apache-2.0")
    check("and binds as in SPDX", named("(MIT OR Apache-2.0) AND Unicode-3.0") == "Expat or Apache-2.0, and Unicode-3.0")
    for unclear in ("MIT AND (Zlib OR ISC)", "MIT OR Zlib AND ISC"):
        with checks.part(f"{unclear} is refused"):
            try:
                raise AssertionError(named(unclear))
            except package_copyright.Unknown:
                pass
    check("a line names an owner", holders(["MIT License\n\nCopyright (c) 2014 Somebody. All rights reserved.\n"], ["Another"], "x") == ["2014 Somebody"])
    check("years alone are the authors'", holders(["Copyright (c) 2015--2017\n"], ["A", "B"], "x") == ["2015--2017 A, B"])
    check("a text without an owner is the authors'", holders(["Permission is hereby granted"], ["A"], "x") == ["A"])
    check("a licence's own words name nobody", holders(["copyright notice and this permission notice\nCopyright License. Subject to"], [], "x") == ["The developers of x"])


comparison()
licences()
queries()
meta()
copyrights()
sys.exit(checks.status())
