"""Transactions of SQLite on columnar tables: rollback, savepoints, several connections and threads, both
journals, attached databases, VACUUM, backup, and what protects shadow tables."""

import sys
import threading

from harness.checks import Checks
from harness.sqlite import HOST, Connection, SqlError, Twins, count, database, version

CHECKS = Checks("transactions")


def savepoints():
    with CHECKS.part("savepoints and rollbacks cut back what they should"):
        on = Connection()
        twins = Twins(on, "id INTEGER, name TEXT")
        few, many = f"INSERT INTO @ {count(10)} SELECT i, 'few' FROM n", f"INSERT INTO @ {count(9000)} SELECT i, 'many' FROM n"
        for statement in (few, many):
            twins.run(statement)

        def both(*statements):
            for statement in statements:
                if "@" in statement:
                    twins.run(statement)
                    twins.run("SELECT count(*), sum(id), max(rowid) FROM @")
                else:
                    on.sql(statement)
            twins.expect_same()
        for first in (few, many):
            for second in (few, many, "DELETE FROM @ WHERE id % 3 = 0", "UPDATE @ SET name = 'changed' WHERE id % 5 = 0", "DELETE FROM @"):
                both("BEGIN", first, "SAVEPOINT a", second, "ROLLBACK TO a", "COMMIT")
                both("BEGIN", first, second, "ROLLBACK")
                both("SAVEPOINT a", first, "SAVEPOINT b", second, "RELEASE b", "ROLLBACK TO a", second, "RELEASE a")
                both("BEGIN", second, "SAVEPOINT a", first, "SAVEPOINT b", second, "ROLLBACK TO a", first, "ROLLBACK TO a", "COMMIT", first)
        on.close()


def unread():
    with CHECKS.part("savepoints cut back rows that nobody has read in between"):
        on = Connection()
        on.sql("CREATE VIRTUAL TABLE c USING columnar(id)")
        on.sql("BEGIN")
        on.many("INSERT INTO c VALUES (?)", [(i,) for i in range(20)])
        on.sql("SAVEPOINT a")
        on.many("INSERT INTO c VALUES (?)", [(i,) for i in range(20, 20_000)])
        on.sql("SAVEPOINT b")
        on.many("INSERT INTO c VALUES (?)", [(i,) for i in range(20_000, 40_000)])
        on.sql("ROLLBACK TO b")
        assert on.value("SELECT count(*) FROM c") == 20_000
        on.sql("ROLLBACK TO a")
        on.many("INSERT INTO c VALUES (?)", [(i,) for i in range(20, 25)])
        on.sql("COMMIT")
        assert on.sql("SELECT count(*), sum(id) FROM c") == [(25, 300)]
        on.close()


def statements_that_fail():
    with CHECKS.part("a statement that fails in its middle leaves what SQLite's conflict clause says"):
        on = Connection()
        twins = Twins(on, "id INTEGER PRIMARY KEY, name TEXT NOT NULL")
        twins.run("INSERT INTO @ VALUES (500, 'in the way')")
        for size, start in ((1000, 0), (20_000, -19_000)):
            rows = f"{count(size)} SELECT i + {start}, 'row' FROM n"
            for clause in ("", "OR ABORT", "OR IGNORE", "OR FAIL", "OR ROLLBACK", "OR REPLACE"):
                for begin in (False, True):
                    on.sql("BEGIN") if begin else None
                    twins.run("INSERT INTO @ VALUES (-99999, 'before')")
                    twins.run(f"INSERT {clause} INTO @ {rows}")
                    if begin and not on.error("COMMIT"):
                        pass
                    twins.expect_same()
                    twins.run("DELETE FROM @ WHERE id <> 500")
        on.close()


