#!/usr/bin/env bash
# Builds the extension's shared library for the server that PG_CONFIG names.
# Usage: scripts/build.sh [dev|release]
set -euo pipefail
. "$(dirname "$0")/lib.sh"

profile=${1:-dev}
case $profile in
dev | release) ;;
*) die "usage: scripts/build.sh [dev|release]" ;;
esac

find_cargo
find_postgres
find_libclang
build_flags
say "building the extension for PostgreSQL $PG_MAJOR ($profile profile)"
cd "$ROOT"
cargo build --locked --profile "$profile" "${BUILD_FLAGS[@]}"
