"""TPC-H for SQLite: the tables of bench/sql/tpch.sql, and its 22 queries in SQLite's words.

Who calls it: tests/sqlite/tpch.py and bench/sqlite_tpch.py. Dates are text, as SQLite has no type for them.
Rows come from tpchgen-cli, a Python package.
"""

import csv
import re
import subprocess

from .kit import SQL, read_queries
from .place import ROOT

TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
DATE = re.compile(r"\bdate ('[0-9-]+')")
YEAR = re.compile(r"extract\(year FROM (\w+)\)", re.I)
PART = re.compile(r"substring\((\w+) FROM (\d+) FOR (\d+)\)", re.I)


def definitions():
    """Of each table its columns, as CREATE TABLE has them."""
    text = (SQL / "tpch.sql").read_text()
    found = dict(re.findall(r"CREATE TABLE (\w+) \((.*?)\);", text, re.S))
    # `date` has numeric affinity, in which text that is no number stays text; `bigint` and `integer` are one.
    return {table: " ".join(found[table].replace(" date ", " text ").split()) for table in TABLES}


def command(table, scale):
    return [ROOT / "target" / "venv" / "bin" / "tpchgen-cli", "csv", "-s", str(scale), "--tables", table, "--stdout"]


def write_csv(table, scale, out):
    """Writes a table as CSV, with names of columns in the first line."""
    subprocess.run(command(table, scale), stdout=out, check=True)


def rows(table, scale):
    """The rows of a table as texts, for a scale factor."""
    process = subprocess.Popen(command(table, scale), stdout=subprocess.PIPE, text=True)
    reader = csv.reader(process.stdout)
    next(reader)
    yield from reader
    if process.wait() != 0:
        raise RuntimeError(f"tpchgen-cli failed for {table}")


def queries(scale):
    """The 22 queries, with their names and texts."""
    for query in read_queries(SQL / "tpch_queries.sql"):
        text = query.text.replace(":FRACTION", f"{0.0001 / float(scale):.10f}")
        text = YEAR.sub(r"CAST(substr(\1, 1, 4) AS INTEGER)", DATE.sub(r"\1", text))
        yield query.name, PART.sub(r"substr(\1, \2, \3)", text), query.ordered
