"""The same SQL on heap and on colcompress: same results, same errors.

Every tests/differential/NAME.sql runs in databases of its own, once with heap and once with colcompress as
the default access method, under each set of settings below; the whole output of psql, errors and notices
included, must be equal. A file names no access method, and prints nothing that may differ (ctid, sizes,
plans).
"""

import difflib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.server import clean_environment, fresh_server

FILES = Path(__file__).resolve().parent / "differential"
# A name and the settings of the colcompress side.
VARIANTS = {
    "defaults": {},
    "small stripes, parallel": {
        "colonnade.stripe_row_limit": "1000", "colonnade.chunk_group_row_limit": "1000",
        "parallel_setup_cost": "0", "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0"},
    "all cold, little memory, serial": {
        "colonnade.stripe_threshold_rows": "0", "colonnade.load_memory": "1MB",
        "max_parallel_workers_per_gather": "0"},
}
# Files that write so few rows at a time that only the variant "all cold" makes stripes.
FEW_ROWS = ("dml",)


def run(server, file, method, settings):
    database = f"{file.stem}_{method}_{abs(hash(tuple(settings.items()))) % 10**8}"
    server.create_database(database, template="template_differential")
    options = {"default_table_access_method": method, **settings}
    env = clean_environment()
    env["PGOPTIONS"] = " ".join(f"-c {name}={value}" for name, value in options.items())
    with open(file, "rb") as source:
        done = subprocess.run(server.psql_command(database, "-a", "-q"), stdin=source, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=env, cwd="/", timeout=600)
    stripes = stripes_written(server, database)
    server.sql(f'DROP DATABASE "{database}" WITH (FORCE)', check=False)
    if method != "heap" and stripes == "0" and (file.stem not in FEW_ROWS or "colonnade.stripe_threshold_rows" in settings):
        return ["no stripe was written: this compares heap with heap"]
    return done.stdout.decode(errors="replace").replace(database, "DATABASE").splitlines()


def stripes_written(server, database):
    """Directory rows ever inserted. A backend reports them when it ends, a little after its client has gone.
    """
    for _ in range(50):
        count = server.sql("SELECT n_tup_ins FROM pg_stat_all_tables WHERE relid = 'engine.stripe'::regclass", database)
        if count != "0":
            break
        time.sleep(0.1)
    return count


def main():
    names = os.environ.get("FILES", "").split()
    files = [f for f in sorted(FILES.glob("*.sql")) if not names or f.stem in names]
    server = fresh_server("differential", os.environ["COLONNADE_STAGE"], {"max_connections": "40"})
    failed = 0
    try:
        server.create_database("template_differential")
        for file in files:
            jobs = [("heap", {})] + [("colcompress", settings) for settings in VARIANTS.values()]
            # CREATE DATABASE waits for other users of the template: one after the other, then side by side.
            with ThreadPoolExecutor(1) as pool:
                heap, *sides = pool.map(lambda job: run(server, file, *job), jobs)
            for variant, lines in zip(VARIANTS, sides):
                good = lines == heap
                failed += not good
                print(f"{'ok' if good else 'not ok'} differential {file.stem}, {variant}", flush=True)
                if not good:
                    print("\n".join(list(difflib.unified_diff(heap, lines, "heap", "colcompress", lineterm="", n=4))[:80]))
        if "terminated by signal" in server.log.read_text(errors="replace"):
            failed += 1
            print("not ok differential: the server crashed")
            print("\n".join(line for line in server.log.read_text(errors="replace").splitlines() if "terminated by signal" in line))
    finally:
        server.destroy()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
