"""Runs PostgreSQL's own regression or isolation suite with colcompress as the default access method.

Usage: scripts/core_suite.py STAGE SOURCE [regress|isolation] [heap|colcompress]
STAGE is the staged extension (target/stage/dev), SOURCE an unpacked PostgreSQL source tree of the server's major
version: the suites are not in its packages. Many of its tests print plans, page contents or access method names and so
cannot pass; what counts is the list of those that pass, that it never shrinks, and that nothing crashes. Results are
left in target/core-suite/.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness.server import (TARGET, TEST_SETTINGS, ServerError, as_server_user, clean_environment, fail, fresh_server,
                            pg_config, running_as_root, server_ids)

VERDICT = re.compile(r"^(?:test )?\s*(\w[\w-]*)\s+\.\.\. (ok|FAILED|failed \(ignored\))")
CRASH = re.compile(r"was terminated by signal|PANIC:|TRAP:")


def build_regress_library(source, out):
    """regress.c holds C functions that the suite's SQL declares."""
    library = out / "regress.so"
    subprocess.run(["cc", "-O1", "-w", "-fPIC", "-shared", f"-I{pg_config('--includedir-server')}",
                    str(source / "src/test/regress/regress.c"), "-o", str(library)], check=True)
    return library


def main(stage, source, suite="regress", method="colcompress"):
    source = Path(source).resolve()
    folder = source / "src" / "test" / suite
    out = TARGET / "core-suite" / f"{suite}-{method}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    settings = dict(TEST_SETTINGS, default_table_access_method=method, max_connections="60", timezone="PST8PDT")
    server = fresh_server(f"core-{suite}", stage, settings)
    try:
        work = server.base / "work"
        work.mkdir()
        # The server writes below the suite's folders (tablespaces, COPY TO), so it needs a copy of its own.
        inputs = work / suite
        shutil.copytree(folder, inputs)
        if suite == "regress":
            build_regress_library(source, work)
            for name in ("autoinc.so", "refint.so"):
                module = Path(pg_config("--pkglibdir")) / name
                if module.exists():
                    shutil.copy(module, work / name)
        if running_as_root():
            subprocess.run(["chown", "-R", f"{server_ids()[0]}:{server_ids()[1]}", str(work)], check=True)
        program = Path(pg_config("--pkglibdir")) / "pgxs/src/test" / suite / ("pg_regress" if suite == "regress" else "pg_isolation_regress")
        schedule = inputs / ("parallel_schedule" if suite == "regress" else "isolation_schedule")
        command = [program, f"--host={server.socket_dir}", f"--port={server.port}", f"--user={server.superuser}",
                   f"--bindir={server.bindir}", f"--inputdir={inputs}", f"--outputdir={work}", f"--schedule={schedule}",
                   f"--dlpath={work}", "--load-extension=colonnade", "--max-concurrent-tests=20"]
        process = subprocess.Popen(as_server_user(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   text=True, env=clean_environment(), cwd=work)
        passed, failed = [], []
        for line in process.stdout:
            print(line, end="", flush=True)
            match = VERDICT.match(line)
            if match:
                (passed if match[2] == "ok" else failed).append(match[1])
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
    print("\n".join(crashes))
    print(f"{suite} with {method}: {len(passed)} passed, {len(failed)} failed, {len(crashes)} lines of crashes in the log")
    print(f"details: {out}")
    return 1 if crashes else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        fail(__doc__.splitlines()[2])
    try:
        os.umask(0o022)
        sys.exit(main(*sys.argv[1:]))
    except ServerError as problem:
        fail(problem)
