#!/usr/bin/env bash
# Builds, stages and runs PostgreSQL's own test suites with colcompress as the default access method.
# Usage: scripts/core-suite.sh [regress|isolation|cold]...
# The suites come with PostgreSQL's source: SOURCE=DIRECTORY names an unpacked tree, else the distribution's source package of the
# installed version is fetched into target/. scripts/core_suite.py says what the results mean.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

"$ROOT/scripts/setup.sh"
find_postgres
if [ -z "${SOURCE:-}" ]; then
    version=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9.]+).*/\1/')
    SOURCE=$TARGET/postgresql-source/postgresql-${version%%.*}-$version
    if [ ! -d "$SOURCE" ]; then
        say "fetching the source of PostgreSQL $version"
        mkdir -p "$TARGET/postgresql-source"
        package=$(dpkg-query -W -f '${source:Version}' "postgresql-${version%%.*}" 2>/dev/null) || die "the source package is not known here: set SOURCE to an unpacked source tree"
        (cd "$TARGET/postgresql-source" && apt-get source --only-source "postgresql-${version%%.*}=$package") ||
            die "no source package of this version: set SOURCE to an unpacked source tree of PostgreSQL $version"
    fi
fi
"$ROOT/scripts/build.sh" dev
DESTDIR=$TARGET/stage/dev "$ROOT/scripts/install.sh" dev
exec python3 "$ROOT/scripts/core_suite.py" "$TARGET/stage/dev" "$SOURCE" "$@"
