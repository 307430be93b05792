"""Scans that read ahead: tables far larger than the server's buffers, so that every page comes from outside.

Columnar tables, and heap tables with two columnstore indexes that are read side by side. Answers are heap's,
whatever ends a scan before its time: LIMIT, a closed or turned cursor, an error in a row, a cancel, a rolled
back savepoint. Nothing is left behind: no pin, no warning in the log. Each way to read that the version has
is tried, and reading one page at a time.
"""


from harness.checks import Checks
from harness.server import major
from harness.session import SqlError

DATABASE = "far"
ROWS = 800_000
SETTINGS = {"shared_buffers": "8MB", "autovacuum": "off", "max_connections": "10", "max_wal_senders": "2", "max_parallel_workers_per_gather": "0", "log_min_messages": "warning"}
WAYS = {15: ["effective_io_concurrency=16", "effective_io_concurrency=0"],
        17: ["effective_io_concurrency=16", "effective_io_concurrency=0", "effective_io_concurrency=1;io_combine_limit=1"],
        18: ["io_method=worker", "io_method=sync", "io_method=worker;io_combine_limit=1"]}
SETUP = f"""
CREATE TABLE rows (id int, day date, amount numeric(12,2), kind text, note text);
INSERT INTO rows SELECT g, date '2020-01-01' + g / 500, (g::bigint * 7919 % 100000) / 100.0, 'kind ' || g % 7, md5(g::text) FROM generate_series(1, {ROWS}) g;
CREATE TABLE columns (LIKE rows) USING colcompress WITH (stripe_row_limit = 30000, chunk_group_row_limit = 3000);
INSERT INTO columns SELECT * FROM rows;
DELETE FROM rows WHERE id % 1000 = 3; DELETE FROM columns WHERE id % 1000 = 3;
"""
# The heap table with its copies.
COPIES = ["CREATE TABLE copies AS SELECT * FROM rows", "CREATE INDEX ON copies USING columnstore (id, day, amount)",
          "CREATE INDEX ON copies USING columnstore (kind, note)", "VACUUM ANALYZE copies"]
BESIDE = "SELECT sum(id), max(note) FROM copies"
# What is asked of both tables; {t} is the table.
QUESTIONS = {
    "all columns": "SELECT count(*), sum(hashtext(t::text)::bigint) FROM {t} t",
    "few columns": "SELECT kind, sum(amount), min(day) FROM {t} GROUP BY kind ORDER BY kind",
    "a condition that few rows pass": "SELECT * FROM {t} WHERE note LIKE 'abc%' ORDER BY id",
    "a condition that stripes are pruned by": "SELECT sum(id), max(note) FROM {t} WHERE day BETWEEN '2020-06-01' AND '2020-07-01'",
    "the first rows": "SELECT count(*) FROM (SELECT note FROM {t} WHERE note > '' LIMIT 3) x",
    "the last rows of an order": "SELECT id, note FROM {t} ORDER BY amount DESC, id LIMIT 5",
    "from statistics": "SELECT count(*), min(id), max(id) FROM {t}",
    "a table with itself": "SELECT count(*), sum(a.amount * b.id) FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE a.kind = 'kind 3'",
    "again and again": "SELECT g, (SELECT max(note) FROM {t} WHERE day > date '2022-01-01' + g) FROM generate_series(1, 2) g",
}
# How rows come: as vectors, by threads, by rows, by parallel workers.
READERS = ["", "SET max_parallel_workers_per_gather = 1; ", "SET colonnade.enable_vectorised = off; ",
           "SET colonnade.enable_vectorised = off; SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; "]

checks = Checks("read_ahead")


def on(table, text):
    return text.replace("{t}", table)


def answers(server, way, readers):
    for number, reader in readers:
        wrong = []
        for name, text in QUESTIONS.items():
            want = server.sql(reader + on("rows", text), DATABASE)
            for table in ("columns", "copies"):
                got = server.sql(reader + on(table, text), DATABASE)
                if want != got:
                    wrong.append(f"{table}, {name}: {got[:200]} instead of {want[:200]}")
        checks.say(f"{way}: heap's answers, reader {number}", not wrong, "; ".join(wrong))


