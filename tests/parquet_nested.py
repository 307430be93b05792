"""Lists, maps and structs of Parquet files that pyarrow, DuckDB and polars wrote, by COPY FROM: as jsonb, as
arrays and as composite types, each beside what the writer says of them. What COPY TO writes of them is read
by these systems, and comes back equal. Files of older layouts. Spoiled files, and files that claim more than
they have, are errors, never the end of a session.

The writers run in target/venv, each in a process of its own.
"""

import json
import os
import random
import re
import subprocess
import tempfile
from pathlib import Path

from harness.checks import Checks
from harness.place import TARGET
from harness.session import SqlError
from harness.spoil import spoiled

SEED = int(os.environ.get("COLONNADE_SEED") or 20261129)
FLIPS = 1000 if os.environ.get("COLONNADE_LONG") == "1" else 150
CHECKS = Checks("parquet_nested", SEED)
# Makes the table `t` of `rows` rows with parts missing at every level, and what PostgreSQL is to say of each
# row.
TABLE = r"""
import datetime, decimal, json, random
import pyarrow as pa, pyarrow.parquet as p
chance = random.Random({seed})
def some(make, missing=0.2):
    return None if chance.random() < missing else make()
def many(make, most=4, missing=0.15):
    return some(lambda: [some(make) for _ in range(chance.choice([0, 1, most]))], missing)
def word():
    return chance.choice(['', 'NULL', 'null', 'a', 'x "y" \\ z', '{{}}', "it's", ',', ' ', 'tab\t\n', '\u00fc\U0001f600', '\x01\x1f'])
def day():
    return datetime.date(2000, 1, 1) + datetime.timedelta(chance.randrange(-9000, 9000))
def moment():
    return datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(0, chance.randrange(10**9), chance.choice([0, 500000, 1]))
def real():
    return chance.choice([0.0, -1.5, 1e300, 1/3, float(chance.randrange(100))])
def part():
    return dict(d=some(day), n=some(lambda: decimal.Decimal(chance.randrange(-10**6, 10**6)) / 100), w=some(word))
columns = dict(
    id=pa.int32(), i=pa.list_(pa.int32()), w=pa.list_(pa.string()), f=pa.list_(pa.float64()), m=pa.map_(pa.string(), pa.int64()),
    s=pa.struct([('a', pa.int32()), ('l', pa.list_(pa.string())), ('in', pa.struct([('b', pa.bool_()), ('t', pa.timestamp('us', 'UTC'))]))]),
    d=pa.list_(pa.struct([('d', pa.date32()), ('n', pa.decimal128(9, 2)), ('w', pa.string())])),
    ll=pa.list_(pa.list_(pa.int64())), ms=pa.map_(pa.string(), pa.list_(pa.struct([('x', pa.int32()), ('y', pa.list_(pa.string()))]))), b=pa.list_(pa.binary()), u=pa.list_(pa.uint64()))
def row(at):
    keys = lambda: dict.fromkeys(word() for _ in range(3))
    return dict(id=at, i=many(lambda: chance.randrange(-10**9, 10**9)), w=many(word), f=many(real), m=some(lambda: {{k: some(lambda: chance.randrange(10**12)) for k in keys()}}),
        s=some(lambda: dict(a=some(lambda: at), l=many(word), **{{'in': some(lambda: dict(b=some(lambda: at % 2 == 0), t=some(moment)))}})),
        d=many(part), ll=many(lambda: [some(lambda: chance.randrange(99)) for _ in range(chance.randrange(3))]),
        ms=some(lambda: {{k: many(lambda: dict(x=some(lambda: at), y=many(word))) for k in keys()}}), b=many(lambda: bytes([at % 256, 0])), u=many(lambda: 2**64 - 1 - at))
rows = [row(at) for at in range({rows})]
# One long list: it goes on over pages.
rows[{rows} // 2]['i'] = list(range(30000))
def shown(value):
    if isinstance(value, dict):
        return {{k: shown(v) for k, v in value.items()}}
    if isinstance(value, list):
        return [shown(v) for v in value]
    if isinstance(value, datetime.datetime):
        return value.strftime('%Y-%m-%dT%H:%M:%S') + f'.{{value.microsecond:06}}'.rstrip('0').rstrip('.') + '+00:00'
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return '\\x' + value.hex()
    return float(value) if isinstance(value, decimal.Decimal) else value
with open(expected, 'w') as out:
    for r in rows:
        out.write(json.dumps(shown(r)).replace('\\', '\\\\') + '\n')
lists = [{{k: list(v.items()) if isinstance(v, dict) and k in ('m', 'ms') else v for k, v in r.items()}} for r in rows]
t = pa.Table.from_pylist(lists, schema=pa.schema(list(columns.items())))
p.write_table(t, a)
"""
# Each reads the file `a` and writes `b`.
WRITERS = {
    "pyarrow": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b)",
    "pyarrow, small pages": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b, data_page_version='2.0', compression='zstd', data_page_size=2000, row_group_size=700, write_page_index=True)",
    "pyarrow, plain": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b, version='1.0', use_dictionary=False, compression='gzip', data_page_size=3000, use_compliant_nested_type=False)",
    "pyarrow, delta encodings": "import pyarrow.parquet as p; p.write_table(p.read_table(a), b, use_dictionary=False, column_encoding={'i.list.element': 'DELTA_BINARY_PACKED', 'w.list.element': 'DELTA_BYTE_ARRAY', 'f.list.element': 'BYTE_STREAM_SPLIT'})",
    "duckdb": "import duckdb; duckdb.sql(f\"SET timezone = 'UTC'; COPY (SELECT * FROM '{a}') TO '{b}' (FORMAT parquet, ROW_GROUP_SIZE 2048)\")",
    "polars": "import polars; polars.read_parquet(a).write_parquet(b)",
}
PARTS = "i w f m s d ll ms b u".split()


