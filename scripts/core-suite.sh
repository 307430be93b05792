#!/usr/bin/env bash
# Builds, stages and runs PostgreSQL's own test suites with colcompress as the default access method.
# Usage: scripts/core-suite.sh [regress|isolation|cold]... The suites come with PostgreSQL's source:
# SOURCE=DIRECTORY names an unpacked tree, else Debian's source package of the version is fetched into target/
# (of 16 there is none). scripts/core_suite.py says what the results mean. A suite asks about faults that its
# own minor version has mended, and may end an older server: that of 18.6 ends 18.4. So from 17 on the server
# that runs is built from the same source, with assertions. On 15 it is Debian's.
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