def ended_early(server, way):
    """Scans that do not come to their end, in one session that goes on."""
    with server.session(DATABASE) as session:
        def fails(text, message):
            try:
                session.run(text)
                return False
            except SqlError as problem:
                return message in str(problem)
        session.run("SET temp_buffers = '800kB'; SET synchronize_seqscans = off")
        held = [session.value("SELECT count(*) FROM columns WHERE note > ''")]
        session.run("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM columns WHERE note > ''; DECLARE d CURSOR FOR SELECT id, note FROM columns")
        session.run("FETCH 50000 FROM c; FETCH 40000 FROM d; SAVEPOINT s")
        session.run("FETCH 20000 FROM c; FETCH BACKWARD 45000 FROM c")
        held.append(fails("SELECT sum(1 / (id - 100000)) FROM columns WHERE note > ''", "division by zero"))
        session.run("ROLLBACK TO s")
        held.append(session.value("FETCH 1 FROM d") == session.value("SELECT id FROM columns OFFSET 40000 LIMIT 1"))
        session.run("CLOSE c; COMMIT")
        session.run("SET statement_timeout = '30ms'")
        held.append(fails("SELECT count(*) FROM columns a, columns b WHERE a.note > b.note", "statement timeout"))
        session.run("RESET statement_timeout")
        session.run("CREATE TEMP TABLE own USING colcompress AS SELECT * FROM columns")
        held.append(session.value("SELECT sum(hashtext(t::text)::bigint) FROM own t") == session.value("SELECT sum(hashtext(t::text)::bigint) FROM rows t"))
        held.append(session.value("SELECT count(*) FROM columns WHERE note > ''") == held[0])
        checks.say(f"{way}: scans that end early leave nothing behind", all(held), held)


def reads_long_runs(server, way, name, text):
    """From 18 on the server tells how long its reads are."""
    with server.session(DATABASE) as session:
        session.run("SELECT pg_stat_reset_shared('io')")
        session.run(f"{text}; SELECT pg_stat_force_next_flush()")
        pages = float(session.value("SELECT sum(read_bytes) / sum(reads) / 8192 FROM pg_stat_io WHERE backend_type IN ('client backend', 'io worker') AND object = 'relation'"))
    checks.say(f"{way}: pages of {name} come many at a time", pages > 2, f"{pages:.1f} pages a read")


def main():
    with checks.server(SETTINGS) as server:
        server.create_database(DATABASE)
        server.sql(SETUP, DATABASE)
        checks.say("the premise: the table is larger than the buffers", int(server.sql("SELECT pg_table_size('columns')", DATABASE)) > 12 << 20)
        for statement in COPIES:
            server.sql(statement, DATABASE)
        plan = server.sql(f"EXPLAIN (ANALYZE, COSTS OFF) {BESIDE}", DATABASE)
        checks.say("the premise: copies are read side by side", "Columnstore: copies_id_day_amount_idx, copies_kind_note_idx" in plan and "from heap 0" in plan, plan)
        ways = WAYS[max(version for version in WAYS if version <= major())]
        readers = list(enumerate(READERS))
        for way in ways:
            server.settings.update(dict(part.split("=") for part in way.split(";")))
            server.configure()
            server.restart()
            answers(server, way, readers if way == ways[0] else readers[:1])
            ended_early(server, way)
            if major() >= 18 and way == "io_method=worker":
                reads_long_runs(server, way, "a table", "SELECT sum(hashtext(t::text)::bigint) FROM columns t")
                reads_long_runs(server, way, "two indexes side by side", BESIDE)
        log = server.log.read_text()
        bad = [line for line in log.splitlines() if "WARNING" in line or "leak" in line or "PANIC" in line]
        checks.say("no warning in the log", not bad, bad[:3])
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
