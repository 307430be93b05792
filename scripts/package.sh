#!/usr/bin/env bash
# Makes the packages of the extension in target/packages.
# Usage: scripts/package.sh [dev|release]
# For each major version of PostgreSQL these are a .deb, a .deb with its symbols, and a tar.gz.
#   PG_MAJORS='15 16 17 18'  the major versions; default: the one that the other scripts build for
#   REVISION=2               the number of the package of one version; default: 1
#   OUT=DIRECTORY            another place for the packages
#   NO_BUILD=1               packs what is built already
#   SOURCE_DATE_EPOCH=n      the time of all files in the packages; default: that of the last commit
# Packages of the dev profile are for tests: they are larger and soon made.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

profile=${1:-release}
case $profile in
dev) quick=--quick ;;
release) quick= ;;
*) die "usage: scripts/package.sh [dev|release]" ;;
esac
for tool in dpkg-deb objcopy strip readelf; do
    command -v "$tool" >/dev/null 2>&1 || die "packages are made on Debian or Ubuntu with binutils: no $tool"
done
find_cargo
out=${OUT:-$TARGET/packages}
SOURCE_DATE_EPOCH=$(source_date)
export SOURCE_DATE_EPOCH
if [ -z "${NO_BUILD:-}" ]; then "$ROOT/scripts/setup.sh"; fi

package_one() ( # package_one MAJOR|'': for that major version, else for the server that is chosen already
    if [ -n "$1" ]; then
        chosen=$(find_postgres >/dev/null 2>&1 && echo "$PG_MAJOR") || chosen=none
        if [ "$chosen" != "$1" ]; then
            unset PG_CONFIG
            export PG=$1
        fi
    fi
    find_postgres
    if [ "${1:-$PG_MAJOR}" != "$PG_MAJOR" ]; then die "no PostgreSQL $1 was found: $PG_CONFIG is $PG_MAJOR"; fi
    if [ -z "${NO_BUILD:-}" ]; then "$ROOT/scripts/build.sh" "$profile"; fi
    built=$(built_library "$profile")
    [ -f "$built" ] || die "$built is not built yet: run scripts/build.sh $profile"
    say "packages for PostgreSQL $PG_MAJOR"
    python3 -B "$ROOT/scripts/package.py" ${quick:+"$quick"} "$built" "$PG_MAJOR" "$out"
)

if [ -z "${PG_MAJORS:-}" ]; then
    package_one ''
else
    for major in $PG_MAJORS; do package_one "$major"; done
fi
