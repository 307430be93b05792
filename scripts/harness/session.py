"""One open psql session driven over pipes: many statements in one backend, each with its wall time.

Who calls it: the demo, the benchmarks and tests that need a backend to stay (temporary tables, open
transactions, a process whose CPU time is measured). psql is used instead of a driver because it is
there wherever the server is; its own \\timing gives the milliseconds.
"""

import subprocess
import threading
from pathlib import Path

from .methods import translated

FIELD = "\x1f"
RECORD = "\x1e"
NULL = "\x15"


class SqlError(Exception):
    """The statement failed; the message is the server's."""


class Result:
    """Rows as tuples of text (None for NULL), and the wall time in milliseconds as psql measured it."""

    def __init__(self, rows, milliseconds):
        self.rows = rows
        self.milliseconds = milliseconds


class Session:
    def __init__(self, psql_command, environment):
        command = [*psql_command, "-q", "-A", "-t", "-F", FIELD, "-R", RECORD, "-P", f"null={NULL}", "-v", "VERBOSITY=verbose"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=environment, cwd="/", bufsize=1)
        self.errors = []
        self.error_marks = 0
        self.condition = threading.Condition()
        self.marks = 0
        self.reader = threading.Thread(target=self._read_errors, daemon=True)
        self.reader.start()
        self.run("SET client_min_messages = warning")
        self.pid = int(self.run("SELECT pg_backend_pid()").rows[0][0])

    def _read_errors(self):
        for line in self.process.stderr:
            with self.condition:
                if line.startswith("~mark "):
                    self.error_marks = int(line.split()[1])
                    self.condition.notify_all()
                else:
                    self.errors.append(line)

    def send(self, statement):
        """Sends a statement without waiting for its end; `wait` fetches the result."""
        self.marks += 1
        mark = f"~mark {self.marks}"
        statement = translated(statement)
        self.process.stdin.write(f"\\timing on\n{statement.rstrip().rstrip(';')}\n;\n\\timing off\n\\echo\n\\echo {mark}\n\\warn {mark}\n")
        self.process.stdin.flush()
        return self

    def wait(self):
        """The result of the statement sent last. Raises SqlError if the server refused it."""
        mark = f"~mark {self.marks}"
        text = []
        for line in self.process.stdout:
            if line.rstrip("\n").endswith(mark):
                break
            text.append(line)
        else:
            # What the server said last may still be on its way.
            self.reader.join(timeout=10)
            raise SqlError("the session ended: " + "".join(self.errors))
        with self.condition:
            self.condition.wait_for(lambda: self.error_marks >= self.marks, timeout=10)
            errors, self.errors = "".join(self.errors), []
        if "ERROR:" in errors or "FATAL:" in errors:
            raise SqlError(errors.strip())
        return _parse("".join(text))

    def run(self, statement):
        return self.send(statement).wait()

    def value(self, statement):
        rows = self.run(statement).rows
        return rows[0][0] if rows else None

    def cpu_seconds(self):
        """CPU time, user and system, that this session's backend has used since it began."""
        return process_cpu_seconds(self.pid)

    def peak_memory_kb(self):
        """The backend's peak resident memory in kilobytes, shared buffers it touched included."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
        return 0

    def close(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.write("\\q\n")
                self.process.stdin.close()
            except OSError:
                pass
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def process_cpu_seconds(pid):
    """CPU seconds of a process and its threads: nanoseconds of the scheduler where it tells, else ticks."""
    total = 0.0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0]) / 1e9
        if total > 0:
            return total
    except (OSError, ValueError):
        pass
    import os
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _parse(text):
    """psql's unaligned output followed by its "Time:" line."""
    milliseconds = 0.0
    head, found, tail = text.rpartition("Time: ")
    if found:
        milliseconds = float(tail.split()[0])
    else:
        head = text
    # psql ends the last record with a newline; without it there was no record, not an empty one.
    if not head:
        return Result([], milliseconds)
    head = head.removesuffix("\n")
    rows = [tuple(None if f == NULL else f for f in record.split(FIELD)) for record in head.split(RECORD)]
    return Result(rows, milliseconds)


def error_of(session, statement):
    """The SQLSTATE and words of the ERROR that a statement ends with; None where it does not."""
    try:
        session.run(statement)
    except SqlError as error:
        return str(error)
    return None
