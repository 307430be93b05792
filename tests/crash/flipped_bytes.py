"""Bytes of stripe pages flipped behind the server's back (data checksums off): every query gives the right
answer or an error that names the table; never a wrong row, never a crash.

Many copies of one small table share a server: while it is down each copy gets one flipped byte, then each is
read by a scan, by its index and by a filter, all in two sessions. Copies are files with the same bytes, but
for their identity, so the right answers are the same for all. The short form samples places, the long one
goes through every byte of every page.
"""

import os
import random
import time

from harness.checks import Checks
from harness.server import as_server_user, fresh_server, run
from harness.session import SqlError

LONG = os.environ.get("COLONNADE_LONG") == "1"
COPIES = 3000 if LONG else 150
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))
SHORT_ROUNDS = 2
PAGE = 8192
ROWS = 1100

COLUMNS = """
    id int PRIMARY KEY, small smallint, big bigint, flag boolean, price double precision, score real, amount numeric(15,4), day date,
    stamp timestamptz, code char(2), word text, session text, doc jsonb, tags text[], u uuid, span interval
"""
SOURCE = f"""
CREATE TABLE source AS SELECT g AS id, (g % 7)::smallint AS small, g::bigint * 1000003 % 77777 AS big, g % 3 = 0 AS flag,
    sin(g) * 1000 AS price, cos(g)::real AS score, CASE WHEN g % 11 = 0 THEN 'NaN' ELSE round((sin(g) * 5000)::numeric, 4) END AS amount,
    date '2024-01-01' + g / 100 AS day, timestamptz '2024-01-01 00:00+00' + g * interval '30 s' AS stamp,
    ('{{BR,US,DE}}'::text[])[g % 3 + 1]::char(2) AS code, CASE WHEN g % 5 > 0 THEN 'word ' || g % 40 END AS word, CASE WHEN g % 4 = 0 THEN md5(g::text) END AS session,
    jsonb_build_object('os', g % 4, 'name', 'n' || g % 9, 'v', round((cos(g) * 100)::numeric, 2)) AS doc,
    ARRAY['tag_' || g % 20, 'cat_' || g % 8] AS tags, CASE WHEN g % 4 = 1 THEN md5('u' || g)::uuid END AS u, g * interval '1 hour' AS span
FROM generate_series(1, {ROWS}) g;
"""
QUERIES = [
    "SELECT count(*) || md5(string_agg(t::text, '' ORDER BY id)) FROM {table} t",
    "SELECT count(*)::text || coalesce(sum(big), 0) FROM {table} WHERE small = 3 AND word LIKE 'word 1%' AND id BETWEEN 300 AND 1050",
    "SELECT md5(string_agg(t::text, '' ORDER BY id)) FROM {table} t WHERE id IN (1, 555, 1001, 1100)",
]


def make_copies(server):
    copies = "".join(f"CREATE TABLE copy_{n} ({COLUMNS}) USING colcompress WITH (chunk_group_row_limit = 1000); "
                     f"INSERT INTO copy_{n} SELECT * FROM source;\n" for n in range(COPIES))
    server.sql(f"{SOURCE} SET colonnade.stripe_threshold_rows = 100; {copies} CHECKPOINT;", "flip")


