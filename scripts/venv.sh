#!/usr/bin/env bash
# Makes target/venv with the Python packages named; fails, quickly and politely, where there is no network.
# Usage: scripts/venv.sh PACKAGE...
set -euo pipefail
. "$(dirname "$0")/lib.sh"

venv=$TARGET/venv
# A venv whose base Python went away is there but does not run.
if ! "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; then python3 -m venv --clear "$venv"; fi
missing=()
for package in "$@"; do
    "$venv/bin/python" -m pip show -q "$package" >/dev/null 2>&1 || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0
say "installing Python packages into target/venv: ${missing[*]}"
"$venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: "${missing[@]}"
