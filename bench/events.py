"""The events benchmark: loads, sizes and questions of heap, colcompress, rowcompress and DuckDB (HYPER=1: and
Hyper) in turns, and of the columnar extensions that the server has (`harness.peers`); Parquet's size beside
them.

Called by scripts/bench.sh. ROWS (1,000,000), LOADS and RUNS (7) change the amount of work; SIZES=0 leaves out
the size of each column; COLD is how often each question is asked of a server that was just started, with the
system's page cache dropped where that is allowed (1; 0: never); AM names one access method to stand in the
place of both of ours; OUT the JSON file, target/bench/events.json unless it is given.
"""

import os

from harness import kit, others, peers, race
from harness.server import fresh_server, run_program

ROWS = int(os.environ.get("ROWS", "1000000"))
LOADS = int(os.environ.get("LOADS", "5"))
RUNS = int(os.environ.get("RUNS", "7"))
SIZES = os.environ.get("SIZES", "1") == "1"
COLD = int(os.environ.get("COLD", "1"))
DATABASE = "bench"
KEYED = {f"K{n}" for n in range(1, 9)}
DUCK_TABLE = """CREATE TABLE t (id BIGINT, created_at TIMESTAMPTZ, event_date DATE, user_id BIGINT, session_id VARCHAR,
    amount DECIMAL(15,4), price DOUBLE, quantity INTEGER, duration_ms INTEGER, score FLOAT, country_code VARCHAR,
    browser VARCHAR, url VARCHAR, is_mobile BOOLEAN, event_type VARCHAR, metadata JSON, tags VARCHAR[])"""
# What is put in DuckDB's own words: JSON and arrays.
DUCK_WORDS = {
    "Q6": "SELECT count(*), avg(amount) FROM t WHERE metadata->>'$.os' = 'android'",
    "Q7": "SELECT metadata->>'$.campaign', count(*), sum(amount) FROM t WHERE json_exists(metadata, '$.campaign') "
          "GROUP BY 1 ORDER BY 3 DESC NULLS LAST",
    "Q8": "SELECT count(*), avg(price) FROM t WHERE list_contains(tags, 'tag_5')",
    "K3": "SELECT count(*), sum(amount), avg(duration_ms) FROM t WHERE id IN (SELECT (s * 10000)::BIGINT FROM range(1, 101) AS r(s))",
    "K4": "SELECT count(*), sum(amount), avg(duration_ms) FROM t WHERE id IN (SELECT (s * 1000)::BIGINT FROM range(1, 1001) AS r(s))",
    "K7": "SELECT count(*), sum(amount), avg(price) FROM t WHERE user_id IN (SELECT s * 500 FROM range(1, 101) AS r(s))",
    "K8": "SELECT count(*), sum(amount), avg(price) FROM t WHERE user_id IN (SELECT s * 50 FROM range(1, 1001) AS r(s))",
}

HYPER_TABLE = """CREATE TABLE t (id bigint, created_at timestamptz, event_date date, user_id bigint, session_id text,
    amount numeric(15,4), price double precision, quantity integer, duration_ms integer, score real, country_code text,
    browser text, url text, is_mobile boolean, event_type text, metadata text, tags text)"""
# It has neither containment of JSON nor of arrays, and the average of floats of 32 bits has few digits.
HYPER_WORDS = {"Q6": None, "Q7": None, "Q8": None,
               "Q3": "SELECT country_code, count(*) AS n, avg(score::double precision) FROM t GROUP BY country_code ORDER BY n DESC"}

# What a column's values carry, in bytes a row, after everything that follows from the row's number is taken
# away: md5 is 128 random bits; random() has 52; a rounded one log2 of its values; a float4 of it 23 and an
# exponent's 2.
FLOOR = {"session_id": 16.0, "amount": 3.32, "price": 6.5, "duration_ms": 1.86, "score": 3.13, "metadata": 1.95}


