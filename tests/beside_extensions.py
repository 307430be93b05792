"""Other extensions that look at plans and statements find nothing of ours that they cannot read, in both
orders of preloading.

Those that come with PostgreSQL are loaded here; `EXTRA_PRELOAD` runs any suite beside others (see
CONTRIBUTING.md)."""

import os
import re

from harness.checks import Checks
from harness.server import fresh_server

ORDERS = ("pg_stat_statements,auto_explain,colonnade", "colonnade,pg_stat_statements,auto_explain")
SETTINGS = {
    "pg_stat_statements.track": "all",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_wal": "on",
    "auto_explain.log_verbose": "on",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_triggers": "on",
    "auto_explain.log_settings": "on",
}
# Everything that makes a scan node of ours: no condition, native ones, ones that the server checks,
# parameters, joins.
PLANS = [
    "SELECT * FROM t",
    "SELECT k FROM t WHERE k = 5",
    "SELECT k FROM t WHERE v LIKE '%7%' AND k > 3",
    "SELECT k FROM t WHERE random() < 2",
    "SELECT count(*) FROM t",
    "SELECT a.k FROM t a JOIN t b USING (k) WHERE a.v < b.v",
    "INSERT INTO sink SELECT k FROM t",
    "UPDATE sink SET k = t.k FROM t WHERE t.k = sink.k",
    "DELETE FROM sink WHERE k IN (SELECT k FROM t WHERE k < 3)",
    "SELECT v, count(*) FROM t GROUP BY v ORDER BY count(*) DESC, v LIMIT 3",
    "SELECT v, m, rank() OVER (ORDER BY m) FROM (SELECT v, max(k * 2) AS m FROM t GROUP BY v) x WHERE m > 7 ORDER BY m, v",
    "SELECT k, c FROM generate_series(1, 3) g JOIN (SELECT k, count(*) AS c FROM t GROUP BY k) x ON x.k = g AND random() < 2",
    # More than is followed.
    "SELECT " + " + ".join(["k"] * 1500) + " AS long, k FROM t ORDER BY long, k LIMIT 2",
]
# Asked of a heap table and of a columnar one, each under its own name in a schema that the path chooses.
QUERIES = [
    "SELECT count(*), sum(k) FROM q WHERE k > 10",
    "SELECT k % 7 AS g, count(*), max(v) FROM q GROUP BY g ORDER BY g",
    "SELECT v FROM q WHERE k = 77",
    "SELECT a.k FROM q a JOIN q b ON a.k = b.k + 1 ORDER BY a.k LIMIT 3",
    "SELECT k, row_number() OVER (ORDER BY k DESC) FROM q ORDER BY k LIMIT 2",
    "UPDATE q SET v = 'x' WHERE k = 12",
    "DELETE FROM q WHERE k BETWEEN 20 AND 30",
    "INSERT INTO q SELECT g, 'n' FROM generate_series(30001, 45000) g",
    "SELECT f()",
    "ANALYZE q",
]


def plans(server, checks):
    """Extensions (Citus) look at the first member of every scan's private list, and some for its tag without
    asking whether it is there."""
    server.sql("CREATE TABLE t USING colcompress AS SELECT g k, g::text v FROM generate_series(1, 20000) g;"
               "CREATE TABLE sink (k int) USING colcompress; ANALYZE t", "db")
    seen = led_down = 0
    for settings in ("", "SET colonnade.enable_vectorised = off;"):
        for query in PLANS:
            status, _, shown = server.sql(
                f"{settings} SET debug_print_plan = on; SET debug_pretty_print = off; SET client_min_messages = log; {query};",
                "db", check=False)
            empty = re.findall(r":custom_private \(<>.{0,60}", shown)
            seen += shown.count(":custom_private (")
            # The columns of our nodes are those of tables, as the server has it, not of plans that only we
            # know.
            lists = re.findall(r":custom_scan_tlist (.*?):custom_relids", shown, re.S)
            led_down += len([columns for columns in lists if "{TARGETENTRY :expr {VAR :varno " in columns])
            empty += [columns[:200] for columns in lists if "{TARGETENTRY :expr {VAR :varno -" in columns]
            if status != 0 or empty:
                checks.say(f"plan of {query[:100]}", False, f"{empty} {shown[-300:]}")
                return
    checks.say("no scan's private list begins with nothing", seen >= len(PLANS), seen)
    checks.say("columns of vectorised nodes are those of tables", led_down > 0, led_down)