def python(code, **names):
    names = "\n".join(f"{name} = {str(value)!r}" for name, value in names.items())
    done = subprocess.run([TARGET / "venv/bin/python", "-c", f"{names}\n{code}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
    return done.stdout


def fails(session, statement, *texts):
    try:
        session.run(statement)
    except SqlError as error:
        assert all(text in str(error) for text in texts), error
        return
    raise AssertionError(f"no error: {statement}")


def written(session, place, rows=3000):
    """Makes the file `a` and the table `expected` of what it has."""
    python(TABLE.format(seed=SEED, rows=rows), a=place / "a.parquet", expected=place / "expected.json")
    session.run("CREATE TABLE e (j jsonb)")
    session.run(f"COPY e FROM '{place}/expected.json'")
    session.run("CREATE TABLE expected AS SELECT (j->>'id')::int AS id, " + ", ".join(f"nullif(j->'{part}', 'null') AS {part}" for part in PARTS) + " FROM e")


def differing(session, query):
    """How many rows of a query over columns of `expected` are not its rows."""
    return int(session.value(f"SELECT count(*) FROM (({query} EXCEPT ALL TABLE expected) UNION ALL (TABLE expected EXCEPT ALL {query})) x"))


def as_json(session, place):
    session.run("CREATE TABLE got (LIKE expected)")
    for name, code in WRITERS.items():
        with CHECKS.part(f"written by {name}"):
            python(code, a=place / "a.parquet", b=place / "b.parquet")
            for target in ("got", "got (id, " + ", ".join(PARTS) + ")"):
                session.run(f"TRUNCATE got; COPY {target} FROM '{place}/b.parquet' (FORMAT parquet)")
                for part in PARTS:
                    wrong = session.value(f"SELECT count(*) FROM got g JOIN expected e USING (id) WHERE g.{part} IS DISTINCT FROM e.{part}")
                    shown = session.value(f"SELECT string_agg(concat_ws(' for ', g.{part}, e.{part}), chr(10)) FROM (SELECT * FROM got LIMIT 200) g JOIN expected e USING (id) WHERE g.{part} IS DISTINCT FROM e.{part}")
                    assert wrong == "0", f"{wrong} of {part} differ: {str(shown)[:1000]}"
                assert differing(session, "TABLE got") == 0
            # Some, by their names; parts of structs, too.
            session.run("CREATE TEMP TABLE chosen (\"s.in.b\" bool, d json, \"s.a\" int, \"s.l\" text)")
            session.run(f"COPY chosen FROM '{place}/b.parquet' (FORMAT parquet, match_by name)")
            assert session.value("""SELECT count(*) FROM (SELECT "s.in.b", "s.a", "s.l"::jsonb, d::jsonb FROM chosen EXCEPT ALL
                SELECT (s->'in'->>'b')::bool, (s->>'a')::int, nullif(s->'l', 'null'), d FROM expected) x""") == "0"
            assert session.value("SELECT count(\"s.l\") > 100 FROM chosen") == "t"
            session.run("DROP TABLE chosen")


def foreign(session, place):
    session.run("CREATE SERVER pq FOREIGN DATA WRAPPER parquet_fdw")
    listed = [part for part in PARTS if part != "s"]
    for name, code in WRITERS.items():
        with CHECKS.part(f"foreign tables over a file of {name}"):
            python(code, a=place / "a.parquet", b=place / "b.parquet")
            session.run("DROP FOREIGN TABLE IF EXISTS f, g")
            # What the file says: lists and maps are json, structs their parts.
            session.run(f"CREATE FOREIGN TABLE f () SERVER pq OPTIONS (filename '{place}/b.parquet')")
            columns = session.value("SELECT string_agg(attname || ' ' || atttypid::regtype, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'f'::regclass AND attnum > 0")
            assert all(f", {part} json" in columns for part in listed) and ", s.a integer, s.l json, s.in.b boolean, s.in.t timestamp with time zone" in columns, columns
            got = ", ".join(f"{part}::jsonb" for part in listed)
            wanted = ", ".join(listed)
            assert session.value(f"SELECT count(*) FROM (SELECT id, {got} FROM f EXCEPT ALL SELECT id, {wanted} FROM expected) x") == "0"
            assert session.value("SELECT count(*) FROM f") == "3000"
            session.run(f"CREATE FOREIGN TABLE g (id int, {' json, '.join(PARTS)} json) SERVER pq OPTIONS (filename '{place}/b.parquet')")
            got = ", ".join(f"{part}::jsonb" for part in PARTS)
            assert differing(session, f"SELECT id, {got} FROM g") == 0
            # The bytes are those that the server makes.
            session.run("DROP FOREIGN TABLE IF EXISTS h")
            session.run(f"CREATE FOREIGN TABLE h (id int, {' jsonb, '.join(PARTS)} jsonb) SERVER pq OPTIONS (filename '{place}/b.parquet')")
            assert differing(session, f"SELECT id, {', '.join(PARTS)} FROM h") == 0
            widths = " + ".join(f"coalesce(pg_column_size({part} || '[]'), 0)" for part in PARTS if part not in ("s", "m", "ms"))
            assert session.value(f"SELECT sum({widths}) FROM h") == session.value(f"SELECT sum({widths}) FROM expected")
            for query in ("SELECT sum((s->>'a')::int) FROM %s WHERE s @> '{\"in\": {\"b\": true}}'", "SELECT count(*) FROM %s WHERE m ? 'a' OR w ? 'NULL'", "SELECT count(DISTINCT i), count(DISTINCT s->'l') FROM %s", "SELECT s->'l', count(*) FROM %s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3",
                          "SELECT sum(e.value::int) FROM %s, jsonb_array_elements(i) e WHERE id < 900 AND e.value <> 'null'", "SELECT count(*) FROM %s a JOIN expected b USING (id) WHERE a.d = b.d"):
                one, other = (session.value(f"SELECT string_agg(x::text, ' ') FROM ({query % table}) x") for table in ("h", "expected"))
                assert one == other, (query, one, other)
            for query in ("SELECT sum(id), count(i) FROM %s WHERE id BETWEEN 700 AND 1500", "SELECT count(*) FROM %s WHERE i IS NULL", "SELECT count(*) FROM %s WHERE i IS NOT NULL AND id > 2900",
                          "SELECT sum((s->>'a')::int) FROM %s WHERE (s->'in'->>'b')::bool", "SELECT id, m FROM %s WHERE id IN (3, 2999, 1500) ORDER BY id", "SELECT count(*), count(s), count(ll) FROM %s",
                          "SELECT sum(json_array_length(i::json)) FROM %s", "SELECT id, w FROM %s ORDER BY id DESC LIMIT 3"):
                one, other = (session.value(f"SELECT string_agg(x::text, ' ') FROM ({query % table}) x").replace(" ", "") for table in ("(SELECT id, " + got + " FROM g) g", "expected"))
                assert one == other, (query, one[:500], other[:500])
            # Lists of single values as arrays.
            session.run("DROP FOREIGN TABLE IF EXISTS r")
            session.run(f"CREATE FOREIGN TABLE r (id int, i int[], w text[], f float8[], b bytea[], u numeric[], \"s.l\" varchar[]) SERVER pq OPTIONS (filename '{place}/b.parquet')" if name != "polars" and name != "duckdb" else
                        f"CREATE FOREIGN TABLE r (id int, i bigint[], w varchar[], f float8[], b bytea[], \"s.l\" text[]) SERVER pq OPTIONS (filename '{place}/b.parquet')")
            if "u numeric" in (columns_of_r := session.value("SELECT string_agg(attname || ' ' || atttypid::regtype, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'r'::regclass AND attnum > 0")):
                fails(session, "SELECT u FROM r", "0A000", "engine.uint8, and the table's numeric")
                session.run("ALTER FOREIGN TABLE r DROP u")
            wrong = session.value("SELECT count(*) FROM (SELECT id, to_jsonb(i), to_jsonb(w), to_jsonb(f), to_jsonb(b), to_jsonb(\"s.l\") FROM r EXCEPT ALL SELECT id, i, w, f, b, nullif(s->'l', 'null') FROM expected) x")
            assert wrong == "0", f"{wrong} rows of arrays differ: {columns_of_r}"
            for query, other in (("SELECT count(*), sum(e) FROM r, unnest(i) e", "SELECT count(*), sum(e.value::bigint) FROM expected, jsonb_array_elements(i) x, LATERAL (SELECT nullif(x.value, 'null') AS value) e"),
                                 ("SELECT count(*) FROM r WHERE 'a' = ANY (w)", "SELECT count(*) FROM expected WHERE w ? 'a'"), ("SELECT w, count(*) FROM r GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5", None),
                                 ("SELECT count(*) FROM r WHERE w @> '{NULL,a}' OR i[1] > 0 OR cardinality(i) = 1", "SELECT count(*) FROM expected WHERE i->0 > '0' AND jsonb_typeof(i->0) = 'number' OR jsonb_array_length(i) = 1"), ("SELECT count(DISTINCT i), max(i), min(w) FROM r", None)):
                one = session.value(f"SELECT string_agg(x::text, ' ') FROM ({query}) x")
                session.run("CREATE TEMP TABLE held AS TABLE r")
                two = session.value(f"SELECT string_agg(x::text, ' ') FROM ({other or query.replace('FROM r', 'FROM held')}) x")
                session.run("DROP TABLE held")
                assert one == two, (query, one, two)
            # Backward, and from a cursor.
            session.run("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, i::jsonb FROM g; MOVE 2990 FROM c")
            session.run("CREATE TEMP TABLE back (id int, i jsonb)")
            assert session.value("FETCH BACKWARD 1 FROM c") is not None
            session.run("ROLLBACK")
    with CHECKS.part("what a foreign table's columns do not hold is refused"):
        session.run("CREATE DOMAIN ints_of_mine AS int[]")
        for column, texts in (("i varchar", ("0A000", "is json, and the table's character varying")), ("i smallint[]", ("0A000", "is integer, and the table's smallint")), ("i text[]", ("0A000", "is integer, and the table's text")), ("ll int[]", ("0A000", "is json, and the table's integer[]")),
                              ("i ints_of_mine", ("0A000", "is json, and the table's")), ("id json", ("0A000",))):
            session.run("DROP FOREIGN TABLE IF EXISTS g")
            session.run(f"CREATE FOREIGN TABLE g ({column}) SERVER pq OPTIONS (filename '{place}/b.parquet')")
            fails(session, "SELECT * FROM g", *texts)
        # A type that has the name of one of the server's.
        session.run("CREATE SCHEMA mine; CREATE TYPE mine.json AS (a text, b text); SET search_path = mine, public, pg_catalog")
        session.run("DROP FOREIGN TABLE g")
        session.run(f"CREATE FOREIGN TABLE public.g (i mine.json) SERVER pq OPTIONS (filename '{place}/b.parquet')")
        assert session.value("SELECT atttypid::regtype::oid > 16384 FROM pg_attribute WHERE attrelid = 'g'::regclass AND attname = 'i'") == "t"
        fails(session, "SELECT * FROM g", "0A000", "the table's mine.")
        session.run("RESET search_path; DROP FOREIGN TABLE g")


def as_types(session, place):
    session.run("CREATE TYPE inner_part AS (b bool, t timestamptz)")
    session.run('CREATE TYPE struct AS (a int, l text[], "in" inner_part)')
    session.run("CREATE TYPE part AS (d date, n numeric(9,2), w text)")
    session.run("CREATE TYPE entry AS (key text, value bigint)")
    session.run("CREATE TYPE xy AS (x int, y text[])")
    session.run("CREATE TYPE long_entry AS (key text, value xy[])")
    session.run("CREATE DOMAIN ints AS int[]")
    columns = "i ints, w text[], f float8[], m entry[], s struct, d part[], ms long_entry[], b bytea[], u numeric(20,0)[]"
    for access in ("heap", "colcompress", "rowcompress"):
        with CHECKS.part(f"arrays and composite types of a {access} table"):
            session.run("DROP TABLE IF EXISTS typed")
            session.run(f"CREATE TABLE typed (id int, {columns}) USING {access}")
            for name in ("pyarrow, small pages", "duckdb"):
                python(WRITERS[name], a=place / "a.parquet", b=place / "b.parquet")
                session.run("TRUNCATE typed")
                session.run(f"COPY typed FROM '{place}/b.parquet' (FORMAT parquet, match_by name)")
                session.run("SET timezone = 'UTC'")
                # Objects of maps, in the order of jsonb.
                entries = "(SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM unnest(%s))"
                query = f"""SELECT id, to_jsonb(i), to_jsonb(w), to_jsonb(f), CASE WHEN m IS NOT NULL THEN {entries % 'm'} END, to_jsonb(s), to_jsonb(d),
                    CASE WHEN ms IS NOT NULL THEN {entries % 'ms'} END, to_jsonb(b), to_jsonb(u) FROM typed"""
                wanted = "SELECT id, i, w, f, m, s, d, ms, b, u FROM expected"
                # A part whose own parts are all missing is still a part.
                wrong = session.value(f"SELECT count(*) FROM (({query}) EXCEPT ALL ({wanted})) x")
                shown = session.value(f"SELECT string_agg(x::text, chr(10)) FROM (({query}) EXCEPT ALL ({wanted}) LIMIT 2) x")
                assert wrong == "0", f"{wrong} rows differ: {str(shown)[:1500]}"
                assert session.value("SELECT count(*) FROM typed") == "3000"
            session.run("DROP TABLE IF EXISTS back; CREATE TABLE back (LIKE typed)")
            session.run(f"COPY typed TO '{place}/ours.parquet' (FORMAT parquet, row_group_size 700)")
            come_back(session, place, "typed")
            session.run("DROP TABLE typed, back")
    with CHECKS.part("what the types of columns do not hold is the server's error, and nothing stays"):
        session.run("CREATE TABLE refused (ll bigint[])")
        fails(session, f"COPY refused FROM '{place}/a.parquet' (FORMAT parquet, match_by name)", "22P02")
        python("import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({'ll': [[None, None]]}, schema=pa.schema([('ll', pa.list_(pa.list_(pa.int64())))])), a)", a=place / "inner.parquet")
        # Two numbers that are NULL would come of it.
        fails(session, f"COPY refused FROM '{place}/inner.parquet' (FORMAT parquet)", "22P02", "{NULL,NULL,{}}")
        session.run("CREATE TABLE many (x int)")
        fails(session, f"COPY many FROM '{place}/a.parquet' (FORMAT parquet)", "42804", "11 columns, and 1")
        assert session.value("SELECT count(*) FROM refused") == "0"


def come_back(session, place, table, writers=WRITERS):
    """Each system reads our file, and the table `back` gets what it writes of it: the rows of a table."""
    for name in (None, *writers):
        path = "ours" if name is None else "b"
        if name is not None:
            python(WRITERS[name].replace("'i.list.element': 'DELTA_BINARY_PACKED', ", ""), a=place / "ours.parquet", b=place / "b.parquet")
        session.run(f"TRUNCATE back; COPY back FROM '{place}/{path}.parquet' (FORMAT parquet)")
        wrong = session.value(f"SELECT count(*) FROM ((SELECT {table}::text FROM {table} EXCEPT ALL SELECT back::text FROM back) UNION ALL (SELECT back::text FROM back EXCEPT ALL SELECT {table}::text FROM {table})) x")
        shown = session.value(f"SELECT string_agg(x::text, chr(10)) FROM (SELECT {table}::text FROM {table} EXCEPT ALL SELECT back::text FROM back LIMIT 2) x")
        assert wrong == "0", f"{wrong} rows differ after {name}: {str(shown)[:1500]}"


def written_types(server, session, place):
    with CHECKS.part("lists and structs of every type that COPY writes come back"):
        session.run("CREATE DOMAIN cents AS numeric(9,2); CREATE TYPE single AS (a int, w text[], p part, ps part[])")
        session.run("""CREATE TABLE every (id int, n cents, ns numeric(12,3)[], t timestamptz[], ti time[], b bool[], u uuid[], c char(3)[], p part, ps part[], s single, ss single[],
            j json, jb jsonb, js jsonb[], r int4range[], e bytea[], d date[], f real[], i2 smallint[], rec text)""")
        session.run(r"""INSERT INTO every SELECT g, g / 3.0, CASE g % 3 WHEN 0 THEN NULL WHEN 1 THEN '{}' ELSE ARRAY[g / 7.0, NULL] END, ARRAY[timestamptz '2000-01-01 00:00+00' + g * interval '1 us', NULL], ARRAY['24:00'::time, time '00:00' + g * interval '1 ms'],
            ARRAY[g % 2 = 0, NULL], ARRAY[md5(g::text)::uuid], ARRAY['a', 'abc'], CASE g % 3 WHEN 0 THEN NULL WHEN 1 THEN ROW(NULL, NULL, NULL)::part ELSE ROW(date '2000-01-01' + g, g / 10.0, 'w' || g)::part END,
            CASE g % 4 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN ARRAY[NULL::part] ELSE ARRAY[ROW(date '2001-01-01', 1, NULL)::part, NULL, ROW(NULL, g, 'z')::part] END,
            CASE g % 3 WHEN 0 THEN NULL ELSE ROW(g, ARRAY['q', NULL], ROW(NULL, 1, 'i')::part, ARRAY[ROW(date '1999-09-09', NULL, 'x')::part])::single END,
            CASE g % 3 WHEN 0 THEN NULL WHEN 1 THEN ARRAY[NULL, ROW(g, NULL, NULL, '{}')::single] ELSE ARRAY[ROW(g, '{}', NULL, ARRAY[NULL::part, ROW(NULL, NULL, NULL)::part])::single] END,
            CASE g % 3 WHEN 0 THEN NULL ELSE json_build_object('a', g) END, jsonb_build_object('b', g, 'c', '[1, null]'::jsonb), ARRAY[to_jsonb(g), NULL, '{"a": [1]}'], ARRAY[int4range(g, g + 5)], ARRAY['\x00'::bytea, decode(md5(g::text), 'hex')],
            ARRAY[date '2000-01-01' - g], ARRAY['NaN'::real, g / 3.0], ARRAY[g % 30000, -1], ROW(g, 'x')::text FROM generate_series(1, 4000) g""")
        session.run("INSERT INTO every SELECT FROM generate_series(1, 3)")
        # Attributes that are gone, and one that older values have not.
        session.run("ALTER TYPE single DROP ATTRIBUTE w CASCADE; ALTER TYPE single ADD ATTRIBUTE more int CASCADE")
        session.run("DROP TABLE IF EXISTS back; CREATE TABLE back (LIKE every)")
        for codec in ("zstd", "uncompressed"):
            session.run(f"COPY every TO '{place}/ours.parquet' (FORMAT parquet, compression '{codec}', row_group_size 1500, bloom_filter_columns *)")
            come_back(session, place, "every", [name for name in WRITERS if name != "polars"])
        # A foreign table has the arrays of single values, too.
        listed = "ns, t, ti, b, u, js, e, d, f, i2"
        columns = session.value("SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'every'::regclass AND attname IN ('" + listed.replace(", ", "', '") + "')")
        session.run(f"CREATE FOREIGN TABLE arrays (id int, {columns}) SERVER pq OPTIONS (filename '{place}/ours.parquet')")
        for one, other in (("arrays", "every"), ("every", "arrays")):
            assert session.value(f"SELECT count(*) FROM (SELECT id, {listed} FROM {one} EXCEPT ALL SELECT id, {listed} FROM {other}) x") == "0"
        session.run("CREATE TABLE kept USING colcompress AS TABLE arrays")
        assert session.value(f"SELECT count(*) FROM (SELECT ({listed})::text FROM kept EXCEPT ALL SELECT ({listed})::text FROM every) x") == "0"
        kinds = python("import duckdb; print(dict(duckdb.sql(f\"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '{a}')\").fetchall()))", a=place / "ours.parquet")
        for column, kind in (("n", "DECIMAL(9,2)"), ("ns", "DECIMAL(12,3)[]"), ("ps", "STRUCT(d DATE, n DECIMAL(9,2), w VARCHAR)[]"), ("j", "JSON"), ("jb", "JSON"), ("r", "VARCHAR[]"), ("u", "UUID[]")):
            assert f"'{column}': '{kind}'" in kinds, (column, kinds)
        # Polars takes JSON and uuids for bytes, and writes such. It has no 24:00:00.
        session.run("CREATE TABLE plainer AS TABLE every; ALTER TABLE plainer DROP u, DROP j, DROP jb, DROP js, DROP ti; DROP TABLE back; CREATE TABLE back (LIKE plainer)")
        session.run(f"COPY plainer TO '{place}/ours.parquet' (FORMAT parquet)")
        come_back(session, place, "plainer", ["polars"])
        session.run("DROP TABLE back")
    with CHECKS.part("arrays that are no lists are refused, and leave no file"):
        for value, text in (("'{{1,2},{3,4}}'::int[]", "has 2 dimensions"), ("'[0:1]={1,2}'::int[]", "begins at 0"), ("ROW(ARRAY[ROW(1, NULL, NULL, NULL)]::single[], '[2:2]={7}'::int[])::wrapped", "begins at 2")):
            if "wrapped" in value:
                session.run("CREATE TYPE wrapped AS (a single[], b int[])")
            fails(session, f"COPY (SELECT {value} AS a) TO '{place}/none.parquet' (FORMAT parquet)", "0A000", 'column "a"', text, "HINT")
        assert not [path.name for path in place.iterdir() if "none.parquet" in path.name]
        session.run(f"COPY (SELECT ('[0:1]={{1,2}}'::int[])[:] AS a, ROW(1, 2) AS r, indkey FROM pg_index LIMIT 1) TO '{place}/one.parquet' (FORMAT parquet)")
        assert python("import pyarrow.parquet as p; print([row | {'indkey': 0} for row in p.read_table(a).to_pylist()])", a=place / "one.parquet").strip() == "[{'a': [1, 2], 'r': '(1,2)', 'indkey': 0}]"
        # Types that hold two of the one before: there would be a million columns.
        session.run("CREATE TYPE doubled0 AS (a int, b int)")
        for at in range(1, 20):
            session.run(f"CREATE TYPE doubled{at} AS (a doubled{at - 1}, b doubled{at - 1})")
        session.run("CREATE TYPE nested0 AS (a int)")
        for at in range(1, 80):
            session.run(f"CREATE TYPE nested{at} AS (a nested{at - 1})")
        fails(session, f"COPY (SELECT NULL::nested79 AS a) TO '{place}/none.parquet' (FORMAT parquet)", "0A000", "more than 60 lists and structs")
        session.run(f"COPY (SELECT NULL::nested59 AS a) TO '{place}/deep.parquet' (FORMAT parquet)")
        assert session.value(f"SELECT count(*) FROM engine.parquet_schema('{place}/deep.parquet')") == "1"
        # A query that changes the type of what it returns.
        session.run("CREATE TYPE changed AS (a text)")
        session.run("""CREATE FUNCTION changing(i int) RETURNS changed LANGUAGE plpgsql AS $$ BEGIN
            IF i = 2 THEN EXECUTE 'ALTER TYPE changed ALTER ATTRIBUTE a TYPE bigint'; END IF; RETURN ROW(CASE WHEN i < 2 THEN 'x' ELSE '7' END); END $$""")
        fails(session, f"COPY (SELECT changing(i) AS c FROM generate_series(1, 9) i) TO '{place}/none.parquet' (FORMAT parquet)", "")
        assert session.value("SELECT 1") == "1"
        fails(session, f"COPY (SELECT NULL::doubled19 AS a) TO '{place}/none.parquet' (FORMAT parquet)", "0A000", "more than 16384 columns")
    with CHECKS.part("memory of writing texts and lists does not grow with the rows"):
        other = server.session("files")
        other.run(f"COPY (SELECT repeat(g::text, 20)::json AS j, ARRAY[g, g] AS a FROM generate_series(100000, 101000) g) TO '{place}/many.parquet' (FORMAT parquet, row_group_size 1000)")
        before = memory(other)
        other.run(f"COPY (SELECT repeat((100000 + g % 1000)::text, 20)::json AS j, ARRAY[g, g] AS a FROM generate_series(1, 500000) g) TO '{place}/many.parquet' (FORMAT parquet, row_group_size 1000)")
        assert memory(other) - before < 60, (before, memory(other))
        other.close()


def layouts(session, place):
    with CHECKS.part("lists whose parts cannot be missing, and groups of older writers"):
        code = """import pyarrow as pa, pyarrow.parquet as p
element = pa.field('element', pa.struct([pa.field('y', pa.int32(), False)]), False)
t = pa.table({'x': pa.array([[{'y': 1}, {'y': 2}], [], [{'y': 3}]], pa.list_(element))}, schema=pa.schema([pa.field('x', pa.list_(element), False)]))
p.write_table(t, a, compression='none', write_statistics=False, store_schema=False)"""
        python(code, a=place / "list.parquet")
        whole = (place / "list.parquet").read_bytes()
        session.run("CREATE TABLE listed (x jsonb)")
        # What is called `array` is the element itself, with all that is in it.
        for name, element in (("list", '{"y": %s}'), ("array", '{"element": {"y": %s}}')):
            footer = whole.replace(b"\x04list", bytes([len(name)]) + name.encode())
            end = len(footer) - 8
            start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
            (place / "old.parquet").write_bytes(footer[:end] + (end - start).to_bytes(4, "little") + b"PAR1")
            session.run(f"TRUNCATE listed; COPY listed FROM '{place}/old.parquet' (FORMAT parquet)")
            one, two, three = (element % value for value in (1, 2, 3))
            assert session.value("SELECT string_agg(x::text, ' ') FROM listed") == f"[{one}, {two}] [] [{three}]", session.value("SELECT string_agg(x::text, ' ') FROM listed")


    with CHECKS.part("a folder's key counts before a struct of its name"):
        (place / "day=2026-11-29").mkdir(mode=0o777)
        python("import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({'day': [{'x': 1}], 'n': [2]}), a)", a=place / "day=2026-11-29" / "x.parquet")
        session.run(f"CREATE FOREIGN TABLE keyed (day date, n int8) SERVER pq OPTIONS (filename '{place}/day=2026-11-29')")
        assert session.value("SELECT day || ' ' || n FROM keyed") == "2026-11-29 2"


# Texts that are JSON, or nearly so.
TEXTS = ["null", "true", "[]", "{}", "0", "-0", "-0.0", "1e5", "1.50E+1", "-12.5e-7", "0.00001", "123456789012345678901234567890.123456789", "1e131071", "1e131072", "1e-16383", "1e-16384", '""', '"a\\u00fc\\ud83d\\ude00\\n\\/\\b\\f"',
         '"\u00fc\U0001f600"', '"\\u0000"', '"\\ud800"', '"\\ud800\\u0041"', '"\\udc00"', '{"b": 1, "a": [1, {"x": null}, "t"], "b": 2, "cc": true, "": 0.10}', ' [ 1 , 2.00 , [ [ ] , { } ] ] ', "[1,]", "[1 2]", '{"a"}', '{"a":}', '{a: 1}', '{"a": 1,}', "01", "1.", ".5", "-", "1e", "+1",
         "tru", "nullx", "[1]]", '"', '"\\x"', '"\\u12"', '"\n"', "'a'", "NaN", "[", "", " ", "1 2", '"\\u12g4"', '{"a": 1} x', "[" * 999 + "]" * 999, "[" + ", ".join(map(str, range(100))) + "]", "{" + ", ".join(f'"k{n % 77}": "{n}"' for n in range(150)) + "}", '"' + "x" * 70000 + '"']


def documents(session, place):
    with CHECKS.part("JSON of other systems is checked, and made jsonb as the server makes it"):
        code = """import json, pyarrow as pa, pyarrow.parquet as p
texts = json.load(open(a))
for at, text in enumerate(texts):
    p.write_table(pa.table({'n': [0, 1], 'j': [text, None]}), f'{b}/{at}.parquet', **({} if at % 2 else dict(use_dictionary=False, column_encoding={'j': 'DELTA_BYTE_ARRAY'})))
p.write_table(pa.table({'j': pa.array([t for t in texts * 20 if t.strip()], pa.json_())}), f'{b}/all.parquet')"""
        (place / "texts.json").write_text(json.dumps(TEXTS))
        (place / "texts").mkdir(mode=0o777)
        python(code, a=place / "texts.json", b=place / "texts")
        errors = 0
        for at, text in enumerate(TEXTS):
            quoted = "E'" + text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n") + "'"
            for kind in ("json", "jsonb"):
                session.run(f"DROP FOREIGN TABLE IF EXISTS j; CREATE FOREIGN TABLE j (n int8, j {kind}) SERVER pq OPTIONS (filename '{place}/texts/{at}.parquet')")
                try:
                    expected = session.value(f"SELECT {quoted}::{kind}::text || pg_column_size({quoted}::{kind})")
                except SqlError:
                    fails(session, "SELECT j FROM j", "XX001", 'Column "j"', "has JSON that")
                    errors += 1
                    continue
                size = "pg_column_size(j)" if kind == "jsonb" else f"pg_column_size({quoted}::json)"
                assert session.value(f"SELECT j::text || {size} FROM j WHERE n = 0") == expected, text
                assert session.value("SELECT count(*) || ' ' || count(j) FROM j") == "2 1"
        assert 50 < errors < 70, errors
        python("import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({'x': [['{}', None], ['{oops']], 'n': [1, 2]}), a, row_group_size=1)", a=place / "texts" / "listed.parquet")
        session.run(f"CREATE FOREIGN TABLE listed_json (x json[], n int8) SERVER pq OPTIONS (filename '{place}/texts/listed.parquet')")
        assert session.value("SELECT x::text FROM listed_json WHERE n = 1") == '{"{}",NULL}'
        fails(session, "SELECT x FROM listed_json", "XX001", "has JSON that is no JSON")
        # A file that says that it is JSON: the values are not looked at before they are JSON.
        session.run(f"CREATE FOREIGN TABLE k () SERVER pq OPTIONS (filename '{place}/texts/all.parquet')")
        assert session.value("SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'k'::regclass AND attname = 'j'") == "json"
        fails(session, "SELECT count(j::text) FROM k WHERE j IS NOT NULL AND j::text <> ''", "has JSON that is no JSON")
        session.run(f"CREATE FOREIGN TABLE l (j text) SERVER pq OPTIONS (filename '{place}/texts/all.parquet')")
        assert session.value("SELECT count(*) FROM l WHERE j LIKE '%k76%'") == "20"
        session.run("CREATE TABLE m (j text); CREATE TABLE mb (j jsonb)")
        session.run(f"COPY m FROM '{place}/texts/all.parquet' (FORMAT parquet)")
        assert session.value("SELECT count(*) FROM (TABLE m EXCEPT ALL TABLE l) x") == "0"
        fails(session, f"COPY mb FROM '{place}/texts/all.parquet' (FORMAT parquet)", "XX001", "has JSON that")
        for access in ("heap", "colcompress", "rowcompress"):
            session.run(f"CREATE TABLE copied (id int, j json, jb jsonb, js jsonb, p jsonb, t text) USING {access}")
            session.run(f"COPY (SELECT id, j, jb, js, p, jb AS t FROM every) TO '{place}/ours.parquet' (FORMAT parquet)")
            session.run(f"COPY copied FROM '{place}/ours.parquet' (FORMAT parquet, match_by name)")
            assert session.value("SELECT count(*) FROM (SELECT id, j::text, jb, js, p, t FROM copied EXCEPT ALL SELECT id, j::text, jb, to_jsonb(js), to_jsonb(p), jb::text FROM every) x") == "0"
            session.run("DROP TABLE copied")


def hostile(session, place):
    with CHECKS.part("spoiled files are errors, or rows") as tell:
        chance, errors = random.Random(SEED), 0
        python(TABLE.format(seed=SEED, rows=120) + "\np.write_table(t, b, compression='none', row_group_size=50, write_page_index=True)", a=place / "few.parquet", b=place / "whole.parquet", expected=place / "few.json")
        whole = (place / "whole.parquet").read_bytes()
        session.run(f"CREATE FOREIGN TABLE g (id int, {' json, '.join(PARTS)} json) SERVER pq OPTIONS (filename '{place}/s.parquet')")
        session.run(f"CREATE FOREIGN TABLE ar (id int, i int[], w text[], f float8[], b bytea[], ms jsonb, d jsonb) SERVER pq OPTIONS (filename '{place}/s.parquet')")
        for form in ("got", "typed"):
            if form == "typed":
                session.run("DROP TABLE IF EXISTS typed")
                session.run("CREATE TABLE typed (id int, i ints, w text[], f float8[], m entry[], s struct, d part[], ll jsonb, ms long_entry[], b bytea[], u numeric[])")
            for _ in range(FLIPS):
                (place / "s.parquet").write_bytes(spoiled(whole, chance))
                for statement in (f"COPY {form} FROM '{place}/s.parquet' (FORMAT parquet)", "SELECT sum(length(g::text)) FROM g", "SELECT sum(length(ar::text)) FROM ar"):
                    try:
                        session.run(statement)
                    except SqlError as error:
                        errors += 1
                        assert "XX000" not in str(error), error
        assert session.value("SELECT 1") == "1", "the server is up"
        tell(f"{errors} of {6 * FLIPS} were errors")
    with CHECKS.part("lists too long for memory are refused"):
        # Ten million entries a row, in a few bytes: runs of one value of a dictionary.
        python("import pyarrow as pa, pyarrow.parquet as p; p.write_table(pa.table({'x': pa.ListArray.from_arrays([0, 10**7], pa.repeat(pa.scalar(0, pa.int32()), 10**7))}), a)", a=place / "long.parquet")
        assert (place / "long.parquet").stat().st_size < 100_000
        session.run("CREATE TABLE long (x jsonb)")
        fails(session, f"COPY long FROM '{place}/long.parquet' (FORMAT parquet)", "more than 8388608 entries")
        assert session.value("SELECT count(*) FROM long") == "0"


def memory(session):
    """The most that the session's process ever had, in MB."""
    status = Path(f"/proc/{session.value('SELECT pg_backend_pid()')}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) // 1024


def sizes(server, place):
    with CHECKS.part("pages of many entries are read"):
        session = server.session("files")
        # DuckDB begins no new page for lists: this one has twelve million entries, a hundred of each row.
        python("import duckdb; duckdb.sql(f\"COPY (SELECT i::INT AS i, range(i, i + 100)::INT[] AS x FROM range(122880) t(i)) TO '{a}' (FORMAT parquet)\")", a=place / "pages.parquet")
        session.run(f"CREATE FOREIGN TABLE pages () SERVER pq OPTIONS (filename '{place}/pages.parquet')")
        assert session.value("SELECT count(*) || ' ' || sum(json_array_length(x)) || ' ' || sum((x->>7)::bigint - i) FROM pages") == "122880 12288000 860160"
        session.close()
    with CHECKS.part("long texts of a dictionary are counted before they are copied"):
        session = server.session("files")
        python("""import pyarrow as pa, pyarrow.parquet as p
word = lambda n: pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), pa.array([str(n) * 100_000]))
part = pa.StructArray.from_arrays([word(n) for n in range(8)], names=[f'c{n}' for n in range(8)])
p.write_table(pa.table({'x': pa.ListArray.from_arrays([0, 4000], part)}), a, compression='zstd')""", a=place / "words.parquet")
        assert (place / "words.parquet").stat().st_size < 100_000
        session.run(f"CREATE FOREIGN TABLE words (x json) SERVER pq OPTIONS (filename '{place}/words.parquet')")
        fails(session, "SELECT count(x) FROM words WHERE length(x::text) > 0", "MB as text")
        assert memory(session) < 700, memory(session)
        session.close()
    with CHECKS.part("values that no server holds, and documents of too many parts, are refused"):
        session = server.session("files")
        python("""import pyarrow as pa, pyarrow.parquet as p
p.write_table(pa.table({'t': pa.array(['x' * (2**30 - 4)], pa.large_string())}), a + '1', compression='zstd', use_dictionary=False, write_statistics=False)
p.write_table(pa.table({'t': pa.array(['[' + '0,' * (6 * 10**7) + '0]'], pa.large_string())}), a + '2', compression='zstd', use_dictionary=False, write_statistics=False)""", a=place / "large")
        session.run("CREATE TABLE large (t text)")
        for number, kind, text in ((1, "text", "where a server holds 1 GB"), (2, "jsonb", "more than 16 million parts")):
            session.run(f"DROP FOREIGN TABLE IF EXISTS large_values; CREATE FOREIGN TABLE large_values (t {kind}) SERVER pq OPTIONS (filename '{place}/large{number}')")
            fails(session, "SELECT count(*) FROM large_values WHERE t IS NOT NULL AND t::text <> 'x'", text)
        fails(session, f"COPY large FROM '{place}/large1' (FORMAT parquet)", "where a server holds 1 GB")
        assert session.value("SELECT count(*) FROM large") == "0"
        session.close()
        (place / "large1").unlink()
        (place / "large2").unlink()
    with CHECKS.part("a footer of many structs in each other costs no more than it has columns"):
        session = server.session("files")
        python("""import pyarrow as pa, pyarrow.parquet as p
kind = pa.struct([(f'c{n}', pa.int32()) for n in range(5000)])
for depth in range(150):
    kind = pa.struct([('s', kind)])
p.ParquetWriter(a, pa.schema([('s', kind)]), store_schema=False).close()""", a=place / "structs.parquet")
        before = memory(session)
        assert session.value(f"SELECT count(*) FROM engine.parquet_schema('{place}/structs.parquet')") == "5000"
        assert memory(session) - before < 300, (before, memory(session))
        session.close()


def main():
    with CHECKS.server() as server, tempfile.TemporaryDirectory(prefix="colonnade-nested-") as folder:
        os.chmod(folder, 0o777)
        server.create_database("files")
        session = server.session("files")
        place = Path(folder)
        written(session, place)
        as_json(session, place)
        foreign(session, place)
        as_types(session, place)
        written_types(server, session, place)
        documents(session, place)
        layouts(session, place)
        hostile(session, place)
        session.close()
        sizes(server, place)
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
