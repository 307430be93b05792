"""The server side of scripts/dev-server.sh, which see for usage."""

import subprocess
import sys

from harness.server import Server, ServerError, clean_environment, fail, private_base


def main(verb, name, port, stage, *arguments):
    server = Server(private_base(name), port=int(port), stage=stage, socket_dir=f"/tmp/cn_{name}")
    if verb in ("start", "restart", "fresh"):
        if server.exists():
            server.stop()
        if verb == "fresh":
            subprocess.run(["rm", "-rf", "--", str(server.data)], check=True)
        if not server.exists():
            server.init()
        server.configure()
        server.start()
        if server.sql("SELECT count(*) FROM pg_database WHERE datname = 'dev'") == "0":
            server.create_database("dev", extension=False)
        status, _, errors = server.sql("CREATE EXTENSION IF NOT EXISTS colonnade", "dev", check=False)
        if status != 0:
            print(f"the server runs, but CREATE EXTENSION failed: {errors.strip()}")
        print(f"running: {' '.join(server.psql_command('dev'))}")
        print(f"log: {server.log}")
    elif verb == "stop":
        if server.exists():
            server.stop()
    elif verb == "psql":
        sys.exit(subprocess.run(server.psql_command("dev", *arguments), env=clean_environment()).returncode)
    elif verb == "log":
        print(server.log_tail(80))
    elif verb == "status":
        print("running" if server.exists() and server.running() else "stopped")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ServerError as error:
        fail(error)
