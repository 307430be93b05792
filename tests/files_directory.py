"""The directory whose files every role may name (colonnade.files_directory): a role without rights uses files
below it by every statement that takes the name of a file, and no name, link or folder that is exchanged leads
it out.
"""

import os
import shutil
import tempfile
from pathlib import Path

from harness.checks import Checks
from harness.server import running_as_root, server_ids
from harness.session import error_of

CHECKS = Checks("files_directory")
ROLE = "plain"
# Statements that take the name of a folder, and use a file in it: t.parquet or t.col.
READS = {
    "CREATE () over Parquet": "CREATE FOREIGN TABLE x () SERVER pq OPTIONS (filename '{}/t.parquet')",
    "CREATE () over a list": "CREATE FOREIGN TABLE x () SERVER pq OPTIONS (filename '{{{}/t.parquet}}')",
    "CREATE () over a column file": "CREATE FOREIGN TABLE x () SERVER cs OPTIONS (filename '{}/t.col')",
    "IMPORT of Parquet": 'CREATE SCHEMA i; IMPORT FOREIGN SCHEMA "{}" FROM SERVER pq INTO i; SELECT a FROM i.t',
    "IMPORT of column files": 'CREATE SCHEMA i; IMPORT FOREIGN SCHEMA "{}" FROM SERVER cs INTO i; SELECT a FROM i.t',
    "COPY FROM": "COPY plain FROM '{}/t.parquet'",
    "COPY FROM by text": "COPY words FROM '{}/t.parquet'",
    "COPY TO": "COPY (SELECT 1 AS a) TO '{}/new.parquet'",
    "parquet_schema": "SELECT * FROM engine.parquet_schema('{}/t.parquet')",
}
# Those that do nothing but set an option, and what then uses the table.
SETS = {
    "CREATE over Parquet": "CREATE FOREIGN TABLE x (a int) SERVER pq OPTIONS (filename '{}/t.parquet')",
    "CREATE over a pattern": "CREATE FOREIGN TABLE x (a int) SERVER pq OPTIONS (filename '{}/*.parquet')",
    "CREATE over a folder": "CREATE FOREIGN TABLE x (a int) SERVER pq OPTIONS (filename '{}')",
    "CREATE over a column file": "CREATE FOREIGN TABLE x (a int) SERVER cs OPTIONS (filename '{}/t.col')",
    "ALTER": "CREATE FOREIGN TABLE x (a int) SERVER cs; ALTER FOREIGN TABLE x OPTIONS (ADD filename '{}/t.col')",
}
USES = ("SELECT count(a) FROM x", "SELECT a + 1 FROM x", "SELECT count(*) FROM x", "EXPLAIN SELECT * FROM x", "ANALYZE x")


def in_block(session, *statements):
    """Runs statements, which a semicolon may divide, and of which nothing stays. Returns the first ERROR, or
    None."""
    session.run("BEGIN")
    told = (error_of(session, each) for statement in statements for each in statement.split("; "))
    told = next((error for error in told if error), None)
    session.run("ROLLBACK")
    return told


def put(path, other):
    """A file of the server's that has the bytes of another one."""
    shutil.copy(other, path)
    path.chmod(0o644)
    if running_as_root():
        os.chown(path, *server_ids())


def folder_of(path):
    path.mkdir()
    path.chmod(0o777)
    return path


def allow(admin, sessions, path):
    """Has the setting name a directory, and sessions know it. None: no directory."""
    admin.run(f"ALTER SYSTEM SET colonnade.files_directory = '{path}'" if path else "ALTER SYSTEM RESET colonnade.files_directory")
    admin.run("SELECT pg_reload_conf()")
    for session in sessions:
        for _ in range(1000):
            if session.value("SHOW colonnade.files_directory") == str(path or ""):
                break
            session.run("SELECT pg_sleep(0.01)")
        else:
            raise AssertionError("the setting does not change")


