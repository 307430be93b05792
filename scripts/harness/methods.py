"""Which of our access methods the tests run on: AM=rowcompress, or colcompress where nothing is said.

Tests are written for colcompress. For another access method the names in their SQL are exchanged before the
server sees it (`translated`), and back in what comes out (`original`). So one test holds for all of them.
"""

import os
import re

METHOD = os.environ.get("AM") or "colcompress"
# What names of files end in that belong to another access method than colcompress.
SUFFIX = "" if METHOD == "colcompress" else f"_{METHOD}"
# Names of colcompress in SQL, and those that another access method has in their place.
NAMES = {"rowcompress": {
    "colcompress": "rowcompress",
    "engine.colcompress_stripes": "engine.rowcompress_batches",
    "engine.alter_colcompress_table_set": "engine.alter_rowcompress_table_set",
    "engine.alter_colcompress_table_reset": "engine.alter_rowcompress_table_reset",
    "alter_colcompress_table_set": "alter_rowcompress_table_set",
    "alter_colcompress_table_reset": "alter_rowcompress_table_reset",
    "stripe_row_limit": "batch_size",
    "colonnade.stripe_row_limit": "colonnade.batch_size",
}}
# Folders of tests that are about the names themselves, or about other statements than an access method's.
OF_COLCOMPRESS = {"options", "extension", "versions"}
# Batches are smaller than stripes by default.
SETTINGS = {"rowcompress": {"colonnade.batch_size": "150000"}}


def expect_known():
    """Ends the program unless tests know the access method: they would run on colcompress then."""
    if SUFFIX and METHOD not in NAMES:
        raise SystemExit(f"AM={METHOD}: tests run on colcompress or {', '.join(NAMES)}")


def exchanged(text, names):
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    return re.sub(rf"(?<![\w.])({'|'.join(map(re.escape, longest_first))})(?!\w)", lambda found: names[found[1]], text)


def translated(text):
    """SQL of a test for the access method that it runs on."""
    return exchanged(text, NAMES.get(METHOD))


def original(text):
    """Output as it would be on colcompress."""
    return exchanged(text, {there: here for here, there in NAMES.get(METHOD, {}).items()})


def is_for_it(folder):
    """Whether the tests of a folder say something about the access method that they run on."""
    return METHOD == "colcompress" or folder not in OF_COLCOMPRESS


def settings():
    """What test servers are told besides."""
    return SETTINGS.get(METHOD, {})
