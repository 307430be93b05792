"""TPC-H: the 22 queries on colcompress, DuckDB and heap, answers compared with heap's.

Called by scripts/bench.sh tpch. SF (1) is the scale factor, RUNS (5) the timed runs of each query, TIMEOUT (300) the seconds
after which a query is stopped; QUERIES="T1 T6" asks only those. Heap gets primary-key and foreign-key indexes; its
answers and times are measured once (two runs each, the second counts) and kept in target/bench/tpch-heap-SF.json, keyed
by query text and server, so that later runs load no heap; HEAP=fresh measures them again, in turns with the others.
The column tables have no indexes; lineitem is in order of l_shipdate and orders of o_orderdate.
"""

import json
import os
import subprocess
import sys

from harness import kit, race
from harness.server import TARGET, ServerError, fail, fresh_server, running_as_root, server_ids

SF = os.environ.get("SF", "1")
RUNS = int(os.environ.get("RUNS", "5"))
TIMEOUT = int(os.environ.get("TIMEOUT", "300"))
FRESH = os.environ.get("HEAP") == "fresh"
ONLY = os.environ.get("QUERIES", "").split()
DATABASE = "tpch"
SETTINGS = {**kit.SERVER_SETTINGS, "shared_buffers": "4GB", "max_wal_size": "8GB", "wal_level": "minimal", "max_wal_senders": "0"}
TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
ORDERBY = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
INDEXES = """
ALTER TABLE region ADD PRIMARY KEY (r_regionkey); ALTER TABLE nation ADD PRIMARY KEY (n_nationkey);
ALTER TABLE part ADD PRIMARY KEY (p_partkey); ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey); ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE orders ADD PRIMARY KEY (o_orderkey); ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX ON nation (n_regionkey); CREATE INDEX ON supplier (s_nationkey); CREATE INDEX ON partsupp (ps_suppkey);
CREATE INDEX ON customer (c_nationkey); CREATE INDEX ON orders (o_custkey); CREATE INDEX ON lineitem (l_partkey, l_suppkey);
CREATE INDEX ON lineitem (l_suppkey);
"""


def questions():
    fraction = f"{0.0001 / float(SF):.10f}"
    every = [race.Question(q.name, q.title, q.text.replace(":FRACTION", fraction), q.ordered) for q in kit.read_queries(kit.SQL / "tpch_queries.sql")]
    return [q for q in every if not ONLY or q.name in ONLY]


