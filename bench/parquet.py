"""Writes a data set's CSV as one zstd Parquet file and prints its size by column, as JSON.

Run with the Python of target/venv, which has pyarrow: parquet.py {events|flights} CSV OUT
Level 3, pyarrow's other defaults (dictionaries where they pay, row groups of 1,048,576 rows).
"""

import json
import os
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

EVENTS = {
    "id": pa.int64(), "created_at": pa.string(), "event_date": pa.date32(), "user_id": pa.int64(),
    "session_id": pa.string(), "amount": pa.decimal128(15, 4), "price": pa.float64(), "quantity": pa.int32(),
    "duration_ms": pa.int32(), "score": pa.float32(), "country_code": pa.string(), "browser": pa.string(),
    "url": pa.string(), "is_mobile": pa.bool_(), "event_type": pa.string(), "metadata": pa.string(), "tags": pa.string(),
}
FLIGHTS = {
    "year": pa.int16(), "month": pa.int16(), "day": pa.int16(), "dep_time": pa.int32(), "sched_dep_time": pa.int32(),
    "dep_delay": pa.int32(), "arr_time": pa.int32(), "sched_arr_time": pa.int32(), "arr_delay": pa.int32(),
    "carrier": pa.string(), "flight": pa.int32(), "tailnum": pa.string(), "origin": pa.string(), "dest": pa.string(),
    "air_time": pa.int32(), "distance": pa.int32(), "hour": pa.int16(), "minute": pa.int16(), "time_hour": pa.string(),
}


def timestamps(column):
    """'2024-01-01 00:00:30+00' and '2013-01-01T10:00:00Z', both in UTC, as microseconds."""
    seconds = pc.utf8_slice_codeunits(column, 0, 19)
    seconds = pc.replace_substring(seconds, " ", "T")
    return pc.assume_timezone(pc.strptime(seconds, "%Y-%m-%dT%H:%M:%S", "us"), "UTC")


def read_csv(kind, path):
    types = EVENTS if kind == "events" else FLIGHTS
    options = csv.ReadOptions(column_names=list(types), skip_rows=0 if kind == "events" else 1, block_size=64 << 20)
    # The events have no NULL; the flights' file writes it as NA.
    convert = csv.ConvertOptions(column_types=types, true_values=["t"], false_values=["f"], null_values=["NA"] if kind == "flights" else [],
                                 strings_can_be_null=True)
    table = csv.read_csv(path, options, convert_options=convert)
    for name in ("created_at", "time_hour"):
        if name in types:
            table = table.set_column(table.schema.get_field_index(name), name, timestamps(table[name]))
    if "tags" in types:
        inner = pc.utf8_trim(table["tags"], characters="{}")
        table = table.set_column(table.schema.get_field_index("tags"), "tags", pc.split_pattern(inner, ","))
    return table


def main(kind, source, out):
    pq.write_table(read_csv(kind, source), out, compression="zstd", compression_level=3)
    columns = {}
    metadata = pq.ParquetFile(out).metadata
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            name = column.path_in_schema.split(".")[0]
            columns[name] = columns.get(name, 0) + column.total_compressed_size
    print(json.dumps({"bytes": os.path.getsize(out), "columns": columns}))


if __name__ == "__main__":
    main(*sys.argv[1:])
