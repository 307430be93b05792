"""The program's stream of Arrow, as pyarrow and DuckDB read it from a pipe: every type with NULLs and extreme
values, from Parquet, column and CSV files; files without rows; chosen columns and rows; the program's memory.

It runs in target/venv, which has both, and needs no server.
"""

import datetime
import decimal
import os
import random
import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from harness.checks import Checks
from harness.place import TARGET

VENV = (TARGET / "venv").resolve()
if Path(sys.prefix).resolve() != VENV:
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

PROGRAM = TARGET / "debug/colonnade"
CHECKS = Checks("program_arrow")
ROWS = 25_000
LARGE = 3_000_000
decimal.getcontext().prec = 40


def stream(*arguments):
    """What the program writes, as a table."""
    with subprocess.Popen([PROGRAM, "arrow", *arguments], stdout=subprocess.PIPE) as program:
        table = pa.ipc.open_stream(program.stdout).read_all()
    assert program.returncode == 0, program.returncode
    table.validate(full=True)
    return table


def convert(source, made, *options):
    subprocess.run([PROGRAM, "convert", source, made, *options], check=True, stderr=subprocess.DEVNULL)


def every_type():
    """A table with a column of each type that the program has, two of extreme values, and one of NULLs."""
    chance = random.Random(20261129)
    day, second = datetime.timedelta(1), 1_000_000

    def of(data_type, value, extremes=()):
        some = [*extremes, *(value(i) for i in range(ROWS - len(extremes)))]
        return pa.array([None if i % 7 == 5 and i >= len(extremes) else one for i, one in enumerate(some)], data_type)
    text = ["", "ü€😀", "a,\"b\"\n", "long " * 100]
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "truth": of(pa.bool_(), lambda i: i % 3 == 0),
        "i2": of(pa.int16(), lambda i: i % 300 - 150, [-2**15, 2**15 - 1]),
        "i4": of(pa.int32(), lambda i: i * -7, [-2**31, 2**31 - 1]),
        "i8": of(pa.int64(), lambda i: chance.getrandbits(60), [-2**63, 2**63 - 1]),
        "u8": of(pa.uint64(), lambda i: chance.getrandbits(64), [0, 2**64 - 1]),
        "f4": of(pa.float32(), lambda i: i / 3, [float("nan"), float("inf"), -0.0]),
        "f8": of(pa.float64(), lambda i: i / 7, [float("nan"), float("-inf"), 5e-324]),
        "day": of(pa.date32(), lambda i: datetime.date(1950, 1, 1) + i * day, [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
        "clock": of(pa.time64("us"), lambda i: i * 1001, [0, 86_400 * second - 1]),
        "wall": of(pa.timestamp("us"), lambda i: (i - 9000) * 1001 * second, [-1, 0]),
        "instant": of(pa.timestamp("us", "UTC"), lambda i: (i - 9000) * 1001 * second, [-1, 0]),
        "n9": of(pa.decimal128(9, 2), lambda i: decimal.Decimal(i).scaleb(-2), [decimal.Decimal("-9999999.99")]),
        "n38": of(pa.decimal128(38, 10), lambda i: decimal.Decimal(i * 10**20).scaleb(-10), [decimal.Decimal(10**38 - 1).scaleb(-10)]),
        "key": of(pa.uuid(), lambda i: uuid.UUID(int=chance.getrandbits(128)).bytes),
        "words": of(pa.string(), lambda i: f"text {i % 100}", text),
        "bytes": of(pa.binary(), lambda i: chance.randbytes(i % 20), [b"", b"\x00\xff"]),
        "void": pa.array([None] * ROWS, pa.string()),
    }
    return pa.table(columns)


def equal(table, other):
    """Same schema and same values, where one NaN is as good as another."""
    assert table.schema == other.schema, f"{table.schema}\n{other.schema}"
    for name in table.schema.names:
        one, two = table[name].combine_chunks(), other[name].combine_chunks()
        if pa.types.is_floating(one.type):
            assert pc.is_nan(one).equals(pc.is_nan(two)), name
            one, two = (pc.if_else(pc.is_nan(values), 0.5, values).cast(values.type) for values in (one, two))
        assert one.equals(two), name


def types(folder):
    whole = every_type()
    for what, table in {"every type": whole, "no rows": whole.slice(0, 0), "one row": whole.slice(1, 1), "NULLs only": whole.slice(5, 1)}.items():
        with CHECKS.part(f"{what} of a Parquet and a column file"):
            parquet, column = folder / f"{what}.parquet", folder / f"{what}.col"
            pa.parquet.write_table(table, parquet, row_group_size=9000)
            convert(parquet, column, "--stripe-row-count", "11000", "--block-row-count", "4000")
            equal(table, stream(parquet))
            equal(table, stream(column))
    with CHECKS.part("chosen columns and rows"):
        equal(whole.select(["words", "id"]).slice(0, 12_345), stream(folder / "every type.col", "--columns", "words,id", "--limit", "12345"))
    with CHECKS.part("DuckDB reads the stream"):
        expected, query = whole.select(["id", "i4", "words"]), "SELECT words, count(*), sum(i4) FROM {} GROUP BY ALL ORDER BY ALL"
        with subprocess.Popen([PROGRAM, "arrow", folder / "every type.col"], stdout=subprocess.PIPE) as program:
            reader = pa.ipc.open_stream(program.stdout)
            assert duckdb.sql(query.format("reader")).fetchall() == duckdb.sql(query.format("expected")).fetchall()


def csv(folder):
    with CHECKS.part("a CSV file"):
        source = folder / "a.csv"
        source.write_text("number,ratio,word\n" + "".join(f'{i},{i / 8},"{"" if i % 3 else "ü, " + str(i)}"\n' for i in range(ROWS)) + ',,\n1,,\n')
        options = pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
        equal(pa.csv.read_csv(source, convert_options=options), stream(source))


def resident(pid):
    """Most memory that a process has had, in MB; 0 of one that has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) >> 10 if found else 0


def memory(folder):
    with CHECKS.part("memory does not grow with the file") as tell:
        table = pa.table({"id": pa.array(range(LARGE)), "word": pa.array([f"a word of some length {i}" for i in range(LARGE)])})
        pa.parquet.write_table(table, folder / "large.parquet")
        convert(folder / "large.parquet", folder / "large.col")
        for name in ("large.parquet", "large.col"):
            rows = most = 0
            with subprocess.Popen([PROGRAM, "arrow", folder / name], stdout=subprocess.PIPE) as program:
                for batch in pa.ipc.open_stream(program.stdout):
                    rows, most = rows + batch.num_rows, max(most, resident(program.pid))
            tell(f"{name}: {most} MB, the rows have {table.nbytes >> 20}")
            assert rows == LARGE and 0 < most < 60 < table.nbytes >> 20, (rows, most)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for part in (types, csv, memory):
            part(Path(folder))
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
