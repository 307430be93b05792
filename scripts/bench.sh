#!/usr/bin/env bash
# Runs a benchmark and prints its tables.
# Usage: scripts/bench.sh [events|open-scan|encodings]    (default: events, then open-scan)
set -euo pipefail
. "$(dirname "$0")/lib.sh"

"$ROOT/scripts/setup.sh"
find_cargo
export PYTHONPATH="$ROOT/scripts" PYTHONDONTWRITEBYTECODE=1

in_server() { # in_server PROGRAM: build and stage, then run it
    "$ROOT/scripts/build.sh" release
    DESTDIR=$TARGET/stage/release "$ROOT/scripts/install.sh" release
    "$ROOT/scripts/venv.sh" pyarrow duckdb ||
        warn "Python packages could not be installed: no Parquet and DuckDB figures"
    find_postgres
    python3 "$ROOT/bench/$1" "$TARGET/stage/release"
}

case ${1:-all} in
all)
    in_server events.py
    in_server open_scan.py
    ;;
events) in_server events.py ;;
open-scan) in_server open_scan.py ;;
encodings)
    if [ ! -x "$ROOT/bench/encodings.sh" ]; then die "bench/encodings.sh is not there yet"; fi
    exec "$ROOT/bench/encodings.sh"
    ;;
*) die "usage: scripts/bench.sh [events|open-scan|encodings]" ;;
esac
