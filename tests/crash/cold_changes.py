"""kill -9 while rows in stripes are being changed, locked and packed, and a standby beside it: money moved
between accounts is neither made nor lost, every acknowledged transfer is there, one whose COMMIT was under
way is there whole or not at all, and index and table agree.

Several sessions move money between random accounts, by UPDATE, DELETE (of one row and of many), and ON
CONFLICT, some in savepoints that are rolled back, some prepared; VACUUM and merges run beside them, and
packing of what they leave in heap pages and in stripes with many dead rows. In rounds without merges some are
at REPEATABLE READ, and all count rows and money at their end: whatever was moved meanwhile, they see every
account once. FOR KEY SHARE locks of prepared transactions that were carried over to new versions survive a
crash and a promotion. Before each round all rows are in stripes again; after it `engine.verify` finds
nothing.
"""

import os
import random
import re
import threading
import time

from harness.checks import Checks
from harness.session import SqlError
from harness.standby import make_standby, promote, wait_for_replay
from harness.workers import expect

LONG = os.environ.get("COLONNADE_LONG") == "1"
ROUNDS = int(os.environ.get("CYCLES") or (20 if LONG else 3))
SECONDS = 6 if LONG else 1.5
MOVERS = 3
ACCOUNTS = 3000
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))

SETUP = f"""
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, note text) USING colcompress WITH (stripe_row_limit = 1000);
CREATE TABLE transfer (mover int, number int, account int REFERENCES account, PRIMARY KEY (mover, number)) USING colcompress;
INSERT INTO account SELECT g, 100, 'account ' || g FROM generate_series(1, {ACCOUNTS}) g;
"""
DIGEST = ("SELECT (SELECT count(*) || ' ' || sum(balance) || ' ' || sum(hashtextextended(a::text, 0)) FROM account a), "
          "(SELECT count(*) || ' ' || sum(hashtextextended(t::text, 0)) FROM transfer t)")
BY_INDEX = "SET colonnade.enable_scan = off; SET enable_seqscan = off; SET enable_bitmapscan = off; "


def statements(chance, mover, number):
    """One transfer: two accounts change, one row of its own says so."""
    one, other = chance.sample(range(1, ACCOUNTS + 1), 2)
    amount, kind = chance.randint(1, 50), chance.random()
    yield f"UPDATE account SET balance = balance - {amount}, note = 'moved by {mover}' WHERE id = {one}"
    if kind < 0.15:
        yield f"DELETE FROM account WHERE id BETWEEN {one} AND {one + 60} AND NOT EXISTS (SELECT FROM transfer t WHERE t.account = account.id)"
        yield "ROLLBACK TO before"
        yield f"UPDATE account SET balance = balance - {amount}, note = 'moved by {mover}' WHERE id = {one}"
    elif kind < 0.3:
        yield f"DELETE FROM account WHERE id IN ({one}, {other}) AND NOT EXISTS (SELECT FROM transfer t WHERE t.account = account.id)"
        yield "ROLLBACK TO before"
        yield f"UPDATE account SET balance = balance - {amount} WHERE id = {one}"
    if kind < 0.7:
        yield f"UPDATE account SET balance = balance + {amount} WHERE id = {other}"
    else:
        yield (f"INSERT INTO account VALUES ({other}, 0, 'conflict') ON CONFLICT (id) DO UPDATE SET balance = account.balance + {amount}")
    yield f"SELECT 1 FROM account WHERE id = {other} FOR UPDATE"
    yield f"INSERT INTO transfer VALUES ({mover}, {number}, {one})"
    yield "SELECT count(*), count(DISTINCT id), sum(balance) FROM account"


class Mover(threading.Thread):
    """Moves money until the server is gone or it is told to stop; remembers what was acknowledged."""

    def __init__(self, server, name, first, stop, seed, merges):
        super().__init__(daemon=True)
        self.server, self.mover, self.number, self.stop, self.chance = server, name, first, stop, random.Random(seed)
        self.acknowledged, self.doubtful, self.problem = [], None, None
        # A merge is not safe for older snapshots.
        self.levels = ["READ COMMITTED"] if merges else ["READ COMMITTED", "REPEATABLE READ"]

    def run(self):
        session = None
        try:
            session = self.server.session("crash")
            while not self.stop.is_set():
                self.number += 1
                try:
                    level = self.chance.choice(self.levels)
                    session.run(f"BEGIN ISOLATION LEVEL {level}; SAVEPOINT before")
                    for statement in statements(self.chance, self.mover, self.number):
                        rows = session.run(statement).rows
                    if [str(value) for value in rows[0]] != [str(ACCOUNTS), str(ACCOUNTS), str(100 * ACCOUNTS)]:
                        self.problem = f"at {level} a transaction sees accounts {rows[0]}"
                        return
                    prepared = self.chance.random() < 0.2
                    if prepared:
                        session.run(f"PREPARE TRANSACTION 'm{self.mover}'")
                except SqlError as error:
                    if not re.search("40P01|40001|23503", str(error)):
                        raise
                    session.run("ROLLBACK")
                    continue
                self.doubtful = self.number
                session.run(f"COMMIT PREPARED 'm{self.mover}'" if prepared else "COMMIT")
                self.doubtful = None
                self.acknowledged.append(self.number)
        except (SqlError, OSError, ValueError) as error:
            self.problem = error
        finally:
            if session is not None:
                session.close()


