#!/usr/bin/env bash
# Builds the extension for SQLite so that it takes any checksum, and asks it about damaged stripes. Usage:
# scripts/fuzz-sqlite.sh; DURATION=seconds (3600), SEED=number.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

"$ROOT/scripts/setup.sh"
find_cargo
say "building the extension for SQLite without checksums"
(cd "$ROOT" && RUSTFLAGS="${RUSTFLAGS:-} --cfg fuzzing" CARGO_TARGET_DIR="$TARGET/fuzzing" cargo build --locked -p colonnade_sqlite)
export COLONNADE_SQLITE="$TARGET/fuzzing/debug/libcolonnade_sqlite.so"
export PYTHONPATH="$ROOT/scripts" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$ROOT/tests/long/fuzz_sqlite.py"
