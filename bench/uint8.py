"""engine.uint8 beside bigint: the same numbers in two colcompress tables, asked the same questions in turns.

Called by scripts/bench.sh uint8. First ClickBench's questions that name WatchID or UserID, over HITS
(500,000) rows of bench/hits.py whose numbers have lost their sign; then questions over ROWS (4,000,000) rows
of small, middle and 63-bit numbers. RUNS (9) is the number of timed runs. No time is reported for an answer
that differs from bigint's. What counts is the backend's CPU time.
"""

import os
import re
import subprocess
from statistics import geometric_mean

from hits_columns import columns

import clickbench
from harness import kit, race
from harness.server import ROOT, ServerError, fresh_server, run_program

ROWS = int(os.environ.get("ROWS", "4000000"))
HITS = int(os.environ.get("HITS", "500000"))
RUNS = int(os.environ.get("RUNS", "9"))
DATABASE = "bench"
KEYS = ("WatchID", "UserID")
NUMBERS = """SELECT (g * 7919::bigint) % 1000 AS small, (g * 104729::bigint) % 3000000 AS middle,
    ('x' || md5(g::text))::bit(64)::bigint & 9223372036854775807 AS wild, g % 100 AS k FROM generate_series(1, {}) g"""
QUESTIONS = {
    "sums of a table": "SELECT sum(small), sum(middle), avg(wild) FROM {0}",
    "sums of some rows": "SELECT sum(small), sum(middle), avg(wild) FROM {0} WHERE k > 3",
    "extremes of some rows": "SELECT min(wild), max(wild) FROM {0} WHERE k > 3",
    "groups of small numbers": "SELECT small, count(*), sum(middle) FROM {0} GROUP BY small ORDER BY small",
    "groups of middle ones": "SELECT middle, count(*) FROM {0} GROUP BY middle ORDER BY 2 DESC, 1 LIMIT 10",
    "groups of 63 bits": "SELECT wild, count(*) FROM {0} GROUP BY wild ORDER BY 2 DESC, 1 LIMIT 10",
    "distinct": "SELECT count(DISTINCT middle), count(DISTINCT wild) FROM {0}",
    "conditions": "SELECT count(*) FROM {0} WHERE middle > 1000000 AND wild < 4611686018427387904 AND small <> 5",
    "equality": "SELECT count(*), max(k) FROM {0} WHERE middle = 777777",
    "IN": "SELECT count(*) FROM {0} WHERE small IN (1, 5, 77)",
    "join": "SELECT count(*) FROM {0} t JOIN keys_{0} d ON t.middle = d.middle",
    "top ten": "SELECT wild FROM {0} ORDER BY wild LIMIT 10",
    "values": "SELECT middle, wild FROM {0} WHERE k = 7 ORDER BY wild, middle",
}


def make_hits(server):
    """hits_signed and hits_unsigned, from the generator's rows."""
    kinds = ", ".join(f"{name} {clickbench.SQL_TYPES[kind]} NOT NULL" for name, kind, _ in columns())
    server.sql(f"CREATE TABLE made ({kinds})", DATABASE)
    texts = ", ".join(name for name, kind, _ in columns() if kind == "t")
    made = subprocess.Popen([str(race.PYTHON), str(ROOT / "bench" / "hits.py"), str(HITS)], stdout=subprocess.PIPE)
    subprocess.run(server.psql_command(DATABASE, "-q", "-c", f"COPY made FROM STDIN (FORMAT csv, NULL '\\N', FORCE_NOT_NULL ({texts}))"), stdin=made.stdout, check=True)
    if made.wait() != 0:
        raise ServerError("bench/hits.py failed")
    for table, kind in (("hits_signed", "bigint"), ("hits_unsigned", "engine.uint8")):
        values = ", ".join(f"({name} & 9223372036854775807)::{kind} AS {name}" if name in KEYS else name for name, _, _ in columns())
        server.sql(f"CREATE TABLE {table} USING colcompress AS SELECT {values} FROM made; ANALYZE {table}", DATABASE)
    server.sql("DROP TABLE made", DATABASE)


def make_numbers(server):
    """signed and unsigned, and keys_ of each to join with."""
    server.sql(f"CREATE TABLE made AS {NUMBERS.format(ROWS)}", DATABASE)
    for table, kind in (("signed", "bigint"), ("unsigned", "engine.uint8")):
        server.sql(f"CREATE TABLE {table} USING colcompress AS SELECT small::{kind}, middle::{kind}, wild::{kind}, k FROM made; "
                   f"CREATE TABLE keys_{table} USING colcompress AS SELECT DISTINCT middle FROM {table} WHERE middle < 300000; ANALYZE {table}; ANALYZE keys_{table}", DATABASE)
    server.sql("DROP TABLE made", DATABASE)


def hit_questions(server):
    """{name: text with {0} for the table} of ClickBench's questions that name one of the columns."""
    user = server.sql("SELECT UserID FROM hits_signed GROUP BY 1 ORDER BY abs(count(*) - 4), 1 LIMIT 1", DATABASE)
    every = (q for q in kit.read_queries(kit.SQL / "clickbench_queries.sql") if re.search("|".join(KEYS), q.text))
    return {q.name: re.sub(r"\bhits\b", "hits_{0}", q.text.replace(":USER", user).replace(":MANY", str(max(10, HITS // 1000)))) for q in every}


def ask(session, title, questions):
    """Both tables in turns; prints the medians and returns each ratio, and what differs."""
    rows, ratios, wrong = [], {}, []
    for name, text in questions.items():
        words = {table: text.format(table) for table in ("signed", "unsigned")}
        answers = {table: session.run(statement).rows for table, statement in words.items()}
        if " LIMIT " in text and answers["signed"]:
            width = len(answers["signed"][0])
            answers = {table: session.run(race.untied(statement, width)).rows for table, statement in words.items()}
        if sorted(answers["signed"]) != sorted(answers["unsigned"]):
            wrong.append(name)
            continue
        times = {table: [] for table in words}
        for turn in range(RUNS):
            for table in (list(words) if turn % 2 else list(words)[::-1]):
                before = race.process_cpu(session.pid)
                session.run(words[table])
                times[table].append((race.process_cpu(session.pid) - before) * 1000)
        signed, unsigned = (kit.median(times[table]) for table in ("signed", "unsigned"))
        ratios[name] = unsigned / signed
        rows.append((name, f"{signed:.1f}", f"{unsigned:.1f}", f"{ratios[name]:.2f}x"))
    kit.print_table((f"{title}: CPU ms, median of {RUNS} in turns", "bigint", "engine.uint8", "to bigint"), rows)
    print(f"  geometric mean {geometric_mean(ratios.values()):.2f}x\n", flush=True)
    return wrong


def main(stage):
    server = fresh_server("uint8", stage, kit.SERVER_SETTINGS)
    try:
        server.create_database(DATABASE)
        make_hits(server)
        make_numbers(server)
        with server.session(DATABASE) as session:
            session.run(kit.SESSION_SETTINGS)
            wrong = ask(session, "ClickBench", hit_questions(server)) + ask(session, "numbers", QUESTIONS)
        for name in wrong:
            print(f"DIFFERENT {name}")
        return 1 if wrong else 0
    finally:
        server.destroy()


if __name__ == "__main__":
    run_program(main)
