"""Files of foreign tables beside the database: damage, loss and copies are clear ERRORs; databases that are
copied or dropped; many tables; the room of dropped tables; reading beside pages that are not in memory, and
beside first loads that are rolled back.
"""

import os
import random
import subprocess
import time
from pathlib import Path

from harness.checks import Checks
from harness.place import TARGET
from harness.server import running_as_root, server_ids
from harness.session import error_of
from harness.workers import Worker, end, expect, work

SEED = int(os.environ.get("COLONNADE_SEED") or 20261128)
FLIPS = 2000 if os.environ.get("COLONNADE_LONG") == "1" else 150
CHECKS = Checks("column_files", SEED)
FILL = "INSERT INTO {} SELECT g, 'text ' || g % 100, g / 8.0, ARRAY[g, g + 1] FROM generate_series({}, {}) g"
SUM = "SELECT count(*) || ' ' || sum(hashtextextended(r::text, 0)) FROM {} r"
OTHERS = "CREATE FOREIGN TABLE {} (a int, b text, c numeric(10,3)) SERVER files OPTIONS (filename '{}')"


def put(path, content):
    path.write_bytes(content)
    if running_as_root():
        os.chown(path, *server_ids())


def file_of(server, table, database):
    oids = server.sql(f"SELECT d.oid || '/' || '{table}'::regclass::oid FROM pg_database d WHERE datname = current_database()", database)
    return Path(server.data) / "cstore_fdw" / oids


