"""Damaged stripes through the reader of SQLite: bytes of a table's shadow tables are changed at random, and
every kind of statement is made of the table. Each must give rows or an error: no end of the process, no
internal error, no endless loop, no memory out of proportion.

The library must be built with `--cfg fuzzing` (scripts/fuzz-sqlite.sh), so that it takes any checksum: else
nothing behind the checksums would be reached. Processes of some hundred changes each run until DURATION
seconds (3600) are over; SEED=number.
"""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.sqlite import Connection, SqlError, count

DURATION = float(os.environ.get("DURATION") or 3600)
SEED = int(os.environ.get("SEED") or 20261127)
CHANGES = 300
MEMORY = 3 << 30
SECONDS = 30
TABLES = ("a", "b")
DEFINITIONS = {
    "a": "id INTEGER PRIMARY KEY, day TEXT, v REAL, d DECIMAL(5,2), x, few INTEGER, many INTEGER, long TEXT, stripe_rows=3000, chunk_rows=1000",
    "b": "k INTEGER, name TEXT, amount REAL, none, blob BLOB, sorted INTEGER, stripe_rows=4000, chunk_rows=1000, compression=lz4, orderby='name'",
}
FILLS = {
    "a": f"""{count(9500)} SELECT i * 2, 'day ' || (i % 50), i * 0.5, i % 10 + (i % 3) * 0.5, CASE i % 4 WHEN 0 THEN 'text ' || i WHEN 1 THEN i END,
        i / 700, i * 7919 * 104729 % 1000003, 'some longer text that repeats itself ' || (i * 31 % 977) || ' and goes on' FROM n""",
    "b": f"""{count(9000)} SELECT i % 17, CASE WHEN i % 5 THEN 'name ' || (i * 7 % 4001) END, CASE WHEN i % 9 THEN i / 7.0 END, NULL,
        CASE i % 3 WHEN 0 THEN x'00ff' WHEN 1 THEN CAST('blob ' || i AS BLOB) END, i FROM n""",
}
STATEMENTS = (
    "SELECT * FROM a", "SELECT * FROM b", "SELECT count(*), sum(id), sum(v), sum(d), count(x), min(day), max(long) FROM a",
    "SELECT * FROM a WHERE id IN (4002, 8000, 16000)", "SELECT id FROM a WHERE v > 4000 AND day < 'day 3'", "SELECT day, count(*) FROM a GROUP BY day",
    "SELECT id FROM a WHERE long LIKE 'some longer text that repeats itself 5%'", "SELECT x, many FROM a ORDER BY many DESC LIMIT 5", "SELECT DISTINCT few FROM a",
    "SELECT k, name, amount FROM b WHERE name = 'name 77' OR k = 3", "SELECT count(*) FROM b WHERE blob IS NULL", "SELECT sorted FROM b WHERE sorted BETWEEN 100 AND 300",
    "SELECT columnar_sum('a', 'v'), columnar_avg('a', 'many'), columnar_count('b', 'name')", "SELECT columnar_sum_where_range('a', 'd', 'many', 1000, 500000)",
    "SELECT * FROM columnar_group_sum('a', 'day', 'd')", "SELECT * FROM columnar_group_min_max_count('b', 'name', 'amount')",
    "SELECT c1, c2, c3, c4 FROM columnar_query('SELECT day, sum(v), count(DISTINCT many), max(long) FROM a WHERE few > 2 GROUP BY day ORDER BY 2')",
    "SELECT c1, c2 FROM columnar_query('SELECT a.day, sum(b.amount) FROM a JOIN b ON a.few = b.k WHERE b.name LIKE ''name 1%'' GROUP BY 1')",
    "SELECT c1, c2 FROM columnar_query('SELECT id, row_number() OVER (PARTITION BY few ORDER BY many) FROM a ORDER BY 2, 1 LIMIT 20')",
    "SELECT * FROM columnar_info('a')", "SELECT * FROM columnar_info('b')", "SELECT * FROM columnar_stripes('b')", "SELECT * FROM columnar_verify('a')", "SELECT * FROM columnar_verify('b')",
    "UPDATE a SET v = v + 1 WHERE id % 14 = 2", "DELETE FROM a WHERE id % 4 = 0 OR id < 3000", "DELETE FROM b WHERE k < 11", "INSERT INTO b SELECT k, name, amount, none, blob, sorted FROM b LIMIT 2000",
)


