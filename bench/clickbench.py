"""The questions of ClickBench on a generated table of hits: heap, colcompress and DuckDB in turns.

Called by scripts/bench.sh clickbench. ROWS (1,000,000) and RUNS (5) change the amount of work; TIMEOUT (300)
is the seconds after which a query is stopped; QUERIES="C4 C28" asks only those; STEP and HEAP (fresh) are
those of harness.suite. Table and questions are ClickBench's; its data set is not to be had here, so
bench/hits.py makes rows of that skew, and the texts are ours. Rows come in order of counter and date, to all
engines. Constants that name one user, page or referer are taken from the rows.
"""

import os
import re

from hits_columns import columns

from harness import kit, race, suite
from harness.server import ROOT, ServerError, end_orderly, run_program

ROWS = int(os.environ.get("ROWS", "1000000"))
ONLY = os.environ.get("QUERIES", "").split()
SQL_TYPES = {"s": "smallint", "i": "integer", "l": "bigint", "t": "text", "d": "date", "z": "timestamp", "c": "char"}


def create(duck):
    types = {**SQL_TYPES, "c": "varchar" if duck else "char"}
    return f"CREATE TABLE hits ({', '.join(f'{name} {types[kind]} NOT NULL' for name, kind, _ in columns())})"


def hits():
    texts = ", ".join(name for name, kind, _ in columns() if kind == "t")
    names = ", ".join(f"'{name}': 'VARCHAR'" for name, _, _ in columns())
    return suite.Table("hits", [race.PYTHON, ROOT / "bench" / "hits.py", ROWS], f"FORMAT csv, FORCE_NOT_NULL ({texts})",
                       f"INSERT INTO hits SELECT * FROM read_csv('{{path}}', header = false, auto_detect = false, columns = {{{{{names}}}}}, nullstr = '\\N')")


def questions(server, database):
    """The file's questions with constants that occur in the rows."""
    def value(text):
        return server.sql(f"SET search_path = columns; {text}", database)
    of_counter = "FROM hits WHERE CounterID = 62 AND IsRefresh = 0"
    constants = {
        ":USER": value("SELECT UserID FROM hits GROUP BY 1 ORDER BY abs(count(*) - 4), 1 LIMIT 1"),
        ":REFERER": value(f"SELECT RefererHash {of_counter} GROUP BY 1 ORDER BY count(*) DESC, 1 OFFSET 1 LIMIT 1"),
        ":PAGE": value(f"SELECT URLHash {of_counter} AND DontCountHits = 0 GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"),
        ":MANY": str(max(10, ROWS // 1000)),
        ":SUMS": ", ".join("sum(ResolutionWidth)" if n == 0 else f"sum(ResolutionWidth + {n})" for n in range(90)),
    }
    every = []
    for query in kit.read_queries(kit.SQL / "clickbench_queries.sql"):
        text = re.sub(":(USER|REFERER|PAGE|MANY|SUMS)", lambda match: constants[match[0]], query.text)
        title, found, _ = query.title.partition(", any of ties")
        title, ordered, column = title.partition(", ordered by ")
        every.append(race.Question(query.name, title, text, int(column) - 1 if ordered else query.ordered, ties=bool(found)))
    return [q for q in every if not ONLY or q.name in ONLY]


def main(stage):
    if not race.PYTHON.exists():
        raise ServerError("this needs numpy, pyarrow and duckdb in target/venv: run scripts/bench.sh clickbench")
    end_orderly()
    return suite.Suite("clickbench", ROWS, stage, [hits()], create, heap="fresh").run(questions)


if __name__ == "__main__":
    run_program(main)
