#!/usr/bin/env bash
# Builds, stages and runs PostgreSQL's own test suites with colcompress as the default access method.
# Usage: scripts/core-suite.sh [regress|isolation|cold]...
# The suites come with PostgreSQL's source: SOURCE=DIRECTORY names an unpacked tree, else the distribution's
# source package of the installed version is fetched into target/. scripts/core_suite.py says what the results
# mean.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"

"$ROOT/scripts/setup.sh"
find_postgres
find_source
"$ROOT/scripts/build.sh" dev
DESTDIR=$TARGET/stage/dev "$ROOT/scripts/install.sh" dev
exec python3 "$ROOT/scripts/core_suite.py" "$TARGET/stage/dev" "$SOURCE" "$@"
