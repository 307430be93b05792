"""Runs the test suites below tests/ and says how they went. Called by scripts/test.sh, which see.

A suite is a folder; dropping a file into it is enough:

    tests/regress/FOLDER/NAME.sql     run by psql in a database of its own, below tests/regress; its output is
                                      compared with FOLDER/expected/NAME.out
    tests/isolation/FOLDER/NAME.spec  run by PostgreSQL's isolationtester, compared in the same way
    tests/isolation/twins/NAME.spec   run on heap and on colcompress, see harness/twins.py; TWINS=1 runs every
                                      permutation of each, else a part of them that SEED chooses
    tests/crash/NAME.py               a program with servers of its own, see below
    tests/NAME.py                     the same
    tests/sqlite/NAME.py              the same without a server: run once for each SQLite of SQLITE_HOSTS
    tests/long/NAME.py                the same, asked for by name only

FOLDER says what a test is about: a new one needs no entry anywhere. tests/regress/include/ holds no tests but
SQL that several of them share. TESTS chooses files: by NAME, by FOLDER or by FOLDER/NAME. SKIP leaves files
out in the same way.

What is expected may depend on the server's major version. expected/NAME_17.out holds from 17 on, until a file
with a greater number takes over: version M expects the file with the greatest number up to M, else NAME.out.
Another right answer, whatever the version, goes to expected/NAME_1.out, NAME_2.out, ... NAME_9.out.

ACCEPT=1 writes nothing where the output is expected already. Else 15 writes NAME.out, and a later version M
writes NAME_M.out, or removes that where it is needed no more. Results are left in target/test-results, or in
target/pgN/test-results for another major version than 15.

Programs run as many at a time as there are processors; one with a line ALONE = True, and all in their long
form, run one after another. A Python test finds `harness` on its path, the staged extension in
COLONNADE_STAGE, and COLONNADE_LONG=1 when it may take minutes. Each line "ok NAME" or "not ok NAME" it prints
is one test; a program that prints none of them is one test that its exit status decides.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import methods, twins
from harness.server import ROOT, ServerError, by_major, clean_environment, fresh_server, major
from harness.settle import SETTLE
from harness.twins import isolationtester

TESTS = ROOT / "tests"
TEMPLATE = "colonnade_template"
FILE_TIMEOUT = 600
SCRIPT_TIMEOUT = 3600
# Which Python runs the programs of SQLite, by the name of the host (harness/sqlite.py). None: this one.
SQLITE_HOSTS = {"debian": "/usr/bin/python3", "apsw": None}
# How much of each twin spec a run does that does not ask for all.
TWINS_SHARE = 0.05
# Programs in tests/long/ by the names of their suites.
LONG_PROGRAMS = {"sqlsmith": "sqlsmith", "clients": "clients", "upgrades": "major_upgrades"}
CRASHED = re.compile(r"terminated by signal|PANIC:|TRAP:|terminated by exception")


class Tally:
    """What each suite came to."""

    def __init__(self):
        self.rows = []
        self.failures = []
        # How the output of programs that failed ends: it may be far above.
        self.ends = []

    def add(self, suite, passed, failed):
        self.rows.append((suite, passed, failed))

    def report(self):
        print()
        if self.failures:
            print("failed: " + ", ".join(self.failures))
            print("".join(self.ends), end="")
        for suite, passed, failed in self.rows:
            print(f"  {suite:<12} {passed:>6} passed {failed:>6} failed")
        passed, failed = (sum(row[i] for row in self.rows) for i in (1, 2))
        if passed + failed == 0:
            failed = 1
            print("no test ran")
        print(f"{passed} passed, {failed} failed", flush=True)
        return 0 if failed == 0 else 1


def named(file):
    """The file's name with its folder's, as TESTS has it and as results and databases are called."""
    return f"{file.parent.name}/{file.stem}"


def chosen(files):
    """Files in order, limited to those that TESTS names, without those in SKIP. Both hold names of files, of
    folders, and of files with their folder."""
    names, skipped = (set(os.environ.get(name, "").split()) for name in ("TESTS", "SKIP"))
    known = {file: {file.stem, file.parent.name, named(file)} for file in sorted(files)}
    return [file for file, own in known.items() if (not names or names & own) and not skipped & own]


# -- suites of files with an expected output ------------------------------------------------------


def by_versions(file):
    """The expected files of a test that hold from a major version on: number -> path."""
    found = {int(path.stem.rsplit("_", 1)[1]): path for path in (file.parent / "expected").glob(f"{file.stem}_[0-9][0-9].out")}
    # Unless that is the one of a test of that name.
    return {number: path for number, path in found.items() if not file.with_stem(f"{file.stem}_{number}").exists()}


def expected_files(file, version):
    """The files that hold what a test may print on this major version; the main one first."""
    folder, numbered = file.parent / "expected", by_versions(file)
    newest = max((number for number in numbered if number <= version), default=None)
    main = folder / f"{file.stem}.out" if newest is None else numbered[newest]
    of_method = folder / f"{file.stem}{methods.SUFFIX}.out"
    if of_method.exists() and methods.SUFFIX:
        main = of_method
    return [path for path in (main, *sorted(folder.glob(f"{file.stem}_[0-9].out"))) if path.exists()]


def accept(file, output, version):
    """Makes this output expected on this major version, and says what was done."""
    folder = file.parent / "expected"
    own = by_versions(file).get(version)
    others = expected_files(file, version - 1 if own else version)
    if output in [path.read_text() for path in others]:
        if own is None:
            return "expected already"
        own.unlink()
        return f"{own.name} was removed: it is needed no more"
    folder.mkdir(exist_ok=True)
    if methods.SUFFIX:
        (folder / f"{file.stem}{methods.SUFFIX}.out").write_text(output)
        return f"accepted for {methods.METHOD}"
    first = not others and own is None
    target = folder / (f"{file.stem}.out" if first or version == 15 else f"{file.stem}_{version}.out")
    if target.exists() and target.read_text() == output:
        return "expected already"
    target.write_text(output)
    return f"accepted as {target.name}"


class Files:
    """One suite of input files whose output is compared with the expected one. `others` are folders whose
    files are none of its tests."""

    def __init__(self, name, suffix, others, command, stage, jobs):
        self.name, self.folder, self.command = name, TESTS / name, command
        self.files = [file for file in self.folder.glob(f"*/*{suffix}")
                      if file.parent.name not in others and methods.is_for_it(file.parent.name)]
        # Such a file would never run, and nobody would notice.
        self.strays = list(self.folder.glob(f"*{suffix}"))
        self.stage, self.jobs = stage, jobs
        self.results = by_major("test-results") / (name + methods.SUFFIX)
        # Where psql finds what a file includes.
        self.source = self.folder
        self.template_lock = threading.Lock()

    def run(self, tally):
        if self.strays:
            raise ServerError(f"{self.strays[0].relative_to(ROOT)} is in no folder of {self.folder.relative_to(ROOT)}")
        files = chosen(self.files)
        if not files:
            return
        print(f"==> {self.name}: {len(files)} files", flush=True)
        self.results.mkdir(parents=True, exist_ok=True)
        self.translate()
        server = fresh_server(self.name, self.stage)
        try:
            server.create_database(TEMPLATE)
            server.sql(SETTLE, TEMPLATE)
            with ThreadPoolExecutor(self.jobs) as pool:
                verdicts = list(pool.map(lambda f: self.one(server, f), files))
            log = server.log.read_text(errors="replace")
            if CRASHED.search(log):
                print("not ok the server crashed; its log says:")
                print("\n".join(line for line in log.splitlines() if CRASHED.search(line) or "Failed process was" in line))
                verdicts.append(False)
                tally.failures.append(f"{self.name}/server-stays-up")
        finally:
            (self.results / "server.log").write_text(server.log_tail(100_000))
            server.destroy()
        tally.failures += [f"{self.name}/{named(f)}" for f, good in zip(files, verdicts) if not good]
        tally.add(self.name, verdicts.count(True), verdicts.count(False))

    def translate(self):
        """A copy of the files for another access method than the one they are written for."""
        if not methods.SUFFIX:
            return
        self.source = self.results / "source"
        shutil.rmtree(self.source, ignore_errors=True)
        for file in self.folder.glob("*/*.*"):
            copy = self.source / file.relative_to(self.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(methods.translated(file.read_text()))

    def one(self, server, file):
        started = time.monotonic()
        name = named(file)
        database = f"test_{name.replace('/', '_')}"
        with self.template_lock:
            server.create_database(database, template=TEMPLATE)
        env = clean_environment()
        env.update(PGAPPNAME=f"{self.name}/{name}", PGDATESTYLE="ISO, MDY")
        with open(self.source / file.relative_to(self.folder), "rb") as source:
            try:
                done = subprocess.run(self.command(server, database), stdin=source, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, env=env, cwd=self.source, timeout=FILE_TIMEOUT)
                output = methods.original(done.stdout.decode("utf-8", "replace"))
            except subprocess.TimeoutExpired as error:
                output = (error.stdout or b"").decode("utf-8", "replace") + f"\nthe runner stopped it after {FILE_TIMEOUT} s\n"
        result = self.results / f"{name}.out"
        result.parent.mkdir(exist_ok=True)
        result.write_text(output)
        good, text = self.compare(file, output)
        seconds = time.monotonic() - started
        print(f"{'ok' if good else 'not ok'} {self.name}/{name} ({seconds:.1f} s){text}", flush=True)
        if good:
            # WITH (FORCE): a prepared transaction or a background worker must not fail the test after the
            # fact.
            with self.template_lock:
                server.sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)', check=False)
        return good

    def compare(self, file, output):
        expected = expected_files(file, major())
        known = [path.read_text() for path in expected]
        if os.environ.get("ACCEPT") == "1":
            return True, f" {accept(file, output, major())}"
        if not known:
            return False, f"\nno {file.stem}.out in {file.parent.relative_to(ROOT)}/expected: look at the output, then run with ACCEPT=1"
        if output in known:
            return True, ""
        diffs = [list(difflib.unified_diff(want.splitlines(), output.splitlines(), "expected", "result", lineterm="", n=3))
                 for want in known]
        return False, "\n" + "\n".join(min(diffs, key=len)[:200])


def psql(server, database):
    return server.psql_command(database, "-a", "-q")


def run_twins(tally, stage):
    """Isolation specs on heap and on colcompress: equal outputs are the test."""
    files = chosen((TESTS / "isolation" / "twins").glob("*.spec"))
    if not files:
        return
    every = os.environ.get("TWINS") == "1" or bool(os.environ.get("TESTS"))
    seed = int(os.environ.get("SEED") or time.time())
    print(f"==> twins of isolation specs, {'every permutation' if every else f'a part of the permutations (SEED={seed})'}", flush=True)
    server = fresh_server("twins", stage)
    try:
        results = by_major("test-results") / "twins"
        passed, failed = twins.run(server, files, results, share=1 if every else TWINS_SHARE, seed=seed)
        if CRASHED.search(server.log.read_text(errors="replace")):
            failed.append("server-stays-up")
    finally:
        server.destroy()
    tally.failures += [f"twins/{name}" for name in failed]
    tally.add("twins", len(passed), len(failed))


# -- suites that are programs ---------------------------------------------------------------------


def run_units(tally, host_only=False):
    """cargo's unit tests, those of the extension that need no server included, or these alone; their own
    summaries are added up."""
    name = "host-units" if host_only else "units"
    print(f"==> {name}: cargo test", flush=True)
    command = ["cargo", "test", "--locked", "--no-fail-fast"]
    # The feature of 15 is the extension's default; that of another version is chosen for that crate alone.
    parts = [["--workspace"]] if major() == 15 else [["--workspace", "--exclude", "colonnade"], ["-p", "colonnade", "--no-default-features", "--features", f"pg{major()}"]]
    if host_only:
        parts = [["-p", "colonnade"]] if major() == 15 else parts[1:]
    passed = failed = 0
    for part in parts:
        good, bad, output_ok = stream(command + part, re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed"), None)
        passed += good
        failed += bad if output_ok or bad else 1
    if failed:
        tally.failures.append(name)
    tally.add(name, passed, failed)


def stream(command, summary, environment):
    """Runs a program, shows its output as it comes, adds up its summary lines; (passed, failed, exit status
    is 0)."""
    passed = failed = 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               text=True, errors="replace", env=environment, cwd=ROOT)
    for line in process.stdout:
        # One line a test would drown the rest; failures and summaries stay.
        if not re.match(r"^test .* \.\.\. (ok|ignored)", line):
            print(line, end="", flush=True)
        match = summary.match(line)
        if match:
            passed += int(match[1])
            failed += int(match[2])
    return passed, failed, process.wait() == 0


# The line of a program that measures, or that fills the machine itself, and therefore shares it with no
# other.
ALONE = re.compile(r"^ALONE = True", re.MULTILINE)


def run_programs(tally, suite, folder, stage, long, only=None, interpreter=None, extra=None):
    """Python tests. Most of the time of a short form is waiting, so there are as many at a time as
    processors; what says ALONE comes before, one after another, as all long forms are."""
    files = [f for f in chosen(folder.glob("*.py")) if not f.name.startswith("_") and (only is None or f.stem == only)]
    if not files:
        return
    print(f"==> {suite}: {len(files)} programs", flush=True)
    env = dict(os.environ, COLONNADE_STAGE=str(stage), COLONNADE_LONG="1" if long else "0", PYTHONUNBUFFERED="1",
               PYTHONPATH=os.pathsep.join([str(ROOT / "scripts"), str(folder)]), PYTHONDONTWRITEBYTECODE="1", **(extra or {}))
    alone = [f for f in files if long or ALONE.search(f.read_text())]
    together = [f for f in files if f not in alone]
    printing = threading.Lock()

    def one(file, say):
        started = time.monotonic()
        passed, failed, end = program(interpreter or sys.executable, file, env, say)
        if failed:
            tally.ends.append(end)
        say(f"{'ok' if failed == 0 else 'not ok'} - {suite}/{file.stem}: {passed} passed, {failed} failed "
            f"({time.monotonic() - started:.1f} s)\n")
        return file, passed, failed

    def at_its_end(file):
        """What a program prints comes as one, for who reads it."""
        lines = []
        result = one(file, lines.append)
        with printing:
            print("".join(lines), end="", flush=True)
        return result
    results = [one(file, lambda line: print(line, end="", flush=True)) for file in alone]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results += pool.map(at_its_end, together)
    tally.failures += [f"{suite}/{file.stem}" for file, _, failed in results if failed]
    tally.add(suite, sum(passed for _, passed, _ in results), sum(failed for _, _, failed in results))


def program(interpreter, file, env, say):
    """Runs one, hands each line that it prints to `say`, and counts its tests: (passed, failed, what it
    printed last beside tests that passed)."""
    process = subprocess.Popen([interpreter, str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, text=True, errors="replace", env=env, cwd=ROOT)
    watchdog = threading.Timer(SCRIPT_TIMEOUT + float(os.environ.get("DURATION") or 0), process.kill)
    watchdog.start()
    passed = failed = 0
    end = deque(maxlen=30)
    for line in process.stdout:
        say(line)
        if not line.startswith("ok "):
            end.append(f"    {line}")
        passed += line.startswith("ok ")
        failed += line.startswith("not ok ")
    status = process.wait()
    watchdog.cancel()
    if status != 0 and failed == 0:
        failed = 1
    elif status == 0 and passed + failed == 0:
        passed = 1
    return passed, failed, "".join(end)


def run_sqlite(tally, long):
    """The programs of SQLite on each host. The library was built by scripts/test.sh."""
    library = Path(os.environ.get("COLONNADE_SQLITE") or ROOT / "target/debug/libcolonnade_sqlite.so")
    if not library.exists():
        raise ServerError(f"{library} is not built")
    for host, interpreter in SQLITE_HOSTS.items():
        interpreter = interpreter or str(ROOT / "target/venv/bin/python")
        extra = {"COLONNADE_SQLITE": str(library), "COLONNADE_HOST": host}
        run_programs(tally, f"sqlite-{host}", TESTS / "sqlite", "none", long, interpreter=interpreter, extra=extra)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", required=True, type=Path)
    parser.add_argument("suites", nargs="+", choices=["units", "host-units", "regress", "isolation", "crash", "crash-long", "scripts", "differential", "changes", "spilling", "packages", "sqlsmith", "clients", "upgrades", "sqlite", "sqlite-long"])
    options = parser.parse_args()
    methods.expect_known()
    tally = Tally()
    for suite in options.suites:
        try:
            if suite in ("units", "host-units"):
                run_units(tally, host_only=suite == "host-units")
            elif suite == "regress":
                Files("regress", ".sql", {"include"}, psql, options.stage, os.cpu_count() or 1).run(tally)
            elif suite == "isolation":
                # One at a time: the tester decides by waiting, and a busy machine changes what it sees.
                Files("isolation", ".spec", {"twins"}, isolationtester, options.stage, 1).run(tally)
                run_twins(tally, options.stage)
            elif suite in ("crash", "crash-long"):
                run_programs(tally, "crash", TESTS / "crash", options.stage, suite == "crash-long")
            elif suite == "differential":
                run_programs(tally, suite, TESTS, options.stage, True, only="generated_queries")
            elif suite == "changes":
                run_programs(tally, suite, TESTS, options.stage, True, only="generated_changes")
            elif suite in ("spilling", "packages"):
                run_programs(tally, suite, TESTS, options.stage, True, only=suite)
            elif suite in ("sqlite", "sqlite-long"):
                run_sqlite(tally, suite == "sqlite-long")
            elif suite in LONG_PROGRAMS:
                run_programs(tally, suite, TESTS / "long", options.stage, True, only=LONG_PROGRAMS[suite])
            else:
                run_programs(tally, "scripts", TESTS, options.stage, False)
        except ServerError as error:
            print(f"not ok {suite}: {error}", flush=True)
            tally.failures.append(suite)
            tally.add(suite, 0, 1)
    sys.exit(tally.report())


if __name__ == "__main__":
    main()