def statements(server, checks):
    """The functions that set options run a statement whose text is that statement: extensions send it
    elsewhere (Citus)."""
    server.sql("""CREATE SCHEMA "S 1"; CREATE TABLE "S 1"."t'1" (k int, "a b" int) USING colcompress;
        CREATE MATERIALIZED VIEW mv USING colcompress AS SELECT 1 AS k;
        SELECT pg_stat_statements_reset();
        SELECT engine.alter_colcompress_table_set('"S 1"."t''1"', orderby => '"a b" DESC, k', compression => 'lz4', packing => false);
        SELECT engine.alter_colcompress_table_reset('"S 1"."t''1"', compression => true, packing => true);
        SELECT engine.alter_colcompress_table_set('mv', stripe_row_limit => 5000);""", "db")
    texts = server.sql("SELECT query FROM pg_stat_statements WHERE query LIKE 'ALTER%' ORDER BY query COLLATE \"C\"", "db").splitlines()
    wanted = [
        """ALTER MATERIALIZED VIEW public.mv SET (stripe_row_limit = '5000')""",
        """ALTER TABLE "S 1"."t'1" RESET (compression, packing)""",
        """ALTER TABLE "S 1"."t'1" SET (compression = 'lz4', orderby = '"a b" DESC, k', packing = 'false')""",
    ]
    checks.say("options are set by statements that can be read again", texts == wanted, texts)
    again = all(server.sql(text, "db", check=False)[0] == 0 for text in texts)
    checks.say("and run again", again)
    left = server.sql("SELECT count(*) FROM pg_stat_statements WHERE query LIKE 'engine.%'", "db")
    checks.say("no text of a statement is a function's name", left == "0", left)


def query_ids(server, checks):
    """pg_stat_statements tells apart what differs for heap tables, and nothing else; it counts the same rows
    and calls."""
    shown = {}
    for method in ("heap", "colcompress"):
        server.sql(f"""CREATE SCHEMA {method}; SET search_path = {method}, public;
            CREATE TABLE q (k int, v text) USING {method};
            INSERT INTO q SELECT g, g::text FROM generate_series(1, 30000) g; ANALYZE q;
            CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM q WHERE k > 3); END';
            SELECT pg_stat_statements_reset();""", "db")
        server.sql(f"SET search_path = {method}, public; " + "; ".join(QUERIES + QUERIES[:3]), "db")
        shown[method] = server.sql(
            "SELECT toplevel, calls, rows, query FROM pg_stat_statements WHERE query !~ 'pg_stat_statements|search_path' "
            "AND dbid = (SELECT oid FROM pg_database WHERE datname = 'db') ORDER BY query COLLATE \"C\", toplevel", "db").splitlines()
    same = shown["heap"] == shown["colcompress"] and len(shown["heap"]) >= len(QUERIES)
    differing = sorted(set(shown["heap"]) ^ set(shown["colcompress"]))
    checks.say("pg_stat_statements counts as for heap tables", same, differing or shown["heap"])
    ids = server.sql("SELECT count(*) FROM pg_stat_statements WHERE queryid IS NULL OR queryid = 0", "db")
    checks.say("every statement has a query id", ids == "0", ids)
    plan = server.sql("SET search_path = colcompress; SET compute_query_id = on; EXPLAIN (VERBOSE) SELECT count(*) FROM q WHERE k > 5", "db")
    checks.say("EXPLAIN VERBOSE shows it", "Query Identifier: " in plan and "Colonnade" in plan, plan)


def explained(server, checks):
    log = server.log.read_text(errors="replace")
    checks.say("auto_explain shows vectorised plans with what they did", "Custom Scan (Colonnade Vectorised)" in log and "own time" in log.lower())
    nested = re.search(r"Query Text: \(SELECT count\(\*\) FROM q WHERE k > 3\)", log)
    checks.say("and those of functions", nested is not None)
    faults = [line for line in log.splitlines() if re.search(r"PANIC|TRAP|terminated by|XX000", line)]
    checks.say("no fault in the log", not faults, faults[:5])


def main():
    checks = Checks("beside_extensions")
    for order in ORDERS:
        server = fresh_server("beside", os.environ["COLONNADE_STAGE"], settings=dict(SETTINGS), preload=order)
        try:
            print(f"# shared_preload_libraries = {server.sql('SHOW shared_preload_libraries')}")
            server.create_database("db")
            server.sql("CREATE EXTENSION pg_stat_statements", "db")
            plans(server, checks)
            statements(server, checks)
            query_ids(server, checks)
            explained(server, checks)
        finally:
            server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
