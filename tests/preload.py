"""A server that does not preload the library refuses to load it later, and says what to do; nothing is left half-made."""

import os

from harness.checks import Checks
from harness.server import fresh_server

WAYS = {
    "CREATE EXTENSION": "CREATE EXTENSION colonnade",
    "LOAD": "LOAD '$libdir/colonnade'",
    "LOAD again in one session": "DO $$BEGIN LOAD '$libdir/colonnade'; EXCEPTION WHEN OTHERS THEN NULL; END$$; LOAD '$libdir/colonnade'",
}


def main():
    server = fresh_server("preload", os.environ["COLONNADE_STAGE"], settings={"shared_preload_libraries": ""})
    checks = Checks("preload")
    try:
        assert server.sql("SHOW shared_preload_libraries") == "", "the premise: nothing is preloaded"
        for name, statement in WAYS.items():
            status, _, err = server.sql(f"\\set VERBOSITY verbose\n{statement}", check=False)
            good = status != 0 and "55000" in err and "shared_preload_libraries = 'colonnade'" in err
            checks.say(f"{name} is refused", good, f"{status} {err}")
        left = server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'engine'")
        checks.say("no schema is left", left == "0", left)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
