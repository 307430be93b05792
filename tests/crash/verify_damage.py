"""engine.verify names what is damaged on disk, says nothing of tables that are whole, and never ends in an
ERROR or a crash.

Each damage is done to a table of its own while the server is down: first with data checksums, then without
them, where the headers of stripe pages and the checksums of chunks have to tell.
The same of heap tables with a columnstore index, whose file is damaged.
"""

import os
import random
import time

from harness.checks import Checks
from harness.server import as_server_user, fresh_server, run

PAGE = 8192
SEED = int(os.environ.get("COLONNADE_SEED", time.time()))
SETUP = """
CREATE TABLE {table} (id int PRIMARY KEY, s text, n numeric) USING colcompress WITH (stripe_row_limit = 2000, chunk_group_row_limit = 1000);
SET colonnade.stripe_threshold_rows = 1000;
INSERT INTO {table} SELECT g, 'row ' || md5(g::text), g / 8.0 FROM generate_series(1, 6000) g;
INSERT INTO {table} VALUES (0, 'hot', 1);
"""
OF_HEAP = """
CREATE TABLE {table} (id int, s text, n numeric);
INSERT INTO {table} SELECT g, 'row ' || md5(g::text), g / 8.0 FROM generate_series(1, 6000) g;
CREATE INDEX {table}_copy ON {table} USING columnstore (id, s, n);
"""


def stripe_pages(data):
    """Numbers of the stripe pages, block 0 left out."""
    return [n for n in range(1, len(data) // PAGE) if data[n * PAGE + 24:n * PAGE + 28] == b"CNST"]


def hot_page(data):
    return next(n for n in range(1, len(data) // PAGE) if data[n * PAGE + 24:n * PAGE + 28] != b"CNST")


def flip(data, page, byte):
    data[page * PAGE + byte] ^= 4


def payload(data):
    page = stripe_pages(data)[1]
    flip(data, page, 100 + random.randrange(1000))
    return page


def own_header(data):
    page = stripe_pages(data)[1]
    flip(data, page, random.randrange(32, 60))
    return page


def server_header(data):
    """pd_upper of a stripe page."""
    page = stripe_pages(data)[1]
    flip(data, page, 14)
    return page


def hot(data):
    page = hot_page(data)
    flip(data, page, 8000)
    return page


def zeroed(data):
    page = stripe_pages(data)[1]
    data[page * PAGE:(page + 1) * PAGE] = bytes(PAGE)
    return page


def exchanged(data):
    """Two pages of one stripe in each other's place: whole in themselves."""
    a, b = stripe_pages(data)[1:3]
    data[a * PAGE:(a + 1) * PAGE], data[b * PAGE:(b + 1) * PAGE] = data[b * PAGE:(b + 1) * PAGE], data[a * PAGE:(a + 1) * PAGE]
    return a


def meta(data):
    flip(data, 0, 33)
    return 0


def cut(data):
    """The last page of the file is gone."""
    del data[-PAGE:]
    return len(data) // PAGE


# What is done, and the kinds of which one must be reported.
WITH_CHECKSUMS = {"payload": (payload, {"page"}), "own_header": (own_header, {"page"}), "hot": (hot, {"page"}), "meta": (meta, {"page"}),
                  "zeroed": (zeroed, {"stripe"}), "copy_payload": (payload, {"page"})}
WITHOUT = {"bare_payload": (payload, {"chunk", "stripe"}), "bare_own_header": (own_header, {"page"}), "bare_server_header": (server_header, {"page", "stripe"}),
           "bare_exchanged": (exchanged, {"stripe"}), "bare_zeroed": (zeroed, {"stripe"}), "bare_meta": (meta, {"page"}), "bare_cut": (cut, {"directory", "stripe", "index"}),
           "copy_bare_payload": (payload, {"copy"}), "copy_bare_zeroed": (zeroed, {"copy"})}


def of_heap(table):
    return table.startswith("copy_")


class Damages(Checks):
    def __init__(self, server):
        super().__init__("verify_damage")
        self.server = server

    def damage(self, damages):
        paths = {table: self.server.data / self.server.sql(f"SELECT pg_relation_filepath('{table}{'_copy' * of_heap(table)}')", "damage") for table in damages}
        self.server.stop()
        self.pages = {}
        for table, (how, _) in damages.items():
            data = bytearray(paths[table].read_bytes())
            self.pages[table] = how(data)
            with open(paths[table], "r+b") as file:
                file.write(data)
                file.truncate(len(data))

    def look(self, damages):
        for table, (_, kinds) in damages.items():
            status, out, err = self.server.sql(f"SELECT kind, block, stripe, detail FROM engine.verify('{table}')", "damage", check=False)
            found = {line.split("|")[0] for line in out.splitlines()}
            self.say(f"{table} is found", status == 0 and bool(found & kinds), out + err)
            if "page" in kinds and len(kinds) == 1:
                self.say(f"{table}: at its block", f"page|{self.pages[table]}|" in out, out)
        for table in ("whole", "copy_whole"):
            out = self.server.sql(f"SELECT * FROM engine.verify('{table}')", "damage")
            self.say(f"a table that is {table} gives no row", out == "", out)


def main():
    print(f"seed {SEED} (COLONNADE_SEED repeats it)")
    random.seed(SEED)
    server = fresh_server("crash_verify", os.environ["COLONNADE_STAGE"], settings={"autovacuum": "off"})
    checks = Damages(server)
    try:
        server.create_database("damage")
        tables = ["whole", "copy_whole", *WITH_CHECKSUMS, *WITHOUT]
        server.sql("".join((OF_HEAP if of_heap(table) else SETUP).format(table=table) for table in tables) + "CHECKPOINT", "damage")
        for table in tables:
            out = server.sql(f"SELECT * FROM engine.verify('{table}')", "damage")
            checks.say(f"{table} is healthy before", out == "", out)
        server.sql("CREATE EXTENSION amcheck", "damage")
        amcheck = run([server.bindir / "pg_amcheck", "-h", server.socket_dir, "-p", server.port, "-U", server.superuser, "--heapallindexed", "--rootdescend",
                       "--index", "whole_pkey", "damage"], check=False)
        checks.say("pg_amcheck finds the index of a table that is whole in order", amcheck.returncode == 0 and not amcheck.stdout.strip(), amcheck.stdout)
        checks.damage(WITH_CHECKSUMS)
        server.start()
        checks.look(WITH_CHECKSUMS)
        server.stop()
        run(as_server_user([server.bindir / "pg_checksums", "--disable", "-D", server.data, "--no-sync"]))
        server.start()
        checks.damage(WITHOUT)
        server.start()
        checks.look(WITHOUT)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
