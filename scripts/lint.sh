#!/usr/bin/env bash
# Everything that can be judged without running the code; each check runs even if an earlier one failed.
# Usage: scripts/lint.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"

"$ROOT/scripts/setup.sh" lint
find_cargo
find_postgres
find_libclang
cd "$ROOT"

passed=0
failed=()
check() { # check NAME COMMAND...
    local name=$1
    shift
    say "lint: $name"
    if "$@"; then passed=$((passed + 1)); else failed+=("$name"); fi
}

shell_scripts() {
    local file status=0
    for file in scripts/*.sh bench/*.sh .ci/run; do
        [ -f "$file" ] || continue
        bash -n "$file" || status=1
    done
    if command -v shellcheck >/dev/null 2>&1; then
        shellcheck -x -P SCRIPTDIR scripts/*.sh .ci/run || status=1
    else
        warn "shellcheck is not installed: only the syntax was checked"
    fi
    return "$status"
}

python_scripts() {
    python3 - <<'PYTHON'
import ast, pathlib, sys
faults = 0
for folder in ("scripts", "bench", "tests"):
    for path in sorted(pathlib.Path(folder).rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        except SyntaxError as error:
            print(f"error: {error}", file=sys.stderr)
            faults += 1
            continue
        if path.name != "__init__.py" and ast.get_docstring(tree) is None:
            print(f"error: {path}: no docstring that says what the file owns", file=sys.stderr)
            faults += 1
sys.exit(1 if faults else 0)
PYTHON
}

if command -v rustup >/dev/null 2>&1; then
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
fi
build_flags

check rustfmt cargo fmt --all --check
check layers python3 scripts/check_layers.py
check documents python3 scripts/check_docs.py
check PGXN python3 scripts/check_meta.py
check width python3 scripts/check_width.py
check licences python3 scripts/check_licences.py
check shell shell_scripts
check python python_scripts
check clippy cargo clippy --locked --workspace --exclude colonnade --all-targets -- -D warnings
check clippy-extension cargo clippy --locked "${BUILD_FLAGS[@]}" -- -D warnings

if [ "${#failed[@]}" -gt 0 ]; then say "failed: ${failed[*]}"; fi
echo "lint: $passed passed, ${#failed[@]} failed"
[ "${#failed[@]}" -eq 0 ]
