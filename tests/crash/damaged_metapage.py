"""Block 0 of a table is damaged: reading raises an ERROR that names the table, never an empty answer; DROP
and TRUNCATE warn and succeed, so that a table can be got rid of; a rollback of either leaves everything as it
was.
"""

import os

from harness.checks import Checks
from harness.server import fresh_server

PAGE = 8192
SETUP = """
CREATE TABLE {table} (id int PRIMARY KEY, s text) USING colcompress;
INSERT INTO {table} SELECT g, 'row ' || g FROM generate_series(1, 20000) g;
INSERT INTO {table} VALUES (0, 'hot');
"""


def flipped(data):
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


def zeroed(data):
    return bytes(PAGE) + data[PAGE:]


def heap_page(data):
    """The second page, an ordinary one as far as the server can see, in the first one's place."""
    return data[-PAGE:] + data[PAGE:]


def noise(data):
    return os.urandom(PAGE) + data[PAGE:]


DAMAGES = {"flipped": flipped, "zeroed": zeroed, "misplaced": heap_page, "noise": noise, "missing": None}


def damage(path, how):
    if how is None:
        path.unlink()
        return
    data = path.read_bytes()
    with open(path, "r+b") as file:
        file.write(how(data))


class Damages(Checks):
    def __init__(self, server):
        super().__init__("damaged_metapage")
        self.server = server

    def run(self, sql):
        return self.server.sql(sql, "damage", check=False)

    def of(self, kind, checksums):
        table = f"t_{kind}"
        label = f"{kind}{', checksums ignored' if not checksums else ''}"
        prefix = "" if checksums else "SET ignore_checksum_failure = on; "
        status, out, err = self.run(f"{prefix}SELECT count(*) FROM {table}")
        self.say(f"{label}: a query fails", status != 0, out)
        if kind == "zeroed":
            status, out, err = self.run(f"{prefix}INSERT INTO {table} VALUES (-1, 'new')")
            self.say(f"{label}: an insertion fails", status != 0 and table in err, out + err)
        for statement in (f"TRUNCATE {table}", f"DROP TABLE {table}"):
            status, out, err = self.run(f"{prefix}BEGIN; {statement}; ROLLBACK; SELECT count(*) FROM {table}")
            self.say(f"{label}: {statement} rolled back changes nothing", status != 0 and "could not read block 0" in err, out + err)
        status, out, err = self.run(f"{prefix}TRUNCATE {table}")
        self.say(f"{label}: TRUNCATE warns and succeeds", status == 0 and f"block 0 of table \"public.{table}\"" in err, err)
        status, out, err = self.run(f"{SETUP.format(table='again').split(';')[1].replace('again', table)}; SELECT count(*), min(s) FROM {table}; "
                                    f"SELECT s FROM {table} WHERE id = 777")
        self.say(f"{label}: the table works again", status == 0 and out.split() == ["20000|row", "1", "row", "777"], out + err)
        self.say(f"{label}: and is dropped without a word", self.run(f"DROP TABLE {table}")[1:] == ("", ""))

    def dropped(self, kind):
        status, out, err = self.run(f"DROP TABLE d_{kind}")
        self.say(f"{kind}: DROP warns and succeeds", status == 0 and f"block 0 of table \"public.d_{kind}\"" in err, err)


def main():
    server = fresh_server("crash_damage", os.environ["COLONNADE_STAGE"], settings={"autovacuum": "off"})
    checks = Damages(server)
    try:
        server.create_database("damage")
        tables = [f"{prefix}_{kind}" for kind in DAMAGES for prefix in "tid"]
        server.sql("".join(SETUP.format(table=table) for table in tables) + "CHECKPOINT", "damage")
        paths = {table: server.data / server.sql(f"SELECT pg_relation_filepath('{table}')", "damage") for table in tables}
        server.stop()
        for kind, how in DAMAGES.items():
            for prefix in "tid":
                damage(paths[f"{prefix}_{kind}"], how)
        server.start()
        for kind in DAMAGES:
            checks.of(kind, True)
            checks.dropped(kind)
            server.sql(f"ALTER TABLE i_{kind} RENAME TO t_{kind}", "damage")
            checks.of(kind, False)
        left = server.sql("SELECT count(*) FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'colcompress')", "damage")
        checks.say("no table is left", left == "0", left)
    finally:
        server.destroy()
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