def changed(rng, data):
    """Bytes that differ from these."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not data:
            break
        at, kind = rng.randrange(len(data)), rng.random()
        if kind < 0.4:
            data[at] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            data[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        elif kind < 0.8:
            data[at:at + 8] = rng.randbytes(min(8, len(data) - at))
        elif kind < 0.9:
            other = rng.randrange(len(data))
            length = rng.randrange(1, 33)
            data[at:at + length] = data[other:other + length]
        elif kind < 0.95:
            del data[at:]
        else:
            del data[at:at + rng.randrange(1, 9)]
    return bytes(data)


def ask(path, statement):
    """How many rows a statement has, or why there are none, on a connection that remembers nothing. No row is
    kept: damaged lengths may make all of them long."""
    on = Connection(path)
    try:
        on.sql("BEGIN")
        rows = sum(1 for _ in on.db.execute(statement))
        on.sql("ROLLBACK")
        return rows
    except (SqlError, *on.errors) as error:
        assert "internal error" not in str(error), f"{statement}: {error}"
        return str(error)
    finally:
        on.close()


def child(seed, base):
    """Changes bytes and asks, some hundred times."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng = random.Random(seed)
    errors = 0
    with tempfile.TemporaryDirectory(prefix="colonnade-sqlite-") as folder:
        path = Path(folder) / "test.db"
        shutil.copy(base, path)
        on = Connection(path)
        segments = {table: [row[0] for row in on.sql(f"SELECT id FROM {table}_bytes")] for table in TABLES}
        stripes = {table: [row[0] for row in on.sql(f"SELECT id FROM {table}_stripe")] for table in TABLES}
        for number in range(CHANGES):
            name = rng.choice(TABLES)
            table, column = rng.choice((("bytes", "data"),) * 6 + (("stripe", "summary"), ("stripe", "kinds"), ("stripe", "dead")))
            key = rng.choice((segments if table == "bytes" else stripes)[name])
            whole = on.value(f"SELECT {column} FROM {name}_{table} WHERE id = ?", (key,))
            # The ends of stripes have footers, which say where all else is.
            data = whole or b"\0" * rng.choice((1, 100, 500))
            spoiled = changed(rng, data[-3000:]) if rng.random() < 0.5 else None
            spoiled = changed(rng, data) if spoiled is None else data[:-3000] + spoiled
            on.sql(f"UPDATE {name}_{table} SET {column} = ? WHERE id = ?", (spoiled, key))
            for at, statement in enumerate(STATEMENTS):
                print(f"change {number} of seed {seed}, statement {at}", end="\r", flush=True)
                signal.alarm(SECONDS)
                errors += isinstance(ask(path, statement), str)
            signal.alarm(0)
            on.sql(f"UPDATE {name}_{table} SET {column} = ? WHERE id = ?", (whole, key))
        on.close()
    print(f"\n{errors}")


def main():
    with tempfile.TemporaryDirectory(prefix="colonnade-sqlite-") as folder:
        base = Path(folder) / "base.db"
        on = Connection(base)
        for table in TABLES:
            on.sql(f"CREATE VIRTUAL TABLE {table} USING columnar({DEFINITIONS[table]})")
            on.sql(f"INSERT INTO {table} {FILLS[table]}")
        on.sql("DELETE FROM a WHERE id % 10 = 0")
        on.close()
        for statement in STATEMENTS:
            answer = ask(base, statement)
            assert not isinstance(answer, str), f"premise: {statement}: {answer}"
        started, seed, failed, changes, errors = time.monotonic(), SEED, 0, 0, 0
        while time.monotonic() - started < DURATION:
            done = subprocess.run([sys.executable, __file__, "child", str(seed), str(base)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode == 0:
                errors += int(done.stdout.split()[-1])
                changes += CHANGES
            else:
                failed += 1
                print(f"not ok fuzz_sqlite seed {seed}: {done.returncode}, {done.stdout[-200:].strip().split(chr(13))[-1]}\n{done.stderr[-1500:]}", flush=True)
            seed += 1
        asked = changes * len(STATEMENTS)
        print(f"{'not ok' if failed else 'ok'} fuzz_sqlite {changes} changes, {asked} statements, {errors} errors, {failed} processes failed")
        return 1 if failed or errors * 50 < asked else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(int(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
