"""Columns of the events table and of TPC-H's lineitem: our encodings beside Vortex, zstd Parquet and plain
zstd.

Run by bench/encodings.sh with the Python of target/venv: encodings.py BENCH FOLDER ROWS The metadata of
events is JSON text for the others and PostgreSQL's jsonb of the same values for ours, which is what each
would store; its numerator is the text. The same rows for all, one thread, thread CPU time, best of five
passes. The numerator is always the plain Arrow array (decimals 16 bytes, text 4-byte offsets). Each is
measured in its own habitat: ours in stripes of 150,000 rows with chunks of 10,000, decoded to flat vectors
(decimals as 32- or 64-bit integers, text as views); Vortex (from memory, its own choice of Arrow arrays),
Parquet (level 3, a row group a chunk) and zstd (level 3, the buffers themselves) in chunks of 65,536 rows of
events and 131,072 of lineitem.
"""

import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import vortex
import zstandard

CHUNKS = {"events": 65_536, "lineitem": 131_072}


def events(rows):
    """The rows of bench/sql's events table: same columns and distributions, another random generator."""
    rng = np.random.default_rng(42)
    g = np.arange(1, rows + 1)

    def pick(values, index):
        return pa.array(np.array(values, dtype=object)[index], pa.string())

    revenue = rng.integers(0, 50_000, rows)
    systems, apps = ["android", "ios", "windows", "macos", "linux"], ["mobile", "web", "desktop", "tv"]
    campaigns = ["summer", "black_friday", "organic", "referral", "email"]
    metadata = [
        '{"os": "%s", "app": "%s", "premium": %s, "revenue": %.2f, "version": "%d", "ab_group": "%s", "campaign": "%s"}'
        % (systems[i % 5], apps[i % 4], "true" if i % 7 == 0 else "false", cents / 100, 12 + i % 8, "ABC"[i % 3], campaigns[i % 5])
        for i, cents in zip(g.tolist(), revenue.tolist())
    ]
    return pa.table({
        "id": pa.array(g, pa.int64()),
        "created_at": pa.array(757_382_400_000_000 + g * 30_000_000, pa.int64()).cast(pa.timestamp("us")),
        "event_date": pa.array((8766 + g // 2880).astype(np.int32)).cast(pa.date32()),
        "user_id": pa.array(g % 50_000 + 1, pa.int64()),
        "session_id": pa.array([hashlib.md5(b"%d" % i).hexdigest() for i in g.tolist()], pa.string()),
        "amount": decimals(rng.integers(0, 99_999_900, rows), 15, 4),
        "price": pa.array(rng.random(rows) * 999.99),
        "quantity": pa.array((g % 100 + 1).astype(np.int32)),
        "duration_ms": pa.array(np.rint(rng.random(rows) * 30_000).astype(np.int32) + 50),
        "score": pa.array(rng.random(rows, dtype=np.float32)),
        "country_code": pick(["BR", "US", "DE", "FR", "IN", "GB", "JP", "CN", "RU", "CA"], g % 10),
        "browser": pick(["Chrome", "Firefox", "Safari", "Edge", "Opera", "Samsung"], g % 6),
        "url": pa.array([f"/page/{i % 5000}" for i in g.tolist()], pa.string()),
        "is_mobile": pa.array(g % 3 != 0),
        "event_type": pick(["click", "pageview", "purchase", "signup", "search", "logout"], g % 6),
        "metadata": pa.array(metadata, pa.string()),
        "tags": pa.array(["{tag_%d,cat_%d}" % (i % 20, i % 8) for i in g.tolist()], pa.string()),
    })


def numeric(cents):
    """PostgreSQL's bytes of a numeric with two digits after the point."""
    whole, fraction = divmod(cents, 100)
    digits = [whole] if whole else []
    weight = 0 if whole or not fraction else -1
    if fraction:
        digits.append(fraction * 100)
    header = 0x8000 | 2 << 7 | (0x40 if weight < 0 else 0) | weight & 0x3F
    return struct.pack(f"<IH{len(digits)}H", (6 + 2 * len(digits)) << 2, header, *digits)


def jsonb(pairs):
    """PostgreSQL's bytes of a flat jsonb object; `pairs` in its order of keys: by length, then bytewise."""
    entries, data = [], b""
    offset = 4 + 8 * len(pairs)

    def add(kind, payload):
        nonlocal data
        data += payload
        # Every 32nd entry holds an end offset, the others a length.
        entries.append(kind | (0x80000000 | len(data) if len(entries) % 32 == 0 else len(payload)))

    for key, _ in pairs:
        add(0, key)
    for _, value in pairs:
        if isinstance(value, bool):
            add(0x30000000 if value else 0x20000000, b"")
        elif isinstance(value, int):
            add(0x10000000, b"\0" * (-(offset + len(data)) % 4) + numeric(value))
        else:
            add(0, value)
    return struct.pack(f"<I{len(entries)}I", 0x20000000 | len(pairs), *entries) + data


def stored_metadata(rows):
    """The metadata column as the server stores it, for our encodings: the same values as in `events`."""
    texts = (json.loads(text, parse_float=lambda digits: round(float(digits) * 100)) for text in rows)
    fields = ("os", "app", "premium", "revenue", "version", "ab_group", "campaign")
    pack = lambda value: value.encode() if isinstance(value, str) else value  # noqa: E731
    return pa.array([jsonb([(name.encode(), pack(row[name])) for name in fields]) for row in texts], pa.binary())


def decimals(unscaled, precision, scale):
    """A decimal128 array of these unscaled integers."""
    pairs = np.empty((len(unscaled), 2), dtype=np.int64)
    pairs[:, 0] = unscaled
    pairs[:, 1] = np.where(np.asarray(unscaled) < 0, -1, 0)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(unscaled), [None, pa.py_buffer(pairs.tobytes())])


def lineitem(rows, folder):
    """The first rows of lineitem, generated by the tpchgen-cli package."""
    file = folder / "lineitem.parquet"
    if not file.exists() or pq.read_metadata(file).num_rows < rows:
        program = Path(sys.executable).parent / "tpchgen-cli"
        file.unlink(missing_ok=True)
        scale = rows / 6_000_000 * 1.02 + 0.01
        subprocess.run([program, "parquet", "-s", f"{scale:.3f}", "--tables", "lineitem", "--output-dir", folder],
                       check=True, stdout=subprocess.DEVNULL)
    table = pq.read_table(file).slice(0, rows)
    plain = {pa.string_view(): pa.string(), pa.large_string(): pa.string()}
    return pa.table({field.name: table[field.name].cast(plain.get(field.type, field.type)) for field in table.schema})


def write_column(array, path):
    """The column as encodings_bench reads it; returns its kind."""
    kind, array = str(array.type), array
    fixed = {"int16": "int16", "int32": "int32", "int64": "int64", "float": "float32", "double": "float64",
             "date32[day]": "date"}
    data = array.buffers()[-1]
    if kind in ("string", "binary"):
        offsets = np.frombuffer(array.buffers()[1], np.int32)[: len(array) + 1]
        path.write_bytes(offsets.astype("<u4").tobytes() + data.to_pybytes()[: int(offsets[-1])])
        return "text" if kind == "string" else "bytes"
    if kind == "bool":
        path.write_bytes(np.asarray(array.to_numpy(zero_copy_only=False), np.uint8).tobytes())
        return "bool"
    width = array.type.bit_width // 8
    path.write_bytes(data.to_pybytes()[: len(array) * width])
    if pa.types.is_decimal(array.type):
        return f"numeric:{array.type.scale}"
    return "timestamp" if pa.types.is_timestamp(array.type) else fixed[kind]


def best(call, passes=5):
    least = float("inf")
    for _ in range(passes):
        start = time.thread_time()
        result = call()
        least = min(least, time.thread_time() - start)
    return least, result


def buffers(array):
    return [buffer.to_pybytes() for buffer in array.buffers()[1:] if buffer is not None]


def copied(array):
    """The same values in buffers of their own, offsets from 0."""
    return pa.concat_arrays([array]) if array.offset == 0 else array.take(pa.array(np.arange(len(array), dtype=np.int32)))


def measure_vortex(chunks):
    arrays, size, start = [], 0, time.thread_time()
    for chunk in chunks:
        compressed = vortex.compress(vortex.array(chunk))
        size += sum(len(bytes(part)) for part in compressed.serialize(vortex.ArrayContext()))
        arrays.append(compressed)
    encode = time.thread_time() - start
    # Its Python API cannot read serialised arrays back, so decoding starts from the compressed array in
    # memory: no parsing.
    decode, got = best(lambda: [array.to_arrow_array() for array in arrays])
    first = got[0].combine_chunks() if isinstance(got[0], pa.ChunkedArray) else got[0]
    assert first.cast(chunks[0].type).equals(chunks[0]), "Vortex gave other values back"
    tree = arrays[0].display_tree() if hasattr(arrays[0], "display_tree") else ""
    return {"bytes": size, "decode": decode, "encode": encode,
            "encoding": " > ".join(re.findall(r"^\s*\w+: (?:vortex\.)?([\w.]+)\(", tree, re.M))}


def measure_parquet(chunks):
    files, start = [], time.thread_time()
    for chunk in chunks:
        out = io.BytesIO()
        pq.write_table(pa.table({"c": chunk}), out, compression="zstd", compression_level=3)
        files.append(out.getvalue())
    encode = time.thread_time() - start
    decode, _ = best(lambda: [pq.read_table(pa.BufferReader(file), use_threads=False) for file in files])
    return {"bytes": sum(map(len, files)), "decode": decode, "encode": encode}


def measure_zstd(chunks):
    raw = [buffers(chunk) for chunk in chunks]
    compressor, decompressor = zstandard.ZstdCompressor(level=3), zstandard.ZstdDecompressor()
    start = time.thread_time()
    stored = [[compressor.compress(part) for part in parts] for parts in raw]
    encode = time.thread_time() - start
    decode, _ = best(lambda: [[decompressor.decompress(part) for part in parts] for parts in stored])
    return {"bytes": sum(len(part) for parts in stored for part in parts), "decode": decode, "encode": encode}


def measure_ours(bench, folder, codec):
    done = subprocess.run([bench, "columns", folder, codec], check=True, stdout=subprocess.PIPE, text=True)
    figures = {}
    for line in done.stdout.splitlines():
        name, stored, flat, coded, encode, encoding = line.split("\t")
        figures[name] = {"bytes": int(stored), "decode": float(flat), "decode_coded": float(coded), "encode": float(encode),
                         "encoding": encoding}
    return figures


ARMS = ["ours", "ours+zstd", "vortex", "parquet", "zstd"]


def report(title, columns):
    """The table: ratio, decode and encode GB/s per column and arm, and the sums."""
    print(f"\n{title}; ratio = plain Arrow bytes / stored bytes, GB/s of plain Arrow bytes, one thread")
    print(f"{'':<16}{'plain':>7}  " + "".join(f"{'ratio':^{len(ARMS) * 7}}" + f"{'decode GB/s':^{len(ARMS) * 7}}" + f"{'encode GB/s':^{len(ARMS) * 7}}"))
    short = {"ours": "ours", "ours+zstd": "+zstd", "vortex": "vortex", "parquet": "parq", "zstd": "zstd"}
    print(f"{'column':<16}{'MB':>7}  " + "".join(f"{short[arm]:>7}" for _ in range(3) for arm in ARMS) + "   ours stored as")
    total = {"plain": sum(c["plain"] for c in columns.values())}
    for arm in ARMS:
        total[arm] = {key: sum(c[arm][key] for c in columns.values()) for key in ("bytes", "decode", "encode")}
    for name, column in [*columns.items(), ("TOTAL", total)]:
        plain = column["plain"]
        cells = [f"{plain / column[arm]['bytes']:>7.2f}" for arm in ARMS]
        cells += [f"{plain / column[arm][key] / 1e9:>7.2f}" for key in ("decode", "encode") for arm in ARMS]
        print(f"{name:<16}{plain / 1e6:>7.1f}  " + "".join(cells) + "   " + column["ours"].get("encoding", "")[:60])
    print("stored MB: " + ", ".join(f"{arm} {total[arm]['bytes'] / 1e6:.2f}" for arm in ARMS))


def run(name, table, bench, folder):
    data = folder / name
    data.mkdir(parents=True, exist_ok=True)
    manifest, columns = [], {}
    for field in table.schema:
        array = copied(table[field.name].combine_chunks() if table[field.name].num_chunks != 1 else table[field.name].chunk(0))
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0)
        stored = stored_metadata(array.to_pylist()) if field.name == "metadata" else array
        kind = write_column(stored, data / f"{field.name}.bin")
        manifest.append(f"{field.name}\t{kind}\t{len(array)}\t{field.name}.bin\n")
        step = CHUNKS[name]
        chunks = [copied(array.slice(start, step)) for start in range(0, len(array), step)]
        if sys.stderr.isatty():
            print(f"{name}.{field.name:<20}", end="\r", file=sys.stderr, flush=True)
        columns[field.name] = {
            "type": str(field.type), "rows": len(array), "plain": sum(len(part) for chunk in chunks for part in buffers(chunk)),
            "vortex": measure_vortex(chunks), "parquet": measure_parquet(chunks), "zstd": measure_zstd(chunks),
        }
    (data / "manifest").write_text("".join(manifest))
    for arm, codec in (("ours", "none"), ("ours+zstd", "zstd")):
        for column, figures in measure_ours(bench, data, codec).items():
            columns[column][arm] = figures
    (folder / f"{name}.json").write_text(json.dumps(columns, indent=1))
    report(f"{name}, {table.num_rows} rows", columns)


def main(bench, folder, rows):
    folder, rows = Path(folder), int(rows)
    if hasattr(vortex, "set_worker_threads"):
        vortex.set_worker_threads(1)
    pa.set_cpu_count(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    run("events", events(rows), bench, folder)
    run("lineitem", lineitem(rows * 2, folder), bench, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
