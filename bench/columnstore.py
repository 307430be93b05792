"""TPC-H on heap tables that have columnstore indexes of all columns, beside the same heap tables without them
and colcompress tables of the same rows in the same order.

Called by scripts/bench.sh columnstore. For each compression in LEVELS ("zstd-5 zstd-1 zstd-9 lz4-1"): how
long the indexes of all eight tables take, their size, and the 22 queries. SF (1), QUERIES, RUNS, TIMEOUT and
STEP are those of bench/tpch.py and harness.suite. Heap and its columnstore indexes have primary-key and
foreign-key indexes; colcompress tables have none. The first compression is raced in turns with heap; the
others are held against heap's answers and times of that race. One thread.

REFRESHES (0) is how many times TPC-H's refreshes follow: a thousandth of the orders come with their lines
(RF1), another thousandth goes (RF2). After each all queries are asked once more, of heap, of the indexes as
the changes have left them, and of colcompress; then after VACUUM, which copies what has changed.
"""

import os

import tpch
from harness import kit, race, suite
from harness.server import end_orderly, run_program

LEVELS = os.environ.get("LEVELS", "zstd-5 zstd-1 zstd-9 lz4-1").split()
ENGINES = ("heap", "columnstore", "colcompress")
REFRESHES = int(os.environ.get("REFRESHES", "0"))
LOOSE = "SELECT sum(not_visible_blocks + not_copied_blocks)::float8 / sum(heap_blocks), sum(checked_blocks)::float8 / sum(heap_blocks) FROM engine.columnstore_indexes"
SERIAL = {"serial": 1}
# What the indexes are to reach: CPU time to heap's, time and size to colcompress's, lineitem's rows a second,
# and how often the run of all queries fits into heap's.
CPU, TIME, SIZE, ROWS, FASTER = 0.06, 1.15, 1.1, 700_000, 15

OFF = "SET colonnade.enable_columnstore_index = off"
# RF1 and RF2. New orders are those of a thousandth once more, with keys past all others.
CHANGES = """
SET search_path = {schema};
CREATE TEMP TABLE last AS SELECT max(o_orderkey) AS key FROM orders;
INSERT INTO orders SELECT o_orderkey + last.key, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, o_shippriority, o_comment
FROM orders, last WHERE o_orderkey % 1000 = {number};
INSERT INTO lineitem SELECT l_orderkey + last.key, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus,
    l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment
FROM lineitem, last WHERE l_orderkey % 1000 = {number};
DELETE FROM lineitem WHERE l_orderkey % 1000 = 500 + {number};
DELETE FROM orders WHERE o_orderkey % 1000 = 500 + {number};
"""


def figures(record, build, of_colcompress):
    """What a race says of the indexes that were built so, beside a colcompress table of so many bytes.
    Questions that an engine was stopped at are left out of all sums, and named."""
    stopped = [name for name, entry in record.items() if not all(entry[engine]["wall_ms"] for engine in ENGINES)]
    record = {name: entry for name, entry in record.items() if name not in stopped}

    def total(engine, what):
        return sum(kit.median(entry[engine][what]) for entry in record.values()) / 1000

    def mean(other, what):
        return race.geometric_mean([race.ratio(kit.median(e["columnstore"][what]), kit.median(e[other][what])) for e in record.values()])
    return {**build, "stopped": stopped, "to_colcompress_bytes": build["bytes"] / of_colcompress,
            "total_s": {engine: total(engine, "wall_ms") for engine in ENGINES},
            "total_cpu_s": {engine: total(engine, "cpu_ms") for engine in ENGINES},
            "mean_to_colcompress": mean("colcompress", "wall_ms"), "mean_cpu_to_heap": mean("heap", "cpu_ms")}


def missed(found):
    """The bounds that are missed, in words."""
    faster = found["total_s"]["heap"] / found["total_s"]["columnstore"]
    cpu = found["total_cpu_s"]["columnstore"] / found["total_cpu_s"]["heap"]
    of = [(cpu > CPU, f"CPU time {cpu:.3f} of heap's, more than {CPU}"),
          (found["mean_to_colcompress"] > TIME, f"{found['mean_to_colcompress']:.2f} of colcompress's time, more than {TIME}"),
          (found["to_colcompress_bytes"] > SIZE, f"{found['to_colcompress_bytes']:.2f} of colcompress's size, more than {SIZE}"),
          (found.get("lineitem_rows_s", ROWS) < ROWS, f"{found.get('lineitem_rows_s', ROWS):.0f} lineitem rows a second, less than {ROWS}"),
          (faster < FASTER, f"{faster:.1f} times heap's speed, less than {FASTER}"),
          (found["stopped"], f"without {', '.join(found['stopped'])}, which took longer than TIMEOUT")]
    return [text for is_missed, text in of if is_missed]