def connections():
    for journal in ("WAL", "DELETE"):
        with CHECKS.part(f"connections see each other's commits and nothing else ({journal})"), database() as path:
            one, two = Connection(path), Connection(path)
            one.sql(f"PRAGMA journal_mode = {journal}")
            one.sql("CREATE VIRTUAL TABLE c USING columnar(id, name)")
            total = 0
            for rows in (3, 10_000, 1, 17_000, 5):
                one.sql("BEGIN IMMEDIATE")
                one.sql(f"INSERT INTO c {count(rows)} SELECT i, 'x' FROM n")
                if journal == "WAL":
                    assert two.value("SELECT count(*) FROM c") == total, "what is not committed is seen"
                one.sql("COMMIT")
                total += rows
                assert two.value("SELECT count(*) FROM c") == total, "what is committed is not seen"
                two.sql("DELETE FROM c WHERE rowid = (SELECT min(rowid) FROM c)")
                total -= 1
                assert one.value("SELECT count(*) FROM c") == total
            # A rollback on one side, and then a commit on the other, which gives the same stripe number.
            one.sql("BEGIN IMMEDIATE")
            one.sql(f"INSERT INTO c {count(9000)} SELECT -i, 'rolled back' FROM n")
            assert one.value("SELECT count(*) FROM c WHERE id < 0") == 9000
            one.sql("ROLLBACK")
            two.sql(f"INSERT INTO c {count(9000)} SELECT -1, 'other' FROM n")
            assert one.sql("SELECT count(*), sum(id), min(name) FROM c WHERE id < 0") == [(9000, -9000, "other")]
            if journal == "WAL":
                one.sql("BEGIN")
                before = one.value("SELECT count(*) FROM c")
                two.sql("DELETE FROM c WHERE id < 0")
                assert one.value("SELECT count(*) FROM c") == before, "a snapshot changes"
                one.sql("COMMIT")
                assert one.value("SELECT count(*) FROM c") == before - 9000
            assert one.sql("PRAGMA integrity_check") == [("ok",)]
            one.close()
            two.close()


