"""Checks that every crate we link may be used under Apache-2.0. Called by scripts/lint.sh.

The licence of each package in the lock file, as `cargo metadata` gives it, is an SPDX expression; it passes
if ALLOWED can satisfy it. Development-only crates are held to the same list: one list is simpler to trust.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT",
    "MIT-0", "PostgreSQL", "Unicode-3.0", "Unicode-DFS-2016", "Unlicense", "Zlib",
}
TOKEN = re.compile(r"\s*(\(|\)|[A-Za-z0-9.+-]+)")


def satisfied(expression):
    """Whether ALLOWED satisfies an SPDX expression (AND, OR, WITH, parentheses; "/" is the old OR)."""
    tokens = TOKEN.findall(expression.replace("/", " OR "))
    value, rest = _or(tokens)
    if rest:
        raise ValueError(f"cannot read the licence expression {expression!r}")
    return value


def _or(tokens):
    value, tokens = _and(tokens)
    while tokens and tokens[0] == "OR":
        other, tokens = _and(tokens[1:])
        value = value or other
    return value, tokens


def _and(tokens):
    value, tokens = _one(tokens)
    while tokens and tokens[0] == "AND":
        other, tokens = _one(tokens[1:])
        value = value and other
    return value, tokens


def _one(tokens):
    if not tokens:
        raise ValueError("a licence expression ends too early")
    if tokens[0] == "(":
        value, tokens = _or(tokens[1:])
        if not tokens or tokens[0] != ")":
            raise ValueError("a parenthesis is not closed")
        return value, tokens[1:]
    name, tokens = tokens[0], tokens[1:]
    if len(tokens) >= 2 and tokens[0] == "WITH":
        name, tokens = f"{name} WITH {tokens[1]}", tokens[2:]
    return name in ALLOWED, tokens


def main():
    done = subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"], cwd=ROOT,
                          check=True, stdout=subprocess.PIPE, text=True)
    faults = 0
    packages = json.loads(done.stdout)["packages"]
    for package in packages:
        licence = package.get("license")
        try:
            good = bool(licence) and satisfied(licence)
        except ValueError as error:
            print(f"error: {package['name']}: {error}", file=sys.stderr)
            good = False
        if not good:
            faults += 1
            print(f"error: {package['name']} {package['version']} has the licence {licence or 'unknown'}, "
                  "which scripts/check_licences.py does not allow", file=sys.stderr)
    print(f"licences: {len(packages)} packages, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
