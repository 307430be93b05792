#!/usr/bin/env bash
# Builds the extension for SQLite with the dev profile. Usage: scripts/build-sqlite.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"

find_cargo
say "building the extension for SQLite (dev profile)"
cd "$ROOT"
cargo build --locked -p colonnade_sqlite