def column_sizes(server, arm):
    """Each column alone in a table of the arm's kind: what the format makes of it, page headers included."""
    names = server.sql("SELECT attname FROM pg_attribute WHERE attrelid = 'events_source'::regclass AND attnum > 0 "
                       "ORDER BY attnum", DATABASE).splitlines()
    options = " WITH (compression='zstd')" if arm.options else ""
    sizes = {}
    for name in names:
        server.sql(f"DROP TABLE IF EXISTS one_column; CREATE TABLE one_column USING {arm.method}{options} AS "
                   f"SELECT {name} FROM events_source", DATABASE)
        sizes[name] = kit.table_bytes(server, DATABASE, "one_column")
    server.sql("DROP TABLE one_column", DATABASE)
    return sizes


def show_sizes(server, arms, csv):
    kit.say("sizes: tables, each column alone, and the same rows as zstd Parquet")
    tables = {arm.name: kit.table_bytes(server, DATABASE, arm.name) for arm in arms}
    directory = int(server.sql("SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c WHERE c.relkind = 'r' "
                               "AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'engine')", DATABASE))
    parquet = kit.parquet_sizes(csv, "events")
    known = isinstance(parquet, dict)
    rows = [(name, f"{size / kit.MB:.1f}") for name, size in tables.items()]
    rows.append(("side tables (engine.*)", f"{directory / kit.MB:.2f}"))
    rows.append(("zstd Parquet", f"{parquet['bytes'] / kit.MB:.1f}" if known else f"- ({parquet})"))
    kit.print_table(("size", "MB"), rows)
    columns = column_sizes(server, arms[1])
    rows = []
    for name, size in columns.items():
        floor = FLOOR.get(name, 0) * ROWS
        in_parquet = parquet["columns"].get(name, 0) if known else None
        rows.append((name, f"{size / kit.MB:.2f}", f"{floor / kit.MB:.2f}", f"{(size - floor) / kit.MB:.2f}",
                     "-" if in_parquet is None else f"{in_parquet / kit.MB:.2f}"))
    total = sum(FLOOR.values()) * ROWS
    rows.append(("all columns", f"{sum(columns.values()) / kit.MB:.2f}", f"{total / kit.MB:.2f}",
                 f"{(sum(columns.values()) - total) / kit.MB:.2f}",
                 f"{sum(parquet['columns'].values()) / kit.MB:.2f}" if known else "-"))
    kit.print_table(("column alone, MB", arms[1].method, "floor", "above it", "Parquet"), rows)
    return {"tables": tables, "side_tables": directory, "columns": columns, "floor_bytes_per_row": FLOOR,
            "parquet": parquet if known else None}


def both_ours():
    """The tables of our access methods: both, or the one that AM names."""
    arms = [kit.column_arm("events", "event_date")]
    if "AM" not in os.environ:
        arms.append(kit.Arm("events_rowcompress", "rowcompress", arms[0].options))
    return arms


def show_loads(arms, loads):
    medians = {arm.name: (kit.median([l.wall for l in loads[arm.name]]), kit.median([l.cpu for l in loads[arm.name]]),
                          max(l.private_kb for l in loads[arm.name])) for arm in arms}
    rows = [(name, f"{wall:.2f}", f"{cpu:.2f}", f"{memory / 1000:.0f}") for name, (wall, cpu, memory) in medians.items()]
    heap = medians[arms[0].name]
    for arm in arms[1:]:
        rows.append((f"{arm.method} to heap", f"{medians[arm.name][0] / heap[0]:.2f}x", f"{medians[arm.name][1] / heap[1]:.2f}x", ""))
    kit.print_table((f"COPY, median of {LOADS} in turns", "wall s", "CPU s", "peak private MB"), rows)
    return {name: [{"wall_s": l.wall, "cpu_s": l.cpu, "private_kb": l.private_kb} for l in runs] for name, runs in loads.items()}


