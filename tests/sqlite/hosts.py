"""The other programs that load the extension: the shell sqlite3, Node.js, and Python by the wheel. Each makes
a table, fills it past what a stripe takes, and asks. What is not installed is passed over.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.checks import Checks
from harness.sqlite import HOST, LIBRARY

CHECKS = Checks("hosts")
ROOT = Path(__file__).resolve().parents[2]
FILL = "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, 'name ' || (i % 7) FROM n"
ASK = "SELECT count(*), sum(a), (SELECT sum FROM columnar_group_sum('t', 'b', 'a') WHERE k = 'name 3') FROM t"
ANSWER = [20_000, 200_010_000, sum(range(3, 20_001, 7))]
NODE = """const Database = require('better-sqlite3');
const db = new Database(':memory:');
db.loadExtension(process.argv[2]);
db.exec("CREATE VIRTUAL TABLE t USING columnar(a INTEGER, b TEXT)");
db.exec(process.argv[3]);
console.log(JSON.stringify(db.prepare(process.argv[4]).raw().get()));
"""


def run(command, **options):
    """What a program prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-1500:]}"
    return done.stdout


def shell():
    if shutil.which("sqlite3") is None:
        return
    with CHECKS.part("the shell sqlite3"):
        script = f".load {LIBRARY.removesuffix('.so')}\nCREATE VIRTUAL TABLE t USING columnar(a INTEGER, b TEXT);\n{FILL};\n{ASK};\n"
        answer = run(["sqlite3", "-bail"], input=script).strip()
        assert answer == "|".join(map(str, ANSWER)), answer


def node():
    program = shutil.which("node")
    if program is None or shutil.which("npm") is None or int(run([program, "--version"])[1:].split(".")[0]) < 20:
        return
    folder = ROOT / "target/node"
    if not (folder / "node_modules/better-sqlite3/build").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        try:
            run(["npm", "install", "--silent", "better-sqlite3@12"], cwd=folder)
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            print(f"Node.js is passed over: {str(problem)[-300:]}")
            return
    with CHECKS.part("better-sqlite3 of Node.js"):
        (folder / "ask.js").write_text(NODE)
        answer = json.loads(run([program, "ask.js", LIBRARY, FILL, ASK], cwd=folder))
        assert answer == ANSWER, answer


def wheel():
    with CHECKS.part("the wheel"), tempfile.TemporaryDirectory(prefix="colonnade-wheel-") as folder:
        made = run([sys.executable, str(ROOT / "scripts/wheel.py"), LIBRARY, folder]).strip()
        environment = dict(os.environ, PYTHONPATH=f"{folder}/site")
        run([sys.executable, "-m", "zipfile", "-e", made, f"{folder}/site"])
        program = f'import sqlite3, colonnade_sqlite as c; db = sqlite3.connect(":memory:"); c.load(db); db.execute("CREATE VIRTUAL TABLE t USING columnar(a INTEGER, b TEXT)"); db.execute({FILL!r}); print(list(db.execute({ASK!r}).fetchone())); print(c.query(db, "SELECT count(*), \'x\' FROM t WHERE a > ?", (0,)) == db.execute("SELECT count(*), \'x\' FROM t WHERE a > 0").fetchall())'
        answer = run([sys.executable, "-c", program], env=environment).strip()
        assert answer == f"{ANSWER}\nTrue", answer


def main():
    # These bring an SQLite of their own: once is enough.
    if HOST == "debian":
        for part in (shell, node, wheel):
            part()
    else:
        CHECKS.say("are asked once, by the other host", True)
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
