"""Which PostgreSQL the programs here run, as which user, and in which folders.

Who calls it: harness/server.py and, through that, every test and benchmark. The server is the one that
PG_CONFIG names, else the major version PG, else Debian's, as scripts/lib.sh chooses.
"""

import functools
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What all majors share. By major is what `by_major` says.
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SERVER_USER = os.environ.get("COLONNADE_SERVER_USER", "postgres")


class ServerError(Exception):
    """A server program failed; the message carries its output."""


def running_as_root():
    return os.geteuid() == 0


def server_ids():
    """The user and group ids the server runs with."""
    if running_as_root():
        entry = pwd.getpwnam(SERVER_USER)
        return entry.pw_uid, entry.pw_gid
    return os.getuid(), os.getgid()


def clean_environment():
    """The caller's environment without what would leak into a server or a client: connection defaults,
    locale, and what a developer's shell asks of Rust."""
    drop = ("PG", "LC_")
    keep_pg = ("PG_CONFIG",)
    env = {k: v for k, v in os.environ.items() if k in keep_pg or not k.startswith(drop)}
    for name in ("RUST_BACKTRACE", "RUST_LIB_BACKTRACE", "LANG", "LANGUAGE"):
        env.pop(name, None)
    env.update(LC_ALL="C.UTF-8", PGTZ="UTC", PGOPTIONS="", PSQLRC="/dev/null", PSQL_HISTORY="/dev/null", PAGER="cat")
    return env


def as_server_user(command):
    """The command, wrapped so that root runs it as the server's user."""
    command = [str(part) for part in command]
    if running_as_root():
        return ["runuser", "-u", SERVER_USER, "--"] + command
    return command


def run(command, check=True, cwd="/", environment=None, **more):
    """Runs a program in the clean environment and what is given besides; returns its completed process with
    text output."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, errors="replace", env={**clean_environment(), **(environment or {})}, cwd=cwd, **more)
    if check and done.returncode != 0:
        raise ServerError(f"{' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout}")
    return done


@functools.cache
def chosen_pg_config():
    """The path of the chosen server's pg_config."""
    program = os.environ.get("PG_CONFIG")
    if not program and os.environ.get("PG", "15") != "15":
        program = subprocess.run([ROOT / "scripts/postgres.sh", os.environ["PG"]], stdout=subprocess.PIPE, text=True).stdout.strip()
        if not program:
            raise ServerError(f"there is no server of PG={os.environ['PG']}")
    found = [program] if program else ["/usr/bin/pg_config", shutil.which("pg_config"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_config"))]
    program = next((str(path) for path in found if path and os.access(path, os.X_OK)), None)
    if program is None:
        raise ServerError("pg_config not found: run 'make setup' or set PG_CONFIG")
    return program


def pg_config(option, program=None):
    """What the chosen server's pg_config says, or another one."""
    return subprocess.run([program or chosen_pg_config(), option], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@functools.cache
def major():
    """The chosen server's major version, a number."""
    return int(re.match(r"PostgreSQL (\d+)", pg_config("--version"))[1])


def by_major(name):
    """Where servers, results and figures of the chosen major lie: target/NAME for 15, target/pgN/NAME for
    others.
    """
    return (TARGET if major() == 15 else TARGET / f"pg{major()}") / name


def reachable(directory):
    """Can the server's user enter this directory and read it?"""
    return subprocess.run(as_server_user(["test", "-r", directory, "-a", "-x", directory]),
                          stdin=subprocess.DEVNULL, cwd="/").returncode == 0


def private_base(name, temporary=False):
    """A directory for one server, owned by its user: below target/ where that user can get there, else
    below the system's temporary directory. A temporary one has a name of its own."""
    uid, gid = server_ids()
    home = by_major("servers")
    home.mkdir(parents=True, exist_ok=True)
    if reachable(home):
        base = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=home)) if temporary else home / name
    else:
        base = (Path(tempfile.mkdtemp(prefix=f"colonnade-{name}-")) if temporary
                else Path(tempfile.gettempdir()) / f"colonnade-{uid}-{major()}-{name}")
    base.mkdir(mode=0o755, exist_ok=True)
    os.chmod(base, 0o755)
    if running_as_root():
        os.chown(base, uid, gid)
    return base


def link_or_copy(source, target):
    """A hard link where the file system has them: a stage may be a server's whole tree."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