def index(server, arms):
    """Both btrees on each table, and ANALYZE: milliseconds of each, and sizes with and without them."""
    rows, record = [], {}
    with server.session(DATABASE) as session:
        session.run(kit.SESSION_SETTINGS)
        for arm in arms:
            bare = kit.table_bytes(server, DATABASE, arm.name)
            times = [session.run(statement).milliseconds for statement in (f"ANALYZE {arm.name}", f"CREATE INDEX ON {arm.name} (id)", f"CREATE INDEX ON {arm.name} (user_id)")]
            session.run(f"ANALYZE {arm.name}")
            whole = int(server.sql(f"SELECT pg_total_relation_size('{arm.name}')", DATABASE))
            rows.append((arm.name, *(f"{time:.0f}" for time in times), f"{bare / kit.MB:.1f}", f"{whole / kit.MB:.1f}"))
            record[arm.name] = {"analyze_ms": times[0], "index_id_ms": times[1], "index_user_id_ms": times[2], "table_bytes": bare, "total_bytes": whole}
    kit.print_table(("one statement each, ms", "ANALYZE", "btree(id)", "btree(user_id)", "table MB", "with indexes MB"), rows)
    return record


def cold(server, arms, questions, contest):
    """Each question of each table as the first of a server that was just started; the mode and its record, in
    which the race's other engines have no times."""
    record, dropped = {}, False
    for question in questions:
        entry = {engine.name: {"wall_ms": [], "cpu_ms": []} for engine in contest.engines}
        fault = expected = None
        for _ in range(COLD):
            for arm in arms:
                server.stop()
                dropped = kit.drop_caches()
                server.start()
                engine = race.Postgres(arm.method, server, DATABASE, arm.name)
                # The catalogs are read, and the library, but nothing of the table.
                engine.run("SELECT count(*) FROM pg_class")
                run = engine.run(engine.words(question))
                entry[arm.method]["wall_ms"].append(run.wall)
                entry[arm.method]["cpu_ms"].append(run.cpu)
                expected = run.rows if arm is arms[0] else expected
                fault = fault or kit.compare(run.rows, expected, question.ordered, engine.floats(engine.words(question)))
                engine.close()
        if fault:
            contest.wrong.append(f"{question.name}, cold: {fault}")
        record[question.name] = entry | {"equal": fault is None, "plan": ""}
        kit.say(f"  {question.name}: " + ", ".join(f"{arm.method} {race.shown(race.median(entry[arm.method]['wall_ms']))}" for arm in arms))
    return "serial, cold" if dropped else "serial, after a restart (the system's cache stays)", record


def duck_table(engine, csv):
    """The same rows in DuckDB, with its own types for JSON and arrays."""
    engine.ask(DUCK_TABLE)
    names = [row[0] for row in engine.ask("DESCRIBE t")["rows"]]
    values = [f"string_split(trim({name}, '{{}}'), ',')" if name == "tags" else name for name in names]
    types = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    load = engine.ask(f"INSERT INTO t SELECT {', '.join(values)} FROM read_csv('{csv}', header=false, columns={{{types}}})")
    engine.ask("CHECKPOINT")
    return load


def other_table(engine, csv):
    """The same rows in another engine; what the load took."""
    if engine.name == others.DuckDB.name:
        return duck_table(engine, csv)
    engine.ask(HYPER_TABLE)
    return engine.ask(f"COPY t FROM '{csv}' WITH (FORMAT csv)", rows=False)


def words(name):
    """What a question is in other engines' words, where these differ."""
    return {engine: of[name] for engine, of in (("duckdb", DUCK_WORDS), ("hyper", HYPER_WORDS)) if name in of}


def questions():
    """All of the file: the keyed ones (K1 to K8) apart, because they get indexes."""
    both = [race.Question(q.name, q.title, q.text, q.ordered, words(q.name)) for q in kit.read_queries(kit.SQL / "events_queries.sql")]
    keyed = [q for q in both if q.name in KEYED]
    return [q for q in both if q not in keyed], keyed


def again(question, state):
    """The same question under another name."""
    return race.Question(f"{question.name} {state}", question.title, question.text, question.ordered, question.words, question.ties)


