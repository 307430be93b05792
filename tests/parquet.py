"""Parquet files beside other systems: what COPY writes is read by pyarrow, DuckDB and polars with equal
values, and what they write of it comes back equal by COPY FROM and by foreign tables. Spoiled files are
errors, never the end of a session. Foreign tables over folders and patterns. Row groups and pages that
filters and page indexes leave out; checksums of pages.

The others run in target/venv, each in a process of its own.
"""

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.checks import Checks
from harness.place import TARGET
from harness.session import SqlError
from harness.spoil import spoiled

SEED = int(os.environ.get("COLONNADE_SEED") or 20261128)
FLIPS = 1000 if os.environ.get("COLONNADE_LONG") == "1" else 60
CHECKS = Checks("parquet", SEED)
SETUP = [
    "CREATE SERVER pq FOREIGN DATA WRAPPER parquet_fdw",
    """CREATE TABLE s (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n9 numeric(9,2), n18 numeric(18,4), n38 numeric(38,10), b bool, d date, ti time, ts timestamp, tz timestamptz,
        t text, bytes bytea, j jsonb)""",
    r"""INSERT INTO s SELECT g % 30000, -g, g * 10000000000, g / 3.0, g / 7.0, g / 8.0, g * 1.5, g * 1000000000000 + 0.5, g % 3 = 0, date '2000-01-01' - g, time '00:00' + g * interval '1001 us',
        timestamp '1969-12-31 23:59' + g * interval '1 min', timestamptz '1970-01-01 00:00+00' - g * interval '1 hour', 'text ' || g % 100 || E' \t\n\\ ü€😀', decode(md5(g::text), 'hex'), jsonb_build_object('g', g)
        FROM generate_series(1, 20000) g""",
    "INSERT INTO s SELECT FROM generate_series(1, 3)",
    "INSERT INTO s (i2, f8, f4, t, bytes, n38) VALUES (-32768, 'NaN', '-Infinity', '', '', -0.0000000001)",
    "CREATE TABLE r (LIKE s)",
    "CREATE TABLE plain (LIKE s)",
    "ALTER TABLE plain DROP j",
]
# The rows of a foreign table over the file as those of `s`.
FOREIGN = "SELECT i2::int2, i4::int4, i8, f4::float4, f8, n9, n18, n38, b, d, ti, ts::timestamp, tz::timestamptz, t, bytes, j::jsonb FROM f"
DIFFERENCE = "SELECT count(*) FROM ((TABLE s EXCEPT ALL TABLE r) UNION ALL (TABLE r EXCEPT ALL TABLE s)) x"
# Each reads the file `a` and writes `b`.
OTHERS = {
    "pyarrow": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b)",
    "pyarrow, old pages": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b, version='1.0', data_page_version='1.0', use_dictionary=False, compression='gzip', row_group_size=3000)",
    "pyarrow, new pages": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b, data_page_version='2.0', compression='zstd', data_page_size=5000, write_page_index=True)",
    "pyarrow, delta encodings": "import pyarrow.parquet as p; t = p.read_table(a); p.write_table(t, b, use_dictionary=False, column_encoding={'i4': 'DELTA_BINARY_PACKED', 'i8': 'DELTA_BINARY_PACKED', 't': 'DELTA_BYTE_ARRAY', 'bytes': 'DELTA_LENGTH_BYTE_ARRAY', 'f8': 'BYTE_STREAM_SPLIT'})",
    "pyarrow, int96": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b, use_deprecated_int96_timestamps=True, compression='brotli')",
    "duckdb": "import duckdb; duckdb.sql(f\"SET timezone = 'UTC'; COPY (SELECT * FROM '{a}') TO '{b}' (FORMAT parquet)\")",
    "duckdb, v2": "import duckdb; duckdb.sql(f\"SET timezone = 'UTC'; COPY (SELECT * FROM '{a}') TO '{b}' (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION lz4_raw, ROW_GROUP_SIZE 5000)\")",
    # It takes JSON for bytes, also DuckDB's.
    "polars": "import polars; t = polars.read_parquet(a); t.with_columns(t['j'].cast(polars.String)).write_parquet(b)",
}


