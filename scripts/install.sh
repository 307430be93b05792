#!/usr/bin/env bash
# Copies the built library, the control file and the SQL scripts to where the server looks for them.
# Usage: DESTDIR=... scripts/install.sh [dev|release]
# With DESTDIR the same tree is made below that directory: how the private servers get their copy.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

profile=${1:-release}
find_postgres
destdir=${DESTDIR:-}
libdir=$destdir$("$PG_CONFIG" --pkglibdir)
extdir=$destdir$("$PG_CONFIG" --sharedir)/extension
built=$(built_library "$profile")
[ -f "$built" ] || die "$built is not built yet: run scripts/build.sh $profile"

# Whatever the caller's umask is, another user runs the server and must be able to read this.
umask 022
run=()
if [ -z "$destdir" ] && { [ ! -w "$libdir" ] || [ ! -w "$extdir" ]; }; then run=(as_root); fi
"${run[@]}" mkdir -p "$libdir" "$extdir"
# install(1) makes a new file, so a server that has the old library mapped keeps running on it.
"${run[@]}" install -m 755 "$built" "$libdir/colonnade.so"
"${run[@]}" install -m 644 "$ROOT"/crates/postgres/colonnade.control "$ROOT"/crates/postgres/sql/colonnade--*.sql "$extdir/"
if [ -z "$destdir" ]; then
    say "installed $libdir/colonnade.so and the files in $extdir"
fi
