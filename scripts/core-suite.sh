#!/usr/bin/env bash
# Builds, stages and runs PostgreSQL's own test suites with colcompress as the default access method.
# Usage: scripts/core-suite.sh [regress|isolation|cold]...
# The suites come with PostgreSQL's source: SOURCE=DIRECTORY names an unpacked tree, else Debian's source
# package of the version is fetched into target/ (of 16 there is none). scripts/core_suite.py says what the
# results mean.
# A suite asks about what its own minor version has mended, and may end an older server. So where the server
# that was found is another one (17 and 18), the one that runs is built from the source, with assertions.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"
. "$(dirname "$0")/assertions.sh"

"$ROOT/scripts/setup.sh"
find_postgres
if [ "$PG_MAJOR" -ge 17 ]; then
    assertion_server
    stage=$TARGET/stage
else
    find_source
    "$ROOT/scripts/build.sh" dev
    stage=$("$ROOT/scripts/stage.sh" dev)
fi
exec python3 "$ROOT/scripts/core_suite.py" "$stage" "$SOURCE" "$@"
