"""TPC-H's 22 queries in columnar_query give what they give on plain tables, at scale factor 0.01."""

from harness import sqlite_tpch
from harness.checks import Checks
from harness.sqlite import Connection, SqlError, alike, difference, in_engine

SCALE = "0.01"


def main():
    checks = Checks("tpch")
    plain, columnar = Connection(), Connection()
    for table, definition in sqlite_tpch.definitions().items():
        plain.sql(f"CREATE TABLE {table}({definition})")
        columnar.sql(f"CREATE VIRTUAL TABLE {table} USING columnar({definition}, stripe_rows=8000, chunk_rows=2000)")
        rows = list(sqlite_tpch.rows(table, SCALE))
        for db in (plain, columnar):
            db.sql("BEGIN")
            db.many(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            db.sql("COMMIT")
    # Without these some of them take minutes.
    for table, column in (("lineitem", "l_orderkey"), ("lineitem", "l_partkey"), ("orders", "o_custkey"), ("orders", "o_orderkey"), ("partsupp", "ps_partkey"), ("part", "p_partkey"), ("supplier", "s_suppkey"), ("customer", "c_custkey")):
        plain.sql(f"CREATE INDEX {table}_{column} ON {table}({column})")
    plain.sql("ANALYZE")
    for name, text, _ordered in sqlite_tpch.queries(SCALE):
        with checks.part(name, (AssertionError, SqlError)):
            expected = plain.sql(text)
            found = in_engine(columnar, text)
            assert alike(sorted(expected, key=repr), sorted(found, key=repr)), difference(expected, found)
            assert expected or name in ("T20",), "the premise: the query has rows"
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
