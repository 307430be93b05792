"""The Python of docs/clients.md runs: SQLAlchemy and pandas, and Django's settings and migration.

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
        settings, migration = blocks["Django"]
        checks.say("Django", not (problem := run(settings + DJANGO + migration + MIGRATION, server)), problem)
        made = server.sql("SELECT amname, reloptions FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'app_event'", "clients")
        checks.say("its table is columnar and sorted", made == "colcompress|{orderby=ts}", made)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
