#!/usr/bin/env bash
# Runs the test suites and ends with one line: "N passed, N failed".
# Usage: scripts/test.sh [SUITE]... The suites are units, regress, isolation, crash, scripts and sqlite, which
# are the default (crash, sqlite and the generated queries in their short form), and those that are asked for
# by name: host-units the units of the extension's own crate: what is left of them on another major version
# crash-long crash in its long form sqlite-long sqlite in its long form: the extension of SQLite in the SQLite
# libraries that are there differential the generated queries in their long form (DURATION=seconds,
# SEED=number) changes the generated changes in their long form (STATEMENTS=number, SEED=number) spilling
# tests/spilling.py in its long form (ROWS=number), on the optimised build sqlsmith takes a DURATION, too; it
# needs Debian's package of that name, which it installs clients runs the Python of docs/clients.md with
# packages from PyPI upgrades pg_upgrade between majors (PAIRS='15-17 17-18' MODES='copy link'); it builds for
# each packages tests/packages.py on the optimised build (PG_MAJORS='15 16 17 18'); it installs lintian
# NO_BUILD=1 tests what is built already. TESTS='NAME FOLDER FOLDER/NAME' limits the suites of files to those;
# ACCEPT=1 writes what they print as expected.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

suites=("$@")
if [ "${#suites[@]}" -eq 0 ]; then suites=(units regress isolation crash scripts sqlite); fi

"$ROOT/scripts/setup.sh"
if [[ " ${suites[*]} " == *" sqlsmith "* ]] && ! command -v sqlsmith >/dev/null; then apt-get install -y --no-install-recommends sqlsmith; fi
if [[ " ${suites[*]} " == *" packages "* ]] && ! command -v lintian >/dev/null; then
    as_root apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install lintian
fi
if [[ " ${suites[*]} " == *" scripts "* ]]; then "$ROOT/scripts/venv.sh" duckdb pyarrow polars; fi
if [[ " ${suites[*]} " == *" clients "* ]]; then "$ROOT/scripts/venv.sh" sqlalchemy psycopg psycopg-binary pandas django; fi
find_cargo
find_postgres
find_libclang
profile=dev
# The times of the one are held against heap's, the other packs what users get.
if [ "${suites[*]}" = spilling ] || [ "${suites[*]}" = packages ]; then profile=release; fi
if [[ " ${suites[*]} " == *" upgrades "* ]]; then
    for major in $(tr -s ' -' '\n' <<<"${PAIRS:-${MAJORS:-15 16 17 18}}" | sort -u); do
        PG_CONFIG='' PG=$major "$ROOT/scripts/build.sh" "$profile"
    done
fi
tests=
if [[ " ${suites[*]} " == *"units "* ]]; then tests=tests; fi
if [[ " ${suites[*]} " == *" scripts "* ]] && [ -z "${NO_BUILD:-}" ]; then
    cargo build --locked --manifest-path "$ROOT/Cargo.toml" -p colonnade_program
fi
if [[ " ${suites[*]} " == *" sqlite"* ]]; then
    if [ -z "${NO_BUILD:-}" ]; then "$ROOT/scripts/build-sqlite.sh"; fi
    "$ROOT/scripts/venv.sh" apsw tpchgen-cli duckdb
fi
for suite in "${suites[@]}"; do
    if [[ $suite != *units && $suite != sqlite* ]]; then
        if [ -z "${NO_BUILD:-}" ]; then "$ROOT/scripts/build.sh" "$profile" $tests; fi
        stage=$("$ROOT/scripts/stage.sh" "$profile")
        break
    fi
done
exec python3 "$ROOT/scripts/run_tests.py" --stage "${stage:-none}" "${suites[@]}"
