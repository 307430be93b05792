#!/usr/bin/env bash
# Makes the source package for PGXN: target/packages/colonnade-VERSION.zip, of the last commit.
# Usage: scripts/dist.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"

git -C "$ROOT" rev-parse --git-dir >/dev/null 2>&1 || die "the source package is made of a git repository"
python3 -B "$ROOT/scripts/check_meta.py" || die "META.json is not fit for PGXN"
if [ -n "$(git -C "$ROOT" status --porcelain)" ]; then warn "what is not committed is left out"; fi
version=$(sed -nE 's/^version = "(.*)"$/\1/p' "$ROOT/Cargo.toml" | head -n 1)
out=${OUT:-$TARGET/packages}
mkdir -p "$out"
# A zip has local times.
zip=$out/colonnade-$version.zip
TZ=UTC git -C "$ROOT" archive --format=zip -9 --prefix="colonnade-$version/" -o "$zip" HEAD
say "made $zip ($(du -k "$zip" | cut -f1) kB)"