# Stripes that went while hot rows were packed: replaced by others, where it was not the whole file.
joined = []
STRIPES = ("SELECT engine.colcompress_relation_storageid('account'), string_agg(first_row::text, ' ') "
           "FROM engine.colcompress_stripes WHERE table_name = 'account'::regclass")


def pack(server, stop):
    try:
        session = server.session("crash")
        while not stop.is_set():
            file, before = session.run(STRIPES).rows[0]
            session.run("CALL engine.colcompress_repack('account')")
            same_file, after = session.run(STRIPES).rows[0]
            if file == same_file:
                joined.extend(set(str(before).split()) - set(str(after).split()))
            time.sleep(0.02)
    except (SqlError, OSError, ValueError):
        return


def maintain(server, stop, merged, merges):
    """VACUUM, and now and then a merge, which waits for the movers' transactions; `merged` counts those that
    were begun."""
    chance = random.Random(SEED)
    try:
        session = server.session("crash")
        while not stop.is_set():
            session.run("VACUUM account")
            session.run("VACUUM engine.row_proxy")
            if merges and chance.random() < 0.1:
                merged.append(1)
                session.run("SELECT engine.colcompress_merge('account')")
            time.sleep(0.1)
    except (SqlError, OSError, ValueError):
        return


def make_cold(server):
    server.sql("SELECT engine.colcompress_merge('account')", "crash")
    cold = server.sql("SELECT sum(row_count) FROM engine.colcompress_stripes WHERE table_name = 'account'::regclass", "crash")
    assert cold == str(ACCOUNTS), f"the premise: all accounts in stripes; found {cold}"


def check(server, kept):
    """Compares the table with what was acknowledged: numbers of transfers by mover."""
    for way in ("", BY_INDEX):
        found = server.sql(way + "SELECT count(*), sum(balance), count(DISTINCT id) FROM account WHERE id > 0", "crash")
        assert found == f"{ACCOUNTS}|{100 * ACCOUNTS}|{ACCOUNTS}", f"accounts are {found} {way}"
    moved = server.sql("SELECT coalesce(string_agg(mover || ':' || number, ' '), '') FROM transfer", "crash").split()
    there = set(moved)
    lost = [k for k in kept if k not in there]
    assert not lost, f"acknowledged but lost: {lost[:5]}"
    server.sql("VACUUM account; VACUUM transfer", "crash")
    # But for what is being packed just now.
    faults = server.sql("SELECT v FROM (SELECT v FROM engine.verify('account') v UNION ALL SELECT v FROM engine.verify('transfer') v) s WHERE (v).kind <> 'unclaimed'", "crash")
    assert not faults, f"engine.verify finds {faults[:500]}"
    return moved