def threads():
    with CHECKS.part("threads with connections of their own"), database() as path:
        on = Connection(path)
        on.sql("PRAGMA journal_mode = WAL")
        on.sql("CREATE VIRTUAL TABLE c USING columnar(thread INTEGER, i INTEGER)")
        failures = []

        def work(number):
            try:
                own = Connection(path, timeout=60)
                for turn in range(20):
                    own.sql("BEGIN IMMEDIATE")
                    own.many("INSERT INTO c VALUES (?, ?)", [(number, turn * 50 + i) for i in range(50)])
                    own.sql("COMMIT")
                    rows = own.sql("SELECT count(*), sum(i), min(i), max(i) FROM c WHERE thread = ?", (number,))
                    n = (turn + 1) * 50
                    if rows != [(n, n * (n - 1) // 2, 0, n - 1)]:
                        failures.append((number, turn, rows))
                own.close()
            except (SqlError, AssertionError) as error:
                failures.append((number, str(error)))
        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not failures, failures[:3]
        assert on.value("SELECT count(*) FROM c") == 4000
        on.close()


def elsewhere():
    with CHECKS.part("attached and temporary databases, VACUUM, VACUUM INTO, backup"), database() as path:
        on = Connection(path)
        on.sql(f"ATTACH '{path.with_name('other.db')}' AS other")
        for schema in ("main", "other", "temp"):
            on.sql(f"CREATE VIRTUAL TABLE {schema}.c_{schema} USING columnar(id, name TEXT)")
            on.sql(f"INSERT INTO {schema}.c_{schema} {count(10_010)} SELECT i, '{schema}' FROM n")
            on.sql(f"INSERT INTO {schema}.c_{schema} VALUES (-1, 'tail')")
        on.sql("BEGIN")
        on.sql("DELETE FROM c_main WHERE id > 10")
        on.sql("DELETE FROM other.c_other WHERE id > 20")
        on.sql("ROLLBACK")
        for schema in ("main", "other", "temp"):
            assert on.sql(f"SELECT count(*), sum(id) FROM c_{schema}") == [(10_011, 50_105_054)], schema
        ids = on.sql("SELECT rowid FROM c_main ORDER BY id")
        on.sql("VACUUM")
        assert on.sql("SELECT rowid FROM c_main ORDER BY id") == ids, "VACUUM gives rows other ids"
        on.sql("VACUUM other")
        on.sql(f"VACUUM INTO '{path.with_name('copy.db')}'")
        copy = Connection(path.with_name("copy.db"))
        assert copy.sql("SELECT count(*), sum(id) FROM c_main") == [(10_011, 50_105_054)], "VACUUM INTO"
        copy.close()
        if HOST == "debian":
            target = Connection()
            on.db.backup(target.db)
            assert target.sql("SELECT count(*), sum(id) FROM c_main") == [(10_011, 50_105_054)], "backup"
            target.close()
        on.sql("ALTER TABLE other.c_other RENAME TO renamed")
        assert on.value("SELECT count(*) FROM other.renamed") == 10_011
        on.sql("DROP TABLE other.renamed")
        assert on.sql("SELECT name FROM other.sqlite_master") == []
        on.close()


def open_cursors():
    with CHECKS.part("a query that is open while rows become a stripe gives each row once"):
        on = Connection()
        on.sql("CREATE VIRTUAL TABLE c USING columnar(id INTEGER, stripe_rows=2000, chunk_rows=1000)")
        on.sql(f"INSERT INTO c {count(3500)} SELECT i FROM n")
        assert on.value("SELECT count(*) FROM c_stripe") == 1 and on.value("SELECT count(*) FROM c_tail") == 1500, "premise"
        for order in ("", "ORDER BY id", "ORDER BY id DESC"):
            cursor = on.db.cursor()
            rows = iter(cursor.execute(f"SELECT id FROM c WHERE id > 0 {order}"))
            seen = [next(rows)[0]]
            on.sql(f"INSERT INTO c {count(1000)} SELECT -i FROM n")
            on.sql(f"INSERT INTO c {count(1000)} SELECT -i FROM n")
            seen += [row[0] for row in rows]
            assert sorted(seen) == list(range(1, 3501)), f"{order}: {len(seen)} rows"
        cursor = on.db.cursor()
        rows = iter(cursor.execute("SELECT id FROM c"))
        next(rows)
        on.sql("DELETE FROM c")
        try:
            list(rows)
        except Exception as error:
            assert "changed while the query was open" in str(error), error
        on.close()


def last_ids():
    with CHECKS.part("last_insert_rowid() is that of the last INSERT, not of what we write"):
        on = Connection()
        on.sql("CREATE TABLE o(id INTEGER PRIMARY KEY)")
        on.sql("CREATE VIRTUAL TABLE c USING columnar(id INTEGER, stripe_rows=1000, chunk_rows=1000)")
        on.sql("BEGIN")
        on.sql("INSERT INTO c VALUES (5)")
        on.sql("INSERT INTO o VALUES (777)")
        on.sql("SELECT count(*) FROM c")
        assert on.value("SELECT last_insert_rowid()") == 777
        on.sql("INSERT INTO c VALUES (6)")
        on.sql("INSERT INTO o VALUES (888)")
        on.sql("COMMIT")
        assert on.value("SELECT last_insert_rowid()") == 888
        on.sql(f"INSERT INTO c {count(997)} SELECT i FROM n")
        on.sql("INSERT INTO c VALUES (7)")
        assert on.value("SELECT last_insert_rowid()") == 1000 and on.value("SELECT count(*) FROM c_stripe") == 1
        on.close()


def connected_anew():
    """A statement that is kept or open holds what SQLite has connected before; new ones get it anew."""
    ways = {"another table is renamed": lambda on, path: on.sql("ALTER TABLE other RENAME TO other2"), "VACUUM": lambda on, path: on.sql("VACUUM"),
            "another connection changes the schema": lambda on, path: changed_elsewhere(path),
            "a table is made and undone": lambda on, path: [on.sql(statement) for statement in ("BEGIN", "CREATE TABLE z(a)", "ROLLBACK")]}

    def changed_elsewhere(path):
        second = Connection(path)
        second.sql("CREATE INDEX i ON other(x)")
        second.close()
    for what, change in ways.items():
        with CHECKS.part(f"a table that is connected anew is the same: {what}"), database() as path:
            on = Connection(path)
            on.sql("CREATE VIRTUAL TABLE c USING columnar(a INTEGER, b, stripe_rows=1000, chunk_rows=1000)")
            on.sql("CREATE TABLE other(x)")
            on.sql(f"INSERT INTO c {count(5000)} SELECT i, i FROM n")
            kept = on.db.cursor()
            assert list(kept.execute("SELECT count(*) FROM c"))
            change(on, path)
            if what != "VACUUM":
                cursor = on.db.cursor()
                rows = iter(cursor.execute("SELECT a FROM c"))
                seen = [next(rows)[0]]
                if "renamed" in what:
                    on.sql("ALTER TABLE other2 RENAME TO other3")
                on.sql("DELETE FROM c WHERE a % 3")
                seen += [row[0] for row in rows]
                assert sorted(seen) == list(range(1, 5001)), f"{len(seen)} rows"
            before = on.value("SELECT count(*) FROM c")
            on.sql("BEGIN")
            on.sql("INSERT INTO c VALUES (2, 2)")
            counts = [on.value("SELECT count(*) FROM c"), on.value("SELECT columnar_count('c')"), on.value("SELECT c1 FROM columnar_query('SELECT count(*) FROM c')")]
            assert counts == [before + 1] * 3, counts
            on.sql("ALTER TABLE c RENAME TO d")
            on.sql("INSERT INTO d VALUES (3, 3)")
            assert on.value("SELECT count(*) FROM d") == on.value("SELECT columnar_count('d')") == before + 2
            on.sql("ROLLBACK")
            assert on.value("SELECT count(*) FROM c") == on.value("SELECT columnar_count('c')") == before
            on.sql("CREATE VIRTUAL TABLE d USING columnar(only)")
            on.sql("INSERT INTO d VALUES (1)")
            assert on.value("SELECT columnar_count('d', 'only')") == 1 and on.value("SELECT columnar_sum('d', 'only')") == 1
            on.sql("DROP TABLE d")
            on.sql("BEGIN")
            on.sql("DROP TABLE c")
            on.sql("ROLLBACK")
            on.sql("INSERT INTO c VALUES (4, 4)")
            on.close()
            on = Connection(path)
            assert on.value("SELECT count(*) FROM c") == before + 1 and on.sql("SELECT * FROM columnar_verify('c')") == []
            on.close()


def greatest_ids():
    with CHECKS.part("ids go on after the greatest, wherever its row is"):
        for refused in ("INSERT INTO @(rowid, k) VALUES (0, 0)", "INSERT INTO @(rowid, k) VALUES (5, NULL)"):
            for many in (3, 2000):
                on = Connection()
                twins = Twins(on, "k INTEGER NOT NULL", "stripe_rows=1000, chunk_rows=1000")
                twins.run(f"INSERT INTO @ {count(2000)} SELECT i FROM n")
                on.sql("BEGIN")
                twins.run("UPDATE @ SET k = -k WHERE rowid = 2000")
                twins.run(refused)
                twins.run("SELECT count(*) FROM @")
                twins.run(f"INSERT INTO @ {count(many)} SELECT i FROM n")
                twins.run("SELECT rowid, k FROM @ ORDER BY rowid")
                on.sql("COMMIT")
                twins.run("SELECT count(DISTINCT rowid), max(rowid) FROM @")
                assert on.sql("SELECT * FROM columnar_verify('c')") == []
                on.close()
        on = Connection()
        twins = Twins(on, "k INTEGER CHECK (k > 0)")
        twins.run("INSERT INTO @ VALUES (1), (2), (3)")
        twins.run("UPDATE @ SET rowid = -3 WHERE rowid = 3")
        twins.run("INSERT INTO @ VALUES (4)")
        twins.run("SELECT rowid, k FROM @ ORDER BY rowid")
        on.close()


def defensive():
    if HOST != "apsw":
        return
    with CHECKS.part("a new connection in defensive mode reads, changes and renames"), database() as path:
        import apsw
        on = Connection(path)
        on.sql("CREATE VIRTUAL TABLE c USING columnar(id)")
        on.sql(f"INSERT INTO c {count(10_010)} SELECT i FROM n")
        on.sql("INSERT INTO c VALUES (-1)")
        on.close()
        on = Connection(path)
        on.db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        assert on.value("SELECT count(*) FROM c WHERE id > 0") == 10_010
        on.sql("DELETE FROM c WHERE id > 10_000" if version() >= (3, 46) else "DELETE FROM c WHERE id > 10000")
        on.sql("INSERT INTO c VALUES (0)")
        on.sql("ALTER TABLE c RENAME TO d")
        assert on.value("SELECT count(*) FROM d") == 10_002
        on.close()


def twice():
    with CHECKS.part("loading twice changes nothing, and a second library is refused with a text"):
        from harness.sqlite import LIBRARY
        on = Connection()
        on.sql("CREATE VIRTUAL TABLE c USING columnar(id)")
        on.sql("INSERT INTO c VALUES (1)")
        on.db.load_extension(LIBRARY)
        assert on.value("SELECT columnar_count('c')") == 1
        on.close()


def protected():
    with CHECKS.part("shadow tables are protected, and untrusted schemas may use the table"):
        on = Connection()
        on.sql("CREATE VIRTUAL TABLE c USING columnar(id)")
        on.sql("INSERT INTO c VALUES (1)")
        on.sql("PRAGMA trusted_schema = off")
        on.sql("CREATE VIEW v AS SELECT * FROM c")
        assert on.sql("SELECT * FROM v") == [(1,)]
        if HOST == "apsw":
            import apsw
            on.db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            for statement in ("DELETE FROM c_tail", "UPDATE c_stripe SET rows = 0", "DROP TABLE c_bytes", "INSERT INTO c_meta VALUES (2, 1, 1, 1)"):
                assert "may not be" in (on.error(statement) or ""), statement
            on.sql("INSERT INTO c VALUES (2)")
            assert on.value("SELECT count(*) FROM c") == 2
        on.close()


def main():
    for part in (savepoints, unread, statements_that_fail, connections, threads, elsewhere, open_cursors, connected_anew, greatest_ids, last_ids, defensive, twice, protected):
        part()
    print(f"with SQLite {'.'.join(map(str, version()))}")
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