def used_below(session, root):
    for name, statement in (READS | SETS).items():
        with CHECKS.part(f"below the directory: {name}"):
            told = in_block(session, statement.format(root))
            assert told is None, told
            if name in SETS:
                for use in USES:
                    told = in_block(session, statement.format(root), use)
                    assert told is None, f"{use}: {told}"
    (root / "new.parquet").unlink()


def copied_by_text(session, admin, root):
    """COPY FROM whose values become text: what the server does for its own files is done here."""
    copy = f"COPY {{}} FROM '{root}/t.parquet'"
    with CHECKS.part("COPY FROM by text: rows, triggers, defaults, constraints"):
        session.run("CREATE TABLE log (a text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (new.a); RETURN new; END'")
        session.run("CREATE TABLE many (b text DEFAULT 'x', a int) PARTITION BY RANGE (a); CREATE TABLE few PARTITION OF many FOR VALUES FROM (0) TO (10)")
        session.run("CREATE TRIGGER t BEFORE INSERT ON few FOR EACH ROW EXECUTE FUNCTION note()")
        session.run(copy.format("many (a)"))
        assert session.value("SELECT string_agg(b || a, ' ' ORDER BY a) || (SELECT count(*) FROM log) FROM many") == "x1 x2 x33"
        told = in_block(session, "ALTER TABLE many ADD CHECK (a < 3) NOT VALID", copy.format("many (a)"))
        assert told and "23514" in told, told
        told = in_block(session, copy.format("many (c)"))
        assert told and "42703" in told, told
        told = in_block(session, copy.format("many (a)") + " WHERE a > 1")
        assert told and "0A000" in told and "WHERE" in told, told
        told = in_block(session, "SET TRANSACTION READ ONLY", copy.format("many (a)"))
        assert told and "25006" in told, told
        assert session.value("SELECT count(*) FROM many") == "3"
    with CHECKS.part("COPY FROM by text: a file with many rows, and a spoiled one"):
        session.run(f"COPY (SELECT g AS a FROM generate_series(1, 200000) g) TO '{root}/deep/long.parquet'")
        session.run(f"COPY words FROM '{root}/deep/long.parquet'")
        assert session.value("SELECT count(*) || ' ' || sum(a::int) FROM words") == "200000 20000100000"
        session.run("TRUNCATE words")
        spoiled = bytearray((root / "deep/long.parquet").read_bytes())
        spoiled[4:60] = b"\xff" * 56
        (root / "deep/long.parquet").write_bytes(spoiled)
        told = error_of(session, f"COPY words FROM '{root}/deep/long.parquet'")
        assert told and "XX001" in told and session.value("SELECT count(*) FROM words") == "0", told
        (root / "deep/long.parquet").unlink()
    with CHECKS.part("COPY FROM by text: rights and row security"):
        admin.run(f"CREATE TABLE theirs (a text, b int, CHECK (a <> '')); GRANT SELECT ON theirs TO {ROLE}; GRANT INSERT (b) ON theirs TO {ROLE}")
        for target in ("theirs (a)", "theirs"):
            told = in_block(session, copy.format(target))
            assert told and ("42501" in told or target == "theirs" and "42804" in told), told
        admin.run(f"GRANT INSERT (a) ON theirs TO {ROLE}")
        assert in_block(session, copy.format("theirs (a)")) is None
        admin.run(f"REVOKE INSERT ON theirs FROM {ROLE}; GRANT INSERT ON theirs TO {ROLE}")
        assert in_block(session, copy.format("theirs (a)")) is None
        admin.run("ALTER TABLE theirs ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON theirs USING (b > 5)")
        told = in_block(session, copy.format("theirs (a)"))
        assert told and "0A000" in told and "row-level security" in told, told
        admin.run("DROP TABLE theirs")


