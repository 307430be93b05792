"""What a test program looks at: one line for each, as scripts/run_tests.py counts them.

Who calls it: the programs below tests/.
"""

import os
from contextlib import contextmanager

from .server import ServerError, fresh_server
from .session import SqlError

# What says that the product failed, not the program that tests it.
FAILURES = (AssertionError, ServerError, SqlError)


class Checks:
    """The tests of one program. `failed` counts those that did not hold; a `seed` is named beside each of
    them."""

    def __init__(self, program, seed=None):
        self.program, self.failed = program, 0
        self.hint = "" if seed is None else f" (COLONNADE_SEED={seed})"

    def say(self, what, holds, why=""):
        """One test, with the reason where it does not hold."""
        self.failed += not holds
        print(f"ok {self.program} {what}" if holds else f"not ok {self.program} {what}: {str(why)[:2000]}{self.hint}", flush=True)

    @contextmanager
    def part(self, what, errors=FAILURES):
        """One test: the block raises none of these errors. The block gets a function that adds words to the
        line."""
        told = []
        try:
            yield told.append
        except errors as error:
            self.say(what, False, error)
        else:
            self.say(" ".join([what, *(f"({text})" for text in told)]), True)

    @contextmanager
    def server(self, settings=None):
        """A new server with the staged extension, for the whole program. Its log is shown where something
        failed."""
        server = fresh_server(self.program, os.environ["COLONNADE_STAGE"], settings)
        try:
            yield server
            self.show_log(server)
        finally:
            server.destroy()

    def show_log(self, server):
        """The end of the server's log, where something failed."""
        if self.failed:
            print(server.log_tail(60), flush=True)

    def status(self):
        """The program's exit status."""
        return 1 if self.failed else 0
