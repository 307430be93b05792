"""TPC-H on foreign tables over column files, beside heap and colcompress tables of the same rows in the same
order: sizes by table, the 22 queries, and the bytes that nine of them read. COLD=1 asks the nine cold, too.

Called by scripts/bench.sh column-files. The tables and figures are those of cstore_fdw's own benchmarks:
files without compression and with it, rows as the program makes them and sorted by date. SF (1), QUERIES,
RUNS, TIMEOUT and STEP are those of bench/tpch.py and harness.suite. Heap has primary-key and foreign-key
indexes. One thread. Every answer is compared with heap's.

COLD (0) is the number of cold runs of each of the nine, of every engine, after the warm ones. Before each of
them the server is restarted, and the system's cache drops the files of its data directory, which needs no
root. The report says how many bytes stayed in the cache nonetheless. Its megabytes are those that the
server's processes had from the device: the kernel's read-ahead is in them. RUNS=0 has cold runs only.
"""

import json
import os
import re

import tpch
from device import read_bytes
from harness import kit, race, suite
from harness.server import end_orderly, run_program

SERIAL = {"serial": 1}
# Foreign tables by their schema: compression, and the order of rows.
FILES = {"files": ("none", {}), "zstd_files": ("zstd", {}), "sorted_files": ("zstd", {"lineitem": "l_shipdate", "orders": "o_orderdate"})}
ENGINES = {"heap": suite.HEAP_SCHEMA, "colcompress": suite.ORDERS["made"], **{schema: schema for schema in FILES}}
COLD = int(os.environ.get("COLD", "0"))
# Those that cstore_fdw's benchmarks asked.
NINE = ("3", "5", "6", "7", "8", "10", "12", "14", "19")
# Sizes to heap's of the two large tables, time to colcompress's, and how often nine queries fit into heap's.
SIZE, TIME, FASTER = 0.20, 1.1, 10


