"""Heap twins of isolation specs: the same spec on heap and on colcompress (or what `methods.METHOD` names)
with its rows in stripes; the outputs must be equal.

Who calls it: scripts/run_tests.py for tests/isolation/twins/, scripts/core_suite.py for PostgreSQL's own
specs. A spec names no access method and says `SELECT cold('t')` where its rows should be in stripes from:
that does nothing to a heap table, and on colcompress it fails where a row stays behind; transactions that
could keep one there are waited for first. It runs at every isolation level, which its BEGINs leave to
default_transaction_isolation. What a spec prints must not depend on the order of rows on disk.
"""

import difflib
import os
import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .server import ServerError, clean_environment
from .methods import METHOD, translated
from .settle import SETTLE

LEVELS = ("read committed", "repeatable read", "serializable")
# Seconds after which the tester cancels a step that should have ended; a hang on one side is a difference.
STUCK_AFTER = "40"
FUNCTIONS = """
CREATE FUNCTION cold(t regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE total int8; stored int8;
BEGIN
  IF (SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = t) <> 'colcompress' THEN RETURN; END IF;
  PERFORM engine.colcompress_merge(t);
  EXECUTE format('SELECT count(*) FROM ONLY %s', t) INTO total;
  SELECT coalesce(sum(row_count), 0) INTO stored FROM engine.colcompress_stripes WHERE table_name = t;
  IF total = 0 OR total <> stored THEN RAISE 'table % has % rows, % in stripes', t, total, stored; END IF;
END $$;
-- The same for every table there is, for specs that were not written with this in mind.
CREATE FUNCTION cold_all() RETURNS void LANGUAGE plpgsql AS $$
DECLARE t regclass; filled bool;
BEGIN
  FOR t IN SELECT c.oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = 'colcompress' AND relkind = 'r' ORDER BY 1 LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM ONLY %s)', t) INTO filled;
    IF filled THEN PERFORM cold(t); END IF;
  END LOOP;
END $$;
"""
# A merge leaves rows in heap pages that some snapshot does not see.
SETTLED = "setup { CALL harness.settle(); }\n"
TO_COLD = re.compile(r"^setup(?=\s*\{[^}]*\bcold(?:_all)?\()", re.M)


def isolationtester(server, database):
    """The command that runs a spec from its standard input."""
    program = Path(server.pg_config("--pkglibdir")) / "pgxs/src/test/isolation/isolationtester"
    if not program.exists():
        raise ServerError(f"{program} is not there: install the server's development package")
    # Some trees' programs know no place of libpq (see scripts/postgres.sh), and the machine's own may be
    # older.
    libraries = server.pg_config("--libdir")
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(program), f"dbname={database} host={server.socket_dir} port={server.port} user={server.superuser}"]


def sampled(spec, share, seed):
    """The spec with this share of its permutations, at least one; all where it names none."""
    lines = spec.splitlines(keepends=True)
    named = [at for at, line in enumerate(lines) if line.startswith("permutation")]
    kept = set(random.Random(seed).sample(named, max(1, round(len(named) * share)))) if named else set()
    return "".join(line for at, line in enumerate(lines) if at in kept or at not in named)


class Twins:
    """Runs specs on both access methods; `prepare` changes a spec's text first."""

    def __init__(self, server, results, prepare=lambda text: text):
        self.server, self.results, self.prepare = server, results, prepare
        results.mkdir(parents=True, exist_ok=True)

    def output(self, text, name, method, level):
        """What the tester prints for the spec in a new database; raises ServerError when it cannot run it."""
        database = f"twin_{name}_{method}".replace("-", "_")
        self.server.create_database(database)
        self.server.sql(SETTLE + FUNCTIONS, database)
        env = clean_environment()
        env.update(PGOPTIONS=f"-c default_table_access_method={method} -c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}",
                   PGISOLATIONTIMEOUT=STUCK_AFTER, PG_TEST_TIMEOUT_DEFAULT=STUCK_AFTER, PGAPPNAME=f"twins/{name}")
        done = subprocess.run(isolationtester(self.server, database), input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=env, text=True, errors="replace", cwd="/")
        (self.results / f"{name}.{level.replace(' ', '-')}.{method}.out").write_text(done.stdout)
        self.server.sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)', check=False)
        if done.returncode != 0:
            raise ServerError(f"isolationtester ended with {done.returncode} on {name} with {method}:\n{done.stdout[-1500:]}")
        return done.stdout

    def one(self, file, level, share=1.0, seed=0):
        """The lines in which colcompress differs from heap; an empty list is what is wanted."""
        text = sampled(self.prepare(file.read_text()), share, seed)
        text = translated(TO_COLD.sub(SETTLED + "setup", text))
        try:
            heap, columnar = (self.output(text, file.stem, method, level) for method in ("heap", METHOD))
        except ServerError as error:
            return [str(error)]
        if re.search(r"^setup failed", heap, re.M):
            return [f"setup failed on heap:\n{heap[-500:]}"]
        return list(difflib.unified_diff(heap.splitlines(), columnar.splitlines(), "heap", METHOD, lineterm="", n=5))


def run(server, files, results, levels=LEVELS, share=1.0, seed=0, prepare=lambda text: text, jobs=None):
    """Runs these specs at each level and says how they went; (names passed, names failed)."""
    twins = Twins(server, results, prepare)

    def one(file):
        differences = [(level, twins.one(file, level, share, seed)) for level in levels]
        return file.stem, [(level, lines) for level, lines in differences if lines]

    passed, failed = [], []
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for name, differences in pool.map(one, files):
            (failed if differences else passed).append(name)
            print(f"{'not ok' if differences else 'ok'} twins/{name}", flush=True)
            for level, lines in differences:
                print(f"  at {level}: {len(lines)} lines")
                print("\n".join(lines[:60]), flush=True)
    return passed, failed
