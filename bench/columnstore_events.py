"""Questions Q1 to Q10 of the events benchmark on a heap table with columnstore indexes of all columns, beside
the same table without them and a colcompress table of the same rows in the same order.

Called by scripts/bench.sh columnstore, after TPC-H (columnstore.py), whose bounds hold here, too. ROWS
(1,000,000) and RUNS (7) change the amount of work. One thread.
"""

import os

import columnstore
import events
from harness import kit, race
from harness.server import fresh_server, run_program

NAME = "columnstore-events"
ENGINES = ("heap", "columnstore", "colcompress")


def total(record, engine, what):
    return sum(kit.median(entry[engine][what]) for entry in record.values())


def main(stage):
    server = fresh_server("bench", stage, kit.SERVER_SETTINGS)
    engines = []
    try:
        server.create_database(events.DATABASE)
        csv = server.base / "events.csv"
        kit.say(f"generating {events.ROWS:,} events")
        kit.make_events(server, events.DATABASE, events.ROWS, csv)
        arms = [kit.Arm("events_heap", "heap"), kit.Arm("events_columns", "colcompress", "compression='zstd'")]
        for arm in arms:
            server.sql(f"{arm.create('events_source')}; COPY {arm.name} FROM '{csv}' (FORMAT csv)", events.DATABASE)
            server.sql(f"VACUUM ANALYZE {arm.name}", events.DATABASE)
        with server.session(events.DATABASE) as session:
            seconds = session.run("SELECT engine.columnstore_create('events_heap')").milliseconds / 1000
            bytes_of_index = int(session.value("SELECT sum(pg_relation_size(index_name)) FROM engine.columnstore_indexes"))
            assert not session.run("SELECT 1 FROM engine.columnstore_indexes WHERE clean_blocks < heap_blocks").rows, "not all blocks are copied"
        kit.say(f"columnstore indexes: {seconds:.1f} s, {bytes_of_index / kit.MB:.1f} MB")
        engines = [race.Postgres("heap", server, events.DATABASE, "events_heap", setup=columnstore.OFF),
                   race.Postgres("columnstore", server, events.DATABASE, "events_heap"),
                   race.Postgres("colcompress", server, events.DATABASE, "events_columns")]
        scanned, _ = events.questions()
        contest = race.Race(NAME, engines, [question for question in scanned if question.name[0] == "Q"], events.RUNS)
        modes = contest.all_modes(columnstore.SERIAL)
        status = race.finish(contest, modes, {"postgres": server.sql("SELECT version()"), "rows": events.ROWS, "build_s": seconds, "bytes": bytes_of_index})
        record = modes["serial"]
        cpu = total(record, "columnstore", "cpu_ms") / total(record, "heap", "cpu_ms")
        mean = race.geometric_mean([race.ratio(kit.median(entry["columnstore"]["wall_ms"]), kit.median(entry["colcompress"]["wall_ms"])) for entry in record.values()])
        size = bytes_of_index / kit.table_bytes(server, events.DATABASE, "events_columns")
        found = [("time to colcompress", mean, columnstore.TIME), ("CPU time to heap", cpu, columnstore.CPU), ("size to colcompress", size, columnstore.SIZE)]
        kit.print_table(("events, columnstore indexes", "found", "bound"), [(what, f"{value:.3f}", bound) for what, value, bound in found])
        for what, value, bound in found:
            if value > bound:
                print(f"short of its bound: {what} {value:.3f}, more than {bound}")
        return status
    finally:
        for engine in engines:
            engine.close()
        server.destroy()


if __name__ == "__main__":
    run_program(main)
