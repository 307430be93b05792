"""Bytes of stripe pages are changed on disk, with checksum failures ignored: every query then gives an error that names
the table, or the right answer; the server does not crash and no row is wrong.

Many small tables with the same rows, one flipped byte each, so that one restart serves them all.
"""

import os
import random

from harness.server import fresh_server

LONG = os.environ.get("COLONNADE_LONG") == "1"
TABLES = 600 if LONG else 32
BLOCK = 8192
SEED = int(os.environ.get("SEED", "20251121"))

COLUMNS = """id int, big bigint, s text, hex text, n numeric(12,2), f float8, d date, u uuid, j jsonb, b bool, a int[]"""
ROWS = """
SELECT g, g * 1000003::bigint, 'value ' || g % 300, md5(g::text), (g % 1000) / 7.0, sqrt(g), date '2020-01-01' + g % 500,
    md5(g::text)::uuid, jsonb_build_object('k', g % 50, 't', 'text ' || g % 9), g % 3 = 0, ARRAY[g, g % 7]
FROM generate_series(1, 2000) g
"""
DIGEST = "SELECT count(*) || ' ' || sum(hashtextextended(x::text, 0)) FROM {0} x"
# The scan node by single columns, the plain scan, and a fetch through the index.
QUERIES = [
    ("all columns", DIGEST),
    ("one text column", "SELECT count(*) || ' ' || sum(hashtextextended(hex, 0)) FROM {0} WHERE id > 0"),
    ("filtered", "SELECT count(*) || ' ' || coalesce(sum(n), 0) || ' ' || coalesce(max(j::text), '') FROM {0} "
                 "WHERE s = 'value 7' OR d = '2020-03-01'"),
    ("plain scan", "SET colonnade.enable_scan = off; " + DIGEST),
    ("index", "SET colonnade.enable_scan = off; SET enable_seqscan = off; SET enable_bitmapscan = off; "
              "SELECT count(*) || ' ' || sum(hashtextextended(x::text, 0)) FROM {0} x WHERE id BETWEEN 1 AND 2000"),
]
# What an error may be about: bad data, a page that is none, or bytes of an unknown version or encoding.
ALLOWED = ("XX001", "XX002", "0A000")


def ask(server, table, query):
    """The answer, or the SQLSTATE and text of the error."""
    code, out, err = server.sql("\\set VERBOSITY verbose\n" + query.format(table) + ";", "bytes", check=False)
    if code == 0:
        return "answer", out.strip()
    return "error", err


def main():
    generator = random.Random(SEED)
    server = fresh_server("bytes", os.environ["COLONNADE_STAGE"], {"autovacuum": "off"})
    failed = errors = right = 0
    try:
        server.create_database("bytes")
        server.sql("ALTER DATABASE bytes SET ignore_checksum_failure = on; "
                   "ALTER DATABASE bytes SET colonnade.stripe_threshold_rows = 0", "bytes")
        names = [f"f{i}" for i in range(TABLES)]
        kinds = ["none", "pglz", "lz4", "zstd"]
        for number, name in enumerate(names):
            server.sql(f"CREATE TABLE {name} ({COLUMNS}) USING colcompress WITH (compression = '{kinds[number % 4]}', "
                       f"stripe_row_limit = 1000, chunk_group_row_limit = 1000); INSERT INTO {name} {ROWS}; "
                       f"CREATE INDEX ON {name} (id)", "bytes")
        cold = server.sql("SELECT min((ctid::text::point)[0]) >= 2147483648 FROM f0", "bytes")
        assert cold == "t", "the rows are not in stripes"
        good = [ask(server, "f0", query)[1] for _, query in QUERIES]
        paths = server.sql("SELECT relname || ' ' || pg_relation_filepath(oid) || ' ' || pg_relation_size(oid) "
                           "FROM pg_class WHERE relname ~ '^f[0-9]+$'", "bytes").split("\n")
        server.stop()
        flips = {}
        for line in paths:
            name, path, size = line.split()
            position = generator.randrange(BLOCK, int(size))
            with open(server.data / path, "r+b") as file:
                file.seek(position)
                before = file.read(1)[0]
                after = before ^ (1 << generator.randrange(8)) if generator.random() < 0.7 else generator.randrange(256)
                file.seek(position)
                file.write(bytes([after]))
            flips[name] = f"byte {position % BLOCK} of block {position // BLOCK}, {before} to {after}"
        server.start()
        starts = server.log.read_text(errors="replace").count("terminated by signal")
        for name in names:
            for (label, query), expected in zip(QUERIES, good):
                kind, text = ask(server, name, query)
                problem = None
                if kind == "answer" and text != expected:
                    problem = f"wrong answer {text!r}"
                elif kind == "error" and not any(f"ERROR:  {state}:" in text for state in ALLOWED):
                    problem = f"unexpected error {text.strip()}"
                elif kind == "error" and name not in text and "invalid page in block" not in text:
                    problem = f"the error does not name the table: {text.strip()}"
                if problem:
                    failed += 1
                    print(f"not ok flipped_bytes {name}, {label}: {flips[name]}: {problem}", flush=True)
                errors += kind == "error"
                right += kind == "answer"
        if server.log.read_text(errors="replace").count("terminated by signal") != starts:
            failed += 1
            print("not ok flipped_bytes: the server crashed", flush=True)
        assert errors > 0, "no flipped byte was noticed"
        if failed == 0:
            print(f"ok flipped_bytes ({TABLES} tables, {errors} errors, {right} right answers)", flush=True)
    finally:
        server.destroy()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
