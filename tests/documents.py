"""Every SQL block of README.md and docs/ runs: a document that shows SQL shows SQL that works.

Each document has a database of its own, in which its blocks run in the order of the text, with the settings
of a fresh server. What a reader brings along (tables, files, rows) stands in comments that pages do not show:

    <!-- test:            SQL that runs at this place, before the next block
    CREATE TABLE ...;
    -->
    <!-- test fails 42P16 -->    the next block ends with this SQLSTATE
    <!-- test shows -->          the block of text after the next SQL block is what that prints (psql's aligned output)

Files are below /var/lib/import/ in the documents; a directory of the test's stands in for it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.checks import Checks
from harness.server import ROOT, clean_environment, fresh_server, running_as_root, server_ids

IMPORT = "/var/lib/import/"
PART = re.compile(r"^<!-- test:\n(?P<hidden>.*?)^-->|^<!-- test fails (?P<fails>\w{5}) -->|^(?P<shows><!-- test shows -->)"
                  r"|^```(?P<kind>\w*)\n(?P<text>.*?)^```", re.M | re.S)


class Block:
    """One piece of SQL: where it stands, the SQLSTATE that it is to end with, the text that it is to print.
    """

    def __init__(self, line, text, fails=None):
        self.line, self.text, self.fails, self.prints = line, text, fails, None


def blocks(document):
    """The SQL of a document in order, hidden pieces among it."""
    text = document.read_text(encoding="utf-8")
    found, fails, shows = [], None, False
    for part in PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["hidden"] is not None:
            found.append(Block(line, part["hidden"]))
        elif part["fails"]:
            fails = part["fails"]
        elif part["shows"]:
            shows = True
        elif part["kind"] == "sql":
            found.append(Block(line, part["text"], fails))
            fails = None
        elif shows:
            found[-1].prints, shows = part["text"], False
    return found


def run(server, database, block, directory):
    """psql's output and errors for one block, each statement a transaction of its own as in a session."""
    done = subprocess.run(server.psql_command(database, "-q", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"),
                          input=block.text.replace(IMPORT, f"{directory}/"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=clean_environment(), cwd="/", timeout=300)
    return done.returncode, done.stdout, done.stderr


def fault(block, status, output, errors):
    """What is wrong with how a block ended, or None."""
    if block.fails:
        return None if status != 0 and f"ERROR:  {block.fails}:" in errors else f"it does not end with {block.fails}: {errors}"
    if status != 0:
        return errors
    if block.prints is not None and output.strip() != block.prints.strip():
        return f"it prints\n{output}"
    return None


def check(server, document, checks):
    name = document.relative_to(ROOT).as_posix()
    found = blocks(document)
    if not found:
        return
    database = re.sub(r"\W", "_", document.stem.lower())
    server.create_database(database, extension=False)
    directory = Path(server.base) / database
    directory.mkdir()
    if running_as_root():
        os.chown(directory, *server_ids())
    for block in found:
        problem = fault(block, *run(server, database, block, directory))
        if problem:
            checks.say(f"{name}:{block.line}", False, problem)
            return
    checks.say(f"{name}: {len(found)} blocks run", True)


def main():
    server = fresh_server("documents", os.environ["COLONNADE_STAGE"])
    checks = Checks("documents")
    try:
        wanted = sys.argv[1:]
        for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            if not wanted or document.stem in wanted:
                check(server, document, checks)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
