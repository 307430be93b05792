"""The Python of docs/clients.md runs: SQLAlchemy and pandas, psycopg with engine.uint8, and Django's settings
and migration.

Called by scripts/test.sh clients, which puts sqlalchemy, psycopg, pandas and django into target/venv. The
blocks run as they stand; what a reader brings along (an engine, a project) is made here.
"""

import json
import os
import re
import subprocess
import sys

from harness.checks import Checks
from harness.race import PYTHON
from harness.server import ROOT, clean_environment, fresh_server

HEADING = re.compile(r"^## (.*)$", re.M)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)

ALCHEMY = """
import sqlalchemy
engine = sqlalchemy.create_engine(f"postgresql+psycopg://{user}@/{database}?host={host}&port={port}")
"""
UINT8 = """
import psycopg
connection = psycopg.connect(user=user, dbname=database, host=host, port=port)
register_uint8(connection)
numbers = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
connection.execute("CREATE TABLE keys (number engine.uint8) USING colcompress")
for binary in (False, True):
    for kind in (UInt8, int):
        connection.execute("TRUNCATE keys")
        with connection.cursor(binary=binary) as cursor:
            for number in numbers:
                cursor.execute("INSERT INTO keys VALUES (%b)" if binary and kind is UInt8 else "INSERT INTO keys VALUES (%s)", [kind(number)])
            cursor.execute("SELECT number FROM keys ORDER BY number")
            got = [row[0] for row in cursor.fetchall()]
            assert got == numbers, (binary, kind, got)
            cursor.execute("SELECT count(*) FROM keys WHERE number = ANY(%s)", [[UInt8(number) for number in numbers]])
            assert cursor.fetchone()[0] == len(numbers)
connection.execute("TRUNCATE keys")
with connection.cursor() as cursor:
    with cursor.copy("COPY keys FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["engine.uint8"])
        for number in numbers * 3000:
            copy.write_row([UInt8(number)])
    with cursor.copy("COPY (SELECT DISTINCT number FROM keys ORDER BY 1) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["engine.uint8"])
        got = [row[0] for row in copy.rows()]
    assert got == numbers, got
try:
    connection.execute("INSERT INTO keys VALUES (%s)", [2**64])
except psycopg.errors.NumericValueOutOfRange:
    pass
else:
    raise AssertionError("2^64 was taken")
"""
DJANGO = """
import django
from django.conf import settings
DATABASES["default"].update(NAME=database, USER=user, HOST=host, PORT=port)
settings.configure(DATABASES=DATABASES, INSTALLED_APPS=[], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
django.setup()
from django.db import connection, migrations, models
class Event(models.Model):
    ts = models.DateTimeField()
    class Meta:
        app_label = "app"
with connection.schema_editor() as editor:
    editor.create_model(Event)
"""
MIGRATION = """
from django.db.migrations.state import ProjectState
with connection.schema_editor() as editor:
    columnar.database_backwards("app", editor, ProjectState(), ProjectState())
    columnar.database_forwards("app", editor, ProjectState(), ProjectState())
"""


def sections():
    """The Python blocks below each heading."""
    parts = HEADING.split((ROOT / "docs" / "clients.md").read_text(encoding="utf-8"))
    return {title: BLOCK.findall(text) for title, text in zip(parts[1::2], parts[2::2])}


def run(program, server):
    """Runs a program that knows where the server is; its errors, or nothing."""
    place = {"user": server.superuser, "database": "clients", "host": str(server.socket_dir), "port": server.port}
    code = "import json, sys\nglobals().update(json.loads(sys.argv[1]))\n" + program
    done = subprocess.run([str(PYTHON), "-c", code, json.dumps(place)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean_environment())
    return done.stdout if done.returncode else ""


def main():
    server = fresh_server("clients", os.environ["COLONNADE_STAGE"])
    checks = Checks("clients")
    try:
        server.create_database("clients")
        blocks = sections()
        # Both define a name for a hook of Alembic's, which needs no server.
        python = blocks["SQLAlchemy and Alembic"] + blocks["pandas and polars"]
        checks.say("SQLAlchemy, Alembic and pandas", not (problem := run(ALCHEMY + "\n".join(python), server)), problem)
        made = server.sql("SELECT amname, reloptions FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'events'", "clients")
        checks.say("the table is columnar and sorted", made == 'colcompress|{"orderby=ts, customer"}', made)
        rows = server.sql("SELECT cold_rows > 0, (SELECT count(*) FROM events) FROM engine.storage_health('events')", "clients")
        checks.say("pandas loads stripes", rows == "t|20000", rows)
        uint8 = "\n".join(blocks["psycopg and engine.uint8"])
        checks.say("psycopg and engine.uint8", not (problem := run(uint8 + UINT8, server)), problem)
        settings, migration = blocks["Django"]
        checks.say("Django", not (problem := run(settings + DJANGO + migration + MIGRATION, server)), problem)
        made = server.sql("SELECT amname, reloptions FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'app_event'", "clients")
        checks.say("its table is columnar and sorted", made == "colcompress|{orderby=ts}", made)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
