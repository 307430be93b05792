"""TPC-C's transactions beside CH-benCHmark's questions (Cole and others, "The mixed workload CH-benCHmark",
DBTest 2011): TPC-H's 22, asked of TPC-C's tables.

WAREHOUSES (4) is the scale. The five transactions come in TPC-C's shares, without its waiting times. Every
COMPARE-th (7) question is asked once more in the same snapshot, of the heap where the first answer came from
columnstore indexes, and row by row where it came from colcompress tables: the rows have to be the same.
COMPARE=1 compares all answers; transactions are then slower for it. Heap is what the others are held against.
"""

import os
from pathlib import Path

from harness import kit
from harness.server import ServerError

TABLES = "warehouse district customer history orders new_order order_line item stock nation region supplier".split()
OTHERWISE = {"columnstore": "SET LOCAL colonnade.enable_columnstore_index = off", "colcompress": "SET LOCAL colonnade.enable_vectorised = off"}
BUYER = "\\set w random(1, :warehouses)\n\\set d random(1, 10)\n\\set c random(1, 3000)\n"
# TPC-C's shares of the transactions.
SCRIPTS = {
    "order": (45, f"{BUYER}\\set n random(5, 15)\nSELECT make_order(:w, :d, :c, :n, :warehouses);\n"),
    "pay": (43, f"{BUYER}\\set a random(100, 500000)\nSELECT pay(:w, :d, :c, :a / 100.0);\n"),
    "status": (4, f"{BUYER}SELECT status_of(:w, :d, :c);\n"),
    "deliver": (4, "\\set w random(1, :warehouses)\n\\set k random(1, 10)\nSELECT deliver(:w, :k);\n"),
    "stock": (4, f"{BUYER}\\set l random(10, 20)\nSELECT low_stock(:w, :d, :l);\n"),
}


class Ch:
    """The workload, as htap.py wants one."""

    name = "ch"
    tables = tuple(TABLES)
    bound = 0.95
    inserted = "history"
    insert = "INSERT INTO history SELECT 1, 1, 1, 1, 1, now(), 1, 'inserted' FROM generate_series(1, 2000000)"

    def __init__(self, folder):
        self.scale = int(os.environ.get("WAREHOUSES", "4"))
        self.every = int(os.environ.get("COMPARE", "7"))
        self.questions = kit.read_queries(kit.SQL / "ch_queries.sql")
        self.equal = {}
        self.transactions = ["-D", f"warehouses={self.scale}"]
        for name, (weight, text) in SCRIPTS.items():
            path = Path(folder) / f"{name}.sql"
            path.write_text(text)
            path.chmod(0o644)
            self.transactions += ["-f", f"{path}@{weight}"]

    def load(self, arm):
        for name in ("ch_tables.sql", "ch_transactions.sql"):
            arm.sql((kit.SQL / name).read_text().replace(":WAREHOUSES", str(self.scale)))

    def ask(self, session, arm, number):
        """The question's name and milliseconds."""
        question = self.questions[number % len(self.questions)]
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        answer = session.run(question.text)
        if arm in OTHERWISE and number % self.every == 0:
            session.run(OTHERWISE[arm])
            expected = session.run(question.text)
            if sorted(map(repr, answer.rows)) != sorted(map(repr, expected.rows)):
                raise ServerError(f"{arm}: {question.name} has two answers in one snapshot: {answer.rows[:5]} and {expected.rows[:5]}")
            self.equal[arm] = self.equal.get(arm, 0) + 1
        session.run("COMMIT")
        return question.name, answer.milliseconds

    def compared(self, arm):
        return f"{self.equal[arm]} compared by now, all equal" if arm in self.equal else "which others are held against"
