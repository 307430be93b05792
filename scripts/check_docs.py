"""Checks that the documents agree with the tree. Called by scripts/lint.sh.

- Relative links in Markdown files lead to files that exist, and their anchors to headings.
- Every setting that the code defines is in docs/configuration.md, and nothing else is; those that the server
  does not show (for tests) are in CONTRIBUTING.md.
- Every function and view of the extension's SQL is in docs/sql-reference.md, but for trigger and handler
  functions and those behind a type's operators.
- Every Makefile target that a document names exists.
- A module or file of the code that a comment, ARCHITECTURE.md or docs/internals names is there.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`([a-z_]+)(?:::|/)([a-z_]+)")
FILE = re.compile(r"`((?:\w+/src|pg)/[\w/]+\.rs)")
ITEM = re.compile(r"^(?:pub\S*\s+)?(?:const\s+|unsafe\s+)*fn ([a-z_]+)", re.M)
COMMENT = re.compile(r"\s*//[/!]?(.*)")
DEFINED = re.compile(r"\b(?:fn|type|static|const|mod|macro_rules!) ([a-z_]+)")
HEADING = re.compile(r"^#+\s+(.*)$", re.M)
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def documents():
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]


def anchor(heading):
    """The anchor as GitHub makes it from a heading."""
    text = re.sub(r"[`*]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def check_links():
    for document in documents():
        text = FENCE.sub("", document.read_text(encoding="utf-8"))
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, fragment = target.partition("#")
            file = (document.parent / path).resolve() if path else document
            if not file.exists():
                yield f"{document.relative_to(ROOT)}: {target} leads nowhere"
            elif fragment and file.suffix == ".md":
                if fragment not in {anchor(h) for h in HEADING.findall(file.read_text(encoding="utf-8"))}:
                    yield f"{document.relative_to(ROOT)}: {target}: no such heading"


def check_settings():
    defined, hidden = set(), set()
    for source in (ROOT / "crates" / "postgres" / "src").rglob("*.rs"):
        text = source.read_text(encoding="utf-8")
        for name, definition in re.findall(r"define_\w+_guc(?:_with_hooks)?\(\s*c\"(colonnade\.\w+)\"(.*?)\n +\);", text, re.S):
            (hidden if "NO_SHOW_ALL" in definition else defined).add(name)
    described = set(re.findall(r"`(colonnade\.\w+)`", (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")))
    for name in sorted(defined - described):
        yield f"docs/configuration.md does not describe {name}"
    for name in sorted(hidden):
        if f"`{name}`" not in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"):
            yield f"CONTRIBUTING.md does not describe {name}"
    for name in sorted(described - defined):
        yield f"docs/configuration.md describes {name}, which the code does not define"


# Functions that stand behind what a type does in SQL: its operators, casts, classes and aggregates.
BEHIND_TYPE = re.compile(r"engine\.uint8(in|out|recv|send|_(?!of_bits|bits)\w+)$")


def check_sql():
    reference = (ROOT / "docs" / "sql-reference.md").read_text(encoding="utf-8")
    for script in (ROOT / "crates" / "postgres" / "sql").glob("*.sql"):
        text = script.read_text(encoding="utf-8")
        names = re.findall(r"CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|VIEW)\s+(engine\.\w+)", text)
        renamed = re.findall(r"ALTER (?:FUNCTION|VIEW)\s+(engine\.\w+)[^;]*RENAME TO", text)
        for name in sorted(set(names) - set(renamed)):
            if not name.endswith("_handler") and not BEHIND_TYPE.match(name) and f"{name}" not in reference:
                yield f"docs/sql-reference.md does not describe {name}"


def check_targets():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for document in documents():
        for name in re.findall(r"(?:^|`)make ([a-z0-9-]+)", document.read_text(encoding="utf-8"), re.M):
            if name not in targets:
                yield f"{document.relative_to(ROOT)} names make {name}, which is no target"


def check_modules():
    """`folder/file` and `folder::file` where the folder is one of the code's that has folders below it."""
    parents, folders, defined = {}, set(), set()
    for source in (ROOT / "crates").glob("*/src"):
        for path in source.rglob("*.rs"):
            parts = path.relative_to(source).with_suffix("").parts
            parts = parts[:-1] if parts[-1] in ("mod", "lib") else parts
            folders |= set(parts[:-1])
            for depth, name in enumerate(parts):
                parents.setdefault(name, set()).add(parts[depth - 1] if depth else source.parent.name)
            text = path.read_text(encoding="utf-8")
            defined |= set(DEFINED.findall(text))
            for item in ITEM.findall(text) if parts else ():
                parents.setdefault(item, set()).update(parts)
    texts = [(path, COMMENT.findall(path.read_text(encoding="utf-8"))) for path in (ROOT / "crates").rglob("*.rs")]
    texts += [(path, [path.read_text(encoding="utf-8")])
              for path in (ROOT / "ARCHITECTURE.md", ROOT / "FORMAT.md", *(ROOT / "docs" / "internals").glob("*.md"))]
    for path, lines in sorted(texts):
        for file in (found for line in lines for found in FILE.findall(line)):
            if not (ROOT / "crates" / re.sub("^pg/", "postgres/src/", file)).is_file():
                yield f"{path.relative_to(ROOT)}: {file} is no file"
        for folder, name in (found for line in lines for found in PATH.findall(line)):
            if folder in folders and name in parents and folder not in parents[name]:
                yield f"{path.relative_to(ROOT)}: {folder}/{name}: that module is elsewhere"
            elif folder in folders and name not in parents and name not in {*defined, "mod"}:
                yield f"{path.relative_to(ROOT)}: {folder}/{name}: nothing has that name"


def main():
    faults = [*check_links(), *check_settings(), *check_sql(), *check_targets(), *check_modules()]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    print(f"documents: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
