#!/usr/bin/env bash
# Builds the extension for SQLite, optimised, and makes a Python wheel of it in target/packages.
# Usage: scripts/wheel.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"

"$ROOT/scripts/setup.sh"
find_cargo
say "building the extension for SQLite (release profile)"
(cd "$ROOT" && cargo build --locked --release -p colonnade_sqlite)
library=$TARGET/built/colonnade_sqlite.so
mkdir -p "$TARGET/built"
# Without the names of what it does not export, it has half the size.
strip --strip-unneeded -o "$library" "$TARGET/release/libcolonnade_sqlite.so"
python3 "$ROOT/scripts/wheel.py" "$library" "$TARGET/packages"
