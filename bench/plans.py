"""Which questions of the benchmarks run in vectorised nodes on this major version, held against the others.

Called by scripts/bench.sh plans, with PG=N for another major version's server. Rows are few (SF 0.2, 200,000
events and hits): only plans are looked at. Each question is asked for with one thread and with two. What is
found goes to target/bench/plans-N.json. A question that is vectorised as a whole on another version whose
file is there, but not on this one, is an error.
"""

import json
import os
import sys

os.environ.setdefault("SF", "0.2")
os.environ["ROWS"] = os.environ.get("ROWS", "200000")

import clickbench
import events
import tpch

from harness import kit, race
from harness.server import TARGET, fresh_server, pg_config, run_program

DATABASE = "plans"


def load(server, schema, create, tables):
    """Columnar tables with the rows that each table's program writes."""
    server.sql(f"CREATE SCHEMA {schema}; SET search_path = {schema}; SET default_table_access_method = colcompress; {create}", DATABASE)
    for table in tables:
        path = server.base / f"{table.name}.csv"
        table.write(path)
        server.sql(f"COPY {schema}.{table.name} FROM '{path}' ({table.copy}); VACUUM ANALYZE {schema}.{table.name}", DATABASE)
        path.unlink()
        kit.say(f"  {table.name} is loaded")


def load_events(server):
    server.sql("CREATE SCHEMA events", DATABASE)
    text = (kit.SQL / "events.sql").read_text().replace(":ROWS", os.environ["ROWS"])
    server.sql(f"SET search_path = events; {text}", DATABASE)
    server.sql("CREATE TABLE events.t (LIKE events.events_source) USING colcompress; INSERT INTO events.t "
               "SELECT * FROM events.events_source; VACUUM ANALYZE events.t", DATABASE)


def plans_of(server, schema, questions):
    """How much of each question's plan is vectorised, by its name and threads."""
    engine = race.Postgres(schema, server, DATABASE, "t", f"SET search_path = {schema}")
    found = {}
    for threads in (1, 2):
        engine.use(threads)
        for question in questions:
            found[f"{question.name}/{threads}"] = engine.plan(engine.words(question))
    engine.close()
    return found


def main(stage):
    major = pg_config("--version").split()[1].split(".")[0]
    server = fresh_server("plans", stage, settings={"shared_buffers": "512MB"})
    try:
        server.create_database(DATABASE)
        server.sql("CREATE EXTENSION IF NOT EXISTS colonnade", DATABASE)
        load(server, "tpch", (kit.SQL / "tpch.sql").read_text(), tpch.tables())
        load(server, "columns", clickbench.create(False), [clickbench.hits()])
        load_events(server)
        first, keyed = events.questions()
        found = plans_of(server, "tpch", tpch.questions(server, DATABASE))
        found |= plans_of(server, "columns", clickbench.questions(server, DATABASE))
        found |= plans_of(server, "events", first + keyed)
    finally:
        server.destroy()
    folder = TARGET / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"plans-{major}.json").write_text(json.dumps(found, indent=1, sort_keys=True))
    whole = sum(plan == "whole" for plan in found.values())
    print(f"PostgreSQL {major}: {whole} of {len(found)} plans are vectorised as a whole")
    worse = []
    for path in sorted(folder.glob("plans-*.json")):
        other = json.loads(path.read_text())
        worse += [f"{name}: whole by {path.stem}, here {found.get(name)}" for name, plan in other.items()
                  if plan == "whole" and found.get(name) != "whole"]
    print("\n".join(worse) or "none that another major version vectorises is left out")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    run_program(main)
