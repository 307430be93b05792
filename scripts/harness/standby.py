"""A streaming standby of a private server.

Who calls it: the crash programs. The standby lives below its primary's directory, so it is stopped here and
removed with the primary.
"""

import shutil
import time

from .server import Server, as_server_user, run


def make_standby(primary, options=(), **settings):
    """A running standby of the primary, on the next port, with the primary's settings and these; `options`
    are for pg_basebackup."""
    standby = Server(primary.base, port=primary.port + 1, stage=primary.stage, data_name="standby", socket_dir=primary.socket_dir,
                     settings={**primary.settings, **settings})
    shutil.rmtree(standby.data, ignore_errors=True)
    run(as_server_user([primary.bindir / "pg_basebackup", "-D", standby.data, "-h", primary.socket_dir, "-p", primary.port,
                        "-U", primary.superuser, "-R", "-X", "stream", "-c", "fast", *options]))
    standby.configure()
    standby.start()
    return standby


def wait_for_replay(primary, standby, seconds=120):
    """Until the standby has replayed all that the primary has logged by now; AssertionError where it does
    not."""
    # A commit that is waited for: what VACUUM, for one, has logged before may else be in memory still.
    primary.sql("SELECT pg_logical_emit_message(true, 'harness', '')")
    target = primary.sql("SELECT pg_current_wal_flush_lsn()")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if standby.sql(f"SELECT pg_last_wal_replay_lsn() >= '{target}'") == "t":
            return
        time.sleep(0.1)
    raise AssertionError(f"the standby did not reach {target}; its log ends with:\n{standby.log_tail(15)}")


def promote(standby):
    """Makes a server of its own of the standby."""
    run(as_server_user([standby.bindir / "pg_ctl", "-D", standby.data, "-w", "promote"]))
