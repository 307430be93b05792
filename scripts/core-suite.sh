#!/usr/bin/env bash
# Builds, stages and runs PostgreSQL's own test suite with colcompress as the default access method.
# Usage: scripts/core-suite.sh SOURCE [regress|isolation] [colcompress|heap]
# SOURCE is an unpacked PostgreSQL source tree; scripts/core_suite.py says what the results mean.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ "$#" -ge 1 ] || die "usage: scripts/core-suite.sh SOURCE [regress|isolation] [colcompress|heap]"
"$ROOT/scripts/setup.sh"
find_postgres
"$ROOT/scripts/build.sh" dev
DESTDIR=$TARGET/stage/dev "$ROOT/scripts/install.sh" dev
exec python3 "$ROOT/scripts/core_suite.py" "$TARGET/stage/dev" "$@"