def stripe_pages(path):
    """The pages after block 0 that the server keeps no line pointers on, and block 0 itself."""
    pages = []
    data = path.read_bytes()
    for number in range(len(data) // PAGE):
        header = data[number * PAGE:number * PAGE + 24]
        if int.from_bytes(header[12:14], "little") == 24 == int.from_bytes(header[16:18], "little"):
            pages.append(number)
    return pages


def flip(path, offset, bit):
    """Flips one bit in place; the file keeps its owner."""
    with open(path, "r+b", buffering=0) as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


class Asker:
    """Two sessions: one that scans, one that goes by the index. A session that dies is a complaint, and is
    replaced."""

    def __init__(self, server):
        self.server = server
        self.sessions = [self.open(0), self.open(1)]

    def open(self, by_index):
        session = self.server.session("flip")
        if by_index:
            session.run("SET enable_seqscan = off")
            session.run("SET colonnade.enable_scan = off")
        return session

    def close(self):
        for session in self.sessions:
            session.close()

    def answers(self, table):
        """The answers about one copy, errors as None after checking that they name the table."""
        answers = []
        for number, query in enumerate(QUERIES):
            which = int(number == len(QUERIES) - 1)
            try:
                answers.append(self.sessions[which].value(query.format(table=table)))
                continue
            except (SqlError, OSError, ValueError) as error:
                text = str(error)
            if "ERROR:" not in text or "the session ended" in text or "terminat" in text:
                answers.append(f"connection lost: {text[-200:]}")
                time.sleep(2)
                self.sessions = [self.open(0), self.open(1)]
            elif table not in text and "invalid page" not in text and "could not read block" not in text:
                answers.append(f"an error that does not name {table}: {text[-300:]}")
            else:
                answers.append(None)
        return answers


def round_of_flips(server, paths, places, right, number):
    """One flip per copy, then questions, then every byte back as it was."""
    server.stop()
    chance = random.Random(SEED + number)
    flips = [(table, path, offset, chance.randrange(8)) for (table, path), offset in zip(paths.items(), places)]
    for _, path, offset, bit in flips:
        flip(path, offset, bit)
    server.start()
    complaints, errors, harmless = [], 0, 0
    asker = Asker(server)
    for table, _, offset, bit in flips:
        for query, answer, want in zip(QUERIES, asker.answers(table), right):
            if answer is None:
                errors += 1
            elif answer == want:
                harmless += 1
            else:
                complaints.append(f"{table}, byte {offset} (page {offset // PAGE}, byte {offset % PAGE}), bit {bit}: {query[:60]}... gave {answer[:200]}")
    asker.close()
    # Nothing was written to these tables, so what was flipped can be flipped back.
    server.stop()
    for _, path, offset, bit in flips:
        flip(path, offset, bit)
    server.start()
    return complaints, errors, harmless


def main():
    print(f"seed {SEED} (COLONNADE_SEED repeats it)")
    server = fresh_server("crash_flip", os.environ["COLONNADE_STAGE"], settings={"autovacuum": "off", "restart_after_crash": "on", "shared_buffers": "64MB", "full_page_writes": "off", "max_wal_size": "4GB"})
    checks, started = Checks("flipped_bytes", SEED), time.monotonic()
    try:
        server.create_database("flip")
        make_copies(server)
        server.stop()
        run(as_server_user([server.bindir / "pg_checksums", "--disable", "-D", server.data, "--no-sync"]))
        server.start()
        asker = Asker(server)
        right = asker.answers("copy_0")
        assert all(right), f"the premise: an untouched copy answers; got {right}"
        assert all(asker.answers(f"copy_{n}") == right for n in range(0, COPIES, 37)), "copies differ before any flip"
        asker.close()
        named = server.sql("SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relname ~ '^copy_[0-9]+$' ORDER BY oid", "flip")
        paths = {name: server.data / path for name, path in (line.split("|") for line in named.splitlines())}
        pages = stripe_pages(paths["copy_0"])
        assert len(pages) >= 5, f"the premise: stripe pages exist; found {pages}"
        every = [page * PAGE + byte for page in pages for byte in range(PAGE)]
        random.Random(SEED).shuffle(every)
        rounds = -(-len(every) // COPIES) if LONG else SHORT_ROUNDS
        total_errors = total_harmless = 0
        for number in range(rounds):
            places = every[number * COPIES:(number + 1) * COPIES]
            complaints, errors, harmless = round_of_flips(server, paths, places, right, number)
            total_errors, total_harmless = total_errors + errors, total_harmless + harmless
            if complaints or number % 5 == 0 or not LONG:
                checks.say(f"round {number}: {len(places)} flips, {errors} errors, {harmless} right answers", not complaints, "\n".join(complaints[:10]))
        # A flip that nothing notices would also "pass": most flips must be noticed.
        asked = min(len(every), rounds * COPIES)
        checks.say(f"premise, most are noticed: {asked} flips in {len(every)} bytes of {len(pages)} pages: {total_errors} errors, "
                   f"{total_harmless} right answers, {time.monotonic() - started:.0f} s", total_errors > total_harmless / 4)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
