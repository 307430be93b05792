"""SQL blocks of documents, with what they are to print or how they are to fail.

Who calls it: tests/documents.py (PostgreSQL) and tests/sqlite/documents.py (SQLite). What a reader brings
along (tables, files, rows) stands in comments that pages do not show:

    <!-- test host: sqlite -->   the document's SQL is for SQLite; PostgreSQL runs all others
    <!-- test:            SQL that runs at this place, before the next block
    CREATE TABLE ...;
    -->
    <!-- test fails 42P16 -->    the next block ends with this SQLSTATE
    <!-- test shows -->          the block of text after the next SQL block is what that prints
"""

import re

PART = re.compile(r"^<!-- test:\n(?P<hidden>.*?)^-->|^<!-- test fails (?P<fails>\w{5}) -->|^(?P<shows><!-- test shows -->)"
                  r"|^```(?P<kind>\w*)\n(?P<text>.*?)^```", re.M | re.S)
HOST = re.compile(r"^<!-- test host: (\w+) -->", re.M)


def host(document):
    """Which database the document is about: `postgres`, if it does not say."""
    found = HOST.search(document.read_text(encoding="utf-8"))
    return found[1] if found else "postgres"


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
