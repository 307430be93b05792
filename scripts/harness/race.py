"""Races heap, colcompress and others (`harness.others`) over the same questions: alternating runs, answers
compared, one table, JSON, charts.

Who calls it: the programs in bench/ that are suites (events, tpch, clickbench). Each engine takes its turn at
each question; wall time is the client's, CPU time that of the backend's process with all its threads, and of
parallel workers. No time is reported for an answer that differs from heap's: those of others are compared
numerically, because they compute in other types.
"""

import json
import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from . import kit
from .server import ROOT, TARGET, ServerError, by_major
from .session import SqlError

PYTHON = TARGET / "venv" / "bin" / "python"
# The number of compute threads of each mode.
MODES = {"serial": 1, "two threads": 2}
# A question whose first run takes longer than this many milliseconds is asked fewer times.
PATIENCE = ((60_000, 1), (10_000, 3))


class Question(kit.Query):
    """A question, with other engines' words for it where they differ, by their names, and whether ties leave
    the choice of rows open."""

    def __init__(self, name, title, text, ordered=None, words=None, ties=False):
        super().__init__(name, title, text, ordered)
        self.words, self.ties = words or {}, ties


class Run:
    """One run: milliseconds of wall and CPU time, and the rows as text; `rows` None where it was stopped."""

    def __init__(self, wall, cpu, rows):
        self.wall, self.cpu, self.rows = wall, cpu, rows


def process_cpu(pid):
    """CPU seconds of a process, its finished threads included: Linux numbers every process's CPU clock so."""
    return time.clock_gettime((~pid) << 3 | 2)


