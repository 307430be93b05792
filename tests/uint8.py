"""engine.uint8: every operator, cast and aggregate gives what the same computation in numeric gives, over
ROWS generated pairs with the borders among them, and is an error where numeric's result is no value of the
type. Queries over columnar tables of it give heap's answers with and without vectors, and a client's driver
reads and writes it in binary form."""

import os
import re

from harness.checks import Checks
from harness.server import major

ROWS = int(os.environ.get("ROWS") or (1_000_000 if os.environ.get("COLONNADE_LONG") == "1" else 50_000))
MOST = 2**64 - 1
OTHERS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
DATABASE = "uint8"

checks = Checks("uint8")
check = checks.say

# Numbers of all lengths, and all near a border, each as often.
PAIRS = f"""
CREATE FUNCTION any_number(seed int, bits int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT mod((('x' || md5(seed::text || bits::text))::bit(64)::bigint::numeric + 9223372036854775808), power(2::numeric, 1 + (hashint4(seed + bits) & 63) % bits)) $$;
CREATE FUNCTION near_border(seed int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT (ARRAY[0, 255, 32767, 65535, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615]::numeric[])[1 + seed % 8] + (seed / 8) % 7 - 3 $$;
CREATE TABLE pairs AS
SELECT g, a::engine.uint8 AS a, b::engine.uint8 AS b, a::numeric(20,0) AS na, b::numeric(20,0) AS nb, small::int2 AS int2, medium::int4 AS int4, large::int8 AS int8, hashint4(g) & 63 AS shift
FROM (SELECT g, CASE g % 3 WHEN 0 THEN any_number(g, 64) ELSE least(greatest(near_border(g / 3), 0), {MOST}) END AS a,
             CASE g % 5 WHEN 0 THEN any_number(g + 77, 64) WHEN 1 THEN any_number(g + 33, 8) ELSE least(greatest(near_border(g / 5), 0), {MOST}) END AS b,
             CASE g % 4 WHEN 0 THEN 0 WHEN 1 THEN -1 ELSE any_number(g, 15) - CASE g % 7 WHEN 0 THEN 32768 ELSE 0 END END AS small,
             any_number(g + 5, 31) - CASE g % 3 WHEN 0 THEN 2147483648 ELSE 0 END AS medium,
             CASE g % 11 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 ELSE any_number(g + 9, 63) - CASE g % 3 WHEN 0 THEN 9223372036854775808 ELSE 0 END END AS large
      FROM generate_series(1, {ROWS}) g) x;
CREATE FUNCTION raises(statement text) RETURNS text LANGUAGE plpgsql AS $$BEGIN EXECUTE statement; RETURN NULL; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END$$;
"""


def same(server, what, own, numeric, where="true"):
    """Both expressions over a row of pairs, as numeric or truth value."""
    wrong = server.sql(f"SELECT g, a, b, {own}, {numeric} FROM pairs WHERE CASE WHEN {where} THEN ({own}) IS DISTINCT FROM ({numeric}) END LIMIT 3", DATABASE)
    taken = int(server.sql(f"SELECT count(*) FROM pairs WHERE {where}", DATABASE))
    check(f"{what} is numeric's", wrong == "" and taken > ROWS / 100, f"{taken} rows; {wrong}")


def operators(server):
    for op in COMPARISONS:
        same(server, f"a {op} b", f"a {op} b", f"na {op} nb")
        for other in (*OTHERS, "nb"):
            same(server, f"a {op} {other}", f"a {op} {other}", f"na {op} {other}::numeric")
            same(server, f"{other} {op} a", f"{other} {op} a", f"{other}::numeric {op} na")
    for left, right in (("a", "b"), *(("a", other) for other in OTHERS), *((other, "a") for other in OTHERS)):
        numerics = [{"a": "na", "b": "nb"}.get(side, f"{side}::numeric") for side in (left, right)]
        for op in "+-*/%":
            result = f"({numerics[0]} {op} {numerics[1]})"
            if op == "/":
                result = f"trunc({numerics[0]}, 0) / {numerics[1]}"
                result = f"div({numerics[0]}, {numerics[1]})"
            defined = f"{numerics[1]} <> 0" if op in "/%" else "true"
            fits = f"CASE WHEN {defined} THEN {result} BETWEEN 0 AND {MOST} END"
            same(server, f"{left} {op} {right}", f"({left} {op} {right})::numeric", result, fits)
            fails = server.sql(f"""SELECT string_agg(DISTINCT coalesce(raises(format('SELECT %L::{'engine.uint8' if left in 'ab' else left} {op.replace('%', '%%')} %L::{'engine.uint8' if right in 'ab' else right}', {left}, {right})), 'none'), ' ')
                FROM (SELECT * FROM pairs WHERE NOT coalesce({fits}, false) LIMIT 500) x""", DATABASE)
            check(f"{left} {op} {right} is an error elsewhere", set(fails.split()) <= {"22003", "22012"}, fails)