def refused_outside(session, root):
    places = {
        "beside it": root.parent / "outside",
        "by its parent": f"{root}/../outside",
        "there and back": f"{root}/../{root.name}",
        "by a part of the name": root.parent / "allowed-evil",
    }
    for where, place in places.items():
        with CHECKS.part(f"refused: {where}"):
            for name, statement in (READS | SETS).items():
                told = in_block(session, statement.format(place))
                assert told and "42501" in told and "permission denied" in told, f"{name}: {told}"
            told = in_block(session, f"CREATE FOREIGN TABLE x (a int) SERVER pq OPTIONS (filename '{{{root}/t.parquet,{place}/t.parquet}}')")
            assert told and "42501" in told, told


def links(session, root):
    (root / "down").symlink_to("../outside")
    (root / "in").symlink_to("deep")
    (root / "linked.parquet").symlink_to("../outside/t.parquet")
    (root / "linked.col").symlink_to("../outside/t.col")
    (root / "new.parquet").symlink_to("../outside/new.parquet")
    for where in ("down", "in"):
        with CHECKS.part(f"a linked folder is not followed: {where}"):
            for name, statement in READS.items():
                told = in_block(session, statement.format(root / where))
                wanted = "HV00Q" if "IMPORT" in name else "42501"
                assert told and wanted in told and "symbolic link" in told, f"{name}: {told}"
            for name, statement in SETS.items():
                for use in USES:
                    told = in_block(session, statement.format(root / where), use)
                    wanted = "58P01" if "pattern" in name else "42501"
                    assert told and wanted in told, f"{name}, {use}: {told}"
    with CHECKS.part("a linked file is not followed"):
        for name, path in (("pq", "linked.parquet"), ("cs", "linked.col")):
            made = f"CREATE FOREIGN TABLE x (a int) SERVER {name} OPTIONS (filename '{root / path}')"
            for use in USES:
                told = in_block(session, made, use)
                assert told and "42501" in told and "symbolic link" in told, f"{path}, {use}: {told}"
        for statement in ("INSERT INTO x VALUES (1)", "TRUNCATE x"):
            told = in_block(session, made, statement)
            assert told and "42501" in told, f"{statement}: {told}"
        for statement in (f"COPY plain FROM '{root}/linked.parquet'", f"COPY words FROM '{root}/linked.parquet'", f"SELECT engine.parquet_schema('{root}/linked.parquet')"):
            told = in_block(session, statement)
            assert told and "42501" in told and "symbolic link" in told, f"{statement}: {told}"
        # The link is replaced, not what it leads to.
        assert in_block(session, f"COPY (SELECT 2 AS a) TO '{root}/new.parquet'") is None
        assert not (root / "new.parquet").is_symlink() and not (root.parent / "outside/new.parquet").exists()
        (root / "new.parquet").unlink()
    with CHECKS.part("folders and patterns pass links over"):
        for name in (root, root / "**/*.parquet", root / "*.parquet", root / "*/t.parquet"):
            session.run("BEGIN")
            session.run(f"CREATE FOREIGN TABLE x (a int) SERVER pq OPTIONS (filename '{name}')")
            assert session.value("SELECT min(a) || ' ' || max(a) FROM x") == "1 3", name
            session.run("ROLLBACK")
        session.run("BEGIN; CREATE SCHEMA i")
        for server in ("pq", "cs"):
            session.run(f'IMPORT FOREIGN SCHEMA "{root}" EXCEPT (deep) FROM SERVER {server} INTO i')
            assert session.value("SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'i'::regnamespace") == "t"
            session.run("DROP FOREIGN TABLE i.t")
        session.run("ROLLBACK")