def other(code, a, b):
    done = subprocess.run([TARGET / "venv/bin/python", "-c", f"a, b = {str(a)!r}, {str(b)!r}\n{code}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
    return done.stdout


def foreign_table(session, path):
    """Makes `f`, which reads a file with all of its columns."""
    columns = session.value(f"SELECT string_agg(format('%I %s', column_name, data_type), ', ') FROM engine.parquet_schema('{path}')")
    session.run("DROP FOREIGN TABLE IF EXISTS f")
    session.run(f"CREATE FOREIGN TABLE f ({columns}) SERVER pq OPTIONS (filename '{path}')")


def others(session, place):
    for name, code in OTHERS.items():
        with CHECKS.part(f"there and back by {name}"):
            for compression in ("zstd", "snappy") if name in ("pyarrow", "duckdb", "polars") else ("uncompressed",):
                session.run(f"COPY s TO '{place}/a.parquet' (FORMAT parquet, compression '{compression}', row_group_size 7000)")
                other(code, place / "a.parquet", place / "b.parquet")
                session.run("TRUNCATE r")
                session.run(f"COPY r FROM '{place}/b.parquet' (FORMAT parquet)")
                assert session.value("SELECT count(*) FROM r") == "20004"
                differs = int(session.value(DIFFERENCE))
                assert differs == 0, f"{differs} rows differ: {session.value('SELECT string_agg(x::text, chr(10)) FROM (TABLE r EXCEPT ALL TABLE s LIMIT 2) x')}"
                # Without the column that has to be read as text, no text is made of the others.
                session.run(f"TRUNCATE plain; COPY plain FROM '{place}/b.parquet' (FORMAT parquet, match_by 'name')")
                own = "SELECT i2, i4, i8, f4, f8, n9, n18, n38, b, d, ti, ts, tz, t, bytes FROM s"
                differs = int(session.value(f"SELECT count(*) FROM (({own} EXCEPT ALL TABLE plain) UNION ALL (TABLE plain EXCEPT ALL {own})) x"))
                assert differs == 0, f"{differs} rows without text in between differ"
                foreign_table(session, place / "b.parquet")
                differs = int(session.value(f"SELECT count(*) FROM (({FOREIGN} EXCEPT ALL TABLE s) UNION ALL (TABLE s EXCEPT ALL {FOREIGN})) x"))
                assert differs == 0, f"{differs} rows of a foreign table differ"
                for condition in ("i4 < -19000", "t = 'none'", "i8 IS NULL", "f8 > 2857", "d < '1950-01-01' OR n9 = 7"):
                    counts = [session.value(f"SELECT count(*) || ' ' || coalesce(sum(i4), 0) FROM {table} WHERE {condition}") for table in ("s", "f")]
                    assert counts[0] == counts[1], f"{condition}: {counts}"


def odd_values(session, place):
    """What files may have and tables not: parts of microseconds, values past all, unsigned integers."""
    with CHECKS.part("values that other systems have"):
        other("import pyarrow as pa, pyarrow.parquet as p; n = [0, 1, 999, 1000, 1001, -1, None] * 3000; p.write_table(pa.table({"
              "'ns': pa.array(n, pa.timestamp('ns')), 'u8': pa.array([0, 255, 7, None] * 5250, pa.uint8()), 'u32': pa.array([0, 4294967295, 7] * 7000, pa.uint32()), "
              "'h': pa.array([-0.0, 0.0, float('nan'), 1.5] * 5250, pa.float16()), 'f': pa.array([-0.0, 0.0, float('nan'), 1.5] * 5250, pa.float32())}), b, row_group_size=9000)", place, place / "odd.parquet")
        foreign_table(session, place / "odd.parquet")
        # Entries of a dictionary that become one value are one group.
        assert session.value("SELECT string_agg(x::text, ' ') FROM (SELECT ns, count(*) FROM f GROUP BY 1 ORDER BY 1) x") == \
            '("1969-12-31 23:59:59.999999",3000) ("1970-01-01 00:00:00",9000) ("1970-01-01 00:00:00.000001",6000) (,3000)'
        assert session.value("SELECT count(*) || ' ' || count(DISTINCT ns) FROM f WHERE ns = '1970-01-01' OR ns < '1970-01-01'") == "12000 2"
        assert session.value("SELECT string_agg(x::text, ' ') FROM (SELECT f, h, count(*) FROM f GROUP BY 1, 2 ORDER BY 1) x") in ("(-0,-0,10500) (1.5,1.5,5250) (NaN,NaN,5250)", "(0,0,10500) (1.5,1.5,5250) (NaN,NaN,5250)")
        assert session.value("SELECT sum(u8) || ' ' || max(u32) || ' ' || count(*) FROM f WHERE u32 > 2147483648 OR u8 IS NULL") != ""
        assert session.value("SELECT count(*) || ' ' || sum(u32) FROM f WHERE u32 > 2147483648") == f"7000 {7000 * 4294967295}"
        assert session.value("SELECT count(*) FROM f WHERE f > 2") == "5250", "NaN is above all others"
        assert session.value("SELECT count(*) FROM f WHERE f = 0") == "10500"
        other("import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({'d': pa.array([0, 2**31 - 1], pa.date32())}), b)", place, place / "odd.parquet")
        foreign_table(session, place / "odd.parquet")
        fails(session, "SELECT max(d) FROM f", "54000", "past those of its type", "odd.parquet")


def spoiled_files(session, place):
    with CHECKS.part("spoiled files are errors, or rows") as tell:
        chance, errors = random.Random(SEED), 0
        session.run("CREATE TABLE few AS SELECT i4, t, n18, f8, ts FROM s LIMIT 500")
        session.run("CREATE TABLE got (LIKE few)")
        session.run(f"CREATE FOREIGN TABLE spoiled (i4 int4, t text, n18 numeric(18,4), f8 float8, ts timestamp) SERVER pq OPTIONS (filename '{place}/s.parquet')")
        for compression in ("uncompressed", "zstd"):
            session.run(f"COPY few TO '{place}/f.parquet' (FORMAT parquet, compression '{compression}')")
            whole = (place / "f.parquet").read_bytes()
            for _ in range(FLIPS):
                (place / "s.parquet").write_bytes(spoiled(whole, chance))
                for statement in (f"COPY got FROM '{place}/s.parquet' (FORMAT parquet)", "SELECT count(t), sum(hashtext(spoiled::text)) FROM spoiled", "SELECT max(f8) FROM spoiled WHERE i4 > 100 AND n18 < 7"):
                    try:
                        session.run(statement)
                    except SqlError as error:
                        errors += 1
                        assert "XX000" not in str(error), error
        assert session.value("SELECT count(*) FROM few") == "500"
        tell(f"{errors} of {6 * FLIPS} were errors")


def pruned_files(session, place):
    """Bloom filters and page indexes of each writer: what they leave out, and every answer beside the heap's.
    """
    session.run("""CREATE TABLE k AS SELECT (g * 7919 % 60000 * 2)::int AS i4, (g * 104729::bigint % 60000 * 20000000000) AS i8, date '2000-01-01' + g * 7919 % 60000 * 2 AS d,
        timestamp '1969-12-31 23:59' + g * 7919 % 60000 * interval '2 min' AS ts, timestamptz '1970-01-01 00:00+00' + g * 7919 % 60000 * interval '2 s' AS tz, time '00:00' + g * 7919 % 60000 * interval '2 ms' AS ti,
        (g * 7919 % 60000 * 0.02)::numeric(9,2) AS n9, (g * 7919 % 60000 * 0.02)::numeric(18,4) AS n18, (g * 7919 % 60000 * 1e20 + 0.5)::numeric(38,10) AS n38, (g * 7919 % 60000 * 2 / 7.0)::float8 AS f8, (g * 7919 % 60000 * 2 / 7.0)::float4 AS f4,
        'text ü ' || g * 7919 % 60000 * 2 AS t, decode(md5(g::text), 'hex') AS bytes, md5(g::text)::uuid AS u, g AS sorted
        FROM generate_series(1, 60000) g""")
    session.run("INSERT INTO k (sorted, t, bytes, f4, f8, n38) VALUES (60001, '', '', '-0', 'NaN', -0.5), (60002, 'none', NULL, 'NaN', '-0', 0), (60003, NULL, '\\x00', 'Infinity', '-Infinity', NULL)")
    columns = ["i4", "i8", "d", "ts", "tz", "ti", "n9", "n18", "n38", "f8", "f4", "t", "bytes", "u"]
    # Of values that are not there there are as many.
    absent = {"i4": "i4 + 1", "i8": "i8 + 10", "d": "d + 1", "ts": "ts + interval '1 min'", "tz": "tz + interval '1 s'", "ti": "ti + interval '1 ms'", "n9": "n9 + 0.01", "n18": "n18 + 0.01", "n38": "n38 + 0.0000000001",
              "f8": "f8 + 0.001", "f4": "f4 + 0.25", "t": "t || '1'", "bytes": "bytes || '\\x00'", "u": "md5(t || '1')::uuid"}
    filters = "{c: True for c in %r}" % columns
    writers = {
        "ours": None,
        "pyarrow": f"import pyarrow.parquet as p; p.write_table(p.read_table(a), b, row_group_size=20000, write_page_index=True, write_page_checksum=True, data_page_size=20000, use_dictionary=False, bloom_filter_options={filters})",
        "pyarrow, new pages": f"import pyarrow.parquet as p; p.write_table(p.read_table(a), b, row_group_size=20000, write_page_index=True, write_page_checksum=True, data_page_version='2.0', max_rows_per_page=3000, store_decimal_as_integer=True, bloom_filter_options={filters})",
        "duckdb": "import duckdb; duckdb.sql(f\"SET timezone = 'UTC'; COPY (SELECT * FROM '{a}') TO '{b}' (FORMAT parquet, ROW_GROUP_SIZE 20480, DICTIONARY_SIZE_LIMIT 100000)\")",
        "polars": "import polars; polars.read_parquet(a).write_parquet(b, row_group_size=20000, data_page_size=30000)",
    }
    chance = random.Random(SEED)
    for name, code in writers.items():
        with CHECKS.part(f"filters and page indexes by {name}") as tell:
            session.run(f"COPY k TO '{place}/a.parquet' (FORMAT parquet, row_group_size 20000, bloom_filter_columns *)")
            path = place / ("b.parquet" if code else "a.parquet")
            if code:
                other(code, place / "a.parquet", path)
            else:
                # The text of row 30,000 is in the second row group.
                probe = "import duckdb; print(duckdb.sql(f\"SELECT list(bloom_filter_excludes ORDER BY row_group_id) FROM parquet_bloom_probe('{a}', 't', 'text ü 60000')\").fetchall()[0][0])"
                assert other(probe, path, path).strip() == "[True, False, True, True]", "DuckDB reads filters of ours"
            foreign_table(session, path)
            denied = {}
            for column in columns:
                if session.value(f"SELECT (SELECT atttypid FROM pg_attribute WHERE attrelid = 'f'::regclass AND attname = '{column}') = (SELECT atttypid FROM pg_attribute WHERE attrelid = 'k'::regclass AND attname = '{column}')") == "f":
                    assert name == "polars", f"{column} comes back as another type"
                    continue
                rows = [str(chance.randrange(1, 60000)) for _ in range(8)] + ["60001", "60002", "60003"]
                wanted = session.value(f"SELECT string_agg(quote_nullable({column}), ',') FROM k WHERE sorted IN ({','.join(rows)})").split(",")
                for value in (value for value in wanted if value != "NULL"):
                    counts = [session.value(f"SELECT count(*) || ' ' || sum(sorted) FROM {table} WHERE {column} = {value}") for table in ("k", "f")]
                    assert counts[0] == counts[1], f"{column} = {value}: {counts}"
                both = session.value(f"SELECT string_agg(count::text, ' ') FROM (SELECT count(*) FROM k JOIN (SELECT DISTINCT {column} FROM k WHERE sorted IN ({','.join(rows)})) x USING ({column}) UNION ALL SELECT count(*) FROM f JOIN (SELECT DISTINCT {column} FROM k WHERE sorted IN ({','.join(rows)})) x USING ({column})) y").split()
                assert both[0] == both[1], f"join by {column}: {both}"
                missing = session.value(f"SELECT quote_literal({absent[column]}) FROM k WHERE sorted = 30000")
                assert session.value(f"SELECT count(*) FROM f WHERE {column} = {missing}") == "0"
                denied[column] = row_groups(session, f"SELECT sum(sorted) FROM f WHERE {column} = {missing}")[1]
            # Polars writes no filters, and DuckDB none of its widest integers. Conditions on times are not
            # native.
            few = [column for column, groups in denied.items() if groups < 2 and column != "ti" and (name, column) != ("duckdb", "n38")]
            assert not few or name == "polars", f"no row groups were left out by {few}"
            tell(", ".join(f"{column} {groups}" for column, groups in denied.items()))
            for where in ("sorted = 31000", "sorted BETWEEN 25000 AND 25010", "sorted > 59990", "sorted < 5 AND t > 'a'", "sorted IN (1, 30000, 60003)", "sorted % 20000 = 7"):
                counts = [session.value(f"SELECT count(*) || ' ' || sum(i4) || ' ' || max(t) FROM {table} WHERE {where}") for table in ("k", "f")]
                assert counts[0] == counts[1], f"{where}: {counts}"


def pages_left_out(session, place):
    with CHECKS.part("pages that are left out by their index"):
        session.run(f"COPY (SELECT g AS a, md5(g::text) AS b, g % 7 AS c FROM generate_series(1, 100000) g) TO '{place}/pages.parquet' (FORMAT parquet)")
        make(session, place / "pages.parquet")
        for where, chunks in (("a = 70000", (1, 6)), ("a BETWEEN 16384 AND 16385", (2, 5)), ("a > 99999", (1, 6)), ("a < 0", (0, 0)), ("a < 20000 OR a = 90000", (3, 4)), ("c < 7", (7, 0))):
            found = chunks_of(session, f"SELECT max(b) FROM g WHERE {where}")
            assert found == chunks, f"{where}: {found}"
            assert session.value(f"SELECT count(*) || ' ' || max(b) FROM g WHERE {where}") == session.value(f"SELECT count(*) || ' ' || max(md5(a::text)) FROM (SELECT a, a % 7 AS c FROM generate_series(1, 100000) a) x WHERE {where}"), where
        read = [reads(session, f"SELECT max(b) FROM g WHERE a {condition}") for condition in ("> 0", "= 70000")]
        assert read[1] * 4 < read[0], f"bytes read: {read}"
        # Cursors that go back begin at the page that they want.
        session.run("BEGIN; DECLARE back SCROLL CURSOR FOR SELECT a, b FROM g; MOVE LAST IN back; MOVE BACKWARD 59999 IN back")
        assert session.value("FETCH BACKWARD 1 FROM back") == "40000"
        session.run("COMMIT")


def checksums(session, place):
    """A page whose checksum is wrong is an error; pages that are not read may be what they like."""
    with CHECKS.part("checksums of pages"):
        for version in ("1.0", "2.0"):
            for dictionary in (True, False):
                code = f"import pyarrow as pa, pyarrow.parquet as p; n = 50000; p.write_table(pa.table({{'a': range(n), 'b': ['text %d' % (i % 5000) for i in range(n)]}}), b, compression='none', write_page_checksum=True, write_page_index=True, data_page_version='{version}', use_dictionary={dictionary}, max_rows_per_page=5000)"
                other(code, place, place / "sums.parquet")
                make(session, place / "sums.parquet")
                total = session.value("SELECT sum(a) || ' ' || max(b) FROM g")
                assert total == "1249975000 text 999"
                whole = (place / "sums.parquet").read_bytes()
                at = whole.rindex(b"text 4321") if not dictionary else whole.index(b"text 4321")
                (place / "sums.parquet").write_bytes(whole[:at] + b"Text" + whole[at + 4:])
                fails(session, "SELECT max(b) FROM g", "XX001", "sums.parquet", "row group 1", 'Column "b"', "checksum")
                fails(session, f"COPY (SELECT 1 WHERE false) TO '{place}/none.parquet' (FORMAT parquet); CREATE TABLE IF NOT EXISTS sums (a bigint, b text); COPY sums FROM '{place}/sums.parquet' (FORMAT parquet)", "XX001", "sums.parquet", "checksum")
                assert session.value("SELECT sum(a) FROM g") == "1249975000"
                if not dictionary:
                    assert session.value("SELECT max(b) FROM g WHERE a < 100") == "text 99"


def spoiled_indexes(session, place):
    """Bytes of filters and indexes that are not what they were: rows or errors, never the end of a session.
    """
    with CHECKS.part("spoiled filters and indexes") as tell:
        chance, errors = random.Random(SEED + 1), 0
        session.run(f"COPY (SELECT g AS a, 'text ' || g % 50 AS b FROM generate_series(1, 40000) g) TO '{place}/whole.parquet' (FORMAT parquet, bloom_filter_columns (a, b))")
        whole = (place / "whole.parquet").read_bytes()
        # They lie between the pages and the footer.
        start = int(other("import pyarrow.parquet as p; c = p.ParquetFile(a).metadata.row_group(0).column(1); print(c.dictionary_page_offset + c.total_compressed_size)", place / "whole.parquet", place))
        end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        shutil.copy(place / "whole.parquet", place / "spoiled.parquet")
        make(session, place / "spoiled.parquet")
        for turn in range(FLIPS * 4):
            # Filters are longer than indexes.
            at = chance.randrange(start, end) if turn % 4 == 0 else chance.randrange(end - 250, end)
            bytes_of = bytearray(whole)
            for spoiled_at in range(at, min(at + chance.choice((1, 1, 8, 64)), end)):
                bytes_of[spoiled_at] = chance.choice((0, 0xff, bytes_of[spoiled_at] ^ 2, chance.randrange(256)))
            (place / "spoiled.parquet").write_bytes(bytes_of)
            for statement in ("SELECT max(b) FROM g WHERE a = 25000", "SELECT count(*), max(a) FROM g WHERE b = 'text 7' AND a > 20000", "SELECT sum(a) FROM g WHERE b = 'none'"):
                try:
                    session.run(statement)
                except SqlError as error:
                    errors += 1
                    assert "XX000" not in str(error), error
        tell(f"{errors} of {FLIPS * 12} were errors")


def make(session, name, columns=""):
    """Makes `g`, which reads what this name stands for."""
    session.run("DROP FOREIGN TABLE IF EXISTS g")
    session.run(f"CREATE FOREIGN TABLE g ({columns}) SERVER pq OPTIONS (filename '{name}')")


def fails(session, statement, *words):
    try:
        session.run(statement)
    except SqlError as error:
        assert all(word in str(error) for word in words), f"{statement}: {error}"
    else:
        raise AssertionError(f"{statement} has not failed")


def counted(session, query, figures):
    (plan,) = json.loads(session.value(f"EXPLAIN (ANALYZE, FORMAT json) {query}"))
    return tuple(map(int, re.findall(rf'"{figures}": (\d+)', json.dumps(plan))))


def row_groups(session, query):
    """How many a query has read, and left out."""
    return counted(session, query, "Row Groups (?:Read|Pruned)")


def chunks_of(session, query):
    """The same of chunks."""
    return counted(session, query, "Chunks (?:Read|Pruned)")


def reads(session, query):
    """Bytes that a query has read."""
    (found,) = counted(session, query, "Bytes Read")
    return found


def folders(session, place):
    """Lists, patterns and folders of files, and what folders called key=value say."""
    root = place / "trips"
    for month, rows in ((1, 10), (2, 20), (3, 30)):
        for year in (2025, 2026):
            folder = root / f"year={year}" / f"month={month}" / "city=K%C3%B6ln"
            folder.mkdir(parents=True)
            folder.chmod(0o777)
            session.run(f"COPY (SELECT g AS id, 'note ' || g AS note, {year}{month} AS yyyym FROM generate_series(1, {rows}) g) TO '{folder}/a.parquet' (FORMAT parquet)")
    empty = root / "year=__HIVE_DEFAULT_PARTITION__" / "month=4" / "city=x"
    empty.mkdir(parents=True)
    shutil.copy(root / "year=2025/month=1/city=K%C3%B6ln/a.parquet", empty / "b.parquet")
    sums = "SELECT count(*) || ' ' || count(DISTINCT yyyym) || ' ' || sum(id) FROM {}"
    with CHECKS.part("a folder, patterns and lists of files"):
        for name, expected in ((root, "130 6 1515"), (f"{root}/year=2025/*/*/*.parquet", "60 3 730"), (f"{root}/**/b.parquet", "10 1 55"), (f"{{{root}/year=2026/month=1,{root}/year=2026/month=3/city=*/a.parquet}}", "40 2 520")):
            make(session, name)
            found = session.value(sums.format("g"))
            assert found == expected, f"{name}: {found}"
        session.run("DROP FOREIGN TABLE g")
        for name in (f"{root}/*.none", f"{place}/none/"):
            fails(session, f"CREATE FOREIGN TABLE g () SERVER pq OPTIONS (filename '{name}')", "58P01")
        make(session, f"{{{root}/year=2025,{root}/none.parquet}}")
        fails(session, "SELECT count(*) FROM g", "58P01", "none.parquet")
        for name in ("{}", "{a,b}", "{/a,b", f"{root}/[a"):
            fails(session, f"CREATE FOREIGN TABLE g () SERVER pq OPTIONS (filename '{name}')", "ERROR")
    with CHECKS.part("folders say what columns have, and leave files out"):
        make(session, root)
        columns = session.value("SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'g'::regclass AND attnum > 0")
        assert columns == "id integer, note text, yyyym integer, year bigint, month bigint, city text", columns
        wrong = session.value("SELECT count(*) FROM g WHERE (year::text || month)::int IS DISTINCT FROM yyyym AND year IS NOT NULL")
        assert wrong == "0", wrong
        assert session.value("SELECT string_agg(x::text, ' ') FROM (SELECT year, min(month), max(city), count(*) FROM g GROUP BY 1 ORDER BY 1) x") == "(2025,1,Köln,60) (2026,1,Köln,60) (,4,x,10)"
        for where, groups in (("year = 2026", (3, 4)), ("year IS NULL", (1, 6)), ("month < 2 AND id > 8", (2, 5)), ("city = 'y'", (0, 7)), ("year = 2025 OR month = 4", (4, 3)), ("year + month = 2028", (7, 0))):
            assert row_groups(session, f"SELECT sum(id) FROM g WHERE {where}") == groups, f"{where}: {row_groups(session, f'SELECT sum(id) FROM g WHERE {where}')}"
        # A join's keys leave files out as well.
        session.run("CREATE TABLE wanted AS SELECT 2026 AS year, 3 AS month")
        assert session.value("SELECT count(*) || ' ' || sum(id) FROM g JOIN wanted USING (year, month)") == "30 465"
        assert session.value("SELECT min(year) || ' ' || max(month) FROM g") == "2025 4"
        session.run("ANALYZE g")
        assert session.value("SELECT n_distinct FROM pg_stats WHERE tablename = 'g' AND attname = 'year'") == "2"
        make(session, root, "id bigint, year text")
        assert session.value("SELECT count(*) FROM g WHERE year = '2025'") == "60", "a key of another type"
        session.run("ALTER FOREIGN TABLE g ADD month date")
        fails(session, "SELECT max(month) FROM g", "22007")
        session.run("ALTER FOREIGN TABLE g DROP month, ADD other int")
        fails(session, "SELECT count(*) FROM g", "0A000", 'no column "other"')
    with CHECKS.part("files that come, go and change between queries"):
        make(session, root)
        session.run("BEGIN; DECLARE c CURSOR FOR SELECT id, year FROM g; FETCH 1 FROM c")
        shutil.copy(empty / "b.parquet", empty / "new.parquet")
        (empty / "b.parquet").unlink()
        shutil.rmtree(root / "year=2025" / "month=1")
        assert session.value("SELECT count(*) FROM g") == "120"
        session.run("COMMIT")
        os.replace(root / "year=2026" / "month=3" / "city=K%C3%B6ln" / "a.parquet", empty / "new.parquet")
        assert session.value("SELECT count(*) || ' ' || count(year) FROM g") == "110 80"
    with CHECKS.part("more files than a process has open"):
        many = place / "many"
        many.mkdir()
        for number in range(400):
            shutil.copy(empty / "new.parquet", many / f"{number:03}.parquet")
        make(session, many)
        assert session.value("SELECT count(*) || ' ' || sum(id) || ' ' || max(note) FROM g WHERE id % 2 = 0") == f"{400 * 15} {400 * 240} note 8"
        pid = session.value("SELECT pg_backend_pid()")
        open_files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert not any("/many/" in name for name in open_files), open_files
        session.run("BEGIN; SELECT sum(id) FROM g")
        open_files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert 0 < sum("/many/" in name for name in open_files) <= 16, open_files
        session.run("COMMIT")
        # An error says which file it is about.
        bytes_of = bytearray((many / "123.parquet").read_bytes())
        bytes_of[4:60] = b"\xff" * 56
        (many / "123.parquet").write_bytes(bytes_of)
        fails(session, "SELECT sum(id), max(note) FROM g", "XX001", "123.parquet", "row group 1")
    with CHECKS.part("IMPORT FOREIGN SCHEMA"):
        session.run(f"COPY (SELECT 1 AS \"A b\", date '2026-01-01' AS d) TO '{place}/Odd name.parquet' (FORMAT parquet)")
        session.run(f'CREATE SCHEMA files; IMPORT FOREIGN SCHEMA "{place}" FROM SERVER pq INTO files')
        names = session.value("SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'files'::regnamespace")
        assert "Odd name" in names and "trips" in names and "many" in names, names
        assert session.value('SELECT "A b" || d::text FROM files."Odd name"') == "12026-01-01"
        assert session.value("SELECT count(*) FROM files.trips WHERE year = 2026") == "30"
        session.run(f'DROP SCHEMA files CASCADE; CREATE SCHEMA files; IMPORT FOREIGN SCHEMA "{place}" LIMIT TO (trips) FROM SERVER pq INTO files')
        assert session.value("SELECT string_agg(relname, ', ') FROM pg_class WHERE relnamespace = 'files'::regnamespace") == "trips"
        session.run("DROP SCHEMA files CASCADE")
        fails(session, 'IMPORT FOREIGN SCHEMA "/none" FROM SERVER pq INTO public', "HV00Q")
        fails(session, "IMPORT FOREIGN SCHEMA none FROM SERVER pq INTO public", "42602")
        session.run(f"CREATE FOREIGN TABLE IF NOT EXISTS g () SERVER pq OPTIONS (filename '{place}/none')")
        (place / "again").mkdir()
        shutil.copy(place / "many" / "001.parquet", place / "again" / "trips.parquet")
        (place / "again" / "trips").mkdir()
        shutil.copy(place / "many" / "001.parquet", place / "again" / "trips" / "a.parquet")
        session.run(f'CREATE SCHEMA files; IMPORT FOREIGN SCHEMA "{place}/again" FROM SERVER pq INTO files')
        assert session.value("SELECT count(*) FROM files.trips") == "30"
        session.run("DROP SCHEMA files CASCADE")
        other(f"import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({{'k': [1, 2], 'x' * 70: [3, 4]}}), b)", place, place / "long.parquet")
        make(session, place / "long.parquet")
        assert session.value("SELECT sum(k) FROM g") == "3"
        if int(session.value("SHOW server_version_num")) >= 180000:
            session.run("ALTER FOREIGN TABLE g ADD twice bigint GENERATED ALWAYS AS (k * 2)")
            assert session.value("SELECT sum(twice) || ' ' || sum(k) FROM g WHERE twice > 2") == "4 2"
        session.run("CREATE ROLE nobody; GRANT USAGE ON FOREIGN SERVER pq TO nobody; SET ROLE nobody")
        fails(session, f'IMPORT FOREIGN SCHEMA "{place}" FROM SERVER pq INTO public', "42501")
        fails(session, f"CREATE FOREIGN TABLE g () SERVER pq OPTIONS (filename '{root}')", "42501")
        session.run("RESET ROLE; DROP OWNED BY nobody; DROP ROLE nobody")


def united(session, place):
    """Columns that only some files have (union_by_name)."""
    root = place / "united"
    for number, query in enumerate((
        "SELECT g AS a, 'x' || g AS b FROM generate_series(1, 10) g",
        "SELECT g::bigint * 10000000000 AS a, date '2026-01-01' + g AS d FROM generate_series(1, 20) g",
        "SELECT true AS e, g::smallint AS a, CASE WHEN g > 3 THEN 'y' END AS b FROM generate_series(1, 5) g",
    )):
        folder = root / (f"k={number}" if number else "none")
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        session.run(f"COPY ({query}) TO '{folder}/{number}.parquet' (FORMAT parquet)")
    heap = "SELECT a, b, d, e, k FROM (SELECT g::bigint a, 'x' || g b, NULL::date d, NULL::bool e, NULL::bigint k FROM generate_series(1, 10) g UNION ALL " \
        "SELECT g::bigint * 10000000000, NULL, date '2026-01-01' + g, NULL, 1 FROM generate_series(1, 20) g UNION ALL SELECT g, CASE WHEN g > 3 THEN 'y' END, NULL, true, 2 FROM generate_series(1, 5) g) x"
    with CHECKS.part("union_by_name: columns of all files, in the wider types"):
        make(session, root)
        columns = "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'g'::regclass AND attnum > 0"
        assert session.value(columns) == "a bigint, d date", session.value(columns)
        session.run(f"DROP FOREIGN TABLE g; CREATE FOREIGN TABLE g () SERVER pq OPTIONS (filename '{{{root}/none,{root}/k=1,{root}/k=2}}', union_by_name 'true')")
        assert session.value(columns) == "a bigint, b text, d date, e boolean, k bigint", session.value(columns)
        session.run(f"DROP TABLE IF EXISTS h; CREATE TABLE h AS {heap}; CREATE TABLE other_rows AS SELECT date '2026-01-03' d, 'x3' b")
        for query in (
            "SELECT * FROM {} ORDER BY 1, 2, 3", "SELECT count(*), count(a), count(b), count(d), count(e), count(k) FROM {}", "SELECT count(d) FROM {}", "SELECT min(d), max(b), bool_and(e) FROM {}",
            "SELECT * FROM {} WHERE d IS NULL ORDER BY 1, 2", "SELECT count(*) FROM {} WHERE d IS NOT NULL", "SELECT count(*) FROM {} WHERE b = 'y' OR d = '2026-01-05'", "SELECT count(*) FROM {} WHERE NOT (b = 'y')",
            "SELECT d, count(*), sum(a) FROM {} GROUP BY d ORDER BY d", "SELECT t.b, d, a FROM {} t JOIN other_rows USING (d)", "SELECT count(*) FROM {} t LEFT JOIN other_rows o USING (b) WHERE o.d IS NULL", "SELECT coalesce(b, d::text, e::text) FROM {} ORDER BY 1",
            "SELECT a FROM {} WHERE (b, d) IS NOT DISTINCT FROM (NULL, NULL) ORDER BY 1", "SELECT count(*) FROM {} WHERE e IS UNKNOWN", "SELECT a, row_number() OVER (ORDER BY d NULLS FIRST, a) FROM {} ORDER BY 1, 2",
        ):
            for setting in ("on", "off"):
                session.run(f"SET colonnade.enable_vectorised = {setting}")
                query_of = [session.value(f"SELECT string_agg(r::text, ';') FROM ({query.format(table)}) r") for table in ("g", "h")]
                assert query_of[0] == query_of[1], f"{query}, {setting}: {query_of}"
        session.run("RESET colonnade.enable_vectorised; ANALYZE g; ANALYZE h")
        stats = [session.value(f"SELECT string_agg(attname || null_frac, ' ' ORDER BY attname) FROM pg_stats WHERE tablename = '{table}'") for table in ("g", "h")]
        assert stats[0] == stats[1], stats
        for where, groups in (("d IS NOT NULL", (1, 2)), ("b = 'y'", (1, 2)), ("e", (1, 2)), ("d IS NULL AND a > 3", (2, 1))):
            assert row_groups(session, f"SELECT sum(a) FROM g WHERE {where}") == groups, f"{where}: {row_groups(session, f'SELECT sum(a) FROM g WHERE {where}')}"
    with CHECKS.part("union_by_name: without it, and columns of no file"):
        session.run("ALTER FOREIGN TABLE g OPTIONS (SET union_by_name 'off')")
        fails(session, "SELECT count(*) FROM g", "0A000", 'it has no column "b"', "union_by_name")
        session.run("ALTER FOREIGN TABLE g OPTIONS (SET union_by_name 'on'); ALTER FOREIGN TABLE g ADD typo int")
        for statement in ("SELECT count(*) FROM g", "SELECT a FROM g", "ANALYZE g"):
            fails(session, statement, "0A000", 'no column "typo", nor has any other file')
        session.run("ALTER FOREIGN TABLE g DROP typo, ADD l json")
        other("import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({'l': [[1, 2], None]}), b)", place, root / "none/z.parquet")
        assert session.value("SELECT count(*) || ' ' || count(l) || ' ' || min(l::text) || ' ' || count(a) FROM g") == "37 1 [1,2] 35"
        fails(session, "ALTER FOREIGN TABLE g OPTIONS (SET union_by_name 'perhaps')", "22023", "union_by_name")
    with CHECKS.part("union_by_name: a struct as one column"):
        root.chmod(0o777)
        session.run(f"CREATE TYPE united AS (a int, b text); COPY (SELECT 1::bigint AS n, ROW(7, 'x')::united AS s) TO '{root}/s1.parquet' (FORMAT parquet); COPY (SELECT 2::bigint AS n) TO '{root}/s2.parquet' (FORMAT parquet)")
        session.run(f"CREATE FOREIGN TABLE united_structs (n int8, s json) SERVER pq OPTIONS (filename '{{{root}/s1.parquet,{root}/s2.parquet}}', union_by_name 'true')")
        assert session.value("SELECT string_agg(n || coalesce(s->>'b', '-'), ' ' ORDER BY n) FROM united_structs") == "1x 2-"
        session.run("DROP FOREIGN TABLE united_structs")
        for name in ("s1", "s2"):
            (root / f"{name}.parquet").unlink()
    with CHECKS.part("union_by_name: types that no column holds"):
        session.run(f"COPY (SELECT 'text' AS a) TO '{root}/k=2/other.parquet' (FORMAT parquet)")
        fails(session, f"CREATE FOREIGN TABLE u () SERVER pq OPTIONS (filename '{root}', union_by_name 'true')", "42804", "different types", "/other.parquet", "text in", "bigint in")
        other("import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({'a': pa.array([None], pa.decimal256(50, 2)), 'z': [1]}), b)", place, root / "k=2/other.parquet")
        fails(session, f"CREATE FOREIGN TABLE u () SERVER pq OPTIONS (filename '{root}', union_by_name 'true')", "42804", "different types", "/other.parquet", "not read in")


def footer_alone(session, place):
    """A footer that names more bytes than its file has: nothing is asked of memory for them."""
    with CHECKS.part("a footer names bytes that are not there"):
        session.run(f"COPY (SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 100000) g) TO '{place}/whole.parquet' (FORMAT parquet)")
        whole = (place / "whole.parquet").read_bytes()
        footer = int.from_bytes(whole[-8:-4], "little") + 8
        (place / "footer.parquet").write_bytes(whole[:4] + whole[-footer:])
        make(session, place / "footer.parquet")
        assert session.value("SELECT count(*) FROM g") == "100000", "the footer knows how many rows there are"
        fails(session, "SELECT max(b) FROM g WHERE a > 5", "XX001", "footer.parquet", "it ends before byte")


def deep_schema(session, place):
    """A schema that nests deeper than a stack is long, also where the number of children hides that."""
    def varint(number):
        return bytes([number & 0x7F | 0x80, *varint(number >> 7)]) if number > 0x7F else bytes([number])
    with CHECKS.part("a schema that nests a million deep"):
        path = place / "deep.parquet"
        # One child, the same as a number of which 32 bits are left, and as one past 64.
        for children in (b"\x02", varint(2 * 0xFFFFFFFF + 1), varint(2 << 32 | 2)):
            element = b"\x35\x02\x18\x01a\x15" + children + b"\x00"
            footer = b"\x15\x02\x19\xfc" + varint(1_000_002) + b"\x48\x01a\x15" + children + b"\x00" + element * 1_000_000
            footer += b"\x15\x0c\x25\x02\x18\x01a\x00\x16\x00\x19\x0c\x00"
            path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
            for statement in (f"SELECT * FROM engine.parquet_schema('{path}')", f"COPY few FROM '{path}' (FORMAT parquet)", f"CREATE FOREIGN TABLE deep () SERVER pq OPTIONS (filename '{path}')"):
                fails(session, statement, "deep.parquet")
        assert session.value("SELECT 1") == "1", "the server is up"


def latin1(server, place):
    """A database in LATIN1: names and texts are UTF-8 in files, and LATIN1 again where they come back."""
    with CHECKS.part("a database in LATIN1"):
        server.sql("CREATE DATABASE latin1 TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
        session = server.session("latin1")
        for statement in ("SET client_encoding = 'UTF8'", "CREATE EXTENSION colonnade", 'CREATE TABLE l (größe int, wörter text, ß int[])', "INSERT INTO l VALUES (1, 'süß', '{1}'), (2, 'é', NULL)"):
            session.run(statement)
        session.run(f"COPY l TO '{place}/größe.parquet' (FORMAT parquet)")
        wanted = "größe integer, wörter text, ß json"
        assert session.value(f"SELECT string_agg(column_name || ' ' || data_type, ', ') FROM engine.parquet_schema('{place}/größe.parquet')") == wanted
        session.run("CREATE TABLE back (LIKE l)")
        session.run(f"COPY back FROM '{place}/größe.parquet' (FORMAT parquet, match_by name)")
        assert session.value("SELECT count(*) FROM (TABLE l INTERSECT ALL TABLE back) x") == "2"
        session.run("CREATE SERVER pq FOREIGN DATA WRAPPER parquet_fdw")
        session.run(f"CREATE FOREIGN TABLE f (größe int) SERVER pq OPTIONS (filename '{place}/größe.parquet')")
        assert session.value("SELECT sum(größe) FROM f") == "3"
        session.run("ALTER FOREIGN TABLE f ADD wörter text")
        try:
            raise AssertionError(session.value("SELECT max(größe) FROM f"))
        except SqlError as error:
            assert "0A000" in str(error), error
        session.close()


def main():
    with CHECKS.server() as server, tempfile.TemporaryDirectory(prefix="colonnade-parquet-") as folder:
        os.chmod(folder, 0o777)
        server.create_database("files")
        session = server.session("files")
        for statement in SETUP:
            session.run(statement)
        others(session, Path(folder))
        odd_values(session, Path(folder))
        spoiled_files(session, Path(folder))
        pruned_files(session, Path(folder))
        pages_left_out(session, Path(folder))
        checksums(session, Path(folder))
        spoiled_indexes(session, Path(folder))
        footer_alone(session, Path(folder))
        deep_schema(session, Path(folder))
        (Path(folder) / "folders").mkdir()
        (Path(folder) / "folders").chmod(0o777)
        folders(session, Path(folder) / "folders")
        united(session, Path(folder) / "folders")
        session.close()
        latin1(server, Path(folder))
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