def ask(server, arms, csv, about):
    """Both lists in both modes; the exit status."""
    engines = [race.Postgres(arm.method, server, DATABASE, arm.name) for arm in arms]
    loaded, unloaded = [], {}
    try:
        for peer in peers.found():
            kit.say(f"loading {peer.name}")
            try:
                one = peers.Loaded(peer, kit.events_table(), csv)
                loaded.append(one)
                engines.append(one.engine())
            except peers.REFUSALS as problem:
                unloaded[peer.name] = peers.reason(problem)
                about[peer.name] = {"problem": str(problem)}
                kit.say(f"  {peer.name} does not take part: {unloaded[peer.name]}")
                continue
            about[peer.name] = {"version": one.version, "load_s": one.load_ms / 1000, "load_cpu_s": one.load_cpu, "bytes": one.bytes}
            kit.say(f"  {peer.name} {one.version}: {one.load_ms / 1000:.1f} s, CPU {one.load_cpu:.1f} s, {one.bytes / kit.MB:.1f} MB")
        for kind in others.present():
            engine = kind(server.base / f"events.{kind.name}")
            engines.append(engine)
            kit.say(f"loading {kind.name}")
            load = other_table(engine, csv)
            about[kind.name] = {"version": engine.version, "load_s": load["wall_ms"] / 1000, "load_cpu_s": load["cpu_ms"] / 1000, "bytes": engine.path.stat().st_size}
            kit.say(f"  {kind.name} {engine.version}: {load['wall_ms'] / 1000:.1f} s, CPU {load['cpu_ms'] / 1000:.1f} s, file {engine.path.stat().st_size / kit.MB:.1f} MB")
        scanned, keyed = questions()
        # Those of single columns are asked in both states.
        bare = [again(q, "without") for q in keyed]
        indexed = [again(q, "indexed") for q in scanned if q.name[0] == "K"]
        kit.say(f"{len(scanned) + len(bare)} questions without indexes, {RUNS} runs each in turns")
        contest = peers.Race("events", engines, scanned + bare, RUNS)
        modes = contest.all_modes()
        kit.say(f"{len(keyed) + len(indexed)} questions by key, with btree(id) and btree(user_id) on all but Hyper, which has no indexes")
        about["indexes"] = index(server, arms)
        for one in loaded:
            one.index()
        for engine in engines:
            if engine.name == others.DuckDB.name:
                engine.ask("CREATE INDEX by_id ON t (id)")
                engine.ask("CREATE INDEX by_user ON t (user_id)")
        contest.questions = keyed + indexed
        for mode, record in contest.all_modes().items():
            modes[mode].update(record)
        if COLD:
            kit.say(f"{len(scanned) + len(keyed)} questions of a server that was just started, {COLD} each")
            engines = [engine for engine in engines if not close(engine, arms)]
            mode, record = cold(server, arms, scanned + keyed, contest)
            modes[mode] = record
        scans = [q.name for q in scanned]
        status = race.finish(contest, modes, about, {"Q1 to Q10 and K9 to K12": [n for n in scans if n[0] != "W"], "windows (W1 to W5)": [n for n in scans if n[0] == "W"], "those without JSON (Q6, Q7)": [n for n in scans if n not in ("Q6", "Q7") and n[0] != "W"]})
        for problem in peers.problems(modes, unloaded):
            print(f"PEER {problem}")
        return status
    finally:
        for engine in engines:
            engine.close()
        for one in loaded:
            one.destroy()


def close(engine, arms):
    """Closes the session of one of our server's tables, which is about to stop."""
    ours = isinstance(engine, race.Postgres) and engine.table in [arm.name for arm in arms]
    if ours:
        engine.close()
    return ours


def main(stage):
    server = fresh_server("bench", stage, kit.SERVER_SETTINGS)
    try:
        server.create_database(DATABASE)
        csv = server.base / "events.csv"
        kit.say(f"generating {ROWS:,} events and their CSV")
        kit.make_events(server, DATABASE, ROWS, csv)
        arms = [kit.Arm("events_heap", "heap"), *both_ours()]
        kit.say(f"loading the CSV into {len(arms)} tables, {LOADS} times each in turns")
        loads = kit.load_alternating(server, DATABASE, arms, "events_source", csv, LOADS)
        print()
        about = {"rows": ROWS, "postgres": server.sql("SELECT version()"), "settings": kit.SERVER_SETTINGS,
                 "arms": {arm.name: {"method": arm.method, "options": arm.options} for arm in arms}}
        about["loads"] = show_loads(arms, loads)
        if SIZES:
            about["sizes"] = show_sizes(server, arms, csv)
        return ask(server, arms, csv, about)
    finally:
        server.destroy()


if __name__ == "__main__":
    run_program(main)