def one_round(server, number, kept):
    make_cold(server)
    # In bulk, so that no proxies are made of them; the sum stays.
    server.sql("UPDATE account SET balance = balance + 2 * (id % 2) - 1 WHERE id <= 600", "crash")
    stop = threading.Event()
    merged, merges = [], number % 2 == 1
    movers = [Mover(server, m, 100000 * number, stop, SEED + number * 10 + m, merges) for m in range(MOVERS)]
    helpers = [threading.Thread(target=maintain, args=(server, stop, merged, merges), daemon=True),
               threading.Thread(target=pack, args=(server, stop), daemon=True)]
    for thread in [*movers, *helpers]:
        thread.start()
    time.sleep(SECONDS)
    server.kill9()
    stop.set()
    for thread in [*movers, *helpers]:
        thread.join(60)
    expect(movers, killed=True)
    server.start()
    for prepared in server.sql("SELECT gid FROM pg_prepared_xacts", "crash").split():
        server.sql(f"ROLLBACK PREPARED '{prepared}'", "crash")
    acknowledged = [f"{m.mover}:{n}" for m in movers for n in m.acknowledged]
    doubtful = {f"{m.mover}:{m.doubtful}" for m in movers if m.doubtful}
    assert acknowledged, "nothing was acknowledged before the kill"
    stripes = server.sql("SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 'account'::regclass AND first_row > 0", "crash")
    assert merged or int(stripes) > 0, "the premise: nothing was packed"
    proxies = server.sql("SELECT count(*) FROM engine.row_proxy WHERE dead", "crash")
    bits = server.sql("SELECT coalesce(sum(bit_count(bits)), 0) FROM engine.delete_bitmap", "crash")
    # A merge clears both, packing the bits of stripes that it joins.
    assert merged or (int(proxies) > 0 and (int(bits) > 500 or joined)), f"the premise: {proxies} rows in stripes were changed one by one, {bits} in bulk"
    moved = check(server, kept + acknowledged)
    known = set(kept + acknowledged) | doubtful
    assert set(moved) <= known, f"never acknowledged but there: {sorted(set(moved) - known)[:5]}"
    return moved, len(acknowledged)


def stop_packing(server):
    """Waits until no packing runs. It removes rows that a standby's snapshot sees, and so ends the session.
    """
    for command in ("ALTER SYSTEM SET colonnade.packing = off", "SELECT pg_reload_conf()"):
        server.sql(command)
    end = time.time() + 60
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'colonnade packing'") != "0":
        assert time.time() < end, "packing goes on though it is off"
        time.sleep(0.1)


def old_query(server, copy):
    """VACUUM takes index entries of dead rows in stripes away: a standby's transaction that still sees those
    rows is ended, not misled."""
    for command in ("ALTER SYSTEM SET max_standby_streaming_delay = '300ms'", "SELECT pg_reload_conf()"):
        copy.sql(command)
    for command in ("CREATE TABLE old (id int PRIMARY KEY) USING colcompress", "INSERT INTO old SELECT generate_series(1, 3000)",
                    "SELECT engine.colcompress_merge('old')"):
        server.sql(command, "crash")
    wait_for_replay(server, copy)
    session = copy.session("crash")
    try:
        for setting in BY_INDEX.rstrip("; ").split("; "):
            session.run(setting)
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        count = "SELECT count(*) FROM old WHERE id > 0"
        before = session.value(count)
        server.sql("DELETE FROM old WHERE id % 2 = 0", "crash")
        wait_for_replay(server, copy)
        assert before == session.value(count) == "3000", "the standby's transaction does not keep its rows"
        server.sql("VACUUM old", "crash")
        wait_for_replay(server, copy)
        try:
            found = session.value(count)
        except (SqlError, OSError, ValueError):
            found = "an error"
        assert found == "an error", f"the standby's old transaction was not ended, and finds {found} of {before} rows"
    finally:
        session.close()
    conflicts = copy.sql("SELECT confl_snapshot FROM pg_stat_database_conflicts WHERE datname = 'crash'")
    assert int(conflicts) > 0, "no conflict was counted"


def keep_locks(server):
    """Prepared transactions lock rows in stripes FOR KEY SHARE, before and after UPDATEs of others that leave
    the key alone."""
    server.sql("""CREATE TABLE guarded (id int PRIMARY KEY, n int) USING colcompress;
CREATE TABLE guard (id int REFERENCES guarded) USING colcompress;
INSERT INTO guarded SELECT g, 0 FROM generate_series(1, 100) g;""", "crash")
    server.sql("SELECT engine.colcompress_merge('guarded')", "crash")
    lock = "BEGIN; INSERT INTO guard VALUES {}; PREPARE TRANSACTION 'guard{}'"
    updater = server.session("crash")
    try:
        # One bulk update and one of a single row that the lock comes after; then locks of one and of two that
        # an update comes after.
        for update, rows, name in (("WHERE id > 40", "(50)", 1), ("WHERE id = 3", "(3)", 2)):
            updater.run(f"BEGIN; UPDATE guarded SET n = n + 1 {update}")
            server.sql(lock.format(rows, name), "crash")
            updater.run("COMMIT")
        server.sql(lock.format("(1), (2)", 3), "crash")
        server.sql(lock.format("(2)", 4), "crash")
        updater.run("UPDATE guarded SET n = n + 1 WHERE id IN (1, 2)")
    finally:
        updater.close()
    bits = server.sql("SELECT count(*) FROM engine.delete_bitmap b, engine.colcompress_stripes s WHERE s.table_name = 'guarded'::regclass "
                      "AND b.storage_id = (SELECT engine.colcompress_relation_storageid('guarded'))", "crash")
    assert int(bits) > 0, "the premise: no update in bulk"


