"""Random statements that change rows: colcompress must answer as heap does, errors included, and hold the
same rows; so must heap tables with columnstore indexes (STORE=colcompress or columnstore asks of one alone).

Short (make test): some hundred statements, always on the same seeds. Long: make test-changes STATEMENTS=10000
SEED=number. Each round makes tables of one shape (differential/generator/shapes.py) in the schemas `c` (the
store's) and `h` (heap) and changes them by the same statements (differential/generator/changes.py): in
transactions with savepoints, prepared ones, beside a second session with a transaction of its own, with
VACUUM, merges and DDL between, rewrites inside transactions and beside older snapshots. After each statement
the answers are compared, often the contents, and where no transaction is open `engine.verify` or
`engine.columnstore_verify` must find nothing. The program also fails if its premises do not hold: rows of
stripes changed and locked, blocks read from copies, errors met, every kind of statement made.
"""

import collections
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "differential"))

from generator import answers, changes, shapes, stores  # noqa: E402
from harness.server import by_major, fresh_server  # noqa: E402
from harness.session import SqlError  # noqa: E402

LONG = os.environ.get("COLONNADE_LONG") == "1"
STORES = (os.environ.get("STORE") or "colcompress columnstore").split()
STATEMENTS = int(os.environ.get("STATEMENTS") or (10000 if LONG else 600))
ROUND = 250 if LONG else 120
# Kinds of which some ten thousand statements have few, and a short run perhaps none.
RARE = ("PREPARE", "CURRENT OF", "CLUSTER", "unpack", "COPY FREEZE", "UPDATE with statements inside")
MANY = 10_000
SEED = int(os.environ.get("SEED") or (time.time_ns() // 1000 % 10**9 if LONG else 20261122))
FAILURES = int(os.environ.get("FAILURES") or 5)
DATABASE = "changes"
# The long form runs while rows are packed in the background: statements wait for that, too.
PACKING = {"colonnade.packing": "on", "colonnade.packing_naptime": "1s", "colonnade.packing_rows": "50"} if LONG else {}
LOCK_TIMEOUT = "1500ms" if LONG else "60ms"
OUT = by_major("differential")
# What a round's tables have seen.
SEEN = ("rows of stripes changed or locked", "in bulk", "blocks read from copies", "blocks read from the heap", "plans with copies")
# Rows that a command must insert to make stripes.
THRESHOLDS = (0, 0, 0, 100, 10**6)
# Errors that a statement may meet in either order where another transaction holds rows.
CROWD = "55P03", "40001"


class Different(Exception):
    """The sides disagree; the message says how."""


class Round:
    """One shape and its sessions: the one at work on each side, and another that holds a transaction open now
    and then."""

    def __init__(self, server, store, seed, counts):
        self.server, self.store, self.seed, self.counts = server, store, seed, counts
        self.rng = random.Random(seed)
        self.shape = shapes.Shape(self.rng)
        self.maker = changes.Changes(self.rng, self.shape, server.base)
        self.main = {side: self.session(side) for side in "ch"}
        self.other = {side: self.session(side) for side in "ch"}
        self.watcher = {side: self.session(side) for side in "ch"}
        self.log = {side: [] for side in "ch"}
        self.other_maker = None
        self.aborted = self.other_aborted = False
        self.settings = {}

    def session(self, side):
        session = self.server.session(DATABASE)
        method = self.store.method if side == "c" else "heap"
        session.run(f"SET search_path = {side}, public; SET default_table_access_method = {method}; SET lock_timeout = '{LOCK_TIMEOUT}'; SET statement_timeout = '60s'")
        return session

    def close(self):
        for session in (*self.main.values(), *self.other.values(), *self.watcher.values()):
            session.close()

    # -- asking -----------------------------------------------------------------------------------

    def ask(self, sessions, statement, who="main"):
        """Sends the statement to both sides, compares what they answer, and returns whether it failed."""
        texts = {side: self.words(statement, side) for side in "ch"}
        told = {side: answers.Answer([], None) for side in "ch"}
        for side, text in texts.items():
            self.log[side].append(f"/* {who} {len(self.log[side])} */ {text};")
            if text:
                sessions[side].send(text)
                # The two would wait for each other.
                if "CONCURRENTLY" in text:
                    told[side] = answers.fetch(sessions[side])
        got, wanted = (answers.fetch(sessions[side]) if texts[side] and "CONCURRENTLY" not in texts[side] else told[side] for side in "ch")
        self.counts["statements"] += 1
        self.counts[f"kind {statement.kind}"] += 1
        if got.error and wanted.error and got.error != wanted.error and self.crowd() and got.error[0] in CROWD + (wanted.error[0],):
            self.counts["tolerated"] += 1
        elif got.error != wanted.error:
            raise Different(f"{texts['c']}\nheap: {wanted.short()}\n{self.store.name}: {got.short()}")
        elif texts["h"] and not got.error and sorted(got.rows, key=repr) != sorted(wanted.rows, key=repr):
            raise Different(f"{texts['c']}\nheap: {wanted.short()}\n{self.store.name}: {got.short()}")
        if wanted.error:
            self.counts[f"error {wanted.error[0]}"] += 1
        elif wanted.rows:
            self.counts["with rows"] += 1
        return bool(wanted.error)

    def words(self, statement, side):
        """The statement for a side; nothing where it concerns the other side only."""
        if statement.kind in ("merge", "unpack", "method"):
            return self.store.words(statement.kind, statement.text, self.maker.inside) if side == "c" else ""
        return statement.text.replace("{side}", side)

    def crowd(self):
        return self.maker.prepared or self.other_maker is not None

    def compare(self, sessions=None):
        """The rows of all tables, as a session sees them now."""
        for table in (*self.shape.tables(), "log"):
            question = self.store.compared(table, self.columns(table))
            self.ask(sessions or self.main, changes.Statement("compare", question), "compare")
        first = self.shape.leaves()[0]
        self.store.count_compared(self.main["c"], self.store.compared(first, self.columns(first)), self.counts)

    def columns(self, table):
        """The names of a table's columns, as its own session sees them."""
        return self.main["h"].value(f"SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped")

    def verify(self):
        """Nothing may be found; but for pages that a rollback left, which the next VACUUM must free."""
        session = self.main["c"]
        for table in self.shape.tables():
            found = self.store.faults(session, table)
            # Once more where a batch of packing was in the middle of it.
            for _ in range(3 if LONG else 1):
                if not found or any(row[0] != "unclaimed" for row in found):
                    break
                self.counts["left by a rollback"] += 1
                session.run(f"VACUUM {table}")
                found = self.store.faults(session, table)
            if found:
                raise Different(f"of {table} is found: {found[:5]}")
        self.counts["verified"] += 1

    # -- the round --------------------------------------------------------------------------------

    def run(self, statements):
        for text in self.shape.statements():
            self.ask(self.main, changes.Statement("shape", text), "shape")
        for text in self.store.shaped(self.shape):
            self.main["c"].run(text)
            self.log["c"].append(f"{text};")
        first = self.maker.fresh(self.rng.choice((60, 300, 1500)))
        self.ask(self.main, changes.Statement("load", f"INSERT INTO t ({self.maker.heads()}) {self.maker.series(first, self.maker.top)}"), "load")
        self.ask(self.main, changes.Statement("load", f"INSERT INTO u SELECT g, g % 100, 'u' || g, g % 40 FROM generate_series(1, {self.maker.top}, 3) g"), "load")
        for table in self.shape.tables():
            self.ask(self.main, changes.Statement("merge", table), "load")
        before = self.counts["statements"]
        while self.counts["statements"] - before < statements:
            self.step()
        while self.maker.inside or self.maker.prepared or self.other_maker:
            self.finish()
        self.compare()
        self.verify()
        self.store.count(self.main["c"], self.counts)

    def finish(self):
        """Ends one of the transactions that are open."""
        if self.other_maker:
            self.end_other("COMMIT")
        elif self.maker.inside:
            self.do(self.maker.leave("ROLLBACK" if self.aborted else "COMMIT"))
        else:
            self.do(self.maker.finish_prepared())

    def step(self):
        rng, maker = self.rng, self.maker
        if self.aborted:
            self.do(maker.end(aborted=True))
        elif maker.prepared and not maker.inside and (not self.shape.crowded or rng.random() < 0.2):
            self.do(maker.finish_prepared())
        elif not maker.inside and rng.random() < 0.15:
            self.do(maker.begin())
        elif maker.inside and rng.random() < 0.25:
            self.do(maker.end())
        elif not maker.inside and rng.random() < 0.12:
            if self.crowd() or rng.random() < 0.7:
                self.maintain()
            else:
                self.beside()
        elif maker.inside and not self.crowd() and rng.random() < 0.04:
            # What the transaction has done so far stays its own, by the command.
            kind = rng.choice(("merge", "merge", "unpack"))
            self.counts[f"{kind} inside a transaction"] += 1
            self.do(changes.Statement(kind, rng.choice(self.shape.tables())))
            maker.rewritten = True
        elif self.shape.crowded and not maker.rewritten and rng.random() < 0.15:
            self.other_step()
        else:
            self.settle()
            made = maker.change()
            for statement in made if isinstance(made, list) else [made]:
                if not self.aborted:
                    self.do(statement)
        if not self.aborted and rng.random() < 0.25:
            self.compare()
        if not maker.inside and not self.crowd() and rng.random() < 0.1:
            self.verify()

    def do(self, statement):
        failed = self.ask(self.main, statement)
        if failed and statement.kind == "PREPARE":
            self.maker.prepared = False
        self.aborted = failed and self.maker.inside and statement.kind not in ("COMMIT", "PREPARE")

    def maintain(self):
        made = self.maker.maintain(self.crowd())
        for statement in made if isinstance(made, list) else [made]:
            self.ask(self.main, statement)

    def beside(self):
        """A rewrite under the eyes of an older snapshot, which sees nothing of it, nor of what came before.
        """
        rng = self.rng
        self.ask(self.watcher, changes.Statement("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"), "watcher")
        self.ask(self.watcher, changes.Statement("snapshot", "SELECT count(*) > 0 FROM pg_am"), "watcher")
        for _ in range(rng.randint(1, 3)):
            for _ in range(rng.randint(0, 4)):
                self.settle()
                made = self.maker.change()
                for statement in made if isinstance(made, list) else [made]:
                    self.do(statement)
            table = rng.choice(self.shape.tables())
            kind = rng.choice(("merge", "merge", "unpack", "VACUUM FULL"))
            self.ask(self.main, changes.Statement(kind, f"VACUUM FULL {table}" if kind == "VACUUM FULL" else table))
            self.counts[f"{kind} beside a snapshot"] += 1
        self.compare(self.watcher)
        self.ask(self.watcher, changes.Statement("end", "COMMIT"), "watcher")
        self.compare()

    def settle(self):
        """Other settings of the columnar session, now and then."""
        session = self.main["c"]
        if self.rng.random() < 0.2:
            self.set(session, f"SET colonnade.stripe_threshold_rows = {self.rng.choice(THRESHOLDS)}")
        if self.rng.random() < 0.1:
            for name in self.settings:
                self.set(session, f"RESET {name}")
            self.settings = self.rng.choice(self.store.settings)
            for name, value in self.settings.items():
                self.set(session, f"SET {name} = {value}")

    def set(self, session, text):
        self.log["c"].append(f"{text};")
        session.run(text)

    def other_step(self):
        """The other session begins, reads again, changes or ends; it makes statements of its own, about the
        same ids."""
        rng = self.rng
        if self.other_maker is None:
            self.other_maker = changes.Changes(rng, self.shape, self.server.base)
            self.other_aborted = False
            level = rng.choice(("", " ISOLATION LEVEL REPEATABLE READ"))
            self.ask(self.other, changes.Statement("BEGIN", f"BEGIN{level}"), "other")
            self.compare(self.other)
        elif self.other_aborted or rng.random() < 0.2:
            self.end_other("ROLLBACK" if self.other_aborted else rng.choice(("COMMIT", "ROLLBACK")))
        elif rng.random() < 0.3:
            self.compare(self.other)
        else:
            self.other_maker.top = self.maker.top
            made = self.other_maker.change()
            for statement in made if isinstance(made, list) else [made]:
                if not self.other_aborted:
                    self.other_aborted = self.ask(self.other, statement, "other")
            self.maker.top = max(self.maker.top, self.other_maker.top)

    def end_other(self, text):
        self.ask(self.other, changes.Statement(text, "ROLLBACK" if self.other_aborted else text), "other")
        self.other_maker = None


def one_round(server, store, seed, counts, statements):
    """Runs a round; the report of a difference, or None."""
    server.create_database(DATABASE)
    server.sql("CREATE SCHEMA c; CREATE SCHEMA h; CREATE EXTENSION IF NOT EXISTS btree_gist", DATABASE, check=False)
    round = Round(server, store, seed, counts)
    try:
        round.run(statements)
        counts["rounds"] += 1
        return None
    except (Different, answers.Lost, SqlError) as problem:
        script = OUT / f"changes-{store.name}-{seed}.sql"
        script.write_text("\n".join(round.log["c"]) + "\n")
        return f"seed {seed}, statement {len(round.log['c'])}: {problem}\nbefore it:\n" + "\n".join(line[:300] for line in round.log["c"][-15:]) + f"\nall: {script}"
    finally:
        round.close()


def premises(store, counts):
    """What must have happened for the run to mean anything."""
    yield from store.premises(counts)
    yield "a fifth of the statements gave rows", counts["with rows"] * 5 >= counts["statements"]
    yield "some failed, most did not", 0 < sum(n for name, n in counts.items() if name.startswith("error ")) * 3 < counts["statements"]
    yield "few were tolerated", counts["tolerated"] * 20 < counts["statements"]
    for kind in ("INSERT", "UPDATE", "DELETE", "MERGE", "ON CONFLICT DO UPDATE", "SELECT FOR", "COPY", "merge", "VACUUM", "SAVEPOINT"):
        yield f"there was {kind}", counts[f"kind {kind}"] > 0
    yield "there was a rewrite beside an older snapshot", any(n for name, n in counts.items() if name.endswith("beside a snapshot"))
    if STATEMENTS >= MANY:
        for kind in RARE:
            yield f"there was {kind}", counts[f"kind {kind}"] > 0


def are_enough(counts):
    """Whether the run may end: a long one goes on, for half as long again, until each rare kind has come."""
    if counts["statements"] < STATEMENTS:
        return False
    rare = STATEMENTS < MANY or all(counts[f"kind {kind}"] for kind in RARE)
    return rare or counts["statements"] > STATEMENTS * 3 // 2


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    return max(compare(stores.STORES[name]) for name in STORES)


def compare(store):
    server = fresh_server("changes", os.environ["COLONNADE_STAGE"], {"max_connections": "20", "shared_buffers": "64MB", "autovacuum": "off", **PACKING})
    counts, reports, seed = collections.Counter(), [], SEED
    try:
        while not are_enough(counts) and len(reports) < FAILURES:
            report = one_round(server, store, seed, counts, ROUND)
            if report:
                reports.append(report)
                print(f"not ok changes: {report}\n", flush=True)
            seed += 1
        log = server.log.read_text(errors="replace")
        told = [line for line in log.splitlines() if any(word in line for word in ("terminated by signal", "PANIC", "TRAP:", "Failed process was"))]
        if told:
            reports.append("the server crashed")
            print("not ok changes: the server crashed:\n" + "\n".join(told))
    finally:
        server.destroy()
    print(f"{store.name}, seeds {SEED} to {seed - 1}: {counts['statements']} statements in {counts['rounds']} rounds, {counts['with rows']} gave rows, "
          f"{counts['tolerated']} tolerated, {counts['verified']} times verified, {counts['left by a rollback']} times after a VACUUM")
    print("  " + ", ".join(f"{name} {counts[name]}" for name in SEEN if counts[name]))
    print("  " + ", ".join(f"{name[5:]} {count}" for name, count in sorted(counts.items()) if name.startswith("kind ")))
    print("  errors met: " + ", ".join(f"{name[6:]} {count}" for name, count in sorted(counts.items()) if name.startswith("error ")))
    failed = len(reports)
    if not failed:
        print(f"ok changes on {store.name}: {counts['statements']} generated statements")
    for name, holds in premises(store, counts):
        print(f"{'ok' if holds else 'not ok'} changes on {store.name}, premise: {name}")
        failed += not holds
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
