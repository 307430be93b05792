#!/usr/bin/env bash
# Size and speed of the encodings: each one beside a memcpy, then the columns of the events table and of
# TPC-H's lineitem beside Vortex, zstd Parquet and plain zstd. Tables on the screen, figures in
# target/bench-encodings/*.json.
# Called by `make bench-encodings`. ROWS=n takes another number of rows of each table (default 393216).
set -euo pipefail
. "$(dirname "$0")/../scripts/lib.sh"

find_cargo
cargo build --release --locked -q -p encodings_bench
bench=$TARGET/release/encodings_bench
mkdir -p "$TARGET/bench-encodings"
"$bench" micro | tee "$TARGET/bench-encodings/micro.txt"
"$bench" stripes | tee "$TARGET/bench-encodings/stripes.txt"
if ! "$ROOT/scripts/venv.sh" pyarrow numpy vortex-data zstandard tpchgen-cli; then
    warn "Python packages could not be installed: no figures of Vortex, Parquet and zstd"
    exit 0
fi
exec "$TARGET/venv/bin/python" "$ROOT/bench/encodings.py" "$bench" "$TARGET/bench-encodings" "${ROWS:-393216}"
