"""kill -9 in the middle of concurrent loads, row changes and VACUUM; then a standby that has to say the same.

All rounds work on one table, so that later rounds load over what earlier ones left behind: pages of loads
that died, index entries of rows that never came to be. Each batch of rows is committed together with a line
in `batches`, which is an ordinary heap table: what the table holds must be exactly what that table says.
"""

import os
import random
import threading
import time

from harness.checks import Checks
from harness.session import SqlError
from harness.standby import make_standby, promote, wait_for_replay

LONG = os.environ.get("COLONNADE_LONG") == "1"
ROUNDS = 20 if LONG else 3
SECONDS = 4.0 if LONG else 3.0

SETUP = """
CREATE EXTENSION amcheck;
CREATE EXTENSION pg_visibility;
CREATE EXTENSION pageinspect;
CREATE TABLE t (batch int, row int, filler text, amount numeric(12,2), PRIMARY KEY (batch, row)) USING colcompress;
CREATE INDEX t_filler ON t USING hash (filler);
CREATE TABLE u (batch int, row int, filler text) USING colcompress;
CREATE TABLE batches (batch int PRIMARY KEY, rows int, total numeric);
CREATE SEQUENCE numbers;
"""

# Every batch that `batches` knows is in the table, complete, and nothing else is.
CHECK = """
SELECT count(*) FROM (
    SELECT batch, count(*) AS rows, sum(amount) AS total FROM {table} GROUP BY batch) f
FULL JOIN (SELECT * FROM batches WHERE (batch % 2 = 0) = {even}) b USING (batch)
WHERE f.rows IS DISTINCT FROM b.rows OR f.total IS DISTINCT FROM b.total
"""
# What engine.verify finds fault with: nothing, after a crash and on a standby.
VERIFY = "SELECT string_agg(v::text, ', ') FROM engine.verify('{table}') v"
DIGEST = """
SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (
    SELECT batch || ':' || count(*) || ':' || sum(hashtextextended(row || filler, 0)) AS x FROM {table} GROUP BY batch) s
"""


# Stripe pages (bytes 14 and 15, pd_upper, are 24) that no row of the directory names. Bytes 32 to 39 of block
# 0 are the storage id.
ORPHANS = """
SELECT count(*) FROM generate_series(1, pg_relation_size('{table}') / 8192 - 1) AS block,
    LATERAL (SELECT get_raw_page('{table}', block::int) AS page) p
WHERE get_byte(page, 14) + 256 * get_byte(page, 15) = 24 AND NOT EXISTS (
    SELECT FROM engine.stripe WHERE block >= first_block AND block < first_block + block_count AND storage_id = (
        SELECT sum(get_byte(zero, 32 + i) * 256::numeric ^ i)
        FROM get_raw_page('{table}', 0) AS zero, generate_series(0, 7) AS i))
"""


class Worker(threading.Thread):
    """One session that goes on until its server dies or it is told to stop."""

    def __init__(self, server, stop, body):
        super().__init__(daemon=True)
        self.session = server.session("crash")
        self.stop = stop
        self.body = body
        self.acknowledged = []
        self.problem = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.body(self)
        except (SqlError, OSError) as error:
            lost = ("session ended", "terminat", "server closed", "connection", "recovery", "Broken pipe")
            if not any(word in str(error) for word in lost):
                self.problem = str(error)


def load(table, rows):
    def body(worker):
        # Even numbers go to t, odd ones to u.
        number = int(worker.session.value("SELECT nextval('numbers')")) * 2 + (0 if table == "t" else 1)
        columns = f"{number}, g, 'f' || g % 1000" + (", g * 1.25" if table == "t" else "")
        total = "1.25 * {0}.0 * ({0} + 1) / 2".format(rows) if table == "t" else "NULL"
        aborts = random.random() < 0.3
        worker.session.run("BEGIN")
        worker.session.run(f"INSERT INTO {table} SELECT {columns} FROM generate_series(1, {rows}) g")
        worker.session.run(f"INSERT INTO batches VALUES ({number}, {rows}, {total})")
        worker.session.run("ROLLBACK" if aborts else "COMMIT")
        if not aborts:
            worker.acknowledged.append(number)
    return body


def change(worker):
    """Few rows at a time: hot ones, updated and partly deleted again."""
    number = int(worker.session.value("SELECT nextval('numbers')")) * 2
    worker.session.run("BEGIN")
    worker.session.run(f"INSERT INTO t SELECT {number}, g, 'hot', 0 FROM generate_series(1, 12) g")
    worker.session.run(f"UPDATE t SET amount = row WHERE batch = {number}")
    worker.session.run(f"DELETE FROM t WHERE batch = {number} AND row > 10")
    worker.session.run(f"INSERT INTO batches VALUES ({number}, 10, 55)")
    worker.session.run("COMMIT")
    worker.acknowledged.append(number)


def vacuum(worker):
    worker.session.run("VACUUM t")
    worker.session.run("VACUUM u")
    worker.session.run("VACUUM engine.stripe")


