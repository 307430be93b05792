"""Random queries on random tables: colcompress must answer as heap does, to the byte, errors included, and so
must heap tables with a columnstore index (STORE=colcompress or columnstore asks of one alone).

Short (make test): under a minute, always on the same seeds. Long: make test-differential DURATION=seconds
SEED=number. Each round makes tables (differential/generator/tables.py), then asks QUERIES queries, plainly,
prepared or through a cursor. A difference is made smaller and printed with the seed, the settings and a
script that shows it. The program also fails if its premises do not hold: rows in stripes and in heap pages,
plans with Colonnade's nodes, queries that return rows, queries that raise errors.
"""

import collections
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "differential"))

from generator import answers, queries, shrink, tables, types  # noqa: E402
from harness.server import by_major, fresh_server  # noqa: E402

LONG = os.environ.get("COLONNADE_LONG") == "1"
STORES = (os.environ.get("STORE") or "colcompress columnstore").split()
DURATION = float(os.environ.get("DURATION") or (600 if LONG else 30)) / len(STORES)
QUERIES = int(os.environ.get("QUERIES") or 400)
SEED = int(os.environ.get("SEED") or (time.time_ns() // 1000 % 10**9 if LONG else 20261122))
LEAST = 100
FAILURES = int(os.environ.get("FAILURES") or 5)
DATABASE = "generated"
OUT = by_major("differential")
# What the columnar side runs under, in turns; the heap side always runs serially under the defaults. Tables
# are small here: without vectorised_min_rows the vectorised executor would leave most of them to the
# server's.
VECTORISED = {"colonnade.vectorised_min_rows": "0"}
SETTINGS = (
    {},
    VECTORISED,
    VECTORISED,
    {**VECTORISED, "work_mem": "'64kB'", "hash_mem_multiplier": "1"},
    {**VECTORISED, "max_parallel_workers_per_gather": "1"},
    {**VECTORISED, "enable_mergejoin": "off", "enable_nestloop": "off"},
    {**VECTORISED, "enable_hashagg": "off", "plan_cache_mode": "force_generic_plan"},
    {"max_parallel_workers_per_gather": "2", "parallel_setup_cost": "0", "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0"},
    {"work_mem": "'64kB'", "hash_mem_multiplier": "1"},
    {"enable_hashjoin": "off", "enable_hashagg": "off"},
    {"enable_nestloop": "off", "enable_mergejoin": "off", "enable_sort": "off"},
    {"plan_cache_mode": "force_generic_plan"},
)
ZONES = ("UTC", "America/New_York", "Asia/Kolkata")


class Run:
    """One server and what was seen on it."""

    def __init__(self, server, store):
        self.server, self.store = server, store
        self.counts = collections.Counter()
        self.reports = []
        self.deadline = time.monotonic() + DURATION

    def sides(self):
        sessions = {side: self.server.session(DATABASE) for side in "chb"}
        for side, session in sessions.items():
            session.run(f"SET search_path = {side}, public")
            session.run("SET statement_timeout = '10s'")
            session.run("SET max_parallel_workers_per_gather = 0")
        if self.store == "columnstore":
            # Tables are small here.
            sessions["c"].run("SET enable_seqscan = off")
        return sessions

    def round(self, seed):
        """Makes the tables of a seed and asks its queries."""
        rng = random.Random(seed)
        self.server.create_database(DATABASE, template="template_generated")
        sides = self.sides()
        try:
            builder = tables.Builder(random.Random(rng.random()), sides, self.server.base, lambda side, text: None, self.store)
            try:
                made = builder.tables()
            except AssertionError as problem:
                self.report(seed, -1, {}, str(problem))
                return
            except answers.SqlError as problem:
                self.report(seed, -1, {}, f"loading failed: {problem}")
                return
            self.premise(sides["c"], made)
            self.ask(seed, random.Random(rng.random()), sides, made)
        finally:
            for session in sides.values():
                session.close()

    def premise(self, session, made):
        self.counts["rounds"] += 1
        if self.store == "columnstore":
            for column, count in (("copies", "stripes"), ("clean_blocks", "cold rows"), ("not_visible_blocks + not_copied_blocks", "hot rows"), ("checked_blocks", "checked blocks")):
                self.counts[count] += int(session.value(f"SELECT coalesce(sum({column}), 0) FROM engine.columnstore_indexes"))
            self.counts.update(f"type {column.type.sql}" for table in made for column in table.columns)
            return
        self.counts["stripes"] += int(session.value("SELECT count(*) FROM engine.colcompress_stripes"))
        for table in made:
            if table.columnar:
                cold = int(session.value(f"SELECT coalesce(sum(row_count), 0) FROM engine.colcompress_stripes WHERE table_name = 'c.{table.name}'::regclass"))
                self.counts["cold rows"] += cold
                self.counts["hot rows"] += table.rows - cold
                self.counts.update({f"type {column.type.sql}": 1 for column in table.columns})

    def ask(self, seed, rng, sides, made):
        maker = queries.Queries(rng, made)
        settings = {}
        for number in range(QUERIES):
            # On a slow machine loading may take all the time there is: some queries are asked all the same.
            if (time.monotonic() > self.deadline and number >= LEAST) or len(self.reports) >= FAILURES:
                return
            if number % 20 == 0:
                settings = self.settle(rng, sides, settings)
            query = maker.make()
            text = query.sql()
            try:
                self.one(seed, number, settings, sides, made, query, text)
            except answers.Lost as problem:
                self.report(seed, number, settings, f"the backend was lost: {problem}\n{text};")
                return

    def settle(self, rng, sides, old):
        settings = rng.choice(SETTINGS)
        for name in old:
            sides["c"].run(f"RESET {name}" if name != "max_parallel_workers_per_gather" else f"SET {name} = 0")
        for name, value in settings.items():
            sides["c"].run(f"SET {name} = {value}")
        zone = rng.choice(ZONES)
        for session in sides.values():
            session.run(f"SET timezone = '{zone}'")
        return {**settings, "timezone": zone}

    def one(self, seed, number, settings, sides, made, query, text):
        way = self.way(number)
        verdict = answers.judge(sides, query, way)
        if self.store == "columnstore" and verdict.name == "different" and verdict.got.error and verdict.wanted.error:
            # Copied rows come first, but for plans that read the heap: of several rows with an error another
            # one may be met first.
            verdict.name = "tolerated"
        self.counts["queries"] += 1
        self.counts[verdict.name] += 1
        if verdict.got.error:
            self.counts["errors"] += 1
            self.counts[f"error {verdict.got.error[0]}"] += 1
        elif verdict.got.rows:
            self.counts["with rows"] += 1
        nodes, whole = answers.plan_nodes(sides["c"], text)
        self.counts["with Colonnade"] += nodes > 0
        self.counts["vectorised whole"] += whole
        if verdict.name == "different":
            self.explain(seed, number, {**settings, "asked": way}, sides, made, query, verdict)

    @staticmethod
    def way(number):
        """How the columnar side is asked."""
        return "prepared" if number % 7 == 3 else "cursor" if number % 11 == 5 else "plain"

    def explain(self, seed, number, settings, sides, made, query, verdict):
        """Makes the difference smaller and reports it."""
        began = query.sql()
        way = settings["asked"]
        shrinker = shrink.Shrinker(sides, 120 if LONG else 20, way)
        small = shrinker.query(query)
        again = answers.judge(sides, small, way)
        if again.name == "different":
            verdict = again
        lines = [f"SQL: {small.sql()};", f"expected (heap):\n{verdict.wanted.short()}", f"got (colcompress):\n{verdict.got.short()}"]
        sides["c"].run("SET colonnade.enable_vectorised = off")
        off = answers.judge(sides, small, way)
        sides["c"].run("RESET colonnade.enable_vectorised")
        lines.append(f"with colonnade.enable_vectorised = off: {off.name}")
        plan = answers.one(sides["c"], f"EXPLAIN (COSTS OFF) {small.sql()}")
        if not plan.error:
            lines.append("plan:\n" + "\n".join(row[0] for row in plan.rows))
        script = shrinker.data(small, made)
        lines.append("script:\n" + ("\n".join([types.PRELUDE.strip(), "SET colonnade.stripe_threshold_rows = 0;",
                                               *(f"SET {name} = {value};" for name, value in settings.items() if name not in ("timezone", "asked")),
                                               f"SET timezone = '{settings.get('timezone', 'UTC')}';", *script, f"{small.sql()};"]) if script
                                    else "-- copies of the tables, all rows cold, do not differ: run the seed"))
        if small is not query:
            lines.append(f"generated as: {began};")
        self.report(seed, number, settings, "\n".join(lines))

    def report(self, seed, number, settings, text):
        head = f"seed {seed}, query {number}, settings of the columnar session: {settings or 'defaults'}"
        self.reports.append(f"{head}\n{text}")
        print(f"not ok differential: {head}\n{text}\n", flush=True)


def premises(counts, store):
    """What must have happened for the run to mean anything."""
    asked = counts["queries"]
    # Rows, or blocks that are read from copies.
    yield "rows in stripes", counts["cold rows"] > (100 if store == "columnstore" else 1000) and counts["stripes"] >= 3
    yield "rows in heap pages", counts["hot rows"] > 0
    yield "rows of copies that a look at their page finds", store != "columnstore" or counts["checked blocks"] > 0
    yield "half of the queries run through Colonnade's nodes", counts["with Colonnade"] * 2 >= asked
    yield "a third of the queries return rows", counts["with rows"] * 3 >= asked
    yield "some queries raise errors, most do not", 0 < counts["errors"] * 2 < asked
    yield "few timeouts, little left to heap's own whims", counts["skipped"] * 10 < asked and counts["tolerated"] * 10 < asked


def main():
    return max(compare(store) for store in STORES)


def compare(store):
    OUT.mkdir(parents=True, exist_ok=True)
    server = fresh_server("generated", os.environ["COLONNADE_STAGE"], {"max_connections": "20", "shared_buffers": "128MB"})
    run = Run(server, store)
    failed = 0
    try:
        server.create_database("template_generated")
        server.sql(types.PRELUDE + "CREATE SCHEMA c; CREATE SCHEMA h; CREATE SCHEMA b;", "template_generated")
        seed = SEED
        while time.monotonic() < run.deadline and len(run.reports) < FAILURES:
            run.round(seed)
            seed += 1
        log = server.log.read_text(errors="replace")
        if "terminated by signal" in log or "PANIC" in log:
            told = ("terminated by signal", "PANIC", "Failed process was")
            run.reports.append("the server crashed:\n" + "\n".join(line for line in log.splitlines() if any(word in line for word in told)))
            print("not ok differential: " + run.reports[-1])
    finally:
        server.destroy()
    counts = run.counts
    (OUT / f"differences_{store}.txt").write_text("\n\n".join(run.reports) + "\n")
    kinds = sum(1 for name in counts if name.startswith("type "))
    print(f"seeds {SEED} to {seed - 1}: {counts['queries']} queries on {counts['rounds']} sets of tables ({kinds} column types), "
          f"{counts['with rows']} with rows, {counts['errors']} with errors")
    print(f"  {counts['with Colonnade']} through Colonnade's nodes, {counts['vectorised whole']} vectorised as a whole; "
          f"{counts['equal']} equal, {counts['tolerated']} where heap differs from itself, {counts['skipped']} timed out, {counts['different']} different")
    print("  errors met: " + ", ".join(f"{name[6:]} {count}" for name, count in sorted(counts.items()) if name.startswith("error ")))
    failed += len(run.reports)
    if not failed:
        print(f"ok differential: {counts['queries']} generated queries on {store}")
    for name, holds in premises(counts, store):
        print(f"{'ok' if holds else 'not ok'} differential premise: {name} ({store})")
        failed += not holds
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
