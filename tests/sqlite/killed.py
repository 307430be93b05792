"""A process that writes columnar tables is killed at any point: what it has committed is there, and nothing
else is.

The victim changes a columnar table and a plain one in the same transactions, and says the number of each once
it is committed. After it was killed both tables must be equal, and have every transaction that was said. With
the rollback journal, pages that were being overwritten are then torn as a power loss would (SQLite's file
format says where the journal has the old ones).

Short: some dozen times. Long (COLONNADE_LONG=1): 1,000 times.
"""

import os
import random
import struct
import subprocess
import sys
import time

from harness.checks import Checks
from harness.sqlite import Connection, count, database

CYCLES = int(os.environ.get("CYCLES") or (1000 if os.environ.get("COLONNADE_LONG") == "1" else 24))
SEED = int(os.environ.get("COLONNADE_SEED") or 20261127)
CHECKS = Checks("killed", SEED)
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def victim(path, journal, seed):
    """Changes both tables until it is killed."""
    rng = random.Random(seed)
    on = Connection(path, timeout=30)
    on.sql(f"PRAGMA journal_mode = {journal}")
    on.sql("PRAGMA cache_size = 50")
    number = on.value("SELECT coalesce(max(number), 0) FROM p") + 1
    while True:
        on.sql("BEGIN IMMEDIATE")
        for _ in range(rng.randint(1, 3)):
            size = rng.choice((1, 1, 3, 50, 2000, 9000))
            what = rng.random()
            for table in ("p", "c"):
                if what < 0.6:
                    on.sql(f"INSERT INTO {table} {count(size)} SELECT {number}, i, 'row ' || (i * 7919 % 1000) FROM n")
                elif what < 0.8:
                    on.sql(f"UPDATE {table} SET name = 'changed in {number}' WHERE i % 97 = {number % 97}")
                elif what < 0.95:
                    on.sql(f"DELETE FROM {table} WHERE number < {number - 6}")
                else:
                    on.sql("SAVEPOINT a")
                    on.sql(f"DELETE FROM {table}")
                    on.sql("ROLLBACK TO a")
        for table in ("p", "c"):
            on.sql(f"INSERT INTO {table} VALUES ({number}, -1, 'last of {number}')")
        on.sql("COMMIT")
        print(number, flush=True)
        number += 1


def tear(path, rng):
    """Spoils the pages of the file whose old content the rollback journal has. How many."""
    journal = path.with_name(path.name + "-journal")
    if not journal.exists() or journal.stat().st_size < 512:
        return 0
    data = journal.read_bytes()
    magic, records, _, _, sector, page = data[:8], *struct.unpack(">IIIII", data[8:28])
    if magic != JOURNAL_MAGIC or records in (0, 0xFFFFFFFF):
        return 0
    torn = 0
    with open(path, "r+b") as file:
        for record in range(records):
            at = sector + record * (page + 8)
            if at + page + 8 > len(data):
                break
            number = struct.unpack(">I", data[at:at + 4])[0]
            # The first page says whose file it is.
            if number > 1 and rng.random() < 0.5:
                file.seek((number - 1) * page + page // 2)
                file.write(rng.randbytes(page // 2))
                torn += 1
    return torn


def main():
    rng = random.Random(SEED)
    torn = cycles_with_torn = commits = 0
    for journal in ("WAL", "DELETE"):
        with CHECKS.part(f"{CYCLES // 2} times with the journal {journal}") as tell, database() as path:
            on = Connection(path)
            on.sql("CREATE VIRTUAL TABLE c USING columnar(number INTEGER, i INTEGER, name TEXT, stripe_rows=10000, chunk_rows=1000)")
            on.sql("CREATE TABLE p(number INTEGER, i INTEGER, name TEXT)")
            on.close()
            said = 0
            for cycle in range(CYCLES // 2):
                child = subprocess.Popen([sys.executable, __file__, "victim", str(path), journal, str(SEED + cycle)],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                time.sleep(rng.uniform(0.1, 0.6))
                child.kill()
                out, err = child.communicate()
                assert not err, err
                numbers = [int(line) for line in out.split("\n")[:-1]]
                said = max([said, *numbers])
                commits += len(numbers)
                if journal == "DELETE":
                    now = tear(path, rng)
                    torn += now
                    cycles_with_torn += now > 0
                on = Connection(path, timeout=30)
                there = on.value("SELECT coalesce(max(number), 0) FROM p")
                assert there >= said, f"cycle {cycle}: transaction {said} was committed, {there} is the last one there"
                for question in ("SELECT count(*), sum(i), max(number) FROM @", "SELECT rowid, * FROM @ ORDER BY rowid"):
                    plain, columnar = (on.sql(question.replace("@", name)) for name in "pc")
                    assert plain == columnar, f"cycle {cycle}: the tables differ: {len(plain)} and {len(columnar)} rows"
                assert on.sql("PRAGMA integrity_check") == [("ok",)], f"cycle {cycle}: integrity_check"
                on.close()
            tell(f"{said} transactions")
    CHECKS.say(f"premise: transactions were committed ({commits}) and pages torn ({torn} in {cycles_with_torn} cycles)", commits > CYCLES and torn > 0)
    return CHECKS.status()


if __name__ == "__main__":
    if sys.argv[1:2] == ["victim"]:
        from pathlib import Path
        victim(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        sys.exit(main())