def read(worker):
    wrong = worker.session.value(CHECK.format(table="t", even="true"))
    if wrong != "0":
        raise AssertionError(f"a reader saw {wrong} incomplete batches")


def check(server, acknowledged):
    """What the server says after it has come back."""
    known = {int(b) for b in server.sql("SELECT batch FROM batches", "crash").split()}
    missing = [number for number in acknowledged if number not in known]
    assert not missing, f"acknowledged batches are gone: {missing[:5]}"
    for table in "tu":
        faults = server.sql(VERIFY.format(table=table), "crash")
        assert not faults, f"{table} has faults: {faults[:300]}"
    wrong = server.sql(CHECK.format(table="t", even="true"), "crash")
    assert wrong == "0", f"{wrong} batches of t are wrong"
    lost = server.sql("SELECT count(*) FROM (SELECT batch, count(*) AS rows FROM u GROUP BY batch) f FULL JOIN "
                      "(SELECT * FROM batches WHERE batch % 2 = 1) b USING (batch) WHERE f.rows IS DISTINCT FROM b.rows",
                      "crash")
    assert lost == "0", f"{lost} batches of u are wrong"
    by_index = server.sql("SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN "
                          "('enable_seqscan', 'enable_bitmapscan', 'colonnade.enable_scan');"
                          "SELECT count(*) FROM t WHERE batch >= 0", "crash").split()[-1]
    by_scan = server.sql("SELECT count(*) FROM t", "crash")
    assert by_index == by_scan, f"index finds {by_index} rows, scan {by_scan}"
    server.sql("SELECT bt_index_check('t_pkey', true)", "crash")
    for table in ("t", "u"):
        bad = server.sql(f"SELECT count(*) FROM pg_check_visible('{table}')", "crash")
        assert bad == "0", f"{bad} rows of {table} are not visible to all on pages that say so"


def one_round(server, number):
    stop = threading.Event()
    bodies = [load("t", 15000), load("u", 40000), load("t", 12000), change, vacuum, read]
    workers = [Worker(server, stop, body) for body in bodies]
    for worker in workers:
        worker.start()
    time.sleep(SECONDS + 0.37 * (number % 5))
    server.kill9()
    stop.set()
    for worker in workers:
        worker.join(60)
        assert worker.problem is None, worker.problem
    acknowledged = [n for worker in workers for n in worker.acknowledged]
    assert acknowledged, "nothing was acknowledged before the kill"
    server.start()
    check(server, acknowledged)
    server.sql("VACUUM t; VACUUM u; VACUUM engine.stripe; VACUUM t; VACUUM u;", "crash")
    check(server, acknowledged)
    # All loads have ended: a page that no stripe owns must have been given back.
    for table in ("t", "u"):
        left = server.sql(ORPHANS.format(table=table), "crash")
        assert left == "0", f"{left} stripe pages of {table} belong to nobody after VACUUM"
    return len(acknowledged)


def standby(server):
    """A base backup taken while loads run, caught up, compared, promoted, written to."""
    stop = threading.Event()
    workers = [Worker(server, stop, body) for body in (load("t", 15000), load("u", 40000), change, vacuum)]
    for worker in workers:
        worker.start()
    copy = make_standby(server)
    try:
        time.sleep(SECONDS)
        stop.set()
        for worker in workers:
            worker.join(60)
            assert worker.problem is None, worker.problem
        wait_for_replay(server, copy)
        for table in ("t", "u"):
            here = server.sql(DIGEST.format(table=table), "crash")
            there = copy.sql(DIGEST.format(table=table), "crash")
            assert here == there and here, f"primary and standby differ in {table}"
            faults = copy.sql(VERIFY.format(table=table), "crash")
            assert not faults, f"on the standby {table} has faults: {faults[:300]}"
        promote(copy)
        check(copy, [])
        copy.sql("INSERT INTO u SELECT -1, g, 'p' FROM generate_series(1, 20000) g; VACUUM u; DELETE FROM u WHERE false",
                 "crash")
        assert copy.sql("SELECT count(*) FROM u WHERE batch = -1", "crash") == "20000"
    finally:
        copy.stop("immediate")


def main():
    # The standby compares every page it replays with what the primary logged of it. Not those of hash
    # indexes: for the comparison the server logs an image of a bucket's first page that it has pinned but not
    # locked (hashbucketcleanup), so the record's checksum may be wrong, and recovery ends there.
    settings = {"wal_level": "replica", "max_wal_senders": "5", "autovacuum_naptime": "2s", "max_wal_size": "4GB",
                "wal_consistency_checking": "heap,heap2,btree,sequence" if LONG else "heap,heap2"}
    checks = Checks("loads_and_standby")
    with checks.server(settings) as server:
        server.create_database("crash")
        server.sql(SETUP, "crash")
        for number in range(ROUNDS):
            with checks.part(f"round {number}") as tell:
                tell(f"{one_round(server, number)} batches")
            if not server.running():
                break
        with checks.part("standby"):
            standby(server)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
