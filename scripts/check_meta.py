"""Checks META.json, by which PGXN lists a release, and that every place names the same version.

Who calls it: scripts/lint.sh and scripts/dist.sh.

- META.json has the fields that version 1.0.0 of PGXN's Meta Spec requires, in the forms that it allows, and
  no field that the spec does not know.
- Its version is that of Cargo.toml. The control file's `default_version` is the first two numbers of it.
- The files that it names are there. The script that leads to the version is among them.
- CHANGELOG.md begins with that version, and the documents name packages of it.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIRED = {"name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"}
OPTIONAL = {"description", "generated_by", "no_index", "prereqs", "release_status", "resources", "tags"}
LICENCES = {
    "agpl_3", "apache_1_1", "apache_2_0", "artistic_1", "artistic_2", "bsd", "freebsd", "gfdl_1_2", "gfdl_1_3", "gpl_1", "gpl_2",
    "gpl_3", "lgpl_2_1", "lgpl_3_0", "mit", "mozilla_1_0", "mozilla_1_1", "openssl", "perl_5", "postgresql", "qpl_1_0", "ssleay",
    "sun", "zlib", "open_source", "restricted", "unrestricted", "unknown",
}
PHASES, RELATIONS = {"configure", "build", "test", "runtime", "develop"}, {"requires", "recommends", "suggests", "conflicts"}
NUMBER = r"(?:0|[1-9]\d*)"
VERSION = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}(?:-[a-zA-Z][0-9A-Za-z-]*)?")
RANGE = re.compile(rf"0|(?:(?:>=|<=|>|<|==|!=)?\s*{VERSION.pattern})(?:\s*,\s*(?:>=|<=|>|<|==|!=)\s*{VERSION.pattern})*")
# What the spec calls a term: at least two characters, none of them a space or one that a path needs.
TERM = re.compile(r"[^\s/\\\x00-\x1f]{2,}")


def version():
    """The version of the extension: that of the workspace."""
    return re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.M)[1]


def control_version():
    text = (ROOT / "crates/postgres/colonnade.control").read_text(encoding="utf-8")
    return re.search(r"^default_version = '([^']+)'", text, re.M)[1]


def is_text(value):
    return isinstance(value, str) and bool(value.strip())


def is_licence(value):
    if isinstance(value, dict):
        return bool(value) and all(is_text(name) and re.match(r"[a-z]+:", str(url)) for name, url in value.items())
    return bool(value) and set([value] if isinstance(value, str) else value) <= LICENCES


def check_provides(provides):
    if not isinstance(provides, dict) or not provides:
        yield "provides names no extension"
        return
    for name, extension in provides.items():
        if not TERM.fullmatch(name):
            yield f"provides: {name!r} is no term"
        for field in ("file", "version"):
            if not is_text(extension.get(field)):
                yield f"provides.{name} has no {field}"
        if not VERSION.fullmatch(extension.get("version", "")):
            yield f"provides.{name}: {extension.get('version')} is no semantic version"
        for field in ("file", "docfile"):
            if field in extension and not (ROOT / extension[field]).is_file():
                yield f"provides.{name}: the {field} {extension[field]} is not there"
        for field in extension:
            if field not in ("file", "version", "abstract", "docfile") and not re.match("x_", field, re.I):
                yield f"provides.{name}: the spec knows no field {field}"


def check_prereqs(prereqs):
    for phase, relations in prereqs.items():
        if phase not in PHASES:
            yield f"prereqs: the spec knows no phase {phase}"
        for relation, needed in relations.items():
            if relation not in RELATIONS:
                yield f"prereqs.{phase}: the spec knows no relation {relation}"
            for name, wanted in needed.items():
                if not RANGE.fullmatch(str(wanted)):
                    yield f"prereqs.{phase}.{relation}: {name} {wanted} is no range of versions"


def check_spec(meta):
    """What is wrong with the content of a META.json by the spec alone."""
    for field in sorted(REQUIRED - set(meta)):
        yield f"the field {field} is required"
    for field in sorted(set(meta) - REQUIRED - OPTIONAL):
        if not re.match("x_", field, re.I):
            yield f"the spec knows no field {field}"
    if not TERM.fullmatch(meta.get("name", "")):
        yield f"name: {meta.get('name')!r} is no term"
    if not VERSION.fullmatch(meta.get("version", "")):
        yield f"version: {meta.get('version')!r} is no semantic version"
    if not is_text(meta.get("abstract")):
        yield "abstract says nothing"
    people = meta.get("maintainer")
    people = people if isinstance(people, list) else [people]
    if not people or not all(is_text(person) for person in people):
        yield "maintainer names nobody"
    if not is_licence(meta.get("license")):
        yield f"license: the spec knows no {meta.get('license')!r}"
    spec = meta.get("meta-spec", {})
    if spec.get("version") != "1.0.0" or not re.match(r"https?:", spec.get("url", "https:")):
        yield "meta-spec is not that of version 1.0.0"
    if meta.get("release_status", "stable") not in ("stable", "testing", "unstable"):
        yield f"release_status: the spec knows no {meta['release_status']!r}"
    if not all(isinstance(tag, str) and 1 < len(tag) < 256 and "/" not in tag for tag in meta.get("tags", [])):
        yield "tags: one is no tag"
    yield from check_provides(meta.get("provides"))
    yield from check_prereqs(meta.get("prereqs", {}))


def check_versions(meta):
    """What does not agree with the version of Cargo.toml."""
    wanted, short = version(), control_version()
    if meta.get("version") != wanted:
        yield f"META.json is of version {meta.get('version')}, Cargo.toml of {wanted}"
    for name, extension in meta.get("provides", {}).items():
        if extension.get("version") != wanted:
            yield f"META.json: {name} is of version {extension.get('version')}, Cargo.toml of {wanted}"
        if not extension.get("file", "").endswith(f"--{short}.sql"):
            yield f"META.json: {extension.get('file')} does not lead to version {short}"
    if short != ".".join(wanted.split(".")[:2]):
        yield f"colonnade.control has default_version {short}, Cargo.toml {wanted}"
    changes = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[1]
    if changes != short:
        yield f"CHANGELOG.md begins with version {changes}, default_version is {short}"
    for name in ("README.md", "docs/installation.md"):
        for found in set(re.findall(r"colonnade(?:-dbgsym)?[-_](\d+\.\d+\.\d+)", (ROOT / name).read_text(encoding="utf-8"))):
            if found != wanted:
                yield f"{name} names a package of version {found}, Cargo.toml has {wanted}"


def main():
    meta = json.loads((ROOT / "META.json").read_text(encoding="utf-8"))
    faults = [*(f"META.json: {fault}" for fault in check_spec(meta)), *check_versions(meta)]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    print(f"PGXN: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
