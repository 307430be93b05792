"""Every SQL block of README.md and docs/ runs: a document that shows SQL shows SQL that works.

Each document has a database of its own, in which its blocks run in the order of the text, with the settings
of a fresh server. harness/documents.py tells the comments that bring rows and expectations along; what a
block is to print is psql's aligned output. Documents of another host have their own program.

Files are below /var/lib/import/ in the documents; a directory of the test's stands in for it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.checks import Checks
from harness.documents import blocks, host
from harness.server import ROOT, clean_environment, fresh_server, running_as_root, server_ids

IMPORT = "/var/lib/import/"


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
            if host(document) == "postgres" and (not wanted or document.stem in wanted):
                check(server, document, checks)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
