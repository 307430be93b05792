#!/usr/bin/env bash
# Runs the test suites and ends with one line: "N passed, N failed".
# Usage: scripts/test.sh
# [units|regress|isolation|crash|crash-long|scripts|differential|changes|spilling|sqlsmith|clients]...
# Default: all of them, crash and the generated queries in their short form; "differential" is their long one
# (DURATION=seconds, SEED=number), "changes" that of the generated changes (STATEMENTS=number, SEED=number),
# "spilling" that of tests/spilling.py (ROWS=number); "sqlsmith" takes a DURATION too and needs Debian's
# package of that name, which it installs; "clients" runs the Python of docs/clients.md with packages from
# PyPI. TESTS='name name' limits the file-based suites to those files; ACCEPT=1 writes what they print as
# expected.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

suites=("$@")
if [ "${#suites[@]}" -eq 0 ]; then suites=(units regress isolation crash scripts); fi

"$ROOT/scripts/setup.sh"
if [[ " ${suites[*]} " == *" sqlsmith "* ]] && ! command -v sqlsmith >/dev/null; then apt-get install -y --no-install-recommends sqlsmith; fi
if [[ " ${suites[*]} " == *" clients "* ]]; then "$ROOT/scripts/venv.sh" sqlalchemy psycopg psycopg-binary pandas django; fi
find_cargo
find_postgres
find_libclang
profile=dev
# Its times are held against heap's.
if [ "${suites[*]}" = spilling ]; then profile=release; fi
for suite in "${suites[@]}"; do
    if [ "$suite" != units ]; then
        "$ROOT/scripts/build.sh" "$profile"
        DESTDIR=$TARGET/stage/$profile "$ROOT/scripts/install.sh" "$profile"
        break
    fi
done
exec python3 "$ROOT/scripts/run_tests.py" --stage "$TARGET/stage/$profile" "${suites[@]}"
