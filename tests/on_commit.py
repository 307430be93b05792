"""Temporary tables that are emptied at commit leave the next transaction's memory alone, whatever other
sessions do meanwhile.

A subtransaction begun among the on-commit actions outlives the memory of its transaction; the next one's
subtransactions then write into memory that has been given out again. What that hits depends on how much a
transaction has allocated before, which is why other sessions change catalogs here. On the code before the fix
ten of twelve rounds ended in a crash.
"""

import os
from concurrent.futures import ThreadPoolExecutor

from harness.server import fresh_server

ROUNDS = 6
TEMPORARY = """
CREATE TEMP TABLE emptied (a int) ON COMMIT DELETE ROWS;
CREATE INDEX ON emptied (bit_length(''));
BEGIN;
INSERT INTO emptied VALUES (1);
INSERT INTO emptied VALUES (2);
COMMIT;
SELECT count(*) FROM emptied;
DROP TABLE emptied;
"""
CHURN = """
CREATE TABLE churn_{n} (a int, b text) USING heap;
ALTER TABLE churn_{n} ADD COLUMN c int DEFAULT 5;
CREATE INDEX ON churn_{n} (a);
VACUUM churn_{n};
ANALYZE churn_{n};
DROP TABLE churn_{n};
"""


def main():
    server = fresh_server("on-commit", os.environ["COLONNADE_STAGE"], settings={"default_table_access_method": "colcompress"})
    failed = 0
    try:
        server.create_database("emptied")
        with ThreadPoolExecutor(3) as others:
            for _ in range(ROUNDS):
                churn = [others.submit(server.sql, CHURN.format(n=n) * 40, "emptied", False) for n in range(3)]
                status, out, err = server.sql(TEMPORARY * 60, "emptied", check=False)
                failed += status != 0 or out.split() != ["0"] * 60
                if status:
                    print(err)
                    break
                for other in churn:
                    other.result()
        print(f"{'not ok' if failed else 'ok'} on_commit: {ROUNDS} rounds of emptied tables, {failed} failed")
    finally:
        server.destroy()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