def bits(server):
    as_bits = {"&": "&", "|": "|", "#": "#"}
    for op in as_bits:
        same(server, f"a {op} b", f"(a {op} b)::bit(64)", f"a::bit(64) {op} b::bit(64)")
    same(server, "~a", "(~a)::numeric", f"{MOST} - na")
    same(server, "a << n", "(a << shift)::numeric", "mod(na * power(2::numeric, shift), power(2::numeric, 64))")
    same(server, "a >> n", "(a >> shift)::numeric", "div(na, power(2::numeric, shift))")
    same(server, "bits there and back", "a::bit(64)::engine.uint8::numeric", "na")
    told = server.sql("SELECT 5::engine.uint8 << 64, 5::engine.uint8 >> 64, raises('SELECT 5::engine.uint8 << -1'), -(0::engine.uint8), raises('SELECT -(1::engine.uint8)'), @ 7::engine.uint8, mod(7::engine.uint8, '4')", DATABASE)
    check("shifts by all bits, and signs", told == "0|0|22003|0|22003|7|3", told)


def casts(server):
    same(server, "text", "a::text::engine.uint8::text", "na::text")
    same(server, "numeric", "na::engine.uint8::numeric", "na")
    same(server, "numeric with a fraction", "(na / 7)::engine.uint8::numeric", "round(na / 7)")
    same(server, "float8", "a::float8", "na::float8")
    same(server, "float4", "a::float4", "na::float4")
    for name, end in OTHERS.items():
        same(server, f"to {name}", f"a::{name}::numeric", "na", f"na < {end}")
        same(server, f"from {name}", f"{name}::engine.uint8::numeric", f"{name}::numeric", f"{name} >= 0")
        fails = server.sql(f"SELECT string_agg(DISTINCT coalesce(raises(format('SELECT %L::engine.uint8::{name}', a)), 'none'), ' ') FROM (SELECT a FROM pairs WHERE na >= {end} LIMIT 200) x", DATABASE)
        check(f"what is no {name} is an error", fails == "22003", fails)
        fails = server.sql(f"SELECT string_agg(DISTINCT coalesce(raises(format('SELECT %L::{name}::engine.uint8', {name})), 'none'), ' ') FROM (SELECT {name} FROM pairs WHERE {name} < 0 LIMIT 200) x", DATABASE)
        check(f"a negative {name} is an error", fails == "22003", fails)
    for text, code in (("NaN::numeric", "0A000"), ("Infinity::numeric", "0A000"), ("-0.5::numeric", "22003"), ("18446744073709551615.5::numeric", "22003"), ("1e30::numeric", "22003"),
                       ("NaN::float8", "22003"), ("1.8446744073709552e19::float8", "22003"), ("-0.6::float8", "22003"), ("Infinity::float4", "22003")):
        value, kind = text.split("::")
        told = server.sql(f"SELECT raises($$SELECT '{value}'::{kind}::engine.uint8$$)", DATABASE)
        check(f"{text} is an error", told == code, told)
    told = server.sql("SELECT to_jsonb(18446744073709551615::engine.uint8), row_to_json(x), to_char(9007199254740993::engine.uint8, 'FM99999999999999999999') FROM (SELECT 9007199254740993::engine.uint8 AS n) x", DATABASE)
    check("JSON and to_char", told == '18446744073709551615|{"n":9007199254740993}|9007199254740993', told)
    same(server, "numeric beyond 128 bits", "a < 1e60 AND a > -1e60 AND NOT a = 1e60", "true")
    same(server, "numeric with many digits", "a > na - 0.000000000000000000000000000000000000000001", "true")
    told = server.sql("SELECT 2.5::float8::engine.uint8, (-0.4)::float8::engine.uint8, 0.4::engine.uint8, 18446744073709549568::float8::engine.uint8, 4294967295::oid::engine.uint8::oid, 7::engine.uint8::bit(3), 300::engine.uint8::bit(4)", DATABASE)
    check("casts at borders", told == "2|0|0|18446744073709549568|4294967295|111|1100", told)


