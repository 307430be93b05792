"""A server that does not preload the library refuses to load it later, and says what to do; nothing is left half-made."""

import os

from harness.server import fresh_server

WAYS = {
    "CREATE EXTENSION": "CREATE EXTENSION colonnade",
    "LOAD": "LOAD '$libdir/colonnade'",
    "LOAD again in one session": "DO $$BEGIN LOAD '$libdir/colonnade'; EXCEPTION WHEN OTHERS THEN NULL; END$$; LOAD '$libdir/colonnade'",
}


def main():
    server = fresh_server("preload", os.environ["COLONNADE_STAGE"], settings={"shared_preload_libraries": ""})
    failed = 0
    try:
        assert server.sql("SHOW shared_preload_libraries") == "", "the premise: nothing is preloaded"
        for name, statement in WAYS.items():
            status, _, err = server.sql(f"\\set VERBOSITY verbose\n{statement}", check=False)
            good = status != 0 and "55000" in err and "shared_preload_libraries = 'colonnade'" in err
            failed += not good
            print(f"{'ok' if good else 'not ok'} preload: {name} is refused{'' if good else f': {status} {err}'}")
        left = server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'engine'")
        failed += left != "0"
        print(f"{'ok' if left == '0' else 'not ok'} preload: no schema is left")
    finally:
        server.destroy()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