def own_file(session, admin, root):
    """A column file that a role without rights writes."""
    folder = folder_of(root / "own")
    made = f"CREATE FOREIGN TABLE own (a int) SERVER cs OPTIONS (filename '{folder}/own.col')"
    path, outside = folder / "own.col", root.parent / "outside"
    with CHECKS.part("a column file below the directory is written, and goes"):
        session.run(made)
        session.run("INSERT INTO own SELECT generate_series(1, 1000)")
        session.run("BEGIN; INSERT INTO own SELECT generate_series(1, 500); SAVEPOINT s; INSERT INTO own VALUES (1); ROLLBACK TO s; COMMIT")
        session.run("TRUNCATE own; INSERT INTO own VALUES (5), (6)")
        assert session.value("SELECT sum(a) FROM own") == "11" and session.value("SELECT cstore_table_size('own') > 0") == "t"
        session.run("DROP FOREIGN TABLE own")
        assert os.listdir(folder) == []
    with CHECKS.part("COPY replaces no column file that a table loads"):
        session.run(made)
        session.run("INSERT INTO own VALUES (5), (6)")
        told = in_block(session, f"COPY (SELECT 1 AS a) TO '{path}' (FORMAT parquet)")
        assert told and "58P02" in told, told
        told = in_block(session, f"CREATE FOREIGN TABLE x (a int) SERVER cs OPTIONS (filename '{path}')", "INSERT INTO x VALUES (1)")
        assert told and "58P02" in told, told
        assert session.value("SELECT sum(a) FROM own") == "11"
    with CHECKS.part("a folder that is exchanged for a link is not followed"):
        folder.rename(outside / "own")
        folder.symlink_to("../outside/own")
        before = (outside / "own/own.col").read_bytes()
        for statement in ("SELECT * FROM own", "SELECT count(*) FROM own", "INSERT INTO own VALUES (7)", "ANALYZE own"):
            fresh = (session, admin) if statement.startswith(("S", "I")) else (session,)
            for who in fresh:
                told = in_block(who, statement)
                assert told and "42501" in told and "symbolic link" in told, f"{statement}: {told}"
        session.run("BEGIN; TRUNCATE own; ROLLBACK")
        session.run("DROP FOREIGN TABLE own")
        assert (outside / "own/own.col").read_bytes() == before
        folder.unlink()
        shutil.rmtree(outside / "own")
    with CHECKS.part("a load that its folder leaves is an ERROR, and takes nothing away outside"):
        folder = folder_of(root / "loaded")
        session.run(f"CREATE FOREIGN TABLE loading (a int) SERVER cs OPTIONS (filename '{folder}/own.col')")
        session.run("BEGIN; INSERT INTO loading VALUES (1); SELECT count(*) FROM loading")
        folder.rename(outside / "loaded")
        folder.symlink_to("../outside/loaded")
        told = error_of(session, "COMMIT")
        assert told and "42501" in told, told
        assert (outside / "loaded/own.col").exists()
        session.run("DROP FOREIGN TABLE loading")
        folder.unlink()
        shutil.rmtree(outside / "loaded")


def exchanged(session, root):
    """A file that is exchanged for a link after a query has read it."""
    with CHECKS.part("a file that is exchanged for a link"):
        path = root / "exchanged.parquet"
        shutil.copy(root / "t.parquet", path)
        path.chmod(0o644)
        session.run(f"CREATE FOREIGN TABLE e (a int) SERVER pq OPTIONS (filename '{path}')")
        assert session.value("SELECT count(a) FROM e") == "3"
        path.unlink()
        # The same file by another name is a link all the same.
        path.symlink_to("t.parquet")
        for use in USES:
            told = in_block(session, use.replace(" x", " e"))
            assert told and "42501" in told, f"{use}: {told}"
        session.run("DROP FOREIGN TABLE e")
        path.unlink()


