"""Checks the rules of ARCHITECTURE.md that no compiler checks. Called by scripts/lint.sh.

- Crates depend on each other only as LAYERS says; nothing below the PostgreSQL host reaches pgrx.
- Folders of the PostgreSQL host and of `query` ask only for those below them, as FLOORS and QUERY_FLOORS say.
- Version-specific code stays in crates/postgres/src/compat.
- `unsafe` stays in the folders that UNSAFE_ALLOWED names.
- Every source file says in a `//!` header what it owns; a file over LONG lines is reported.
- No committed file names a directory of somebody's machine.
Exit status 1 if a rule is broken; long files are only reported.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG = 600

LAYERS = {
    "vector": set(),
    "encodings": {"vector"},
    "stripe": {"vector", "encodings"},
    "query": {"vector"},
    "fuzz_targets": {"vector", "encodings", "stripe"},
    "encodings_bench": {"vector", "encodings", "stripe"},
    "colonnade": {"vector", "encodings", "stripe", "query"},
}
# Folders of crates/postgres/src from the ground up; `lib.rs` registers what they have and is asked by none.
FLOORS = ("host", "compat", "convert", "expressions", "options", "storage", "table_am", "planner", "executor",
          "vectorised", "verify")
# Files that ask for a folder above theirs all the same. One that no longer does is to be taken out.
RISING = {
    # Which of the server's main locks guards its shared memory differs by version.
    ("host/shared_memory.rs", "compat"),
}
# Folders of crates/query/src from the ground up, likewise. Files beside them are everybody's.
QUERY_FLOORS = ("kernels", "expression", "plan", "pipeline", "row_container", "operators", "execution")
PURE = {"vector", "encodings", "stripe", "query", "fuzz_targets"}
HOST_CRATES = re.compile(r"^(pgrx|pgrx-.*|libsqlite3-sys|rusqlite)$")
HOST_NAMES = re.compile(r"\b(pgrx|pg_sys)\b")
VERSION_SWITCH = re.compile(r"""feature\s*=\s*"pg\d+""")
UNSAFE = re.compile(r"\bunsafe\b")
UNSAFE_ALLOWED = (
    "crates/encodings/src/kernels",
    "crates/query/src/kernels",
    "crates/query/src/row_container",
    "crates/postgres/src/",
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home/\w+)/\w")
MACHINE_PATH_EXEMPT = ("scripts/check_layers.py",)


def metadata():
    done = subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked"], cwd=ROOT, check=True,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def check_dependencies(meta):
    members = set(meta["workspace_members"])
    packages = {p["id"]: p for p in meta["packages"]}
    names = {packages[m]["name"] for m in members}
    for member in members:
        package = packages[member]
        allowed = LAYERS.get(package["name"])
        if allowed is None:
            yield f"crate {package['name']} has no place in LAYERS of scripts/check_layers.py"
            continue
        for dependency in package["dependencies"]:
            if dependency["name"] in names - allowed:
                yield f"crate {package['name']} must not depend on {dependency['name']}"
    edges = {n["id"]: n["dependencies"] for n in meta["resolve"]["nodes"]}
    for member in members:
        if packages[member]["name"] not in PURE:
            continue
        reached, todo = set(), [member]
        while todo:
            node = todo.pop()
            if node not in reached:
                reached.add(node)
                todo += edges[node]
        for node in sorted(reached):
            if HOST_CRATES.match(packages[node]["name"]):
                yield f"pure crate {packages[member]['name']} reaches {packages[node]['name']}"


def folders_named(code):
    """Folders at the top of the crate that a source text names after `crate::`, in lists as well."""
    for found in re.finditer(r"\bcrate::(\w+|\{)", code):
        if found.group(1) != "{":
            yield found.group(1)
            continue
        depth, is_first = 1, True
        for token in re.findall(r"\w+|[{},]", code[found.end():]):
            depth += {"{": 1, "}": -1}.get(token, 0)
            if depth == 0:
                break
            if is_first and depth == 1 and token not in "{},":
                yield token
            is_first = depth == 1 and token == ","


def reexports(source):
    """Names that `lib.rs` gives out for all of the crate: the folder that each comes from."""
    code = "\n".join(code_of(line) for line in (source / "lib.rs").read_text(encoding="utf-8").splitlines())
    return {name: folder for folder, names in re.findall(r"\buse (?:self::)?(\w+)::([^;]+);", code)
            for name in re.findall(r"\w+", names)}


def check_floors(crate, floors, rising):
    """No folder of a crate asks for one above it, by its name or by one that `lib.rs` gives out."""
    source = ROOT / "crates" / crate / "src"
    for folder in sorted(path.name for path in source.iterdir() if path.is_dir()):
        if folder not in floors:
            yield f"crates/{crate}/src/{folder} has no place in the floors of scripts/check_layers.py"
    given_out, seen = reexports(source), set()
    for path in sorted(source.rglob("*.rs")):
        name = path.relative_to(source).as_posix()
        own = name.split("/")[0]
        if own not in floors:
            continue
        code = "\n".join(code_of(line) for line in path.read_text(encoding="utf-8").splitlines())
        named = {given_out.get(other, other) for other in folders_named(code)}
        for other in sorted(named & set(floors)):
            if floors.index(other) > floors.index(own):
                seen.add((name, other))
                if (name, other) not in rising:
                    yield f"crates/{crate}/src/{name}: asks for {other}, which is above {own}"
    for name, other in sorted(rising - seen):
        yield f"crates/{crate}/src/{name} does not ask for {other}: it needs no exception"


def code_of(line):
    """The line without its comment: rough, but `//` inside a string hides nothing these rules look for."""
    return line.split("//", 1)[0]


def check_sources():
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        name = path.relative_to(ROOT).as_posix()
        if "/target/" in name:
            continue
        crate = name.split("/")[1]
        lines = path.read_text(encoding="utf-8").splitlines()
        header = next((line for line in lines if line.strip() and not line.startswith("#!")), "")
        if not header.startswith("//!"):
            yield f"{name}: no //! header that says what the file owns"
        if len(lines) > LONG:
            print(f"note: {name} has {len(lines)} lines (more than {LONG}): one verb or algorithm a file")
        for number, line in enumerate(lines, 1):
            code = code_of(line)
            if crate in PURE and HOST_NAMES.search(code):
                yield f"{name}:{number}: a pure crate names the host's API"
            if VERSION_SWITCH.search(code) and not name.startswith("crates/postgres/src/compat"):
                yield f"{name}:{number}: code for one server version belongs below crates/postgres/src/compat"
            if UNSAFE.search(code) and not name.startswith(UNSAFE_ALLOWED):
                yield f"{name}:{number}: unsafe is allowed only below {', '.join(UNSAFE_ALLOWED)}"


def check_paths():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.split(b"\0")
    for raw in filter(None, files):
        name = raw.decode()
        if name in MACHINE_PATH_EXEMPT:
            continue
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                yield f"{name}:{number}: names a directory of one machine"


def main():
    floors = [*check_floors("postgres", FLOORS, RISING), *check_floors("query", QUERY_FLOORS, set())]
    faults = [*check_dependencies(metadata()), *floors, *check_sources(), *check_paths()]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    print(f"layers: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
