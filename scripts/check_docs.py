"""Checks that the documents agree with the tree. Called by scripts/lint.sh.

- Relative links in Markdown files lead to files that exist, and their anchors to headings.
- Every setting that the code defines is in docs/configuration.md, and nothing else is; those that the server
  does not show (for tests) are in CONTRIBUTING.md.
- Every function and view of the extension's SQL is in docs/sql-reference.md, but for trigger and handler
  functions.
- Every Makefile target that a document names exists.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
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
        for name, definition in re.findall(r"define_\w+_guc\(\s*c\"(colonnade\.\w+)\"(.*?)\n    \);", text, re.S):
            (hidden if "NO_SHOW_ALL" in definition else defined).add(name)
    described = set(re.findall(r"`(colonnade\.\w+)`", (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")))
    for name in sorted(defined - described):
        yield f"docs/configuration.md does not describe {name}"
    for name in sorted(hidden):
        if f"`{name}`" not in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"):
            yield f"CONTRIBUTING.md does not describe {name}"
    for name in sorted(described - defined):
        yield f"docs/configuration.md describes {name}, which the code does not define"


def check_sql():
    reference = (ROOT / "docs" / "sql-reference.md").read_text(encoding="utf-8")
    for script in (ROOT / "crates" / "postgres" / "sql").glob("*.sql"):
        text = script.read_text(encoding="utf-8")
        names = re.findall(r"CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|VIEW)\s+(engine\.\w+)", text)
        renamed = re.findall(r"ALTER (?:FUNCTION|VIEW)\s+(engine\.\w+)[^;]*RENAME TO", text)
        for name in sorted(set(names) - set(renamed)):
            if not name.endswith("_handler") and f"{name}" not in reference:
                yield f"docs/sql-reference.md does not describe {name}"


def check_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for document in documents():
        for name in re.findall(r"(?:^|`)make ([a-z-]+)", document.read_text(encoding="utf-8"), re.M):
            if name not in targets:
                yield f"{document.relative_to(ROOT)} names make {name}, which is no target"


def main():
    faults = [*check_links(), *check_settings(), *check_sql(), *check_targets()]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    print(f"documents: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
