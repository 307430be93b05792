"""The questions of ClickBench on a generated table of hits: heap, colcompress and DuckDB in turns.

Called by scripts/bench.sh clickbench. ROWS (1,000,000) and RUNS (5) change the amount of work; TIMEOUT (300) is the seconds
after which a query is stopped; QUERIES="C4 C28" asks only those. Table and questions are ClickBench's; its data set
is not to be had here, so bench/hits.py makes rows of that skew, and the texts are ours. Constants that name one
user, page or referer are taken from the rows.
"""

import os
import re
import subprocess
import sys

from hits_columns import columns

from harness import kit, race
from harness.server import ROOT, ServerError, fail, fresh_server, running_as_root, server_ids

ROWS = int(os.environ.get("ROWS", "1000000"))
RUNS = int(os.environ.get("RUNS", "5"))
TIMEOUT = int(os.environ.get("TIMEOUT", "300"))
ONLY = os.environ.get("QUERIES", "").split()
DATABASE = "clickbench"
SETTINGS = {**kit.SERVER_SETTINGS, "shared_buffers": "4GB", "max_wal_size": "8GB", "wal_level": "minimal", "max_wal_senders": "0"}
SQL_TYPES = {"s": "smallint", "i": "integer", "l": "bigint", "t": "text", "d": "date", "z": "timestamp", "c": "char"}


def table(schema, tail="", char="char"):
    types = {**SQL_TYPES, "c": char}
    return f"CREATE TABLE {schema}hits ({', '.join(f'{name} {types[kind]} NOT NULL' for name, kind, _ in columns())}){tail}"


def questions(server):
    """The file's questions with constants that occur in the rows."""
    def value(text):
        return server.sql(f"SET search_path = rows; {text}", DATABASE)
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


def generate(server):
    csv = server.base / "hits.csv"
    done = subprocess.run([str(race.PYTHON), str(ROOT / "bench" / "hits.py"), str(ROWS), str(csv)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise ServerError(f"the rows could not be made:\n{done.stdout}")
    if running_as_root():
        os.chown(csv, *server_ids())
    return csv


def load(server, duck, csv):
    seconds = {}
    arms = {"rows": " USING heap", "columns": " USING colcompress WITH (orderby = 'counterid, eventdate')"}
    for schema, tail in arms.items():
        server.sql(f"CREATE SCHEMA {schema}; {table(schema + '.', tail)}", DATABASE)
        with server.session(DATABASE) as session:
            seconds[schema] = session.run(f"COPY {schema}.hits FROM '{csv}' (FORMAT csv, FORCE_NOT_NULL ({forced()}))").milliseconds / 1000
        server.sql(f"VACUUM ANALYZE {schema}.hits", DATABASE)
    duck.ask(table("", char="varchar"))
    names = ", ".join(f"'{name}': 'VARCHAR'" for name, _, _ in columns())
    seconds["duckdb"] = duck.ask(f"INSERT INTO hits SELECT * FROM read_csv('{csv}', header = false, columns = {{{names}}}, nullstr = '\\N')",
                                 rows=False)["wall_ms"] / 1000
    duck.ask("CHECKPOINT")
    return seconds


def forced():
    return ", ".join(name for name, kind, _ in columns() if kind == "t")


def main(stage):
    if not race.PYTHON.exists():
        raise ServerError("this needs numpy, pyarrow and duckdb in target/venv: run scripts/bench.sh clickbench")
    server = fresh_server("clickbench", stage, SETTINGS)
    engines = []
    try:
        server.create_database(DATABASE)
        kit.say(f"making {ROWS:,} hits of {len(columns())} columns")
        csv = generate(server)
        kit.say(f"loading {csv.stat().st_size / kit.MB:.0f} MB into heap, colcompress and DuckDB")
        duck = race.DuckDB(server.base / "clickbench.duckdb")
        engines = [duck]
        seconds = load(server, duck, csv)
        csv.unlink()
        sizes = {schema: kit.table_bytes(server, DATABASE, f"{schema}.hits") for schema in ("rows", "columns")}
        sizes["duckdb"] = duck.path.stat().st_size
        kit.print_table(("loaded", "seconds", "MB"), [(name, f"{seconds[name]:.1f}", f"{sizes[name] / kit.MB:.0f}") for name in seconds])
        asked = questions(server)
        engines = [race.Postgres("heap", server, DATABASE, setup="SET search_path = rows", timeout=TIMEOUT),
                   race.Postgres("colcompress", server, DATABASE, setup="SET search_path = columns", timeout=TIMEOUT), duck]
        kit.say(f"{len(asked)} questions, {RUNS} runs each in turns")
        contest = race.Race("clickbench", engines, asked, RUNS)
        about = {"rows": ROWS, "postgres": server.sql("SELECT version()"), "settings": SETTINGS, "load_s": seconds, "bytes": sizes}
        return race.finish(contest, contest.all_modes(), about)
    finally:
        for engine in engines:
            engine.close()
        server.destroy()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except ServerError as problem:
        fail(problem)
