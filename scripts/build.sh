#!/usr/bin/env bash
# Builds the extension's shared library for the chosen server (PG or PG_CONFIG) and keeps it in target/built/.
# Usage: scripts/build.sh [dev|release] [tests]
# `tests` compiles the extension's own unit tests beside it: each of the two keeps one processor busy.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

profile=${1:-dev}
case $profile in
dev | release) ;;
*) die "usage: scripts/build.sh [dev|release] [tests]" ;;
esac
targets=()
if [ "${2:-}" = tests ]; then targets=(--lib --tests); fi

find_cargo
find_postgres
find_libclang
build_flags
say "building the extension for PostgreSQL $PG_MAJOR ($profile profile)"
cd "$ROOT"
# All versions are built in one target/: what they share is compiled once, and cargo keeps the rest apart. But
# the library itself has one name there, so that a copy by version is kept. The lock is for two builds at
# once.
library=$(built_library "$profile")
mkdir -p "$(dirname "$library")"
exec 9>"$TARGET/built/lock"
flock 9
cargo build --locked --profile "$profile" "${BUILD_FLAGS[@]}" "${targets[@]}"
made=$TARGET/${profile/dev/debug}/libcolonnade.so
"$ROOT/scripts/check_symbols.sh" "$made"
# A new file, as a server may have the old one mapped.
if ! cmp -s "$made" "$library"; then
    cp "$made" "$library.new"
    mv -f "$library.new" "$library"
fi
