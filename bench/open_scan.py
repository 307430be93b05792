"""What opening a scan costs on a table of many stripes: planning and start-up, nothing read.

Called by scripts/bench.sh open-scan. STRIPES (670) stripes of STRIPE_ROWS (1,000) rows each stand for a table
of 100 million rows: what a scan's opening reads is the directory, and that grows with stripes, not with rows.
STRIPE_ROWS=150000 makes it the real thing. A query that no stripe can answer is planned and run RUNS times.
"""

import os
import re

from harness import kit
from harness.server import fresh_server, run_program

STRIPES = int(os.environ.get("STRIPES", "670"))
STRIPE_ROWS = int(os.environ.get("STRIPE_ROWS", "1000"))
RUNS = int(os.environ.get("RUNS", "21"))
METHOD = os.environ.get("AM", "colcompress")
DATABASE = "bench"
# No row has this id, and every stripe's minimum and maximum say so.
QUERY = "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON) SELECT * FROM many_stripes WHERE id = -1"


def figures(session):
    text = "\n".join(row[0] for row in session.run(QUERY).rows)
    planning, execution = (float(re.search(rf"{name} Time: ([0-9.]+) ms", text)[1]) for name in ("Planning", "Execution"))
    return planning, execution, text


def main(stage):
    server = fresh_server("open-scan", stage, kit.SERVER_SETTINGS)
    try:
        server.create_database(DATABASE)
        rows = STRIPES * STRIPE_ROWS
        options = f" WITH (stripe_row_limit={STRIPE_ROWS}, compression='zstd')" if METHOD == "colcompress" else ""
        kit.say(f"loading {rows:,} rows: {STRIPES} stripes of {STRIPE_ROWS:,}")
        server.sql(f"CREATE TABLE many_stripes (id bigint, day date, amount numeric(12,2), kind text) USING {METHOD}{options};"
                   f"INSERT INTO many_stripes SELECT g, date '2024-01-01' + (g / 10000)::int % 3650, (g % 9999) / 100.0, "
                   f"'kind ' || g % 20 FROM generate_series(1, {rows}) g; VACUUM ANALYZE many_stripes", DATABASE)
        if METHOD == "colcompress":
            kit.say("stripes: " + server.sql("SELECT count(*) FROM engine.stripe", DATABASE))
        first = []
        for _ in range(5):
            with server.session(DATABASE) as session:
                session.run(kit.SESSION_SETTINGS)
                first.append(figures(session))
        with server.session(DATABASE) as session:
            session.run(kit.SESSION_SETTINGS)
            later = [figures(session) for _ in range(RUNS)]
        table = [(name, f"{kit.median([p for p, _, _ in runs]):.2f}", f"{kit.median([e for _, e, _ in runs]):.2f}",
                  f"{kit.median([p + e for p, e, _ in runs]):.2f}")
                 for name, runs in (("first query of a session", first), ("later queries", later))]
        kit.print_table((f"{STRIPES} stripes, median ms", "planning", "execution", "together"), table)
        print(later[-1][2])
    finally:
        server.destroy()
    return 0


if __name__ == "__main__":
    run_program(main)
