"""A private PostgreSQL server: made, started, killed and removed without touching the machine's own.

What it loads of ours lies in a stage, see scripts/stage.sh. That has our files only, where Debian's server
finds them, or it is a copy of the server's own tree: then the programs that run are those of the stage.

Who calls it: the test runner, the demo, the benchmarks, scripts/dev-server.sh, and the crash tests.
Invariant: everything a server writes lies below one directory (its base) and one socket directory; it
listens on no network port; when the caller is root, every server process runs as an ordinary user.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from .place import (ROOT, TARGET, ServerError, as_server_user, by_major, clean_environment, link_or_copy, major, pg_config,  # noqa: F401
                    private_base, reachable, run, running_as_root, server_ids)
from . import methods
from .session import Session

# What every test server runs with; a caller's own settings come on top.
TEST_SETTINGS = {
    "fsync": "off",
    "wal_level": "logical",
    "max_prepared_transactions": "20",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "jit": "off",
    "shared_buffers": "256MB",
    "log_line_prefix": "%m [%p] ",
    "log_autovacuum_min_duration": "-1",
    # On by default. Most tests say which of their rows are hot; those about packing, and crash tests, switch
    # it on. Those about refreshing columnstore indexes in the background shorten the pause.
    "colonnade.packing": "off",
    "colonnade.packing_naptime": "86400",
}


def preloaded(libraries):
    """What shared_preload_libraries says for a list of libraries; ours comes last where `colonnade` is not
    among them."""
    names = [name.strip() for name in libraries.split(",") if name.strip()]
    if "colonnade" not in names:
        names.append("colonnade")
    # With a directory in its name a library is looked up below extension_destdir, where the server has that,
    # then in the server's own; a bare name is not.
    return ", ".join(f"$libdir/{name}" for name in names)


def extra_settings():
    """Settings of every test server, from SETTINGS='name=value;name=value'."""
    return dict(item.strip().split("=", 1) for item in os.environ.get("SETTINGS", "").split(";") if item.strip())


class Server:
    """One private cluster. `base` holds data/, its log and the socket; where its name is too long for a
    socket (107 bytes) that gets a directory of its own. `preload` are libraries beside ours (see
    `preloaded`), `environment` is what the server's environment has besides."""

    def __init__(self, base, port=54321, stage=None, settings=None, socket_dir=None, data_name="data", preload=None, environment=None):
        self.base = Path(base)
        self.data = self.base / data_name
        self.log = self.base / f"{data_name}.log"
        self.port = port
        self.settings = dict(TEST_SETTINGS)
        self.settings.update(methods.settings())
        self.settings.update(extra_settings())
        self.settings.update(settings or {})
        self.preload = os.environ.get("EXTRA_PRELOAD", "") if preload is None else preload
        self.environment = environment or {}
        self.use_stage(stage)
        self.temporary_socket_dir = socket_dir is None and len(str(self.base)) > 80
        if self.temporary_socket_dir:
            socket_dir = tempfile.mkdtemp(prefix="cn_", dir="/tmp")
        elif socket_dir is None:
            socket_dir = self.base
        self.socket_dir = Path(socket_dir)
        self.socket_dir.mkdir(mode=0o755, exist_ok=True)
        if running_as_root():
            os.chown(self.socket_dir, *server_ids())
        self.superuser = "postgres"

    def use_stage(self, stage):
        """Takes this staged installation, or none. Sets `stage`, which is a copy next to the data where the
        server's user cannot read the stage in place; `bindir`, where the programs are; and `has_tree`: they
        are those of the stage."""
        self.stage = stage and Path(stage).resolve()
        if stage and not reachable(self.stage):
            self.stage = self.base / "stage"
            shutil.rmtree(self.stage, ignore_errors=True)
            shutil.copytree(Path(stage).resolve(), self.stage, symlinks=True, copy_function=link_or_copy)
        tree = self.stage and next(self.stage.glob("postgresql/*/bin"), None)
        installed = Path(pg_config("--bindir"))
        if tree is None and not reachable(installed):
            tree = self._copy(installed.parent) / "bin"
        self.has_tree = tree is not None
        self.bindir = tree or installed

    def _copy(self, installed):
        """A copy of a server's tree next to the data, for a user who cannot read it in place. Some trees have
        libraries beside them (see scripts/postgres.sh)."""
        copy = self.base / "server"
        shutil.rmtree(copy, ignore_errors=True)
        tree = copy / "postgresql" / installed.name
        shutil.copytree(installed, tree, symlinks=True, copy_function=link_or_copy)
        for libraries in installed.parent.parent.glob("*.libs"):
            shutil.copytree(libraries, copy / libraries.name, symlinks=True, copy_function=link_or_copy)
        return tree

    def pg_config(self, option):
        """What the pg_config says that lies beside the programs."""
        return pg_config(option, self.bindir / "pg_config") if self.has_tree else pg_config(option)

    # -- life ------------------------------------------------------------------------------------

    def exists(self):
        return (self.data / "PG_VERSION").exists() or self._as_user_exists(self.data / "PG_VERSION")

    def _as_user_exists(self, path):
        return run(as_server_user(["test", "-e", path]), check=False).returncode == 0

    def init(self):
        """Makes the cluster: UTF-8, C collation, data checksums, trust on the private socket."""
        run(as_server_user([self.bindir / "initdb", "-D", self.data, "-U", self.superuser, "-A", "trust",
                            "--locale=C.UTF-8", "-E", "UTF8", "--data-checksums", "--no-sync"]))
        self.configure()

    def configure(self):
        """Writes this object's settings; they take effect at the next start."""
        lines = [f"unix_socket_directories = '{self.socket_dir}'", "listen_addresses = ''", f"port = {self.port}"]
        if self.stage is not None:
            lines.append(f"shared_preload_libraries = '{preloaded(self.preload)}'")
        if self.stage is not None and not self.has_tree:
            lines.append(f"extension_destdir = '{self.stage}'")
        lines += [f"{name} = '{value}'" for name, value in self.settings.items()]
        self._write(self.data / "colonnade.conf", "\n".join(lines) + "\n")
        main = self.data / "postgresql.conf"
        if "colonnade.conf" not in main.read_text():
            with open(main, "a", encoding="utf-8") as conf:
                conf.write("include 'colonnade.conf'\n")

    def _write(self, path, text):
        path.write_text(text, encoding="utf-8")
        if running_as_root():
            os.chown(path, *server_ids())

    def start(self, timeout=120):
        done = run(as_server_user([self.bindir / "pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", timeout,
                                   "start"]), check=False, environment=self.environment)
        if done.returncode != 0:
            raise ServerError(f"the server did not start:\n{done.stdout}\n{self.log_tail()}")

    def stop(self, mode="fast", timeout=120):
        if not self.running():
            return
        done = run(as_server_user([self.bindir / "pg_ctl", "-D", self.data, "-w", "-t", timeout, "-m", mode, "stop"]),
                   check=False)
        if done.returncode != 0 and self.running():
            raise ServerError(f"the server did not stop:\n{done.stdout}\n{self.log_tail()}")

    def restart(self, mode="fast"):
        self.stop(mode)
        self.start()

    def running(self):
        return run(as_server_user([self.bindir / "pg_ctl", "-D", self.data, "status"]), check=False).returncode == 0

    def postmaster_pid(self):
        try:
            return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (OSError, ValueError, IndexError):
            return None

    def processes(self):
        """The postmaster and its children, by id."""
        parent = self.postmaster_pid()
        if parent is None:
            return []
        found = [parent]
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(entry.name))
        return found

    def ended_backends_cpu(self):
        """CPU seconds of the children of the postmaster that have ended, waited for, by now; sessions that
        are just ending are let end first."""
        while any(map(self.is_session, self.processes())):
            time.sleep(0.005)
        fields = Path(f"/proc/{self.postmaster_pid()}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def is_session(process):
        """Whether a child of the postmaster is a client's session, or has ended and was not waited for yet.
        """
        try:
            title = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return False
        return not title or b"[local]" in title

    def kill9(self, timeout=60):
        """Kills the postmaster and every child with SIGKILL, as a power cut would, and waits until all are
        gone."""
        # Stopped first, so that the postmaster forks no child that the list misses.
        parent = self.postmaster_pid()
        if parent is not None and _alive(parent):
            os.kill(parent, signal.SIGSTOP)
        processes = self.processes()
        for pid in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not any(_alive(pid) for pid in processes):
                # Where process 1 is no real init the dead postmaster stays a zombie, whose id the next start
                # would take for a running server.
                socket = self.socket_dir / f".s.PGSQL.{self.port}"
                run(["rm", "-f", "--", self.data / "postmaster.pid", socket, f"{socket}.lock"])
                return
            time.sleep(0.02)
        raise ServerError("killed server processes are still there")

    def destroy(self):
        """Stops the server and removes all it wrote."""
        try:
            if self.exists():
                self.stop("immediate")
        finally:
            run(["rm", "-rf", "--", self.base], check=False)
            if self.temporary_socket_dir:
                run(["rm", "-rf", "--", self.socket_dir], check=False)

    def log_tail(self, lines=40):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    # -- talking to it -----------------------------------------------------------------------------

    def psql_command(self, database="postgres", *options):
        return [str(self.bindir / "psql"), "-X", "-h", str(self.socket_dir), "-p", str(self.port), "-U", self.superuser,
                "-d", database, *map(str, options)]

    def sql(self, text, database="postgres", check=True):
        """Runs SQL and returns its unaligned output; raises ServerError on the first error."""
        done = subprocess.run(self.psql_command(database, "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"),
                              input=methods.translated(text), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=clean_environment(), cwd="/")
        if check and done.returncode != 0:
            raise ServerError(f"{done.stderr.strip()}\nin: {text.strip()[:400]}")
        return done.stdout.rstrip("\n") if check else (done.returncode, done.stdout, done.stderr)

    def session(self, database="postgres"):
        """An open psql session: one backend for many statements, with timings."""
        return Session(self.psql_command(database), clean_environment())

    def create_database(self, name, template=None, extension=True):
        source = f" TEMPLATE {template}" if template else ""
        self.sql(f'DROP DATABASE IF EXISTS "{name}"', "postgres")
        self.sql(f'CREATE DATABASE "{name}"{source}', "postgres")
        if extension and template is None:
            self.sql("CREATE EXTENSION colonnade", name)


def _alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def end_orderly():
    """From here on TERM and HUP end the program through its `finally` clauses, so that no server stays
    behind."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _frame: sys.exit(128 + received))


def fresh_server(name, stage, settings=None, port=54321, preload=None, environment=None):
    """A new server in a temporary base, started. The caller destroys it."""
    end_orderly()
    server = Server(private_base(name, temporary=True), port=port, stage=stage, settings=settings, preload=preload,
                    environment=environment)
    try:
        server.init()
        server.start()
    except BaseException:
        server.destroy()
        raise
    return server


def fail(message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def run_program(main):
    """Runs a program's `main` with the words of the command line, and ends with its status; a ServerError is
    a message."""
    try:
        sys.exit(main(*sys.argv[1:]))
    except ServerError as problem:
        fail(problem)
