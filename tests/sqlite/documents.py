"""Every SQL block of the documents about SQLite runs: a document that shows SQL shows SQL that works.

Blocks run in the order of the text, in a database of the document's own. A block is to print its rows as the
SQLite shell does, values separated by `|`.
"""

import tempfile
from pathlib import Path

from harness.checks import Checks
from harness.documents import blocks, host
from harness.server import ROOT
from harness.sqlite import Connection, SqlError, statements

HERE = "/var/lib/import/"


def shown(rows):
    return "\n".join("|".join("" if value is None else str(value) for value in row) for row in rows)


def check(document, checks):
    name = document.relative_to(ROOT).as_posix()
    found = blocks(document)
    with tempfile.TemporaryDirectory(prefix="colonnade-sqlite-") as directory:
        db = Connection(f"{directory}/document.db")
        try:
            for block in found:
                with checks.part(f"{name}:{block.line}", (AssertionError, SqlError)):
                    printed = [shown(db.sql(statement)) for statement in statements(block.text.replace(HERE, f"{directory}/"))]
                    printed = "\n".join(text for text in printed if text)
                    assert block.prints is None or printed == block.prints.strip(), f"it prints\n{printed}"
        finally:
            db.close()


def main():
    checks = Checks("documents")
    for document in sorted((ROOT / "docs").glob("*.md")):
        if host(document) == "sqlite":
            check(document, checks)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