def damage(server):
    """Bits that turn, files that end too soon, are gone, are another's, or are older than the table."""
    session = server.session("files")
    session.run("CREATE FOREIGN TABLE t (a int, b text, c numeric(10,3), d int[]) SERVER files OPTIONS (compression 'zstd', stripe_row_count '1000', block_row_count '1000')")
    session.run(FILL.format("t", 1, 4500))
    path = file_of(server, "t", "files")
    session.run(OTHERS.format("o", path))
    whole = path.read_bytes()
    # Most bytes are those of the array, which the other table does not read.
    for table, least in (("t", FLIPS / 4), ("o", FLIPS / 40)):
        right = session.value(SUM.format(table))
        with CHECKS.part(f"turned bits are ERRORs, or no harm: {table}") as tell:
            chance, errors = random.Random(SEED), 0
            for _ in range(FLIPS):
                bad = bytearray(whole)
                bad[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
                put(path, bad)
                fresh = server.session("files")
                told = error_of(fresh, SUM.format(table))
                if told is None:
                    found = fresh.value(SUM.format(table))
                    assert found == right, f"{found} for {right}"
                else:
                    errors += 1
                    assert ("XX001" in told or "0A000" in told and table == "o") and str(path.relative_to(server.data)) in told, told
                fresh.close()
            assert errors > least, f"{errors} ERRORs"
            tell(f"{errors} of {FLIPS} were ERRORs")
    session.run("DROP FOREIGN TABLE o")
    cases = {
        "cut off": lambda: put(path, whole[:len(whole) // 2]),
        "of zeros": lambda: put(path, bytes(len(whole))),
        "no column file": lambda: put(path, b"a,b\n1,2\n"),
        "of a newer version": lambda: put(path, whole[:8] + b"\x09" + whole[9:]),
        "gone": path.unlink,
    }
    for name, make in cases.items():
        with CHECKS.part(f"a file that is {name}"):
            make()
            for statement in (SUM.format("t"), FILL.format("t", 1, 2)):
                fresh = server.session("files")
                told = error_of(fresh, statement)
                assert told and str(path.relative_to(server.data)) in told, told
                fresh.close()
    put(path, whole)
    with CHECKS.part("a file that is older than the table"):
        session.run(FILL.format("t", 5000, 5100))
        put(path, whole)
        for statement in (SUM.format("t"), FILL.format("t", 1, 2)):
            told = error_of(session, statement)
            assert told and "XX001" in told and path.name in told, told
        session.run("TRUNCATE t")
        assert session.value("SELECT count(*) FROM t") == "0"
        session.run(FILL.format("t", 1, 2))
        session.run("BEGIN; TRUNCATE t; ROLLBACK")
        assert session.value("SELECT count(*) FROM t") == "2"
        session.run("DROP FOREIGN TABLE t")
        assert not path.exists()
    session.close()


def others(server):
    """Files that somebody else has written."""
    with CHECKS.part("a file that the program has made, and adds to"):
        csv, made = Path(server.base) / "trips.csv", Path(server.base) / "made" / "trips.col"
        made.parent.mkdir(mode=0o755)
        csv.write_text("Id,fare,note\n" + "".join(f"{i},{i / 4},note {i % 9}\n" for i in range(200_000)))
        subprocess.run([TARGET / "debug/colonnade", "convert", csv, made], check=True, stderr=subprocess.DEVNULL)
        made.chmod(0o644)
        (made.parent / "notes.txt").write_text("nothing")
        session = server.session("files")
        session.run("CREATE SCHEMA made")
        session.run(f'IMPORT FOREIGN SCHEMA "{made.parent}" FROM SERVER files INTO made')
        assert session.value("SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'made'::regnamespace") == "trips"
        ask = 'SELECT count(*), sum("Id"), max(fare), count(DISTINCT note) FROM made.trips'
        assert session.value(f"SELECT r::text FROM ({ask}) r") == "(200000,19999900000,49999.75,9)"
        subprocess.run([TARGET / "debug/colonnade", "convert", csv, made, "--append"], check=True, stderr=subprocess.DEVNULL)
        assert session.value(f"SELECT r::text FROM ({ask}) r") == "(400000,39999800000,49999.75,9)"
        told = error_of(session, "INSERT INTO made.trips VALUES (1, 2, 'x')")
        assert told and "58P02" in told, told
        session.run("DROP SCHEMA made CASCADE")
        session.close()
        assert made.exists()
    with CHECKS.part("JSON of a Parquet file goes into a column file, and is read from it"):
        session, place = server.session("files"), Path(server.base) / "made"
        session.run(f"COPY (SELECT g AS n, json_build_object('g', g, 't', repeat('x', g % 9)) AS j FROM generate_series(1, 5000) g) TO '{server.base}/j.parquet' (FORMAT parquet)")
        subprocess.run([TARGET / "debug/colonnade", "convert", f"{server.base}/j.parquet", place / "j.col"], check=True, stderr=subprocess.DEVNULL)
        (place / "j.col").chmod(0o644)
        session.run(f"CREATE FOREIGN TABLE j () SERVER files OPTIONS (filename '{place}/j.col')")
        assert session.value("SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'j'::regclass AND attname = 'j'") == "json"
        assert session.value("SELECT sum((j->>'g')::int) || ' ' || max(length(j->>'t')) FROM j WHERE n > 100") == "12497450 8"
        session.run("DROP FOREIGN TABLE j")
        session.close()
    with CHECKS.part("rows that are older than a column have its default for others, too"):
        session, path = server.session("files"), Path(server.base) / "grown.col"
        session.run(f"CREATE FOREIGN TABLE grown (a int) SERVER files OPTIONS (filename '{path}', stripe_row_count '1000', block_row_count '1000')")
        session.run("INSERT INTO grown SELECT g FROM generate_series(1, 2500) g")
        session.run("""ALTER TABLE grown ADD t text DEFAULT 'it''s new', ADD n numeric(9,2) DEFAULT 7.50, ADD i int DEFAULT -3, ADD f float8 DEFAULT 'NaN', ADD b bool DEFAULT true, ADD d date DEFAULT '2020-02-02',
            ADD z timestamptz DEFAULT '2020-02-02 12:00+00', ADD u uuid DEFAULT '11111111-2222-3333-4444-555555555555', ADD y bytea DEFAULT '\\x00ff', ADD v varchar(5) DEFAULT '', ADD nn numeric DEFAULT 'NaN', ADD nothing int, ADD gone int DEFAULT 1, ADD l engine.uint8 DEFAULT 18446744073709551615""")
        session.run("ALTER TABLE grown DROP gone, ALTER i SET DEFAULT 4")
        session.run("INSERT INTO grown (a) SELECT g FROM generate_series(3001, 3700) g")
        session.run("INSERT INTO grown (a, t, n, i, nothing) VALUES (4000, NULL, NULL, NULL, 8)")
        session.run(f"CREATE FOREIGN TABLE reads () SERVER files OPTIONS (filename '{path}')")
        for one, other in (("grown", "reads"), ("reads", "grown")):
            assert session.value(f"SELECT count(*) FROM (TABLE {one} EXCEPT ALL TABLE {other}) x") == "0"
        for question in ("count(*), sum(i), count(t), count(nothing), min(d), max(n), min(v)", "count(*) FILTER (WHERE t = 'it''s new'), sum(a) FILTER (WHERE i < 0), count(DISTINCT i), bool_and(b)", "max(f), min(f), max(nn), count(l), max(l)"):
            for condition in ("true", "i = -3", "i <> -3", "t IS NULL", "n = 7.5 AND a > 2400", "nothing IS NOT NULL", "d = '2020-02-02' AND a % 100 = 7", "f = 'NaN' AND nn = 'NaN'", "t LIKE 'it%' AND v = ''", "u = '11111111-2222-3333-4444-555555555555' AND y = '\\x00ff'", "i > 0", "l > 5"):
                answers = [session.value(f"SELECT x::text FROM (SELECT {question} FROM {table} WHERE {condition}) x") for table in ("grown", "reads")]
                assert answers[0] == answers[1], (question, condition, answers)
        assert session.value("SELECT string_agg(x::text, ' ') FROM (SELECT t, i, count(*) FROM reads GROUP BY 1, 2 ORDER BY 3) x") == session.value("SELECT string_agg(x::text, ' ') FROM (SELECT t, i, count(*) FROM grown GROUP BY 1, 2 ORDER BY 3) x")
        session.run("ANALYZE reads")
        shown = subprocess.run([TARGET / "debug/colonnade", "print", path, "--columns", "a,t,n,i,d,nothing", "--limit", "1"], check=True, capture_output=True, text=True).stdout
        assert shown.splitlines()[1] == "1,it's new,7.50,-3,2020-02-02,", shown
        # What no row is older than is not said any more: the type may have changed since.
        session.run("TRUNCATE grown; ALTER TABLE grown ALTER i DROP DEFAULT; ALTER TABLE grown ALTER i TYPE text; INSERT INTO grown (a, i) VALUES (1, 'five'); DROP FOREIGN TABLE reads")
        session.run(f"CREATE FOREIGN TABLE reads () SERVER files OPTIONS (filename '{path}')")
        assert session.value("SELECT a || ' ' || i FROM reads") == "1 five"
        session.run("DROP FOREIGN TABLE reads, grown")
        session.close()
    with CHECKS.part("text of a database with another encoding"):
        own = Path(server.base) / "latin1.col"
        server.sql("CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0", "postgres")
        latin1 = server.session("latin1")
        latin1.run("CREATE EXTENSION colonnade; CREATE SERVER files FOREIGN DATA WRAPPER cstore_fdw; SET client_encoding = 'UTF8'")
        latin1.run(f"CREATE FOREIGN TABLE own (a int, b text) SERVER files OPTIONS (filename '{own}')")
        latin1.run("INSERT INTO own VALUES (1, 'plain'), (2, 'süß')")
        latin1.run(f"CREATE FOREIGN TABLE copy () SERVER files OPTIONS (filename '{own}')")
        assert latin1.value("SELECT sum(a) FROM own") == "3" and "another encoding" in error_of(latin1, "SELECT a FROM copy")
        latin1.close()
        session = server.session("files")
        session.run(f"CREATE FOREIGN TABLE latin () SERVER files OPTIONS (filename '{own}')")
        for statement in ("SELECT * FROM latin", "SELECT max(b) FROM latin", "SELECT * FROM latin WHERE a = 2", "ANALYZE latin"):
            told = error_of(session, statement)
            assert told and "XX001" in told and "not UTF-8" in told, told
        assert session.value("SELECT sum(a) FROM latin") == "3"
        session.run("DROP FOREIGN TABLE latin")
        session.close()
        server.sql("DROP DATABASE latin1", "postgres")
    with CHECKS.part("a file that is replaced while it is read"):
        path, other = Path(server.base) / "replaced.col", Path(server.base) / "replacing.col"
        session = server.session("files")
        for table, file, rows in (("first", path, 20000), ("second", other, 10)):
            session.run(f"CREATE FOREIGN TABLE {table} (a int, b text, c numeric(10,3)) SERVER files OPTIONS (filename '{file}', stripe_row_count '1000')")
            session.run(f"INSERT INTO {table} SELECT g, 'text', g FROM generate_series(1, {rows}) g")
        session.run(OTHERS.format("o", path))
        session.run("SET colonnade.enable_vectorised = off")
        session.run("BEGIN; DECLARE c CURSOR FOR SELECT * FROM o")
        assert session.value("SELECT count(*) FROM o") == "20000" and session.run("FETCH 10 FROM c")
        other.rename(path)
        told = error_of(session, "FETCH ALL FROM c")
        assert told is None or "58030" in told or "put in its place" in told, told
        session.run("ROLLBACK")
        assert session.value("SELECT count(*) FROM o") == "10"
        assert "another file" in error_of(session, "SELECT count(*) FROM first")
        session.run("DROP FOREIGN TABLE first, second, o")
        session.close()


def databases(server):
    with CHECKS.part("a database that is copied has not the files, and takes none away"):
        own = Path(server.base) / "named.col"
        session = server.session("files")
        session.run(f"CREATE FOREIGN TABLE n (a int) SERVER files OPTIONS (filename '{own}')")
        session.run("INSERT INTO n VALUES (1)")
        session.run("CREATE FOREIGN TABLE u (a int) SERVER files")
        session.run("INSERT INTO u VALUES (1)")
        session.close()
        server.sql("CREATE DATABASE copied TEMPLATE files", "postgres")
        copied = server.session("copied")
        assert "another file" in error_of(copied, "SELECT * FROM n") and "another file" in error_of(copied, "INSERT INTO n VALUES (2)")
        assert "58P01" in error_of(copied, "SELECT * FROM u")
        copied.run("DROP FOREIGN TABLE n")
        copied.run("CREATE FOREIGN TABLE v (a int) SERVER files")
        copied.run("INSERT INTO v VALUES (3)")
        folder = file_of(server, "v", "copied").parent
        copied.close()
        assert server.sql("SELECT count(*) FROM n", "files") == "1"
        server.sql("DROP DATABASE copied", "postgres")
        assert not folder.exists() and server.sql("SELECT count(*) FROM u", "files") == "1"
        server.sql("DROP FOREIGN TABLE n", "files")
        assert not own.exists()


def many(server):
    with CHECKS.part("more tables than a process may have files"):
        session = server.session("files")
        session.run("CREATE TABLE p (a int) PARTITION BY LIST (a)")
        session.run("DO $$ BEGIN FOR i IN 1..1200 LOOP EXECUTE format('CREATE FOREIGN TABLE p%s PARTITION OF p FOR VALUES IN (%s) SERVER files', i, i); END LOOP; END $$")
        session.run("INSERT INTO p SELECT 1 + g % 1200 FROM generate_series(1, 3600) g")
        assert session.value("SELECT count(*) || ' ' || sum(a) FROM p") == "3600 2161800"
        session.run("DROP TABLE p")
        session.close()
    with CHECKS.part("idle sessions hold no room of dropped tables"):
        one, other = server.session("files"), server.session("files")
        one.run("CREATE FOREIGN TABLE gone (a int, b text, c numeric, d int[]) SERVER files")
        one.run(FILL.format("gone", 1, 50_000))
        assert other.value("SELECT count(*) FROM gone WHERE a > 0") == "50000"
        one.run("DROP FOREIGN TABLE gone")
        held = sum(os.stat(f"/proc/{other.pid}/fd/{fd}").st_size for fd in os.listdir(f"/proc/{other.pid}/fd") if "cstore_fdw" in os.readlink(f"/proc/{other.pid}/fd/{fd}"))
        assert held == 0, f"{held} bytes"
        one.close()
        other.close()


def room(server):
    with CHECKS.part("tables that are emptied and loaded again and again") as tell:
        session = server.session("files")
        session.run("CREATE FOREIGN TABLE again (a int, b text, c numeric, d int[]) SERVER files")
        path, taken = file_of(server, "again", "files"), []
        for _ in range(5):
            session.run("BEGIN; TRUNCATE again")
            session.run(FILL.format("again", 1, 300_000))
            session.run("COMMIT")
            taken.append(path.stat().st_blocks * 512)
        reader = server.session("files")
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        right = session.value(SUM.format("again"))
        session.run("TRUNCATE again")
        session.run(FILL.format("again", 1, 10))
        session.run(FILL.format("again", 1, 10))
        assert reader.value(SUM.format("again")) == right
        reader.run("COMMIT")
        reader.close()
        # Whatever the server's own workers look at, they are done with some time.
        for _ in range(20):
            session.run(FILL.format("again", 1, 10))
            taken[5:] = [path.stat().st_blocks * 512]
            if taken[5] < taken[0] / 4:
                break
            time.sleep(0.5)
        session.close()
        assert taken[0] > 1 << 20 and max(taken) < 2.5 * taken[0] and taken[-1] < taken[0] / 4, taken
        tell(" ".join(str(bytes) for bytes in taken))


def read_beside_pages(server):
    with CHECKS.part("a scan beside heap pages that are not in memory"):
        session = server.session("files")
        session.run("CREATE FOREIGN TABLE big (a int, b text, c numeric, d int[]) SERVER files OPTIONS (stripe_row_count '1000', block_row_count '1000')")
        session.run(FILL.format("big", 1, 20_000))
        session.run("CREATE TABLE hp AS SELECT g AS a, repeat('x', 500) AS pad FROM generate_series(1, 20000) g")
        session.run("CREATE INDEX ON hp (a)")
        session.run("VACUUM ANALYZE hp")
        session.close()
        server.stop()
        server.start()
        session = server.session("files")
        for setting in ("enable_hashjoin", "enable_mergejoin", "enable_material", "enable_seqscan", "colonnade.enable_vectorised"):
            session.run(f"SET {setting} = off")
        question = "SELECT count(*), max(length(hp.pad)) FROM big JOIN hp USING (a) WHERE b > '0'"
        plan = session.value(f"EXPLAIN (FORMAT json) {question}")
        assert "Nested Loop" in plan and '"Colonnade"' in plan, plan
        assert session.value(f"SELECT count || ' ' || max FROM ({question}) q") == "20000 500"
        session.close()


class FirstLoad(Worker):
    DATABASE = "files"

    def step(self, session):
        session.run("BEGIN")
        session.run("INSERT INTO unloaded VALUES (1)")
        session.run("ROLLBACK")


class EmptyReader(Worker):
    DATABASE = "files"

    def step(self, session):
        rows = session.value("SELECT count(*) FROM unloaded")
        if rows != "0":
            self.problem = f"{rows} rows"


def read_beside_rollbacks(server):
    with CHECKS.part("a table whose first load is rolled back has no rows meanwhile") as tell:
        server.sql("CREATE FOREIGN TABLE unloaded (a int) SERVER files", "files")
        stop, workers = work(server, SEED, [FirstLoad, EmptyReader, EmptyReader], 2)
        end(stop, workers)
        expect(workers, killed=False)
        tell(f"{workers[0].done} loads, {workers[1].done + workers[2].done} reads")


def main():
    with CHECKS.server() as server:
        server.create_database("files")
        server.sql("CREATE SERVER files FOREIGN DATA WRAPPER cstore_fdw", "files")
        for part in (damage, others, databases, many, room, read_beside_pages, read_beside_rollbacks):
            part(server)
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
