"""Runs PostgreSQL's own regression and isolation suites with colcompress as the default access method (or
what AM names) and holds each file against what heap gives on the same server. Called by scripts/core-suite.sh
(`make test-postgres`).

Usage: scripts/core_suite.py STAGE SOURCE [regress|isolation|cold|indexed-regress|indexed-isolation]...

STAGE is the staged extension (target/stage/dev), SOURCE an unpacked PostgreSQL source tree of the server's
major version: the suites are not in its packages. `cold` runs the isolation specs once more, with every row
that their setups insert in stripes. The first three are the default; scripts/core_suite_index.py says what
the others do, which are about columnstore indexes.

A file is right if it prints what it prints on heap, but for the text of plans and the order of rows that
nothing orders. Where it prints something else, tests/postgres_suites.txt must say why; no server may crash.
ACCEPT=1 writes the outcome to docs/postgresql-suites.md. Results are left in target/core-suite/,
for majors from 16 on in target/pgN/core-suite/.
"""

import difflib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import core_suite_index
from harness import methods, twins
from harness.server import ROOT, TEST_SETTINGS, as_server_user, by_major, clean_environment, fail, fresh_server, major, pg_config, run_program, running_as_root, server_ids

# Files that name or show ctids, of our tables only. Rows begin in block 1, after the metapage: on our tables
# the blocks that these files name are one more, and one less in what they print.
PLACES = ("combocid", "eval-plan-qual", "tidscan")
PLACE = re.compile(r"('|\|\s*|^\s*)\((\d{1,3}),(\d+)\)", re.M)
# What the runner says of a file: from 16 on "ok 3  - name", before that "test name ... ok".
VERDICT = re.compile(r"^(?P<tap>ok|not ok)\s+\d+\s+[-+]\s+(?P<tap_name>[\w-]+)|^(?:test )?\s*(?P<name>\w[\w-]*)\s+\.\.\. (?P<said>ok|FAILED|failed \(ignored\))")
# What the runner tells a database that it makes.
DATABASE_SETTINGS = ("lc_messages TO 'C'", "lc_monetary TO 'C'", "lc_numeric TO 'C'", "lc_time TO 'C'", "bytea_output TO 'hex'", "timezone_abbreviations TO 'Default'")
CRASH = re.compile(r"was terminated by signal|PANIC:|TRAP:")


def build_regress_library(source, out):
    """regress.c holds C functions that the suite's SQL declares."""
    library = out / "regress.so"
    subprocess.run(["cc", "-O1", "-w", "-fPIC", "-shared", f"-I{pg_config('--includedir-server')}",
                    str(source / "src/test/regress/regress.c"), "-o", str(library)], check=True)
    return library