def check_locks(server):
    """The new versions are locked still, and the children that did it are respected."""
    rows = "(1, 2, 3, 50)"
    hot = server.sql(f"SELECT count(*) FROM guarded WHERE id IN {rows} AND ctid < '(2147483648,1)'", "crash")
    assert hot == "4", f"the premise: {hot} of four rows were updated"
    for row in rows.strip("()").split(", "):
        _, _, error = server.sql(f"SELECT id FROM guarded WHERE id = {row} FOR UPDATE NOWAIT", "crash", check=False)
        assert "could not obtain lock on row" in error, f"FOR KEY SHARE of row {row} is lost: {error}"
        weaker = server.sql(f"SELECT id FROM guarded WHERE id = {row} FOR NO KEY UPDATE NOWAIT", "crash")
        assert weaker == row, f"row {row} is locked more than FOR KEY SHARE"
    for name in range(1, 5):
        server.sql(f"COMMIT PREPARED 'guard{name}'", "crash")
    for row in rows.strip("()").split(", "):
        _, _, error = server.sql(f"DELETE FROM guarded WHERE id = {row}", "crash", check=False)
        assert "violates foreign key constraint" in error, f"the child of {row} is forgotten: {error}"


def standby(server, kept):
    """A standby that replays changes of cold rows while they are made, compared, promoted, and changed in
    turn."""
    make_cold(server)
    copy = make_standby(server)
    stop = threading.Event()
    try:
        movers = [Mover(server, m, 100000 * (ROUNDS + 1), stop, SEED + m, False) for m in range(MOVERS)]
        packer = threading.Thread(target=pack, args=(server, stop), daemon=True)
        for thread in [*movers, packer]:
            thread.start()
        time.sleep(SECONDS)
        stop.set()
        for thread in [*movers, packer]:
            thread.join(60)
        expect(movers, killed=False)
        wait_for_replay(server, copy)
        here, there = (one.sql(DIGEST, "crash") for one in (server, copy))
        assert here == there and here, f"primary has {here}, standby {there}"
        stop_packing(server)
        old_query(server, copy)
        # Proxies of rows that were locked once, made many at a time, and taken away again, also from pages
        # that were frozen.
        for command in ("SELECT FROM old FOR UPDATE", "VACUUM (FREEZE) engine.row_proxy", "VACUUM old"):
            count = "SELECT count(*) FROM engine.row_proxy p WHERE p.storage_id = engine.colcompress_relation_storageid('old') AND NOT dead"
            server.sql(command, "crash")
            wait_for_replay(server, copy)
            here, there = (one.sql(count, "crash") for one in (server, copy))
            # Every other row is dead, so more are made than are locked.
            assert here == there and (here == "0" if command == "VACUUM old" else int(here) >= 1500), f"after {command} {here} proxies, {there} on the standby"
        keep_locks(server)
        wait_for_replay(server, copy)
        promote(copy)
        check_locks(copy)
        server.kill9()
        server.start()
        check_locks(server)
        check(copy, kept + [f"{m.mover}:{n}" for m in movers for n in m.acknowledged])
        changed = copy.sql("WITH u AS (UPDATE account SET note = 'promoted' RETURNING 1) SELECT count(*) FROM u", "crash")
        assert changed == str(ACCOUNTS), f"the promoted standby changed {changed} rows"
        check(copy, kept)
    finally:
        stop.set()
        copy.stop("immediate")


def main():
    settings = {"wal_level": "replica", "max_wal_senders": "5", "wal_keep_size": "1GB", "max_prepared_transactions": "10", "deadlock_timeout": "50ms",
                "autovacuum": "off", "colonnade.packing": "on", "colonnade.packing_naptime": "1s", "colonnade.packing_rows": "100"}
    checks, kept = Checks("cold_changes", SEED), []
    with checks.server(settings) as server:
        server.create_database("crash")
        server.sql(SETUP, "crash")
        for number in range(ROUNDS):
            with checks.part(f"round {number}") as tell:
                kept, transfers = one_round(server, number, kept)
                tell(f"{transfers} transfers")
            if not server.running():
                break
        with checks.part("standby") as tell:
            standby(server, kept)
            assert joined, "the premise: no stripes were joined"
            tell(f"{len(joined)} stripes were joined")
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
