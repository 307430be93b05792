"""TPC-H: the 22 queries on colcompress, DuckDB and heap, answers compared with heap's.

Called by scripts/bench.sh tpch. SF (1) is the scale factor, RUNS (5) the timed runs of each query, TIMEOUT
(300) the seconds after which a query is stopped; QUERIES="T1 T6" asks only those; STEP, HEAP (kept) and
ORDERS are those of harness.suite. Heap gets primary-key and foreign-key indexes, the column tables have none.
Rows are raced twice: as they are made, and with lineitem in order of l_shipdate and orders of o_orderdate in
all column stores. HYPER=1 has Hyper race, too.
"""

import os

from harness import kit, race, suite
from harness.server import TARGET, ServerError, end_orderly, run_program

SF = os.environ.get("SF", "1")
ONLY = os.environ.get("QUERIES", "").split()
TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
SORT = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
INDEXES = """
ALTER TABLE region ADD PRIMARY KEY (r_regionkey); ALTER TABLE nation ADD PRIMARY KEY (n_nationkey);
ALTER TABLE part ADD PRIMARY KEY (p_partkey); ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey); ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE orders ADD PRIMARY KEY (o_orderkey); ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX ON nation (n_regionkey); CREATE INDEX ON supplier (s_nationkey); CREATE INDEX ON partsupp (ps_suppkey);
CREATE INDEX ON customer (c_nationkey); CREATE INDEX ON orders (o_custkey); CREATE INDEX ON lineitem (l_partkey, l_suppkey);
CREATE INDEX ON lineitem (l_suppkey);
"""


def tables():
    program = TARGET / "venv" / "bin" / "tpchgen-cli"
    if not program.exists():
        raise ServerError("tpchgen-cli is not installed: the Python package of that name could not be had")
    return [suite.Table(table, [program, "csv", "-s", SF, "--tables", table, "--stdout"], "FORMAT csv, HEADER",
                        f"COPY {table} FROM '{{path}}' (FORMAT csv, HEADER, AUTO_DETECT false)") for table in TABLES]


def questions(_server, _database):
    fraction = f"{0.0001 / float(SF):.10f}"
    every = [race.Question(q.name, q.title, q.text.replace(":FRACTION", fraction), q.ordered) for q in kit.read_queries(kit.SQL / "tpch_queries.sql")]
    return [q for q in every if not ONLY or q.name in ONLY]


def main(stage):
    end_orderly()
    return suite.Suite("tpch", SF, stage, tables(), lambda _duck: (kit.SQL / "tpch.sql").read_text(), INDEXES, sort=SORT).run(questions)


if __name__ == "__main__":
    run_program(main)