def generate(server, table):
    """The table's rows as CSV in a file that the server can read."""
    program = TARGET / "venv" / "bin" / "tpchgen-cli"
    if not program.exists():
        raise ServerError("tpchgen-cli is not installed: the Python package of that name could not be had")
    done = subprocess.run([str(program), "csv", "-s", SF, "--tables", table, "--output-dir", str(server.base)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    path = server.base / f"{table}.csv"
    if done.returncode != 0 or not path.exists():
        raise ServerError(f"tpchgen-cli failed:\n{done.stdout}")
    if running_as_root():
        os.chown(path, *server_ids())
    return path


def create(server, schema, method):
    """Empty tables in a schema of their own."""
    text = (kit.SQL / "tpch.sql").read_text()
    server.sql(f"CREATE SCHEMA {schema}; SET search_path = {schema}; SET default_table_access_method = {method};\n{text}", DATABASE)
    if method == "colcompress":
        for table, key in ORDERBY.items():
            server.sql(f"ALTER TABLE {schema}.{table} SET (orderby = '{key}')", DATABASE)


def load(server, schemas, duck):
    """Generates a table, loads it everywhere, removes its file, and so on: the disk never holds all files at once."""
    seconds = {}
    for table in TABLES:
        csv = generate(server, table)
        with server.session(DATABASE) as session:
            for schema in schemas:
                took = session.run(f"COPY {schema}.{table} FROM '{csv}' (FORMAT csv, HEADER)").milliseconds
                seconds[schema] = seconds.get(schema, 0) + took / 1000
        if duck is not None:
            took = duck.ask(f"COPY {table} FROM '{csv}' (FORMAT csv, HEADER)", rows=False)["wall_ms"]
            seconds["duckdb"] = seconds.get("duckdb", 0) + took / 1000
        csv.unlink()
        kit.say(f"  {table} is loaded")
    for schema in schemas:
        if schema == "rows":
            server.sql(f"SET search_path = rows; SET maintenance_work_mem = '1GB'; {INDEXES}", DATABASE)
        server.sql("".join(f"VACUUM ANALYZE {schema}.{table};\n" for table in TABLES), DATABASE)
    if duck is not None:
        duck.ask("CHECKPOINT")
    return seconds


def duck_tables(duck):
    text = (kit.SQL / "tpch.sql").read_text()
    for statement in "\n".join(line for line in text.splitlines() if not line.startswith("--")).split(";"):
        if statement.strip():
            duck.ask(statement)


def cache_path():
    return TARGET / "bench" / f"tpch-heap-{SF}.json"


def kept(version):
    """Heap's kept answers, as far as they are this server's."""
    if FRESH or not cache_path().exists():
        return {}
    stored = json.loads(cache_path().read_text())
    return stored["answers"] if stored["version"] == version else {}


def measure_heap(server, asked, answers, version):
    """Adds heap's answers and times for what is missing, and keeps them."""
    engine = race.Postgres("heap", server, DATABASE, setup="SET search_path = rows", timeout=TIMEOUT)
    try:
        for threads in race.MODES.values():
            engine.use(threads)
            mode = answers.setdefault(str(threads), {})
            for question in asked:
                if question.text in mode:
                    continue
                run = engine.run(question.text)
                if run.wall is not None and run.wall < 60_000:
                    run = engine.run(question.text)
                mode[question.text] = {"wall_ms": run.wall, "cpu_ms": run.cpu, "rows": run.rows}
                kit.say(f"  {question.name} on heap, threads {threads}: {race.shown(run.wall)} ms")
                cache_path().parent.mkdir(parents=True, exist_ok=True)
                cache_path().write_text(json.dumps({"version": version, "answers": answers}))
    finally:
        engine.close()


def main(stage):
    asked = questions()
    server = fresh_server("tpch", stage, SETTINGS)
    engines = []
    try:
        server.create_database(DATABASE)
        version = server.sql("SELECT version()")
        answers = kept(version)
        complete = all(q.text in answers.get(str(threads), {}) for q in asked for threads in race.MODES.values())
        schemas = {"columns": "colcompress"} if complete else {"rows": "heap", "columns": "colcompress"}
        for schema, method in schemas.items():
            create(server, schema, method)
        duck = race.DuckDB(server.base / "tpch.duckdb") if race.PYTHON.exists() else None
        if duck is not None:
            duck_tables(duck)
        kit.say(f"scale factor {SF}: generating and loading {', '.join([*schemas, 'DuckDB'])}")
        seconds = load(server, schemas, duck)
        sizes = {schema: sum(kit.table_bytes(server, DATABASE, f"{schema}.{table}") for table in TABLES) for schema in schemas}
        if duck is not None:
            sizes["duckdb"] = duck.path.stat().st_size
        kit.print_table(("loaded", "seconds", "MB"), [(name, f"{seconds[name]:.1f}", f"{sizes[name] / kit.MB:.0f}") for name in seconds])
        if not complete:
            kit.say("heap's answers and times, once")
            measure_heap(server, asked, answers, version)
        heap = race.Postgres("heap", server, DATABASE, setup="SET search_path = rows", timeout=TIMEOUT) if FRESH else race.Stored("heap", answers)
        engines = [heap, race.Postgres("colcompress", server, DATABASE, setup="SET search_path = columns", timeout=TIMEOUT)] + ([duck] if duck else [])
        kit.say(f"{len(asked)} queries, {RUNS} runs each in turns" + ("" if FRESH else "; heap's times are kept ones"))
        contest = race.Race("tpch", engines, asked, RUNS)
        about = {"scale_factor": SF, "postgres": version, "settings": SETTINGS, "heap_is_kept": not FRESH, "load_s": seconds, "bytes": sizes}
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