def taken_away(session, admin, root):
    """What the setting allowed it no longer allows."""
    with CHECKS.part("after the setting is taken away"):
        session.run(f"CREATE FOREIGN TABLE p (a int) SERVER pq OPTIONS (filename '{root}/t.parquet')")
        session.run(f"CREATE FOREIGN TABLE c (a int) SERVER cs OPTIONS (filename '{root}/kept.col')")
        session.run("INSERT INTO c VALUES (1)")
        allow(admin, [session, admin], None)
        for name, statement in (READS | SETS).items():
            told = in_block(session, statement.format(root))
            assert told and "42501" in told and "colonnade.files_directory" not in told, f"{name}: {told}"
        for who in (session, admin):
            for statement in ("SELECT count(*) FROM p", "SELECT a FROM p", "ANALYZE p", "SELECT a FROM c", "INSERT INTO c VALUES (2)", "TRUNCATE c", "SELECT cstore_table_size('c')"):
                told = in_block(who, statement)
                assert told and "42501" in told and "owner" in told, f"{statement}: {told}"
        allow(admin, [session, admin], root.parent / "outside")
        told = in_block(session, "SELECT a FROM p")
        assert told and "42501" in told, told
        # An owner with the rights may have it read, and gives it back.
        for table in ("p", "c"):
            admin.run(f"ALTER FOREIGN TABLE {table} OWNER TO {admin.value('SELECT current_user')}; GRANT SELECT ON {table} TO {ROLE}")
        assert session.value("SELECT count(*) FROM p") == "3" and session.value("SELECT count(*) FROM c") == "1"
        admin.run(f"ALTER FOREIGN TABLE p OWNER TO {ROLE}; ALTER FOREIGN TABLE c OWNER TO {ROLE}")
        # The table goes, and its file stays.
        session.run("DROP FOREIGN TABLE p, c")
        assert (root / "kept.col").exists()
        (root / "kept.col").unlink()


def the_setting(session, admin, root):
    # A part that failed may have left a block.
    session.run("ROLLBACK")
    with CHECKS.part("the setting is the configuration file's, and an absolute path"):
        for who in (session, admin):
            told = error_of(who, f"SET colonnade.files_directory = '{root}'")
            assert told and "55P02" in told, told
        told = error_of(admin, "ALTER SYSTEM SET colonnade.files_directory = 'relative'")
        assert told and "22023" in told and "absolute" in told, told
        told = error_of(session, f"ALTER SYSTEM SET colonnade.files_directory = '{root}'")
        assert told and "42501" in told, told


def main():
    with CHECKS.server() as server, tempfile.TemporaryDirectory(prefix="colonnade-files-") as place:
        place = Path(place)
        os.chmod(place, 0o755)
        root, outside, evil = (folder_of(place / name) for name in ("allowed", "outside", "allowed-evil"))
        deep = folder_of(root / "deep")
        server.create_database("files")
        admin = server.session("files")
        admin.run("CREATE SERVER pq FOREIGN DATA WRAPPER parquet_fdw; CREATE SERVER cs FOREIGN DATA WRAPPER cstore_fdw")
        admin.run(f"CREATE ROLE {ROLE}; GRANT USAGE ON FOREIGN SERVER pq, cs TO {ROLE}; GRANT CREATE ON SCHEMA public TO {ROLE}; GRANT CREATE ON DATABASE files TO {ROLE}")
        admin.run(f"GRANT USAGE ON SCHEMA engine TO {ROLE}")
        admin.run(f"COPY (SELECT g AS a FROM generate_series(1, 3) g) TO '{outside}/t.parquet'")
        admin.run(f"CREATE FOREIGN TABLE made (a int) SERVER cs OPTIONS (filename '{outside}/t.col')")
        admin.run("INSERT INTO made SELECT generate_series(1, 3)")
        for folder in (root, evil):
            for name in ("t.parquet", "t.col"):
                put(folder / name, outside / name)
        put(deep / "t.parquet", outside / "t.parquet")
        put(deep / "t.col", outside / "t.col")
        admin.run(f"COPY (SELECT 4 AS a) TO '{outside}/other.parquet'")
        session = server.session("files")
        session.run(f"SET ROLE {ROLE}")
        session.run("CREATE TABLE plain (a int); CREATE TABLE words (a text, CHECK (a <> ''))")
        allow(admin, [session, admin], root)
        used_below(session, root)
        copied_by_text(session, admin, root)
        refused_outside(session, root)
        own_file(session, admin, root)
        exchanged(session, root)
        links(session, root)
        the_setting(session, admin, root)
        taken_away(session, admin, root)
        session.close()
        admin.close()
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