def reaped_cpu(pid):
    """CPU seconds of children that ended and were waited for: a postmaster's parallel workers."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


class Absent:
    """An engine that is not there: no answers and no times."""

    def __init__(self, name):
        self.name = name

    def use(self, threads):
        pass

    def words(self, question):
        return question.text

    def run(self, text):
        return Run(None, None, None)

    def close(self):
        pass


class Postgres:
    """An engine that is a session: `table` stands for :t, `setup` chooses schemas and the like."""

    def __init__(self, name, server, database, table="", setup="", timeout=600):
        self.name, self.table = name, table
        self.describe = lambda text: server.sql(f"\\pset format unaligned\n\\pset fieldsep '\t'\n{setup};\n{text}\n\\gdesc\n", database)
        self.session = server.session(database)
        self.postmaster = server.postmaster_pid()
        self.session.run(kit.SESSION_SETTINGS)
        if setup:
            self.session.run(setup)
        self.session.run(f"SET statement_timeout = '{timeout}s'")
        self.threads = 1

    def use(self, threads):
        self.threads = threads
        self.session.run(f"SET max_parallel_workers_per_gather = {threads - 1}")

    def words(self, question):
        return question.on(self.table)

    def run(self, text):
        cpu = process_cpu(self.session.pid)
        workers = reaped_cpu(self.postmaster) if self.threads > 1 else 0.0
        try:
            result = self.session.run(text)
        except SqlError as problem:
            if "57014" not in str(problem):
                raise ServerError(f"{self.name}: {problem}\n{text}") from problem
            return Run(None, None, None)
        if self.threads > 1:
            workers = reaped_cpu(self.postmaster) - workers
        return Run(result.milliseconds, (process_cpu(self.session.pid) - cpu + workers) * 1000, result.rows)

    def floats(self, text):
        """The positions of the output columns that are floats."""
        described = [line.split("\t") for line in self.describe(text).splitlines() if "\t" in line]
        return {place for place, (_, kind) in enumerate(described) if kind in kit.FLOAT_TYPES}

    def plan(self, text):
        """How much of the plan is ours: "whole", "scan" or "-"."""
        nodes = json.loads("\n".join(row[0] for row in self.session.run(f"EXPLAIN (FORMAT JSON, COSTS OFF) {text}").rows))

        def ours(node):
            return node["Node Type"] == "Custom Scan" and node.get("Custom Plan Provider", "").startswith("Colonnade")

        def any_of(node):
            return ours(node) or any(any_of(child) for child in node.get("Plans", ()))
        top = nodes[0]["Plan"]
        if ours(top) and "Relation Name" not in top:
            return "whole"
        return "scan" if any_of(top) else "-"

    def close(self):
        self.session.close()


class Stored:
    """An engine whose answers and times were measured once and are kept: {mode: {text: {wall_ms, cpu_ms,
    rows}}}."""

    def __init__(self, name, answers):
        self.name, self.answers, self.mode = name, answers, None

    def use(self, threads):
        self.mode = str(threads)

    def words(self, question):
        return question.text

    def run(self, text):
        kept = self.answers[self.mode][text]
        return Run(kept["wall_ms"], kept["cpu_ms"], None if kept["rows"] is None else [tuple(row) for row in kept["rows"]])

    def close(self):
        pass


# -- answers --------------------------------------------------------------------------------------


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def alike(left, right, slack=0.0, tolerance=1e-9):
    """Are two values the same for a reader: numbers within the tolerance (`slack` where it is more), text
    without padding?"""
    if left is None or right is None:
        return left is right
    if left.rstrip() == right.rstrip():
        return True
    a, b = number(left), number(right)
    if a is None or b is None:
        return False
    return abs(a - b) <= max(slack, tolerance * max(abs(a), abs(b), 1e-300))


def loosely(rows, expected, slack=0.0):
    """What differs between another engine's answer and heap's, or None. Rows are put side by side by rounded
    values."""
    if len(rows) != len(expected):
        return f"{len(rows)} rows instead of {len(expected)}"

    def key(row):
        return tuple("" if v is None else v.rstrip() if number(v) is None else f"{number(v):.6e}" for v in row)
    for got, want in zip(sorted(rows, key=key), sorted(expected, key=key)):
        if len(got) != len(want) or not all(alike(a, b, slack) for a, b in zip(got, want)):
            return f"{got} instead of {want}"
    return None


def untied(text, columns):
    """The question with all its output columns added to ORDER BY before the last LIMIT: no ties are left."""
    head, limit, tail = text.rpartition(" LIMIT ")
    order = ", ".join(str(n + 1) for n in range(columns))
    return f"{head}{', ' if ' ORDER BY ' in head.upper() else ' ORDER BY '}{order}{limit}{tail}"


# -- the race -------------------------------------------------------------------------------------


class Race:
    """The engines, in the order of the table's columns: heap first, then colcompress, then others if they are
    there. `runs` is the number of timed runs, `fewer` that of engines, by name, which take part in fewer."""

    def __init__(self, suite, engines, questions, runs, fewer=None):
        self.suite, self.engines, self.questions, self.runs = suite, engines, questions, runs
        self.fewer = fewer or {}
        self.wrong = []

    def all_modes(self, modes=MODES):
        """Asks everything in every mode; {mode: {question: {engine: ..., "equal": bool, "plan": str}}}."""
        return {mode: self.one_mode(threads) for mode, threads in modes.items()}

    def one_mode(self, threads):
        for engine in self.engines:
            engine.use(threads)
        record = {}
        for question in self.questions:
            record[question.name] = self.ask(question)
            kit.say(f"  {question.name}: " + ", ".join(f"{e.name} {shown(median(record[question.name][e.name]['wall_ms']))}" for e in self.engines))
        return record

    def ask(self, question):
        """One question: a run of each engine to warm up and to compare, then the timed ones in turns."""
        words = {engine.name: engine.words(question) for engine in self.engines}
        first = {engine.name: engine.run(words[engine.name]) for engine in self.engines}
        fault = self.compare(question, words, first)
        if fault:
            self.wrong.append(f"{question.name}: {fault}")
            print(f"  {question.name} differs: {fault}", file=sys.stderr, flush=True)
        walls = {name: [] for name in first}
        cpus = {name: [] for name in first}
        slowest = max((run.wall or 0 for name, run in first.items() if not isinstance(self.engine(name), Stored)), default=0)
        times = next((times for limit, times in PATIENCE if slowest > limit), self.runs)
        for turn in range(times):
            for engine in (self.engines if turn % 2 == 0 else self.engines[::-1]):
                if first[engine.name].wall is None or turn >= self.fewer.get(engine.name, times):
                    continue
                run = engine.run(words[engine.name])
                if run.wall is not None:
                    walls[engine.name].append(run.wall)
                    cpus[engine.name].append(run.cpu)
        record = {name: {"wall_ms": walls[name], "cpu_ms": cpus[name]} for name in first}
        record["equal"] = fault is None
        column = self.engines[1]
        record["plan"] = column.plan(words[column.name])
        return record

    def engine(self, name):
        return next(engine for engine in self.engines if engine.name == name)

    def compare(self, question, words, first):
        """What differs from heap's answer (from the first other's where heap had none); None where nothing
        does."""
        heap, column = self.engines[0], self.engines[1]
        answers = {name: run.rows for name, run in first.items()}
        rows = next((rows for rows in answers.values() if rows), None)
        if question.ties and rows:
            width = len(rows[0])
            answers = {engine.name: engine.run(untied(words[engine.name], width)).rows for engine in self.engines}
        reference = answers[heap.name]
        others = {engine.name: engine.slack for engine in self.engines[2:] if answers[engine.name] is not None and not isinstance(engine, Postgres)}
        if reference is None:
            if not others:
                return "no reference: heap was stopped and there is no other engine"
            return None if answers[column.name] is None else loosely(answers[column.name], answers[next(iter(others))])
        for engine in (e for e in self.engines[1:] if isinstance(e, Postgres) and answers[e.name] is not None):
            fault = kit.compare(answers[engine.name], reference, question.ordered, engine.floats(words[engine.name]))
            if fault:
                return f"{engine.name}: {fault}"
        faults = {name: loosely(answers[name], reference, slack) for name, slack in others.items()}
        return next((f"{name}: {fault}" for name, fault in faults.items() if fault), None)


def median(values):
    return kit.median(values) if values else None


def shown(milliseconds):
    return "stopped" if milliseconds is None else f"{milliseconds:.1f}" if milliseconds < 1000 else f"{milliseconds:.0f}"


def ratio(over, under):
    return None if over is None or under is None else over / max(under, 0.001)


def geometric_mean(ratios):
    ratios = [r for r in ratios if r is not None]
    return math.exp(sum(math.log(max(r, 1e-6)) for r in ratios) / len(ratios)) if ratios else None


def ratio_text(value):
    return "-" if value is None else f"{value:.2f}x"


def summarise(record, engines, subsets):
    """Geometric means of colcompress's times over each other engine's, and of rowcompress's over heap's, wall
    and CPU, for all questions and for each subset."""
    column = engines[1]
    pairs = [(column, other, f"to {other}") for other in engines if other != column]
    pairs += [(rows, engines[0], f"{rows} to {engines[0]}") for rows in engines[2:] if rows == "rowcompress"]
    means = {}
    for title, names in {"all": list(record), **subsets}.items():
        for over, under, said in pairs:
            for what, measure in (("", "wall_ms"), (" in CPU time", "cpu_ms")):
                medians = [(median(record[n][over][measure]), median(record[n][under][measure])) for n in names if n in record and record[n]["equal"]]
                means[f"{title}, {said}{what}"] = geometric_mean([ratio(*pair) for pair in medians])
    return means


def show(title, record, engines, means):
    """The table of one mode."""
    column = engines[1]
    absent = {e for e in engines if not any(entry[e]["wall_ms"] for entry in record.values())}
    rows = []
    for name, entry in record.items():
        wall = {e: median(entry[e]["wall_ms"]) for e in engines}
        cpu = {e: median(entry[e]["cpu_ms"]) for e in engines}
        ratios = [ratio_text(ratio(wall[column], wall[e])) for e in engines if e != column]
        if not entry["equal"]:
            ratios = ["-"] * len(ratios)
        rows.append((name, *(shown(wall[e]) if e not in absent and (entry["equal"] or e == engines[0]) else "-" for e in engines), *ratios,
                     *(shown(cpu[e]) if cpu[e] is not None else "-" for e in engines), entry["plan"], "equal" if entry["equal"] else "DIFFERENT"))
    heads = (f"{title}, median ms", *engines, *(f"to {e}" for e in engines if e != column), *(f"CPU {e}" for e in engines), "vectorised", "answer")
    kit.print_table(heads, rows)
    for name, mean in means.items():
        if "CPU" not in name:
            print(f"  geometric mean{'' if 'rowcompress to' in name else f' of {column}'}, {name}: {ratio_text(mean)}, in CPU time {ratio_text(means[f'{name} in CPU time'])}")
    print(flush=True)


def show_spread(title, record, engines):
    """Least, median and 95th percentile of each engine's runs, in milliseconds: which figures jump about."""
    def three(runs):
        if not runs:
            return "-"
        ordered = sorted(runs)
        return " / ".join(shown(value) for value in (ordered[0], median(runs), ordered[min(len(runs) - 1, math.ceil(0.95 * len(runs)) - 1)]))
    rows = [(name, *(three(entry[e]["wall_ms"]) for e in engines)) for name, entry in record.items() if entry["equal"]]
    kit.print_table((f"{title}: least / median / p95, ms", *engines), rows)


def machine():
    """What it ran on."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(), "load_average": os.getloadavg(), "commit": commit}


def finish(race, modes, about, subsets=None):
    """Prints the tables, writes JSON and charts to target/bench; the exit status."""
    engines = [engine.name for engine in race.engines]
    report = {"suite": race.suite, "machine": machine(), **about, "engines": engines, "modes": {}}
    print()
    for mode, record in modes.items():
        means = summarise(record, engines, subsets or {})
        show(f"{race.suite}, {mode}", record, engines, means)
        if any(len(entry[e]["wall_ms"]) > 1 for entry in record.values() for e in engines):
            show_spread(f"{race.suite}, {mode}", record, engines)
        report["modes"][mode] = {"geometric_means": means, "questions": record}
    out = Path(os.environ.get("OUT", by_major("bench") / f"{race.suite}.json"))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    kit.say(f"written: {out}")
    if PYTHON.exists():
        done = subprocess.run([str(PYTHON), str(ROOT / "bench" / "chart.py"), str(out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        kit.say(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no chart")
    for fault in race.wrong:
        print(f"DIFFERENT {fault}")
    return 1 if race.wrong else 0