class Files(suite.Suite):
    """The suite with foreign tables beside the others."""

    def race(self, order, asked):
        sizes = {"heap": self.sizes(suite.HEAP_SCHEMA), **{schema: self.make(schema, order) for schema in FILES}}
        kit.print_table(("table", *sizes), [(table.name, *(f"{of[table.name] / sizes['heap'][table.name]:.2f}" for of in sizes.values())) for table in self.tables])
        engines = [self.engine(name) for name in ENGINES]
        contest, status = race.Race(self.name, engines, asked, self.runs), 0
        try:
            if self.runs:
                modes = contest.all_modes(SERIAL)
                status = race.finish(contest, modes, {"postgres": self.version(), "sizes": sizes})
                self.tell(modes["serial"], sizes, asked)
        finally:
            for engine in engines:
                engine.close()
        return self.cold(contest, of_nine(asked)) | status if COLD else status

    def engine(self, name):
        engine = race.Postgres(name, self.server, suite.DATABASE, setup=f"SET search_path = {ENGINES[name]}", timeout=self.timeout)
        engine.use(1)
        return engine

    def cold(self, contest, asked):
        """The questions cold; the exit status."""
        contest.wrong, record, stayed = [], {}, 0
        for question in asked:
            entry = record[question.name] = {name: {"wall_ms": [], "read_bytes": []} for name in ENGINES}
            for _ in range(COLD):
                answers = {}
                for name, of in entry.items():
                    answers[name], read, kept = self.cold_run(name, question)
                    of["wall_ms"] += [answers[name].wall] * (answers[name].wall is not None)
                    of["read_bytes"].append(read)
                    stayed = max(stayed, kept)
                fault = contest.compare(question, dict.fromkeys(ENGINES, question.text), answers)
                contest.wrong += [f"{question.name}, cold: {fault}"] * (fault is not None)
            kit.say(f"  {question.name}, cold: " + ", ".join(f"{name} {megabytes(of)} MB {seconds(of)} s" for name, of in entry.items()))
        self.tell_cold(record, stayed)
        for fault in contest.wrong:
            print(f"DIFFERENT {fault}")
        return 1 if contest.wrong else 0

    def cold_run(self, name, question):
        """A question as the first of a server that was just started, with none of its files in memory: the
        run, the bytes that it had from the device, and those that stayed in the cache before."""
        self.server.stop()
        stayed = kit.drop_files(self.server.data)
        self.server.start()
        engine = self.engine(name)
        try:
            # What every session reads: catalogs, programs.
            engine.run("SELECT count(*) FROM region")
            before = read_bytes(self.server)
            return engine.run(question.text), read_bytes(self.server) - before, stayed
        finally:
            engine.close()

    def tell_cold(self, record, stayed):
        """The cold figures, and the bounds that are missed."""
        totals = {name: {what: [sum(kit.median(entry[name][what]) for entry in finished(record).values())] for what in ("wall_ms", "read_bytes")} for name in ENGINES}
        faster = {name: race.ratio(totals["heap"]["wall_ms"][0], of["wall_ms"][0]) for name, of in totals.items()}
        rows = [(title, *(text for of in entry.values() for text in (megabytes(of), seconds(of)))) for title, entry in {**record, "all": totals}.items()]
        rows.append(("times heap's speed", *(text for each in faster.values() for text in ("", f"{each:.1f}"))))
        short = [f"{name}, cold: {faster[name]:.1f} times heap's speed in nine queries, less than {FASTER}" for name in FILES if faster[name] < FASTER]
        about = {"machine": race.machine(), "postgres": self.version(), "stayed_bytes": stayed, "questions": record}
        kit.report(f"{self.name}-cold", ("cold", *(text for name in ENGINES for text in (f"{name} MB", "s"))), rows, about, short)
        kit.say(f"of the dropped files at most {stayed / kit.MB:.1f} MB stayed in the system's cache")

    def tell(self, record, sizes, asked):
        """The figures, and the bounds that are missed."""
        def total(engine, what, names=None):
            return sum(kit.median(entry[engine][what]) for name, entry in record.items() if names is None or name in names) / 1000
        record = finished(record)
        nine = [question.name for question in of_nine(asked) if question.name in record]
        rows, short = [], []
        for engine in ENGINES:
            to_colcompress = race.geometric_mean([race.ratio(kit.median(e[engine]["wall_ms"]), kit.median(e["colcompress"]["wall_ms"])) for e in record.values()])
            faster = total("heap", "wall_ms", nine) / total(engine, "wall_ms", nine)
            read = "" if engine == "heap" else f"{self.bytes_read(engine, asked, nine) / kit.MB:.0f}"
            rows.append((engine, f"{total(engine, 'wall_ms'):.2f}", f"{total(engine, 'wall_ms', nine):.2f}", f"{faster:.1f}", f"{to_colcompress:.2f}", read))
            if engine in FILES:
                short += [f"{engine}: {to_colcompress:.2f} of colcompress's time, more than {TIME}"] * (to_colcompress > TIME)
                short += [f"{engine}: {faster:.1f} times heap's speed in nine queries, less than {FASTER}"] * (faster < FASTER)
        for table in ("lineitem", "orders"):
            share = sizes["zstd_files"][table] / sizes["heap"][table]
            short += [f"{table}: {share:.2f} of heap's size, more than {SIZE}"] * (share > SIZE)
        kit.print_table(("tables", f"{len(record)} queries s", "nine queries s", "times heap's speed", "time to colcompress", "nine queries read MB"), rows)
        for text in short:
            kit.say(f"missed: {text}")

    def bytes_read(self, engine, asked, names):
        with self.server.session(suite.DATABASE) as session:
            session.run(f"{kit.SESSION_SETTINGS}; SET search_path = {ENGINES[engine]}; SET max_parallel_workers_per_gather = 0")
            plans = [session.value(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) {question.text}") for question in asked if question.name in names]
        return sum(node["Bytes Read"] for plan in plans for node in nodes(json.loads(plan)) if "Bytes Read" in node)

    def make(self, schema, order):
        """Foreign tables of a kind, if they are not there yet; the bytes of each."""
        compression, keys = FILES[schema]
        with self.server.session(suite.DATABASE) as session:
            session.run(kit.SESSION_SETTINGS)
            if session.value(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'") == "0":
                session.run(f"BEGIN; CREATE SCHEMA {schema}")
                session.run("DO $$ BEGIN CREATE SERVER files FOREIGN DATA WRAPPER cstore_fdw; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
                for table in self.tables:
                    sort = f", orderby '{keys[table.name]}'" if table.name in keys else ""
                    columns = session.value(f"SELECT string_agg(quote_ident(attname) || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '{suite.HEAP_SCHEMA}.{table.name}'::regclass AND attnum > 0")
                    session.run(f"CREATE FOREIGN TABLE {schema}.{table.name} ({columns}) SERVER files OPTIONS (compression '{compression}'{sort})")
                    made = session.run(f"INSERT INTO {schema}.{table.name} SELECT * FROM {suite.ORDERS[order]}.{table.name}")
                    kit.say(f"{schema}.{table.name}: {made.milliseconds / 1000:.1f} s")
                session.run("COMMIT")
                for table in self.tables:
                    session.run(f"ANALYZE {schema}.{table.name}")
            return {table.name: int(session.value(f"SELECT cstore_table_size('{schema}.{table.name}')")) for table in self.tables}

    def sizes(self, schema):
        return {table.name: kit.table_bytes(self.server, suite.DATABASE, f"{schema}.{table.name}") for table in self.tables}


def of_nine(asked):
    return [question for question in asked if re.sub(r"\D", "", question.name) in NINE]


def finished(record):
    """The questions that no engine was stopped at."""
    return {name: entry for name, entry in record.items() if all(entry[engine]["wall_ms"] for engine in ENGINES)}


def megabytes(of):
    return f"{kit.median(of['read_bytes']) / kit.MB:.0f}"


def seconds(of):
    return f"{kit.median(of['wall_ms']) / 1000:.2f}" if of["wall_ms"] else "stopped"


def nodes(value):
    """All objects of a plan that was told as JSON."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from nodes(each)


def main(stage):
    end_orderly()
    files = Files("column-files", tpch.SF, stage, tpch.tables(), lambda _duck: (kit.SQL / "tpch.sql").read_text(), tpch.INDEXES, heap="fresh", peers=False)
    return files.run(tpch.questions)


if __name__ == "__main__":
    run_program(main)
