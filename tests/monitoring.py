"""What monitoring/ gives a monitor: every query of the exporter's file runs for a role that is a member of
pg_monitor and has no other rights, and its columns are the metrics that the file declares; the dashboard asks
for metrics of the file only. Debian's prometheus-postgres-exporter serves them, where apt has it: it is taken
apart below target/, not installed."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request

from harness.checks import Checks
from harness.server import ROOT, TARGET

QUERIES, DASHBOARD = ROOT / "monitoring/postgres_exporter.yaml", ROOT / "monitoring/grafana.json"
PACKAGE = "prometheus-postgres-exporter"


def queries():
    """Name, SQL and metrics (column, usage) of each query of the file, which is YAML of one form."""
    found, name, in_query = {}, None, False
    for line in QUERIES.read_text().splitlines():
        top = re.match(r"(\w+):$", line)
        metric = re.match(r'    - (\w+): \{usage: "(\w+)", description: "[^"]+"\}$', line)
        if top:
            name = top[1]
            found[name] = ("", [])
        elif line == "  query: |":
            in_query = True
        elif in_query and line.startswith("    "):
            found[name] = (found[name][0] + line[4:] + "\n", found[name][1])
        elif metric:
            found[name][1].append((metric[1], metric[2]))
        else:
            in_query = False
            assert re.match(r"#|$|  metrics:$|  cache_seconds: \d+$", line), f"not understood: {line}"
    return found


def names(found):
    return {f"{query}_{column}" for query, (_, metrics) in found.items() for column, usage in metrics if usage != "LABEL"}


def run_queries(server, found):
    assert len(found) == 5, list(found)
    for name, (sql, metrics) in found.items():
        done = server.sql(f"SET ROLE watcher; CREATE TEMP VIEW v AS {sql}; SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'v'::regclass; SELECT count(*) FROM v", "one")
        columns, rows = done.split("\n")
        assert columns.split() == [column for column, _ in metrics], f"{name}: {columns} but {metrics}"
        assert int(rows) > 0, f"{name} has no rows"
    needed = server.sql("SET ROLE watcher; SELECT hot_rows, cold_rows, needed IS NULL FROM engine.storage_health WHERE table_name = 'secret'::regclass", "one")
    assert needed == "0|700|t", needed


def dashboard(found):
    shown = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in shown["panels"] for target in panel["targets"]] + [item["query"] for item in shown["templating"]["list"]]
    metrics = set(re.findall(r"\bcolonnade_\w+", " ".join(asked)))
    assert metrics and metrics <= names(found), f"unknown: {metrics - names(found)}"
    assert len({panel["id"] for panel in shown["panels"]}) == len(shown["panels"])


def program():
    """The exporter of this machine, or the one of Debian's package; None where apt does not give it."""
    place = TARGET / "exporter"
    binary = place / "usr/bin" / PACKAGE
    if not binary.exists():
        place.mkdir(parents=True, exist_ok=True)
        for command in (["apt-get", "download", PACKAGE], f"dpkg -x {PACKAGE}_*.deb ."):
            subprocess.run(command, cwd=place, shell=isinstance(command, str), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    return binary if binary.exists() else None


def served(server, found, binary):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = f"host={server.socket_dir} port={server.port} user=watcher dbname=one sslmode=disable"
    exporter = subprocess.Popen([str(binary), f"--web.listen-address=127.0.0.1:{port}", f"--extend.query-path={QUERIES}"],
                                env={**os.environ, "DATA_SOURCE_NAME": source}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        text, end = "", time.time() + 30
        while time.time() < end:
            try:
                text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
                break
            except OSError:
                time.sleep(0.2)
        missing = {name for name in names(found) if not re.search(rf"^{name}\{{", text, re.M)}
        assert not missing, f"not served: {sorted(missing)}"
        assert re.search(r'^colonnade_packing_rows_packed\{[^}]*relname="secret"[^}]*\} 700$', text, re.M), "rows packed of a table"
        assert "pg_exporter_last_scrape_error" in text and re.search(r"^pg_exporter_last_scrape_error(\{\})? 0$", text, re.M), "the exporter met an error"
    except AssertionError as error:
        exporter.send_signal(signal.SIGTERM)
        raise AssertionError(f"{error}\n{exporter.communicate(timeout=20)[0][-2000:]}") from error
    finally:
        exporter.kill()
        exporter.wait()


def main():
    checks = Checks("monitoring")
    with checks.server({"colonnade.packing": "off"}) as server:
        server.create_database("one")
        server.sql("CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; CREATE TABLE secret (k int) USING colcompress; INSERT INTO secret SELECT generate_series(1, 700); CALL engine.colcompress_repack('secret')", "one")
        found = queries()
        with checks.part("queries run"):
            run_queries(server, found)
        with checks.part("the dashboard knows them"):
            dashboard(found)
        with checks.part("the exporter serves them") as tell:
            binary = program()
            if binary:
                served(server, found, binary)
            else:
                tell("not tried: apt does not give it")
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