class Remembering(race.Postgres):
    """A session that keeps its last answer and time of each question."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.answers = {}

    def run(self, text):
        run = super().run(text)
        self.answers[text] = {"wall_ms": run.wall, "cpu_ms": run.cpu, "rows": run.rows}
        return run


class Levels(suite.Suite):
    """The suite with one race for each compression."""

    def race(self, order, asked):
        loaded = self.loaded()
        heap_bytes = loaded["heap"]["bytes"]
        heap = self.session("heap", suite.HEAP_SCHEMA, OFF, Remembering)
        column = self.session("columnstore", suite.HEAP_SCHEMA)
        table_am = self.session("colcompress", suite.ORDERS[order])
        table, short, report, status = [], [], {"loaded": loaded}, 0
        try:
            for level in LEVELS:
                build = self.build(level)
                kit.say(f"{level}: {build['seconds']:.1f} s, {build['bytes'] / kit.MB:.0f} MB")
                reference = race.Stored("heap", {"1": heap.answers}) if heap.answers else heap
                contest = race.Race(f"{self.name}-{level}", [reference, column, table_am], asked, self.runs)
                modes = contest.all_modes(SERIAL)
                status |= race.finish(contest, modes, {"postgres": self.version(), "build": build})
                report[level] = figures(modes["serial"], build, loaded["colcompress, made"]["bytes"])
                table.append(self.line(level, report[level], heap_bytes))
                short += [f"{level}: {text}" for text in missed(report[level])]
            heads = ["compression", "build s", "lineitem rows/s", "MB", "heap is larger", "size to colcompress", "22 queries s", "heap s", "times faster", "time to colcompress"]
            kit.report(self.name, heads, table, report, short)
            for number in range(1, REFRESHES + 1):
                status |= self.refreshed(number, [heap, column, table_am], asked)
        finally:
            for engine in (heap, column, table_am):
                engine.close()
        return status

    def refreshed(self, number, engines, asked):
        """Changes the rows of all, and asks everything before and after VACUUM."""
        schemas = (suite.HEAP_SCHEMA, suite.ORDERS["made"])
        table, status = [], 0
        for schema in schemas:
            self.server.sql(CHANGES.format(schema=schema, number=number), suite.DATABASE)
        for when in ("after the changes", "after VACUUM"):
            loose, checked = map(float, self.server.sql(LOOSE, suite.DATABASE).split("|"))
            contest = race.Race(f"{self.name}-refresh-{number}", engines, asked, 1)
            record = contest.all_modes(SERIAL)["serial"]
            status |= bool(contest.wrong)
            table.append([when, f"{loose:.3f}", f"{checked:.3f}", *(f"{sum(kit.median(entry[e]['wall_ms']) for entry in record.values()) / 1000:.2f}" for e in ENGINES)])
            if when == "after the changes":
                self.server.sql("".join(f"VACUUM {schema}.{name};\n" for schema in schemas for name in ("orders", "lineitem")), suite.DATABASE)
        kit.print_table((f"refresh {number}", "blocks without a copy", "checked", *(f"{e} s" for e in ENGINES)), table)
        return status

    def session(self, name, schema, settings="", kind=None):
        return (kind or race.Postgres)(name, self.server, suite.DATABASE, setup=f"SET search_path = {schema}; {settings}", timeout=self.timeout)

    def build(self, level):
        """Makes all indexes anew with one compression: seconds, bytes, and seconds and rows of lineitem."""
        kind, number = level.split("-")
        found = {"seconds": 0.0, "bytes": 0}
        with self.server.session(suite.DATABASE) as session:
            session.run(kit.SESSION_SETTINGS)
            for (index,) in session.run("SELECT index_name FROM engine.columnstore_indexes").rows:
                session.run(f"DROP INDEX {index}")
            for each in self.tables:
                name = f"{suite.HEAP_SCHEMA}.{each.name}"
                # Refreshes of an earlier run may have left dead line pointers, of which VACUUM leaves few.
                session.run(f"VACUUM (INDEX_CLEANUP ON) {name}")
                made = session.run(f"SELECT engine.columnstore_create('{name}', '{kind}', {number})")
                seconds = made.milliseconds / 1000
                found["seconds"] += seconds
                if each.name == "lineitem":
                    found["lineitem_rows_s"] = int(session.value(f"SELECT count(*) FROM {name}")) / seconds
            found["bytes"] = int(session.value("SELECT sum(pg_relation_size(index_name)) FROM engine.columnstore_indexes"))
            loose = session.run("SELECT table_name FROM engine.columnstore_indexes WHERE clean_blocks < heap_blocks").rows
            assert not loose, f"not all blocks of {loose} are copied"
        return found

    def line(self, level, figures, heap_bytes):
        total = figures["total_s"]
        return [level, f"{figures['seconds']:.1f}", f"{figures['lineitem_rows_s']:.0f}", f"{figures['bytes'] / kit.MB:.0f}",
                f"{heap_bytes / figures['bytes']:.2f}", f"{figures['to_colcompress_bytes']:.2f}", f"{total['columnstore']:.2f}", f"{total['heap']:.1f}",
                f"{total['heap'] / total['columnstore']:.1f}", f"{figures['mean_to_colcompress']:.2f}"]


def main(stage):
    end_orderly()
    levels = Levels("columnstore", tpch.SF, stage, tpch.tables(), lambda _duck: (kit.SQL / "tpch.sql").read_text(), tpch.INDEXES, heap="fresh", peers=False)
    return levels.run(tpch.questions)


if __name__ == "__main__":
    run_program(main)
