"""Queries whose rows do not fit the memory that they may take go to temporary files, and give the same."""

import sys

from harness.checks import Checks
from harness.sqlite import Connection, count

CHECKS = Checks("spilling")
ROWS = 120_000
FILL = f"""{count(ROWS)} SELECT i, i * 7919 % 60001, 'some text that takes room ' || (i * 31 % 40009), i * 0.25 FROM n"""
QUERIES = {
    "groups": "SELECT k, count(*), sum(v), max(name) FROM t GROUP BY k ORDER BY k",
    "groups of texts": "SELECT name, count(*), min(id) FROM t GROUP BY name ORDER BY name",
    "different values": "SELECT count(DISTINCT name), count(DISTINCT k) FROM t",
    "joined": "SELECT count(*), sum(a.v), max(b.name) FROM t a JOIN t b ON a.id = b.k",
    "sorted": "SELECT id, name FROM t ORDER BY name DESC, id",
    "windows": "SELECT id, sum(v) OVER (PARTITION BY name ORDER BY id), row_number() OVER (ORDER BY name, id) FROM t ORDER BY id",
    "sets": "SELECT k, name FROM t EXCEPT SELECT k, name FROM t WHERE id % 3 = 0 ORDER BY 1, 2",
}


def figures(on, query):
    return "\n".join(row[0] for row in on.sql("SELECT plan FROM columnar_explain(?)", (query,)))


def main():
    on = Connection()
    on.sql("CREATE VIRTUAL TABLE t USING columnar(id INTEGER PRIMARY KEY, k INTEGER, name TEXT, v REAL)")
    on.sql(f"INSERT INTO t {FILL}")
    memory = on.value("SELECT columnar_memory()")
    for what, query in QUERIES.items():
        with CHECKS.part(f"{what}: the same rows with little memory"):
            answers = []
            for threads, megabytes in ((1, memory), (1, 1), (3, 1)):
                on.value(f"SELECT columnar_threads({threads})")
                on.value(f"SELECT columnar_memory({megabytes})")
                on.sql("DROP TABLE IF EXISTS temp.q")
                on.sql(f"CREATE VIRTUAL TABLE temp.q USING columnar_query('{query}')")
                answers.append(on.sql("SELECT * FROM q"))
            assert len(answers[0]) and answers[0] == answers[1] == answers[2], f"{len(answers[0])}, {len(answers[1])}, {len(answers[2])} rows"
            assert " spilled=" in figures(on, query), "premise: nothing was written to files"
            on.value(f"SELECT columnar_memory({memory})")
            assert " spilled=" not in figures(on, query)
    with CHECKS.part("columnar_memory tells and takes mebibytes"):
        assert on.value("SELECT columnar_memory(17)") == 17 and on.value("SELECT columnar_memory()") == 17
        for bad in ("0", "-1", "1.5", "'x'", "NULL"):
            assert on.error(f"SELECT columnar_memory({bad})") == "columnar_memory takes a number from 1 to 1048576", bad
        assert on.value("SELECT columnar_memory()") == 17
    on.close()
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
