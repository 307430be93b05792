"""Engines of other makers in a race: each in a process of its own, which is told statements as JSON lines.

Who calls it: harness.suite and bench/events.py. DuckDB races wherever its Python package is; Hyper (the
package tableauhyperapi, Tableau's, not free software) only where HYPER=1 asks for it.
"""

import json
import os
import subprocess

from . import kit
from .race import PYTHON, Run
from .server import ROOT, ServerError


class Other:
    """An engine on a file of its own, behind one of the programs bench/*_server.py."""

    name = program = None
    # By how much its numbers may be off, however small they are.
    slack = 0.0

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([str(PYTHON), str(ROOT / "bench" / self.program), str(path)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.version = self.reply()["version"]

    def reply(self):
        line = self.process.stdout.readline()
        if not line:
            raise ServerError(f"{self.name} ended")
        return json.loads(line)

    def send(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.reply()
        if "error" in answer:
            raise ServerError(f"{self.name}: {answer['error']}\n{request.get('sql', '')}")
        return answer

    def ask(self, text, rows=True):
        return self.send(sql=text, rows=rows)

    def words(self, question):
        return kit.Query("", "", question.words.get(self.name, question.text), None).on("t")

    def run(self, text):
        answer = self.ask(text)
        return Run(answer["wall_ms"], answer["cpu_ms"], [tuple(row) for row in answer["rows"]])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class DuckDB(Other):
    """DuckDB."""

    name, program = "duckdb", "duckdb_server.py"

    def use(self, threads):
        self.ask(f"SET threads = {threads}")


class Hyper(Other):
    """Tableau's Hyper. What it has no words for has no answer; averages and quotients of decimals have six
    digits after the point."""

    name, program, slack = "hyper", "hyper_server.py", 5.1e-7

    def use(self, threads):
        self.send(threads=threads)

    def words(self, question):
        return None if question.words.get(self.name, "") is None else super().words(question)

    def run(self, text):
        return Run(None, None, None) if text is None else super().run(text)


def present():
    """The classes of those that race here."""
    if not PYTHON.exists():
        return []
    return [DuckDB, Hyper] if os.environ.get("HYPER") == "1" else [DuckDB]