def aggregates(server):
    wanted = "SELECT sum({0}), avg({0}), min({0}), max({0}), variance({0}), var_pop({0}), stddev({0}), stddev_pop({0}), count(DISTINCT {0})"
    own, numeric = (server.sql(wanted.format(column) + " FROM pairs", DATABASE) for column in ("a", "na"))
    check("aggregates are numeric's", own == numeric, f"{own}\n{numeric}")
    parallel = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET debug_parallel_query = on;" if major() >= 16 else \
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET force_parallel_mode = on;"
    plan = server.sql(f"{parallel} EXPLAIN (COSTS OFF) {wanted.format('a').replace(', count(DISTINCT a)', '')} FROM pairs", DATABASE)
    check("the premise: they run in parallel", "Partial Aggregate" in plan, plan)
    own, numeric = (server.sql(parallel + wanted.replace(", count(DISTINCT {0})", "").format(column) + " FROM pairs", DATABASE) for column in ("a", "na"))
    check("aggregates in parallel are numeric's", own == numeric, f"{own}\n{numeric}")
    for grouped in ("SELECT int2 % 3, variance({0}), sum({0}) FROM pairs WHERE g <= 20000 GROUP BY ROLLUP (int2 % 3) ORDER BY 1, 2", "SELECT variance(DISTINCT {0} % 100), stddev(DISTINCT {0}), sum(DISTINCT {0} % 100) FROM pairs WHERE g <= 20000",
                    "SELECT variance(DISTINCT x), variance(DISTINCT y) FROM (SELECT {0} / 2::{1} AS x, {0} % 7 AS y FROM pairs WHERE g <= 20000) s"):
        own, numeric = (server.sql(grouped.format(column, kind), DATABASE) for column, kind in (("a", "engine.uint8"), ("div(na, 1)", "numeric")))
        if "/ 2" in grouped:
            numeric = server.sql(grouped.format("na", "numeric").replace("na / 2::numeric", "div(na, 2)"), DATABASE)
        check("aggregates of grouping sets and of DISTINCT", own == numeric, f"{grouped}: {own[:300]}\n{numeric[:300]}")
    bitwise = "SELECT bit_and({0}), bit_or({0}), bit_xor({0}) FROM pairs"
    own = server.sql(f"SELECT x::bit(64), y::bit(64), z::bit(64) FROM ({bitwise.format('a')}) s (x, y, z)", DATABASE)
    check("bitwise aggregates are those of bits", own == server.sql(bitwise.format("a::bit(64)"), DATABASE), own)
    frames = "SELECT md5(string_agg(x::text, ' ' ORDER BY g)) FROM (SELECT g, (sum({0}) OVER w, avg({0}) OVER w, max({0}) OVER w, variance({0}) OVER w) AS x FROM pairs WHERE g <= 20000 WINDOW w AS (ORDER BY g ROWS BETWEEN 5 PRECEDING AND 3 FOLLOWING)) s"
    own, numeric = (server.sql(frames.format(column), DATABASE) for column in ("a", "na"))
    check("aggregates over moving frames are numeric's", own == numeric, f"{own} {numeric}")
    ranges = "SELECT md5(string_agg(x::text, ' ' ORDER BY g)) FROM (SELECT g, count(*) OVER (ORDER BY {0} RANGE BETWEEN 3 PRECEDING AND 1000 FOLLOWING) AS x FROM pairs WHERE g <= 20000) s"
    own, numeric = (server.sql(ranges.format(column), DATABASE) for column in ("a", "na"))
    check("frames of a range are numeric's", own == numeric, f"{own} {numeric}")
    told = server.sql("SELECT sum(a), avg(a), min(a), variance(a), bit_or(a) FROM pairs WHERE false", DATABASE)
    check("of no rows they are NULL", told == "||||", told)
    told = server.sql("SET search_path = engine; SELECT sum(x), min(x), max(x) FROM (VALUES (5::uint8), ('7')) v (x)", DATABASE)
    check("storage_engine's names are there", told == "12|5|7", told)


