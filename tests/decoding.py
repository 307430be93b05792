"""Logical decoding of a published colcompress table says what it says of a heap table, for every kind of
change.

The same statements run in two databases, one with heap tables and one with colcompress tables; the plugin
test_decoding must give the same text. Loads that would make stripes elsewhere stay hot here, which is what
the test takes for granted and asserts.
"""

import os

from harness.server import fresh_server

TABLES = """
CREATE TABLE t (id int PRIMARY KEY, k int, v text);
CREATE TABLE whole (a int, b text, c numeric(10,2));
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE part (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (100) TO (1000);
CREATE PUBLICATION p FOR TABLE t, whole, part;
SELECT 'made' FROM pg_create_logical_replication_slot('{slot}', 'test_decoding');
"""
CHANGES = (
    "INSERT INTO t VALUES (1, 1, 'one'), (2, NULL, 'two')",
    "INSERT INTO t SELECT g, g % 7, 'bulk ' || g FROM generate_series(10, 12000) g",
    "COPY t FROM PROGRAM 'seq 20001 31000 | sed \"s/$/\\t1\\tcopied/\"'",
    "UPDATE t SET v = v || '!' WHERE k = 3",
    "UPDATE t SET id = id + 100000 WHERE id BETWEEN 50 AND 60",
    "DELETE FROM t WHERE k = 4",
    "INSERT INTO t VALUES (1, 5, 'x'), (3, 3, 'three') ON CONFLICT (id) DO UPDATE SET v = excluded.v || t.v",
    "MERGE INTO t USING (VALUES (1), (2), (7)) s(id) ON t.id = s.id WHEN MATCHED AND t.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET k = 0 "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, 'merged')",
    "BEGIN; INSERT INTO t VALUES (5, 5, 'kept'); SAVEPOINT a; INSERT INTO t VALUES (6, 6, 'gone'); UPDATE t SET v = 'gone' WHERE id = 1; ROLLBACK TO a; DELETE FROM t WHERE id = 3; COMMIT",
    "BEGIN; UPDATE t SET v = 'nothing of it'; ROLLBACK",
    "INSERT INTO whole SELECT g, repeat(md5(g::text), 200), g / 3.0 FROM generate_series(1, 50) g",
    "UPDATE whole SET a = a + 1 WHERE a % 5 = 0",
    "DELETE FROM whole WHERE a > 40",
    "INSERT INTO part SELECT g, 'p' FROM generate_series(1, 500) g",
    "UPDATE part SET id = id + 100 WHERE id BETWEEN 90 AND 99 AND id > 98 AND NOT EXISTS (SELECT FROM part q WHERE q.id = part.id + 100)",
    "DELETE FROM part WHERE id < 5",
    "BEGIN; TRUNCATE whole; INSERT INTO whole VALUES (1, 'after', 1.50); COMMIT",
    "ALTER TABLE t ADD COLUMN extra int DEFAULT 9",
    "UPDATE t SET extra = extra + id WHERE k = 5",
    "VACUUM t",
    "VACUUM FULL t",
    "BEGIN; DELETE FROM t WHERE k = 6; PREPARE TRANSACTION '{slot}'",
    "COMMIT PREPARED '{slot}'",
)


def main():
    server = fresh_server("decoding", os.environ["COLONNADE_STAGE"], {"autovacuum": "off", "max_replication_slots": "4"})
    failed, said = 0, {}
    try:
        for method in ("heap", "colcompress"):
            database = f"decoding_{method}"
            server.create_database(database)
            server.sql(f"ALTER DATABASE {database} SET default_table_access_method = {method}")
            server.sql(TABLES.format(slot=method), database)
            for change in CHANGES:
                server.sql(change.replace("{slot}", method), database)
            stripes = server.sql("SELECT count(*) FROM engine.colcompress_stripes", database)
            made = server.sql("SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 't'", database)
            assert (stripes, made) == ("0", method), f"the premise: only hot rows; found {stripes} stripes in {made} tables"
            said[method] = server.sql("SELECT replace(data, 'decoding_', '') FROM pg_logical_slot_get_changes("
                                      f"'{method}', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1')", database).splitlines()
            server.sql(f"SELECT pg_drop_replication_slot('{method}')", database)
        heap, ours = said["heap"], said["colcompress"]
        assert len(heap) > 30000 and any("UPDATE" in line for line in heap) and any("DELETE" in line for line in heap) and any("TRUNCATE" in line for line in heap), \
            f"the premise: heap's changes are decoded; {len(heap)} lines"
        # Rows that a whole table's change meets come in the order of the rows on disk, which is the same as
        # long as all are hot.
        differing = [(a, b) for a, b in zip(heap, ours) if a != b]
        failed = bool(differing) or len(heap) != len(ours)
        print(f"{'not ok' if failed else 'ok'} decoding: {len(ours)} lines{f', first different: {differing[:2]}' if failed else ''}")
    finally:
        server.destroy()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
