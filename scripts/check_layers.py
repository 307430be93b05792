"""Checks the rules of ARCHITECTURE.md that no compiler checks. Called by scripts/lint.sh.

- Crates depend on each other only as LAYERS says; nothing below the PostgreSQL host reaches pgrx.
- Rooms of a folder ask only for those below them, as FLOORS says.
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
    "server_bytes": {"vector"},
    "encodings": {"vector", "server_bytes"},
    "stripe": {"vector", "server_bytes", "encodings"},
    "query": {"vector"},
    "files": {"vector", "server_bytes", "encodings", "stripe"},
    "colonnade_program": {"vector", "files"},
    "fuzz_targets": {"vector", "server_bytes", "encodings", "stripe", "files"},
    "encodings_bench": {"vector", "encodings", "stripe"},
    "colonnade": {"vector", "server_bytes", "encodings", "stripe", "files", "query"},
    "colonnade_sqlite": {"vector", "encodings", "stripe", "query", "files"},
}
# Rooms (folders and files) of a folder, from the ground up: each asks only for those before it. A file that
# is not named, `lib.rs` and `mod.rs`, may ask for all and is asked by none but its own folder's files.
FLOORS = {
    "crates/query/src": ("kernels", "expression", "plan", "pipeline", "row_container", "operators", "execution",
                         "explain"),
    "crates/postgres/src": ("compat", "host", "convert", "uint8", "expressions", "options", "storage", "table_am",
                            "columnstore", "fdw", "transfer", "planner", "scan", "vectorised", "verify"),
    "crates/sqlite/src": ("api", "values", "declaration", "storage", "scan", "engine", "table", "sql", "transfer",
                          "functions"),
    "crates/postgres/src/storage": ("file", "catalog", "directory", "column_file", "parquet_file", "published",
                                    "decoding", "space", "change", "read", "pending_rows"),
    "crates/postgres/src/table_am": ("maintain", "read", "change", "index", "rewrite", "statements", "packing",
                                     "health", "utility_hook", "hooks", "routine"),
    "crates/postgres/src/scan": ("clauses", "datums", "hot", "store", "last", "groups", "others", "stripes", "table",
                                 "fill_batch", "explain", "rows", "vectors"),
}
# Files that ask for a room above theirs all the same. One that no longer does is to be taken out.
RISING = set()
PURE = {"vector", "server_bytes", "encodings", "stripe", "query", "files", "colonnade_program", "fuzz_targets"}
HOST_CRATES = re.compile(r"^(pgrx|pgrx-.*|libsqlite3-sys|rusqlite)$")
HOST_NAMES = re.compile(r"\b(pgrx|pg_sys)\b")
VERSION_SWITCH = re.compile(r"""feature\s*=\s*"pg\d+""")
USE = re.compile(r"^([ \t]*)(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.M)
PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
UNSAFE = re.compile(r"\bunsafe\b")
UNSAFE_ALLOWED = (
    "crates/encodings/src/kernels",
    "crates/query/src/kernels",
    "crates/query/src/row_container",
    "crates/postgres/src/",
    "crates/sqlite/src/api",
    "crates/sqlite/src/lib.rs",
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


def leaves(tree, start=()):
    """The paths of a use tree, as tuples of names."""
    head, brace, rest = tree.partition("{")
    names = start + tuple(name for name in re.findall(r"\w+|\*", head.split(" as ")[0]))
    if not brace:
        yield names
        return
    depth, piece = 0, ""
    for letter in rest[:rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if piece.strip():
                yield from leaves(piece, names)
            piece = ""
        else:
            piece += letter


def named(module, code):
    """What the code of a module asks for in its own crate, as paths from the crate's root."""
    trees = [(found.group(1), found.group(2)) for found in USE.finditer(code)]
    paths = [(module + ("inner",) if indent else module, path) for indent, tree in trees for path in leaves(tree)]
    paths += [(module, tuple(found.group(0).split("::"))) for found in PATH.finditer(USE.sub("", code))]
    for start, path in paths:
        if path[0] == "crate":
            yield path[1:]
        elif path[0] in ("super", "self"):
            ups = sum(name == "super" for name in path)
            yield start[:len(start) - ups] + path[1 if path[0] == "self" else ups:]


def reexports(source):
    """Names that `lib.rs` gives out for all of the crate: the folder that each comes from."""
    code = "\n".join(code_of(line) for line in (source / "lib.rs").read_text(encoding="utf-8").splitlines())
    return {name: folder for folder, names in re.findall(r"\buse (?:self::)?(\w+)::([^;]+);", code)
            for name in re.findall(r"\w+", names)}


def check_floors():
    """No room of a folder of FLOORS asks for one above it, by its name or by one that `lib.rs` gives out."""
    rising = set()
    for folder, rooms in FLOORS.items():
        source = ROOT / folder
        prefix = source.relative_to(next(up for up in (source, *source.parents) if up.name == "src")).parts
        for found in sorted(path for path in source.iterdir() if path.is_dir() and path.name not in rooms):
            yield f"{folder}/{found.name} has no place in FLOORS of scripts/check_layers.py"
        given_out = reexports(source) if (source / "lib.rs").exists() else {}
        for path in sorted(source.rglob("*.rs")):
            inside = path.relative_to(source).with_suffix("").parts
            if inside[0] not in rooms:
                continue
            module = prefix + (inside[:-1] if inside[-1] == "mod" else inside)
            code = "\n".join(code_of(line) for line in path.read_text(encoding="utf-8").splitlines())
            above = rooms[rooms.index(inside[0]) + 1:]
            asked = {other[len(prefix)] for other in named(module, code)
                     if other[:len(prefix)] == prefix and len(other) > len(prefix)}
            asked = {given_out.get(other, other) for other in asked}
            for other in sorted(asked & set(above)):
                rising.add((path.relative_to(ROOT).as_posix(), other))
    for name, other in sorted(rising - RISING):
        yield f"{name}: asks for {other}, which is above it (FLOORS)"
    for name, other in sorted(RISING - rising):
        yield f"{name} does not ask for {other}: take it out of RISING"


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
    faults = [*check_dependencies(metadata()), *check_floors(), *check_sources(), *check_paths()]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    print(f"layers: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