def run_suite(stage, source, suite, method, name=None, more_settings=None, prepare=None):
    """One run of pg_regress or of the isolation tester; (folder of what the files printed, names of files
    that print what is expected of heap, lines of crashes in the log). `prepare(server, database)`: the
    database is made before and prepared so. `name` is that of the folder, where it is not the method's."""
    folder = source / "src" / "test" / suite
    out = by_major("core-suite") / f"{suite}-{name or method}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    settings = dict(TEST_SETTINGS, default_table_access_method=method, max_connections="60", timezone="PST8PDT", **(more_settings or {}))
    server = fresh_server(f"core-{suite}", stage, settings)
    try:
        work = server.base / "work"
        work.mkdir()
        # The server writes below the suite's folders (tablespaces, COPY TO), so it needs a copy of its own.
        inputs = work / suite
        shutil.copytree(folder, inputs)
        if method != "heap":
            for file in [*inputs.rglob("*.sql"), *inputs.rglob("*.spec")]:
                if file.stem in PLACES:
                    file.write_text(moved(file.read_text(), 1))
        if suite == "regress":
            build_regress_library(source, work)
            for name in ("autoinc.so", "refint.so"):
                module = Path(server.pg_config("--pkglibdir")) / name
                if module.exists():
                    shutil.copy(module, work / name)
        if running_as_root():
            subprocess.run(["chown", "-R", f"{server_ids()[0]}:{server_ids()[1]}", str(work)], check=True)
        program = Path(server.pg_config("--pkglibdir")) / "pgxs/src/test" / suite / ("pg_regress" if suite == "regress" else "pg_isolation_regress")
        schedule = inputs / ("parallel_schedule" if suite == "regress" else "isolation_schedule")
        command = [program, f"--host={server.socket_dir}", f"--port={server.port}", f"--user={server.superuser}",
                   f"--bindir={server.bindir}", f"--inputdir={inputs}", f"--outputdir={work}", f"--schedule={schedule}",
                   f"--dlpath={work}", "--load-extension=colonnade", "--max-concurrent-tests=20"]
        if major() >= 16:
            command.append(f"--expecteddir={inputs}")
        if prepare:
            database = "regression" if suite == "regress" else "isolation_regression"
            server.create_database(database, "template0")
            for setting in DATABASE_SETTINGS:
                server.sql(f"ALTER DATABASE {database} SET {setting}")
            prepare(server, database)
            command += ["--use-existing", f"--dbname={database}"]
            command.remove("--load-extension=colonnade")
        process = subprocess.Popen(as_server_user(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   text=True, env=clean_environment(), cwd=work)
        passed, failed = [], []
        for line in process.stdout:
            print(line, end="", flush=True)
            match = VERDICT.match(line)
            if match:
                (passed if "ok" in (match["tap"], match["said"]) else failed).append(match["tap_name"] or match["name"])
        process.wait()
        for name in ("regression.diffs", "results"):
            found = work / name
            if found.is_dir():
                shutil.copytree(found, out / name)
            elif found.exists():
                shutil.copy(found, out / name)
        log = server.log.read_text(errors="replace")
        (out / "server.log").write_text(log)
        crashes = [line for line in log.splitlines() if CRASH.search(line) or "Failed process was" in line]
    finally:
        server.destroy()
    (out / "passed").write_text("".join(f"{name}\n" for name in sorted(passed)))
    return out / "results", passed, crashes


def moved(text, blocks):
    """The text with the block numbers of its ctids moved."""
    return PLACE.sub(lambda found: f"{found[1]}({int(found[2]) + blocks},{found[3]})", text)


def heap_results(stage, source, suite):
    """What the files print on heap; kept for the next run of the same server and the same extension. Suites
    look at everything in the catalogs."""
    out = by_major("core-suite") / f"{suite}-heap"
    ours = hashlib.sha256(b"".join(file.read_bytes() for file in sorted((ROOT / "crates/postgres/sql").glob("*.sql"))))
    stamp, now = out / "server", f"{pg_config('--version')} {source} {ours.hexdigest()}"
    if not stamp.exists() or stamp.read_text() != now:
        run_suite(stage, source, suite, "heap")
        stamp.write_text(now)
    return out / "results"


def run_cold(stage, source):
    """The isolation specs on heap and with all rows in stripes."""
    server = fresh_server("core-cold", stage, dict(TEST_SETTINGS, max_connections="60"))
    out = by_major("core-suite") / f"cold{methods.SUFFIX}"
    shutil.rmtree(out, ignore_errors=True)
    try:
        specs = sorted((source / "src/test/isolation/specs").glob("*.spec"))
        twins.run(server, specs, out, levels=("read committed",), prepare=with_cold_rows, jobs=1)
        crashes = [line for line in server.log.read_text(errors="replace").splitlines() if CRASH.search(line)]
    finally:
        server.destroy()
    return out, crashes


def indexed(stage, source, suite):
    """A suite with columnstore indexes that queries use or not. Statements that fail for having one count
    with the crashes."""
    heap = heap_results(stage, source, suite)
    off, on, crashes, without = core_suite_index.run(run_suite, stage, source, suite)
    print("\n".join(f"no index: {text}" for text in without))
    known = reasons()
    for name, (plain, beside) in sorted(outputs_of(heap, off, places=()).items()):
        reason = known.get(f"indexed-errors/{name}")
        errors = core_suite_index.new_errors(plain, beside)
        print("".join(f"{name}, not on plain heap: {error}{f' ({reason})' if reason else ''}\n" for error in errors), end="")
        crashes += [] if reason else errors
    numberless = core_suite_index.numberless
    return {name: (numberless(one), numberless(other)) for name, (one, other) in outputs_of(off, on, places=()).items()}, crashes


def with_cold_rows(spec):
    """The spec with one more setup block, which puts the rows of all tables into stripes."""
    return re.sub(r"^(teardown|session)\b", r"setup { SELECT cold_all(); }\n\1", spec, count=1, flags=re.M)


# -- comparing --------------------------------------------------------------------------------------

PLAN_HEADING = re.compile(r"^\s*(QUERY PLAN|explain_\w+)\s*$")
ROWS = re.compile(r"^\(\d+ rows?\)$")


def without_plans(text):
    """The lines with every result that is a plan left out."""
    lines, inside = [], False
    for line in text.splitlines():
        if inside:
            inside = not ROWS.match(line)
        elif PLAN_HEADING.match(line):
            inside = True
        else:
            lines.append(line)
    return lines


def verdict(heap, ours):
    """How two outputs of a file differ: "same", "plans", "order", or the changed lines."""
    if heap == ours:
        return "same", []
    heap, ours = without_plans(heap), without_plans(ours)
    if heap == ours:
        return "plans", []
    changed, moved = [], True
    for tag, a, b, c, d in difflib.SequenceMatcher(None, heap, ours, autojunk=False).get_opcodes():
        if tag != "equal":
            changed += [f"-{line}" for line in heap[a:b]] + [f"+{line}" for line in ours[c:d]]
    # A row that moves leaves one place and appears in another: as a whole nothing may be lost or new.
    moved = sorted(line[1:].strip() for line in changed if line[0] == "-") == sorted(line[1:].strip() for line in changed if line[0] == "+")
    return ("order" if moved else "differs"), changed


def reasons():
    """Why a file may print something else: "suite/name" -> the reason."""
    found = {}
    for line in (ROOT / "tests" / "postgres_suites.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(":", 1)
            found[name.strip()] = reason.strip()
    return found


def compare(suite, outputs):
    """Judges pairs of outputs by name, prints one line each; rows of the published table."""
    known, table = reasons(), []
    for name, (heap, ours) in sorted(outputs.items()):
        kind, changed = verdict(heap, ours)
        reason = known.get(f"{suite}/{name}", "")
        good = kind != "differs" or bool(reason)
        table.append((name, kind, reason if kind == "differs" else ""))
        print(f"{'ok' if good else 'not ok'} postgres-{suite}/{name} {kind}{': ' + reason if kind == 'differs' and reason else ''}")
        if not good:
            print("\n".join(changed[:40]))
        elif reason and kind != "differs":
            print(f"   (tests/postgres_suites.txt still has a reason for {suite}/{name})")
    return table


def outputs_of(heap, ours, heap_suffix=".out", suffix=".out", places=PLACES):
    """The outputs of all files that heap printed something for. Those of `places` have ctids of our tables.
    """
    found = {}
    for file in heap.glob(f"*{heap_suffix}"):
        name = file.name.removesuffix(heap_suffix)
        other = ours / f"{name}{suffix}"
        printed = other.read_text(errors="replace") if other.exists() else "it printed nothing"
        found[name] = (file.read_text(errors="replace"), moved(printed, -1) if suffix == ".out" and name in places else printed)
    return found


TITLES = {"regress": "Regression suite", "isolation": "Isolation suite", "cold": "Isolation suite, every row of the setups in stripes",
          "indexed-regress": "Regression suite, indexes used or not,", "indexed-isolation": "Isolation suite, indexes used or not,"}
DEFAULT = ("regress", "isolation", "cold")
KINDS = {"same": "identical", "plans": "identical but for the text of plans", "order": "identical but for the order of rows that nothing orders", "differs": "something else"}


DOCUMENT = ROOT / "docs" / "postgresql-suites.md"
INTRODUCTION = """# PostgreSQL's own suites

What PostgreSQL's test suites print when every table they make is a columnar table, held against what they
print with heap tables on the same server. Made by `ACCEPT=1 make test-postgres`, with `PG=N` for another
major version and `AM=rowcompress` for the other access method. The reasons are kept in
`tests/postgres_suites.txt`, and a difference without a reason fails the run. The server crashed in none of
them. Debian has no source of 16.

Parts named columnstore are of heap tables that all have a columnstore index: what the suites print where
queries use it, held against what they print where none does. Made with
`SUITES="indexed-regress indexed-isolation"`. Statements that fail for having an index, and not on plain heap,
have their reason in the same file.

"""
# Where the part of a major version and access method begins.
PART = re.compile(r"^## PostgreSQL (\d+)(?:, (\w+))?$", re.M)


def publish(source, method, tables):
    """Replaces the part of this major version and access method in docs/postgresql-suites.md."""
    server = pg_config("--version").removeprefix("PostgreSQL ").split()[0]
    name = f"{major()}{', ' + method if method != 'colcompress' else ''}"
    lines = [f"## PostgreSQL {name}", "", f"The suites are of {source.name.rpartition('-')[2]}, the server is {server}.", ""]
    for suite, table in tables.items():
        lines += [f"### {TITLES[suite]} of {name}", "", "| prints | files |", "| --- | --- |"]
        lines += [f"| {text} | {sum(row[1] == kind for row in table)} |" for kind, text in KINDS.items()]
        lines += ["", "| file | why it prints something else |", "| --- | --- |"]
        lines += [f"| {name} | {reason} |" for name, kind, reason in table if kind == "differs"]
        for kind in ("same", "plans", "order"):
            names = [name for name, found, _ in table if found == kind]
            lines += ["", f"{KINDS[kind].capitalize()}: {', '.join(names) or 'none'}."]
        lines.append("")
    parts = published()
    parts[major(), method] = "\n".join(lines)
    DOCUMENT.write_text(INTRODUCTION + "\n".join(parts[number].rstrip("\n") + "\n" for number in sorted(parts)))


def published():
    """The parts of the document that are there, by major version and access method."""
    text = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    marks = list(PART.finditer(text))
    return {(int(mark[1]), mark[2] or "colcompress"): text[mark.start():after.start() if after else len(text)] for mark, after in zip(marks, [*marks[1:], None])}


def main(stage, source, *suites):
    methods.expect_known()
    source = Path(source).resolve()
    tables, failed = {}, 0
    for suite in suites or DEFAULT:
        if suite in core_suite_index.SUITES:
            outputs, crashes = indexed(stage, source, core_suite_index.SUITES[suite])
        elif suite == "cold":
            results, crashes = run_cold(stage, source)
            outputs = outputs_of(results, results, ".read-committed.heap.out", f".read-committed.{methods.METHOD}.out")
        else:
            heap = heap_results(stage, source, suite)
            ours, passed, crashes = run_suite(stage, source, suite, methods.METHOD)
            print(f"{suite}: {len(passed)} files print what PostgreSQL expects of heap")
            outputs = outputs_of(heap, ours)
        tables[suite] = compare(suite, outputs)
        unexplained = [name for name, kind, reason in tables[suite] if kind == "differs" and not reason]
        failed += len(unexplained) + len(crashes)
        if crashes:
            print("not ok the server crashed, or statements failed for having an index:\n" + "\n".join(crashes))
        counts = {kind: sum(row[1] == kind for row in tables[suite]) for kind in KINDS}
        print(f"{suite}: {counts}, {len(unexplained)} without a reason, {len(crashes)} lines of crashes in the log")
    if os.environ.get("ACCEPT") == "1" and not failed:
        of_indexes = {suite: table for suite, table in tables.items() if suite in core_suite_index.SUITES}
        for method, part in (("columnstore", of_indexes), (methods.METHOD, {suite: tables[suite] for suite in tables if suite not in of_indexes})):
            if part:
                publish(source, method, part)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        fail(__doc__.splitlines()[3])
    os.umask(0o022)
    run_program(main)