def indexes(server):
    server.sql("CREATE TABLE keyed AS SELECT g, a, na FROM pairs WHERE g <= 30000; ANALYZE keyed", DATABASE)
    questions = [f"SELECT count(*), sum(g) FROM keyed WHERE {{0}} {op} {value}" for op in ("=", "<", ">=") for value in ("255", "9223372036854775807", "18446744073709551615", "32766.5", "-5", "65535::int8")]
    wanted = [server.sql(question.format("na"), DATABASE) for question in questions]
    for method in ("btree (a)", "hash (a)", "brin (a)", "brin (a engine.uint8_minmax_multi_ops)", "brin (a engine.uint8_bloom_ops)"):
        server.sql(f"DROP INDEX IF EXISTS by_a; CREATE INDEX by_a ON keyed USING {method}", DATABASE)
        got = server.sql("SET enable_seqscan = off;" + ";".join(question.format("a") for question in questions), DATABASE).splitlines()
        check(f"{method} finds what is there", got == wanted, f"{got}\n{wanted}")
        plan = server.sql("SET enable_seqscan = off; EXPLAIN SELECT count(*) FROM keyed WHERE a = '255'", DATABASE)
        check(f"{method} is used", "by_a" in plan, plan)
    # A condition on the second column alone: 18 skips over the values of the first.
    for kind in ("a", "na"):
        server.sql(f"CREATE TABLE skipped_{kind} AS SELECT {kind} % 50 AS a, g FROM keyed WHERE {kind} % 50 <> 7; CREATE INDEX skip_{kind} ON skipped_{kind} (a, g); ANALYZE skipped_{kind}", DATABASE)
    own, numeric = (server.sql(f"SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT a::text, g FROM skipped_{kind} WHERE g BETWEEN 500 AND 900 ORDER BY g; SELECT a::text, g FROM skipped_{kind} WHERE a IN (0, 3, 49) AND g < 700 ORDER BY a DESC, g DESC", DATABASE) for kind in ("a", "na"))
    check("a condition on the second column of an index", own == numeric and own != "", f"{own[:300]}\n{numeric[:300]}")
    if major() >= 18:
        plan = server.sql("SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT g FROM skipped_a WHERE g = 555", DATABASE)
        check("18 skips", re.search(r"Index Searches: \d\d", plan), plan)
    for hashed in ("on", "off"):
        for other in (*OTHERS, "na"):
            question = f"SET enable_hashjoin = {hashed}; SET enable_mergejoin = {'off' if hashed == 'on' else 'on'}; SET enable_nestloop = off; SELECT count(*) FROM (SELECT {{0}} AS x FROM pairs WHERE g <= 5000) l JOIN (SELECT {other} AS y FROM pairs WHERE g <= 5000) r ON l.x = r.y"
            own, numeric = (server.sql(question.format(column), DATABASE) for column in ("a", "na"))
            check(f"join with {other}, hash {hashed}", own == numeric and int(own) > 0, f"{own} {numeric}")
    told = server.sql("SELECT engine.uint8range('1', '5', '[]'), '[3,3)'::engine.uint8range, '(1,3)'::engine.uint8range * '[2,9]', '{[1,2],[3,4]}'::engine.uint8multirange, raises($$SELECT '[0,18446744073709551615]'::engine.uint8range$$), upper('[0,18446744073709551615)'::engine.uint8range)", DATABASE)
    check("ranges are those of whole numbers", told == "[1,6)|empty|[2,3)|{[1,5)}|22003|18446744073709551615", told)
    told = server.sql("SELECT string_agg(s::text, ' ') FROM generate_series(18446744073709551613::engine.uint8, '18446744073709551615') s UNION ALL SELECT string_agg(s::text, ' ') FROM generate_series(1::engine.uint8, '10', '4') s", DATABASE)
    check("series", told == "18446744073709551613 18446744073709551614 18446744073709551615\n1 5 9", told)


