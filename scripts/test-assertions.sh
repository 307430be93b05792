#!/usr/bin/env bash
# Builds PostgreSQL with assertions and runs suites on it: no assertion of the server's may fail.
# Usage: scripts/test-assertions.sh [regress|isolation|changes|postgres]... (default: all)
# The source is found as for `make test-postgres`, and scripts/assertions.sh builds it, once.
# Only crashes count: an expected output may name what this build has not (lz4 and zstd for TOAST, for one).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"
. "$(dirname "$0")/assertions.sh"

assertion_server
suites=("$@")
if [ "${#suites[@]}" -eq 0 ]; then suites=(regress isolation changes postgres); fi
status=0
for suite in "${suites[@]}"; do
    log=$TARGET/$suite.log
    say "$suite with assertions (log: $log)"
    case $suite in
    postgres) python3 "$ROOT/scripts/core_suite.py" "$TARGET/stage" "$SOURCE" regress isolation >"$log" 2>&1 || true ;;
    *) python3 "$ROOT/scripts/run_tests.py" --stage "$TARGET/stage" "$suite" >"$log" 2>&1 || true ;;
    esac
    tail -n 1 "$log"
    if grep -nE 'TRAP:|terminated by signal|PANIC:|the server crashed' "$log"; then
        echo "not ok assertions/$suite"
        status=1
    else
        echo "ok assertions/$suite"
    fi
done
exit "$status"
