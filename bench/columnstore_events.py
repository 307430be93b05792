"""Questions Q1 to Q10 of the events benchmark on a heap table with columnstore indexes of all columns, beside
the same table without them and a colcompress table of the same rows in the same order.

Called by scripts/bench.sh columnstore, after TPC-H (columnstore.py), whose bounds hold here, too. ROWS
(1,000,000) and RUNS (7) change the amount of work. One thread.
"""

import columnstore
import events
from harness import kit, race
from harness.server import fresh_server, run_program

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
            build = {"seconds": session.run("SELECT engine.columnstore_create('events_heap')").milliseconds / 1000}
            build["bytes"] = int(session.value("SELECT sum(pg_relation_size(index_name)) FROM engine.columnstore_indexes"))
            assert not session.run("SELECT 1 FROM engine.columnstore_indexes WHERE clean_blocks < heap_blocks").rows, "not all blocks are copied"
        engines = [race.Postgres("heap", server, events.DATABASE, "events_heap", setup=columnstore.OFF),
                   race.Postgres("columnstore", server, events.DATABASE, "events_heap"),
                   race.Postgres("colcompress", server, events.DATABASE, "events_columns")]
        scanned, _ = events.questions()
        contest = race.Race("columnstore-events", engines, [question for question in scanned if question.name[0] == "Q"], events.RUNS)
        modes = contest.all_modes(columnstore.SERIAL)
        status = race.finish(contest, modes, {"postgres": server.sql("SELECT version()"), "rows": events.ROWS, "build": build})
        found = columnstore.figures(modes["serial"], build, kit.table_bytes(server, events.DATABASE, "events_columns"))
        rows = [("build, s", f"{build['seconds']:.1f}"), ("index, MB", f"{build['bytes'] / kit.MB:.1f}"),
                ("size to colcompress", f"{found['to_colcompress_bytes']:.2f}"), ("time to colcompress", f"{found['mean_to_colcompress']:.2f}"),
                ("CPU time to heap", f"{found['total_cpu_s']['columnstore'] / found['total_cpu_s']['heap']:.3f}")]
        kit.print_table(("events, columnstore indexes", ""), rows)
        for text in columnstore.missed(found):
            print(f"short of its bound: {text}")
        return status
    finally:
        for engine in engines:
            engine.close()
        server.destroy()


if __name__ == "__main__":
    run_program(main)
