#!/usr/bin/env bash
# Runs a benchmark and prints its tables; suites also write JSON, SVG and PNG to target/bench,
# or to target/pgN/bench on a server of another major version than 15.
# Usage: scripts/bench.sh
# [all|events|open-scan|tpch|clickbench|device|majors|small|cold|oltp|htap|columnstore|column-files|parquet-copy|parquet-tables|packing|loads|plans|uint8|encodings|sqlite|sqlite-tpch]
# Default: all, which is sizes and events, then open-scan. What each takes from the environment is said at its
# top: bench/events.py, tpch.py, clickbench.py, device.py, majors.py, small.py, cold_changes.py, oltp.py,
# htap.py, columnstore.py, columnstore_events.py, column_files.py, parquet_copy.py, parquet_tables.py,
# packing.py, loads.py, open_scan.py, plans.py, uint8.py, sqlite.py. PROFILE=dev takes the quick build.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

"$ROOT/scripts/setup.sh"
find_cargo
find_postgres
export PYTHONPATH="$ROOT/scripts" PYTHONDONTWRITEBYTECODE=1

in_server() { # in_server PROGRAM PACKAGE...: build and stage, install the Python packages, then run it
    local program=$1 stage
    shift
    "$ROOT/scripts/build.sh" "${PROFILE:-release}"
    stage=$("$ROOT/scripts/stage.sh" "${PROFILE:-release}")
    if [ "$#" -gt 0 ]; then
        "$ROOT/scripts/venv.sh" "$@" ||
            warn "Python packages could not be installed: no figures of Parquet and DuckDB, or no charts"
    fi
    python3 "$ROOT/bench/$program" "$stage"
}

draw() { # draw SUITE: the bars of a suite that this script ran itself
    if ! "$ROOT/scripts/venv.sh" matplotlib; then
        warn "no chart"
        return
    fi
    "$TARGET/venv/bin/python" "$ROOT/bench/chart.py" "$TARGET/bench/$1.json"
}

# Hyper is not free software: it is installed for who asks for it.
hyper=()
if [ "${HYPER:-}" = 1 ]; then hyper=(tableauhyperapi); fi

case ${1:-all} in
all)
    in_server events.py pyarrow duckdb pytz matplotlib "${hyper[@]}"
    "$TARGET/venv/bin/python" "$ROOT/bench/picture.py" "$BY_MAJOR/bench/events.json" "$BY_MAJOR/bench/README.svg" || warn "no picture"
    in_server open_scan.py
    ;;
events) LOADS=${LOADS:-1} SIZES=${SIZES:-0} in_server events.py duckdb pytz matplotlib "${hyper[@]}" ;;
tpch) in_server tpch.py duckdb pytz matplotlib tpchgen-cli "${hyper[@]}" ;;
clickbench) in_server clickbench.py duckdb pytz matplotlib numpy pyarrow ;;
majors)
    for major in ${MAJORS:-15 16 17 18}; do
        (
            export PG_CONFIG='' PG=$major
            "$ROOT/scripts/build.sh" "${PROFILE:-release}" && "$ROOT/scripts/stage.sh" "${PROFILE:-release}"
        )
    done
    "$ROOT/scripts/venv.sh" duckdb pytz tpchgen-cli numpy pyarrow
    PG_CONFIG='' PG=15 python3 "$ROOT/bench/majors.py"
    ;;
device) SF=${SF:-10} in_server device.py duckdb pytz tpchgen-cli ;;
open-scan) in_server open_scan.py ;;
small) in_server small.py ;;
cold) in_server cold_changes.py ;;
oltp) in_server oltp.py ;;
htap) in_server htap.py ;;
column-files) in_server column_files.py tpchgen-cli matplotlib ;;
parquet-copy) in_server parquet_copy.py duckdb pytz tpchgen-cli ;;
parquet-tables) in_server parquet_tables.py duckdb pytz tpchgen-cli matplotlib ;;
columnstore)
    in_server columnstore.py tpchgen-cli matplotlib
    if [ -z "${STEP:-}" ]; then in_server columnstore_events.py; fi
    ;;
uint8) in_server uint8.py numpy pyarrow ;;
packing) in_server packing.py ;;
sqlite-tpch)
    "$ROOT/scripts/venv.sh" apsw duckdb tpchgen-cli
    find_cargo
    (cd "$ROOT" && cargo build --locked --release -p colonnade_sqlite)
    mkdir -p "$TARGET/bench"
    "$TARGET/venv/bin/python" "$ROOT/bench/sqlite_tpch.py" "$TARGET/release/libcolonnade_sqlite.so" "$TARGET/bench/sqlite-tpch.json"
    draw sqlite-tpch
    ;;
sqlite)
    say "building the extension for SQLite (release profile)"
    (cd "$ROOT" && cargo build --locked --release -p colonnade_sqlite)
    "$ROOT/scripts/venv.sh" apsw duckdb pyarrow
    "$TARGET/venv/bin/python" "$ROOT/bench/sqlite.py" "$TARGET/release/libcolonnade_sqlite.so" "$TARGET/bench/sqlite.json"
    draw sqlite
    ;;
plans) PROFILE=${PROFILE:-dev} in_server plans.py tpchgen-cli numpy pyarrow ;;
loads) in_server loads.py duckdb tpcgen-cli ;;
encodings)
    if [ ! -x "$ROOT/bench/encodings.sh" ]; then die "bench/encodings.sh is not there yet"; fi
    exec "$ROOT/bench/encodings.sh"
    ;;
*) die "usage: scripts/bench.sh [all|events|open-scan|tpch|clickbench|device|majors|small|cold|oltp|htap|columnstore|column-files|parquet-copy|parquet-tables|packing|loads|plans|uint8|encodings|sqlite|sqlite-tpch]" ;;
esac
