#!/usr/bin/env bash
# Builds, stages and runs PostgreSQL's own test suites with colcompress as the default access method.
# Usage: scripts/core-suite.sh [regress|isolation|cold]...
# The suites come with PostgreSQL's source: SOURCE=DIRECTORY names an unpacked tree, else Debian's source
# package of the version is fetched into target/ (of 16 there is none). scripts/core_suite.py says what the
# results mean.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"

"$ROOT/scripts/setup.sh"
find_postgres
find_source
"$ROOT/scripts/build.sh" dev
stage=$("$ROOT/scripts/stage.sh" dev)
exec python3 "$ROOT/scripts/core_suite.py" "$stage" "$SOURCE" "$@"