QUESTIONS = [
    "SELECT sum(a), avg(a), min(a), max(a), count(a), count(DISTINCT a), variance(a), stddev_pop(a), bit_and(a), bit_or(a) FROM {}",
    "SELECT b, count(*), sum(a), avg(a), max(a) FROM {} GROUP BY b ORDER BY b LIMIT 500",
    "SELECT int2, sum(a), min(a), avg(a + 0) FROM {} GROUP BY int2 ORDER BY int2",
    "SELECT a, b, g FROM {} ORDER BY a DESC, b, g LIMIT 700",
    "SELECT count(*), sum(g) FROM {} WHERE a = 255", "SELECT count(*), sum(g) FROM {} WHERE a <> 255 AND b < 9223372036854775808",
    "SELECT count(*), sum(g) FROM {} WHERE a >= 18446744073709551613 AND int8 < a", "SELECT count(*), sum(g) FROM {} WHERE a < -1", "SELECT count(*), sum(g) FROM {} WHERE a > 32766.5 AND a < 1e30",
    "SELECT count(*), sum(g) FROM {} WHERE a IN (0, 255, 65535, 18446744073709551615)", "SELECT count(*), sum(g) FROM {} WHERE a = ANY ('{{0,255,18446744073709551615}}')",
    "SELECT count(*) FROM {0} l JOIN {0} r ON l.a = r.b WHERE l.g <= 3000 AND r.g <= 3000", "SELECT count(*), sum(l.g) FROM {0} l JOIN {0} r ON l.a = r.int8 WHERE l.g <= 3000 AND r.g <= 3000",
    "SELECT count(*) FROM {0} l WHERE NOT EXISTS (SELECT FROM {0} r WHERE r.b = l.a)", "SELECT count(*) FROM {0} l WHERE a IN (SELECT int4 FROM {0} r)",
    "SELECT sum(a & 255::engine.uint8), sum(a / 3), sum(a % 1000), sum(CASE WHEN a < 18446744073709551000 THEN a + 7 ELSE a END), max(a::float8 / 2), sum(a::numeric) FROM {}",
    "SELECT DISTINCT a FROM {} ORDER BY a LIMIT 300", "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY a), percentile_disc(0.3) WITHIN GROUP (ORDER BY a), mode() WITHIN GROUP (ORDER BY a) FROM {}",
    "SELECT g, sum(a) OVER w, lag(a) OVER w, max(b) OVER w, first_value(a) OVER w FROM {} WHERE g % 50 = 0 WINDOW w AS (PARTITION BY int2 ORDER BY g ROWS 4 PRECEDING) ORDER BY g LIMIT 900",
    "SELECT g, count(*) OVER (ORDER BY a RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) FROM {} WHERE g % 50 = 0 ORDER BY g LIMIT 300",
    "SELECT GREATEST(a, b), LEAST(a, '7'), coalesce(NULLIF(a, b), '1'), a IS DISTINCT FROM b, a BETWEEN 5 AND b FROM {} ORDER BY g LIMIT 500", "SELECT a FROM {0} WHERE g < 1000 UNION SELECT int4::engine.uint8 FROM {0} WHERE g < 1000 AND int4 >= 0 ORDER BY a",
    "SELECT max(a::text), min(a::text || 'x'), string_agg(a::text, ',' ORDER BY g) FILTER (WHERE g < 50) FROM {}", "SELECT array_agg(a ORDER BY g) FROM {} WHERE g < 50",
    "SELECT (SELECT max(r.a) FROM {0} r WHERE r.int2 = l.int2) - min(l.a) FROM {0} l GROUP BY int2 ORDER BY int2 LIMIT 20",
]


