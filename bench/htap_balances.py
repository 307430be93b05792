"""pgbench's TPC-B, and the sums of all four balance columns in one snapshot. They are equal in every
snapshot, so each answer is a test of freshness. SCALE (20) is pgbench's.
"""

import os

from harness.server import ServerError

COLUMNS = {"pgbench_accounts": "abalance", "pgbench_tellers": "tbalance", "pgbench_branches": "bbalance", "pgbench_history": "delta"}
QUESTION = "SELECT " + ", ".join(f"(SELECT coalesce(sum({column}), 0) FROM {table})" for table, column in COLUMNS.items())


class Balances:
    """The workload, as htap.py wants one."""

    name = "balances"
    tables = tuple(COLUMNS)
    transactions = ()
    # What the indexes have to leave of heap's throughput, where no question is asked.
    bound = 0.95
    inserted = "pgbench_history"
    insert = "INSERT INTO pgbench_history SELECT 1, 1, 1, 0, now() FROM generate_series(1, 2000000)"

    def __init__(self, _folder):
        self.scale = int(os.environ.get("SCALE", "20"))

    def load(self, arm):
        arm.pgbench(["-i", "-q", "-I", "dtgp", "-s", self.scale])

    def ask(self, session, arm, _number):
        """The question's name and milliseconds."""
        answer = session.run(QUESTION)
        if len(set(answer.rows[0])) != 1:
            raise ServerError(f"{arm}: the sums of one snapshot are {answer.rows[0]}")
        return "sums", answer.milliseconds

    def compared(self, _arm):
        return "all equal"