def columnar(server):
    """Against heap, which has the same rows with some NULLs among them."""
    source = "SELECT g, CASE WHEN g % 17 <> 0 THEN a END AS a, b, int2, int4, int8 FROM pairs WHERE g <= 40000"
    server.sql(f"CREATE TABLE in_heap AS {source}; ANALYZE in_heap", DATABASE)
    tables = {"in_columns": "colcompress WITH (orderby = 'a', stripe_row_limit = 20000)", "in_rows": "rowcompress WITH (batch_size = 20000)"}
    for table, method in tables.items():
        server.sql(f"SET colonnade.stripe_threshold_rows = 1; CREATE TABLE {table} USING {method} AS {source} ORDER BY g; ANALYZE {table}; CREATE INDEX ON {table} (a)", DATABASE)
        for note, settings in (("vectors", "SET colonnade.vectorised_min_rows = 0;"), ("the server's executor", "SET colonnade.enable_vectorised = off;"),
                               ("an index", "SET enable_seqscan = off; SET colonnade.enable_scan = off;")):
            wrong = []
            for question in QUESTIONS:
                wanted, got = server.sql(question.format("in_heap"), DATABASE), server.sql(settings + question.format(table), DATABASE)
                if wanted != got:
                    wrong.append(f"{question}: {got[:300]} instead of {wanted[:300]}")
            check(f"{table} with {note} gives heap's answers", not wrong, "\n".join(wrong))
        plan = server.sql(f"SET colonnade.vectorised_min_rows = 0; EXPLAIN (COSTS OFF) {QUESTIONS[1].format(table)}", DATABASE)
        check(f"{table} is grouped in vectors", "Colonnade Vectorised" in plan and "Not Vectorised" not in plan, plan)
        pruned = server.sql(f"SET colonnade.vectorised_min_rows = 0; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM {table} WHERE a > 18446744073709551600", DATABASE)
        if table == "in_columns":
            check(f"{table} leaves out stripes by what is asked", "pruned 1" in pruned, pruned)
        server.sql(f"UPDATE {table} SET a = a + 1 WHERE a < 1000; DELETE FROM {table} WHERE a = 255; INSERT INTO {table} (g, a) VALUES (-1, {MOST}), (-2, 0); CALL engine.colcompress_repack('{table}')", DATABASE)
        server.sql(f"SELECT engine.colcompress_merge('{table}')", DATABASE)
        faults = server.sql(f"SELECT kind, detail FROM engine.verify('{table}') WHERE severity = 'error'", DATABASE)
        check(f"{table} is whole after changes", faults == "", faults)
    server.sql("UPDATE in_heap SET a = a + 1 WHERE a < 1000; DELETE FROM in_heap WHERE a = 255; INSERT INTO in_heap (g, a) VALUES (-1, 18446744073709551615), (-2, 0)", DATABASE)
    for table in tables:
        digest = "SELECT count(*), md5(string_agg(t::text, ',' ORDER BY g)) FROM {} t"
        check(f"{table} has heap's rows after changes", server.sql(digest.format(table), DATABASE) == server.sql(digest.format("in_heap"), DATABASE))
    server.sql("CREATE TABLE parted (a engine.uint8, k int) PARTITION BY HASH (a); CREATE TABLE part_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING colcompress; "
               "CREATE TABLE part_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING colcompress; INSERT INTO parted SELECT a, g FROM pairs WHERE g <= 20000", DATABASE)
    told = server.sql("SELECT count(*), sum(a) FROM parted EXCEPT SELECT count(*), sum(a) FROM pairs WHERE g <= 20000", DATABASE)
    check("partitions by hash", told == "" and int(server.sql("SELECT count(*) FROM part_0", DATABASE)) > 0, told)
    file = server.base / "pairs.bin"
    server.sql(f"COPY (SELECT a, b FROM in_columns WHERE g > 0) TO '{file}' (FORMAT binary); CREATE TABLE copied (a engine.uint8, b engine.uint8) USING colcompress; COPY copied FROM '{file}' (FORMAT binary)", DATABASE)
    told = server.sql("SELECT count(*), sum(a), sum(b) FROM copied EXCEPT SELECT count(*), sum(a), sum(b) FROM in_columns WHERE g > 0", DATABASE)
    check("COPY in binary form, there and back", told == "", told)


def main():
    with checks.server({"fsync": "off", "autovacuum": "off", "colonnade.packing": "off", "max_wal_size": "4GB", "work_mem": "64MB"}) as server:
        server.create_database(DATABASE)
        server.sql(PAIRS, DATABASE)
        for part in (operators, bits, casts, aggregates, indexes, columnar):
            with checks.part(part.__name__):
                part(server)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
