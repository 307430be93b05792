"""columnar_query: the same text gives the same rows on columnar tables, in the engine, as on plain ones in
SQLite.

Each query runs on two databases whose tables have the same names. In one of them tables are columnar, but for
one that stays plain. Rows lie in stripes and in the tail, dead ones among them.
"""

import itertools
import re
import tempfile

from harness.checks import Checks
from harness.sqlite import Connection, SqlError, alike, by_value, difference, in_engine, version

CHECKS = Checks("queries")
TABLES = {
    "t": "id INTEGER PRIMARY KEY, k INTEGER, name TEXT, price DECIMAL(10,2), amount REAL, day TEXT, big INTEGER, gone INTEGER",
    "d": "k INTEGER, label TEXT, region TEXT",
    "o": "oid INTEGER, tid INTEGER, quantity INTEGER, note TEXT",
    "plain": "k INTEGER, factor REAL",
    "f": "id INTEGER, name TEXT COLLATE NOCASE, padded TEXT COLLATE RTRIM, v INTEGER",
}
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
FILL = {
    "t": (3000, "SELECT i, CASE WHEN i % 13 = 0 THEN NULL ELSE i % 10 END, 'name ' || (i % 20), CASE WHEN i % 3 THEN i % 50 ELSE (i % 50) + 0.5 END,"
                " CASE WHEN i % 17 THEN i * 0.25 END, date('2024-01-01', '+' || (i % 400) || ' days'), 9007199254740992 + i, NULL FROM n"),
    "d": (9, "SELECT i - 1, 'label ' || (i - 1), CASE WHEN i % 2 THEN 'north' ELSE 'south' END FROM n"),
    "o": (5000, "SELECT i, (i * 7) % 3500, i % 12, CASE WHEN i % 5 THEN 'note ' || (i % 40) ELSE 'Special % [x] \\ request' END FROM n"),
    "plain": (6, "SELECT i, i * 0.5 FROM n"),
    "f": (2500, "SELECT i, CASE WHEN i % 11 THEN CASE i % 3 WHEN 0 THEN 'Name ' WHEN 1 THEN 'NAME ' ELSE 'name ' END || (i % 7) END,"
                " CASE WHEN i % 2 THEN 'p' || (i % 5) ELSE 'p' || (i % 5) || '  ' END, i FROM n"),
}
CHANGES = ["DELETE FROM t WHERE id % 97 = 5", "UPDATE t SET k = 99, price = 7 WHERE id % 101 = 3", "DELETE FROM o WHERE oid BETWEEN 100 AND 140",
           "INSERT INTO t VALUES (5001, 3, 'tail', 1.25, 2.5, '2025-12-31', 1, NULL), (5002, NULL, 'Tail', 3, NULL, '2023-01-01', 2, NULL)"]

FILTERS = """
SELECT id FROM t WHERE id = 7
SELECT id, name FROM t WHERE id BETWEEN 10 AND 20
SELECT id FROM t WHERE 5 < k AND id < 100
SELECT count(*) FROM t WHERE k IN (1, 2, 3)
SELECT count(*) FROM t WHERE k NOT IN (1, 2, 3)
SELECT count(*) FROM t WHERE k IN (1, 2, NULL)
SELECT count(*) FROM t WHERE k NOT IN (1, NULL)
SELECT count(*) FROM t WHERE name IN ('name 1', 'tail')
SELECT count(*) FROM t WHERE k IS NULL
SELECT count(*) FROM t WHERE k IS NOT NULL AND NOT (k > 3)
SELECT count(*) FROM t WHERE k IS 3
SELECT count(*) FROM t WHERE k IS NOT 3
SELECT count(*) FROM t WHERE gone IS NULL
SELECT count(*) FROM t WHERE gone = 1
SELECT count(*) FROM t WHERE name LIKE 'NAME 1%'
SELECT count(*) FROM t WHERE name LIKE '%1_'
SELECT count(*) FROM o WHERE note LIKE '%\\%'
SELECT count(*) FROM o WHERE note LIKE '%!%%' ESCAPE '!'
SELECT count(*) FROM o WHERE note NOT LIKE '%request'
SELECT count(*) FROM o WHERE note GLOB 'note [12]*'
SELECT count(*) FROM t WHERE price > 2.5
SELECT count(*) FROM t WHERE price = 7
SELECT count(*) FROM t WHERE price >= '7.5'
SELECT count(*) FROM t WHERE k > '4'
SELECT count(*) FROM t WHERE k > 2.5
SELECT count(*) FROM t WHERE k < 2.5 OR k = 5.0
SELECT count(*) FROM t WHERE name > 5
SELECT count(*) FROM t WHERE k < 'x'
SELECT count(*) FROM t WHERE big = 9007199254740993
SELECT count(*) FROM t WHERE big > 9007199254742992.0
SELECT count(*) FROM t WHERE amount < k
SELECT count(*) FROM t WHERE amount = price
SELECT count(*) FROM t WHERE k
SELECT count(*) FROM t WHERE NOT k
SELECT count(*) FROM t WHERE amount > 10 AND (k = 3 OR name = 'name 4') AND day < '2024-06-01'
SELECT count(*) FROM t WHERE day >= date('2024-01-01', '+3 months') AND day < date('2024-01-01', '+6 months')
SELECT id FROM t WHERE rowid = 12
SELECT count(*) FROM t WHERE true
SELECT count(*) FROM t WHERE name = 'NAME 1' COLLATE NOCASE
SELECT id FROM t WHERE (k, name) IS NULL OR id = 4
""".strip().splitlines()[:-1]

VALUES = """
SELECT id, k + 1, k - 1, k * 2, k / 3, k % 3, -k, +k FROM t
SELECT id, k / 0, k % 0, amount / 0, k / (k - 3) FROM t
SELECT id, price, price + 1, price * 2, price * 0.5, price - price, price / 2 FROM t
SELECT id, amount + k, amount * price, k / 2.0, amount - 1 FROM t
SELECT id, k = 3, k < 3, k <> 3, k BETWEEN 2 AND 4, k IS NULL, NOT k FROM t
SELECT id, k & 6, k | 8, k << 2, k >> 1, ~k FROM t
SELECT id, CASE WHEN k < 3 THEN 'low' WHEN k < 6 THEN 'mid' ELSE 'high' END FROM t
SELECT id, CASE k WHEN 1 THEN 'one' WHEN 2 THEN 'two' END FROM t
SELECT id, CASE WHEN k < 3 THEN k ELSE amount END FROM t
SELECT id, coalesce(k, -1), ifnull(amount, 0.5), coalesce(k, amount), nullif(k, 3), iif(k > 3, 'a', 'b') FROM t
SELECT id, CAST(amount AS INTEGER), CAST(k AS REAL), CAST(k AS TEXT), CAST(substr(name, 6) AS INTEGER) FROM t
SELECT id, name || '!', name || k, 'x' || id FROM t
SELECT id, length(name), upper(name), lower(name), substr(name, 2), substr(name, 2, 3), substr(name, -2), substr(name, -3, 2), substr(name, 0, 3) FROM t
SELECT id, instr(name, 'm'), replace(name, 'name', 'nom'), trim('  ' || name || ' '), ltrim(name, 'na'), rtrim(name, '0123456789') FROM t
SELECT id, abs(k - 5), abs(amount - 100), abs(price), min(k, 5), max(k, 2, id), sign(k - 3) FROM t
SELECT id, round(amount), round(price) FROM t
SELECT substr(day, 1, 4), count(*) FROM t GROUP BY substr(day, 1, 4)
SELECT 1, 2.5, 'x', NULL, 1 + 2, 'a' || 'b', date('2024-02-28', '+1 day')
SELECT id, 5, 'c' FROM t WHERE id < 10
SELECT DISTINCT k FROM t
SELECT DISTINCT k, price FROM t
SELECT DISTINCT name, k > 3 FROM t
SELECT * FROM d
SELECT d.*, k + 1 FROM d
SELECT id AS i, k AS i FROM t WHERE i < 5
SELECT id, strftime('%Y-%m', day), date(day, '+1 month'), julianday(day), printf('%05d', id), round(amount, 1), hex(name), typeof(k) FROM t
SELECT strftime('%Y', day) AS year, count(*) FROM t WHERE date(day, '-1 day') < '2024-12-01' GROUP BY year
SELECT unicode(name), octet_length(name) FROM t WHERE id < 3
SELECT id, big, big + 1, big - 9007199254740992 FROM t
""".strip().splitlines()

GROUPS = """
SELECT count(*), count(k), sum(k), avg(k), min(k), max(k), total(k) FROM t
SELECT sum(amount), avg(amount), min(amount), max(amount), total(amount), count(amount) FROM t
SELECT sum(price), avg(price), min(price), max(price), total(price), sum(price * 2), sum(price * amount) FROM t
SELECT min(name), max(name), count(name), count(DISTINCT name), count(DISTINCT k) FROM t
SELECT sum(gone), avg(gone), min(gone), max(gone), count(gone), total(gone) FROM t
SELECT count(*), sum(k), avg(k), min(name), total(k) FROM t WHERE id < 0
SELECT k, count(*) FROM t WHERE id < 0 GROUP BY k
SELECT k, count(*), sum(id), avg(amount) FROM t GROUP BY k
SELECT k, sum(price), sum(price * 2), min(price), max(price) FROM t GROUP BY k
SELECT k, name, count(*) FROM t GROUP BY k, name
SELECT k, name, count(*) FROM t GROUP BY 1, 2
SELECT price, count(*) FROM t GROUP BY price
SELECT price + 1, k FROM t GROUP BY price, k
SELECT gone, count(*) FROM t GROUP BY gone
SELECT k + 1, count(*) FROM t GROUP BY k + 1
SELECT k + 1 AS x, count(*) + 1, 2 * sum(k) FROM t GROUP BY x
SELECT k % 3, count(*) FROM t GROUP BY k % 3 HAVING count(*) > 300
SELECT k, count(*) AS c FROM t GROUP BY k HAVING c > 100 AND sum(amount) > 10
SELECT k, sum(amount) / count(*), max(id) - min(id) FROM t GROUP BY k
SELECT k, count(*) FILTER (WHERE amount > 100), sum(amount) FILTER (WHERE name = 'name 3') FROM t GROUP BY k
SELECT k, count(DISTINCT name), sum(DISTINCT price) FROM t GROUP BY k
SELECT count(DISTINCT k + 1), sum(DISTINCT k) FROM t
SELECT CASE WHEN k < 3 THEN 'low' ELSE 'high' END AS band, avg(price), count(*) FROM t GROUP BY band
SELECT day, count(*) FROM t GROUP BY day
SELECT avg(k) > 3, sum(k) IS NULL FROM t
SELECT count(*) FROM t GROUP BY 'x'
SELECT sum(CASE WHEN k = 3 THEN price ELSE 0 END), sum(CASE WHEN k = 3 THEN 1 ELSE 0 END) FROM t
SELECT sum(k) FROM t HAVING count(*) > 10
SELECT 100.0 * sum(CASE WHEN k < 3 THEN price * (1 - 0.05) ELSE 0 END) / sum(price * (1 - 0.05)) FROM t
""".strip().splitlines()

ORDER = """
SELECT id, k FROM t ORDER BY k, id
SELECT id, k FROM t ORDER BY k DESC, id DESC
SELECT id, k FROM t ORDER BY k ASC NULLS LAST, id
SELECT id, k FROM t ORDER BY k DESC NULLS FIRST, id LIMIT 500
SELECT id FROM t ORDER BY amount DESC, id LIMIT 10
SELECT id FROM t ORDER BY amount, id LIMIT 10 OFFSET 5
SELECT id FROM t ORDER BY id LIMIT 5, 3
SELECT id, name AS n FROM t ORDER BY n, id LIMIT 50
SELECT id, name FROM t ORDER BY 2 DESC, 1 LIMIT 50
SELECT id FROM t ORDER BY -id LIMIT 3
SELECT id FROM t ORDER BY k + amount, id LIMIT 20
SELECT name, count(*) AS c FROM t GROUP BY name ORDER BY c DESC, name
SELECT name, sum(price) FROM t GROUP BY name ORDER BY sum(price) DESC, name LIMIT 5
SELECT k, count(*) FROM t GROUP BY k ORDER BY count(*) DESC, k
SELECT DISTINCT k FROM t ORDER BY k DESC
SELECT id FROM t ORDER BY id LIMIT 0
SELECT id FROM t ORDER BY id LIMIT -1
SELECT name, id FROM t ORDER BY name COLLATE NOCASE, id LIMIT 40
SELECT * FROM d ORDER BY k
SELECT price, id FROM t ORDER BY price, id
""".strip().splitlines()

JOINS = """
SELECT t.id, d.label FROM t, d WHERE t.k = d.k
SELECT t.id, label FROM t JOIN d ON t.k = d.k WHERE region = 'north' AND t.id < 500
SELECT t.id, label FROM t JOIN d USING (k)
SELECT * FROM t NATURAL JOIN d
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k AND d.region = 'north'
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k AND t.id < 100
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k WHERE label IS NULL
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k WHERE label LIKE '%3'
SELECT region, count(*), sum(quantity * price) FROM t, d, o WHERE t.k = d.k AND o.tid = t.id GROUP BY region
SELECT region, sum(factor * amount) FROM t, d, plain WHERE t.k = d.k AND plain.k = d.k GROUP BY region
SELECT a.id, b.id FROM t a, t b WHERE a.id = b.id + 1 AND a.k = b.k
SELECT a.id, b.id FROM t a, t b WHERE a.id < 8 AND b.id < 8 AND a.id <> b.id
SELECT count(*) FROM d a, d b, d c
SELECT count(*) FROM t, o WHERE t.id = o.tid AND (t.k = 3 AND o.quantity < 5 OR t.k = 4 AND o.quantity > 7)
SELECT count(*) FROM t, o WHERE (t.id = o.tid AND t.k = 3 AND o.quantity < 5) OR (t.id = o.tid AND t.k = 4 AND o.quantity > 7)
SELECT label, count(tid) FROM d LEFT JOIN t ON t.k = d.k LEFT JOIN o ON o.tid = t.id GROUP BY label
SELECT c, count(*) FROM (SELECT t.id, count(oid) AS c FROM t LEFT JOIN o ON t.id = o.tid AND o.note NOT LIKE '%special%request%' GROUP BY t.id) GROUP BY c
SELECT x.k, x.total, d.label FROM (SELECT k, sum(amount) AS total FROM t GROUP BY k) x JOIN d ON d.k = x.k WHERE x.total > 10
WITH s AS (SELECT k, sum(price) AS p FROM t GROUP BY k), m(best) AS (SELECT max(p) FROM s) SELECT s.k, s.p FROM s, m WHERE s.p = m.best
WITH s AS (SELECT k, count(*) AS c FROM t GROUP BY k) SELECT a.k, b.c FROM s a, s b WHERE a.k = b.k
SELECT t.id, o.oid, d.label FROM o JOIN t ON o.tid = t.id JOIN d ON d.k = t.k WHERE o.quantity > 10 AND d.region = 'south'
SELECT t.id FROM t CROSS JOIN d WHERE t.id < 4
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k WHERE typeof(label) = 'null'
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k WHERE coalesce(label, 'none') = 'none'
SELECT t.id, label FROM t LEFT JOIN d ON t.k = d.k WHERE hex(label) = ''
SELECT t.id, hex(gone), typeof(gone), quote(gone), length(gone), round(gone, 2), date(gone) FROM t
SELECT count(*) FROM t JOIN plain ON t.amount = plain.factor
SELECT count(*) FROM v
SELECT region, sum(price) FROM v WHERE id > 100 GROUP BY region
""".strip().splitlines()

SUBQUERIES = """
SELECT id FROM t WHERE amount > (SELECT avg(amount) FROM t) AND id < 2500
SELECT id, (SELECT max(k) FROM d) FROM t WHERE id < 10
SELECT id FROM t WHERE k IN (SELECT k FROM d WHERE region = 'north')
SELECT id FROM t WHERE k NOT IN (SELECT k FROM d WHERE region = 'north')
SELECT id FROM t WHERE k NOT IN (SELECT k FROM t WHERE id < 20)
SELECT id FROM t WHERE id IN (SELECT tid FROM o GROUP BY tid HAVING sum(quantity) > 12)
SELECT id FROM t WHERE k IN (SELECT k FROM d WHERE region = 'north') OR id < 5
SELECT id FROM t WHERE EXISTS (SELECT * FROM o WHERE o.tid = t.id AND o.quantity > 8)
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.tid = t.id)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM d WHERE d.k = 3 AND d.region = 'south') AND k = 3
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.tid = t.id AND o.quantity > t.k)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM d WHERE region = 'west')
SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM d WHERE region = 'west')
SELECT id, amount FROM t WHERE amount > (SELECT 1.5 * avg(b.amount) FROM t b WHERE b.k = t.k)
SELECT id, (SELECT count(*) FROM o WHERE o.tid = t.id) FROM t
SELECT id, (SELECT sum(quantity) FROM o WHERE o.tid = t.id) FROM t
SELECT id FROM t WHERE (SELECT count(*) FROM o WHERE o.tid = t.id) = 0
SELECT a.id FROM t a WHERE a.amount = (SELECT min(b.amount) FROM t b, d WHERE b.k = d.k AND a.name = b.name AND d.region = 'north')
SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > (SELECT count(*) / 12 FROM t)
SELECT id FROM t WHERE id IN (SELECT tid FROM o WHERE o.quantity = t.k)
SELECT id FROM t WHERE k IN (SELECT quantity FROM o WHERE tid = "id")
SELECT id FROM t WHERE amount > (SELECT sum(quantity) FROM o WHERE tid = "id")
SELECT id FROM t WHERE name IN (SELECT 'name ' || k FROM d WHERE region = "north")
SELECT k FROM t WHERE id < 30 UNION SELECT k FROM d
SELECT k FROM t WHERE id < 30 UNION ALL SELECT k FROM d
SELECT k FROM t WHERE id < 30 INTERSECT SELECT k FROM d
SELECT k FROM t EXCEPT SELECT k FROM d
SELECT k, name FROM t WHERE id < 9 UNION SELECT k, label FROM d EXCEPT SELECT 3, 'name 3'
SELECT k FROM d UNION ALL SELECT factor FROM plain
VALUES (1, 'a'), (2, 'b'), (NULL, 'c')
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) WHERE column1 > 1
SELECT count(*) FROM (SELECT DISTINCT k, name FROM t)
SELECT k FROM (SELECT k FROM t ORDER BY id LIMIT 20) GROUP BY k
""".strip().splitlines()

# Which of several equal texts a group shows is left open.
COLLATIONS = """
SELECT lower(name), count(*), sum(v) FROM f GROUP BY name
SELECT lower(name), rtrim(padded), count(*) FROM f GROUP BY name, padded
SELECT rtrim(padded), count(*), max(v) FROM f GROUP BY 1
SELECT name, count(*) FROM f GROUP BY name COLLATE BINARY
SELECT name, count(*) FROM f GROUP BY name COLLATE NOCASE, name COLLATE BINARY
SELECT lower(name), count(*) FROM f GROUP BY name HAVING name > 'NAME 3'
SELECT lower(name), sum(v) FROM f GROUP BY name ORDER BY name DESC
SELECT lower(name) || '!' FROM f GROUP BY name HAVING count(*) > 300
SELECT lower(x) FROM (SELECT DISTINCT name AS x FROM f)
SELECT DISTINCT name COLLATE BINARY FROM f
SELECT lower(x), rtrim(y) FROM (SELECT DISTINCT name AS x, padded AS y FROM f)
SELECT lower(min(name)), lower(max(name)), rtrim(max(padded)), count(DISTINCT name), count(DISTINCT padded) FROM f
SELECT rtrim(padded), lower(min(name)), lower(max(name)) FROM f GROUP BY padded
SELECT min(name COLLATE BINARY), max(name COLLATE BINARY) FROM f
SELECT lower(x) FROM (SELECT name AS x FROM f UNION SELECT label FROM d)
SELECT lower(x) FROM (SELECT name AS x FROM f UNION SELECT 'NAME 3' UNION SELECT 'other')
SELECT lower(x) FROM (SELECT 'NAME 3' AS x UNION SELECT name FROM f)
SELECT lower(x) FROM (SELECT name AS x FROM f INTERSECT SELECT upper(name) FROM t)
SELECT lower(x) FROM (SELECT name AS x FROM f EXCEPT SELECT 'nAmE 2')
SELECT id, lower(min(name) OVER (PARTITION BY padded)), lower(max(name) OVER (ORDER BY id)) FROM f
SELECT count(*) FROM f a JOIN f b ON a.name = b.name AND a.id = b.id + 1
SELECT count(*) FROM f WHERE name IN (SELECT upper(name) FROM t)
SELECT lower(name), (SELECT count(*) FROM d) FROM f GROUP BY name
""".strip().splitlines()

WINDOWS = """
SELECT id, row_number() OVER (ORDER BY id) FROM t
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id), rank() OVER (PARTITION BY k ORDER BY price), dense_rank() OVER (PARTITION BY k ORDER BY price) FROM t
SELECT id, sum(id) OVER (PARTITION BY k ORDER BY id), count(*) OVER (PARTITION BY k), avg(amount) OVER (PARTITION BY k) FROM t
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), min(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t
SELECT id, lag(id) OVER (ORDER BY id), lead(id, 2) OVER (ORDER BY id), lag(id, 1, -1) OVER (PARTITION BY k ORDER BY id) FROM t
SELECT id, first_value(name) OVER (PARTITION BY k ORDER BY id), last_value(id) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), nth_value(id, 2) OVER (PARTITION BY k ORDER BY id) FROM t
SELECT id, ntile(4) OVER (ORDER BY id), percent_rank() OVER (ORDER BY k), cume_dist() OVER (ORDER BY k) FROM t
SELECT k, sum(amount), rank() OVER (ORDER BY sum(amount) DESC) FROM t GROUP BY k
SELECT id, sum(k) OVER w, count(k) OVER w FROM t WINDOW w AS (PARTITION BY name ORDER BY id)
SELECT id, count(*) FILTER (WHERE k > 3) OVER (ORDER BY id) FROM t
SELECT * FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY amount DESC, id) AS r FROM t) WHERE r <= 3
SELECT id, max(price) OVER (PARTITION BY k) FROM t
""".strip().splitlines()

ERRORS = [
    ("SELECT missing FROM t", "no such column: missing"),
    ("SELECT id FROM", "incomplete input"),
    ("DELETE FROM t", "columnar_query takes a SELECT"),
    (" ", "no statement"),
    ("SELECT count(*) FROM sqlite_master", "SQLite's own tables"),
    ("SELECT id FROM t; SELECT 1", "syntax error|one statement|near"),
    ("SELECT x'01' FROM t", "blobs"),
    ("WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT i FROM r", "WITH RECURSIVE"),
    ("SELECT name, id, max(id) FROM t GROUP BY name", "neither grouped nor aggregated"),
    ("SELECT sum(big * big) FROM t", "integer overflow"),
    ("SELECT json_extract(name, '$.x') FROM t", "the function json_extract"),
    ("SELECT sum(name) FROM t", "sum of text"),
    ("SELECT id FROM t WHERE EXISTS (SELECT count(*) FROM o WHERE o.tid = t.id)", "EXISTS of an aggregate"),
    ("SELECT id FROM t FULL JOIN d ON t.k = d.k", "FULL JOIN"),
]


def same(plain, columnar, ordered):
    if not ordered:
        plain, columnar = sorted(plain, key=by_value), sorted(columnar, key=by_value)
    return alike(plain, columnar)


def databases():
    plain, columnar = Connection(), Connection()
    for name, definition in TABLES.items():
        plain.sql(f"CREATE TABLE {name}({definition})")
        columnar.sql(f"CREATE TABLE {name}({definition})" if name == "plain" else f"CREATE VIRTUAL TABLE {name} USING columnar({definition}, stripe_rows=1200, chunk_rows=1000)")
        count, select = FILL[name]
        for db in (plain, columnar):
            db.sql(f"INSERT INTO {name} {NUMBERS.format(count=count)} {select}")
    for db in (plain, columnar):
        for change in CHANGES:
            db.sql(change)
        db.sql("CREATE VIEW v AS SELECT id, price, region AS region FROM t JOIN d ON t.k = d.k WHERE amount > 1")
    return plain, columnar


def main():
    plain, columnar = databases()
    for threads in (1, 3):
        columnar.value(f"SELECT columnar_threads({threads})")
        for what, queries, ordered in (("filters", FILTERS, False), ("values", VALUES, False), ("groups", GROUPS, False), ("order", ORDER, True), ("joins", JOINS, False), ("subqueries", SUBQUERIES, False), ("collations", COLLATIONS, False), ("windows", WINDOWS, False)):
            for query in queries:
                try:
                    expected = plain.sql(query)
                except SqlError as error:
                    # A function that this version has not yet.
                    assert "no such function" in str(error) or version() < (3, 39), f"{query}: {error}"
                    continue
                with CHECKS.part(f"{what} {threads}: {query}", (AssertionError, SqlError)):
                    found = in_engine(columnar, query)
                    if not ordered:
                        expected, found = sorted(expected, key=by_value), sorted(found, key=by_value)
                    assert same(expected, found, True), difference(expected, found)
    for query, message in ERRORS:
        with CHECKS.part(f"error: {query}"):
            try:
                in_engine(columnar, query)
                found = "no error"
            except SqlError as error:
                found = str(error)
            assert re.search(message, found), found
    with CHECKS.part("of texts that a collation calls equal the bytewise least is shown", (AssertionError, SqlError)):
        for query in ("SELECT name FROM f WHERE v % 7 = 1 AND name IS NOT NULL GROUP BY name", "SELECT DISTINCT name FROM f WHERE v % 7 = 1 AND name IS NOT NULL",
                      "SELECT min(name) FROM f WHERE v % 7 = 1", "SELECT name FROM f WHERE v % 7 = 1 AND name IS NOT NULL UNION SELECT 'nAME 1'"):
            assert in_engine(columnar, query) == [("NAME 1",)], (query, in_engine(columnar, query))
        assert in_engine(columnar, "SELECT max(name) FROM f WHERE v % 7 = 1") == [("name 1",)]
        assert in_engine(columnar, "SELECT name FROM f WHERE v % 7 = 1 AND v % 3 = 2 AND name IS NOT NULL INTERSECT SELECT 'NAME 1'") == [("name 1",)]
    with CHECKS.part("parameters", (AssertionError, SqlError)):
        for query, values in (("SELECT id FROM t WHERE k = ? AND id < ?", (3, 100)), ("SELECT id FROM t WHERE name = :n AND id > :i AND name = :n", ("name 3", 5)), ("SELECT id, ?2 FROM t WHERE id < ?1", (9, "x"))):
            assert same(plain.sql(query, values), in_engine(columnar, query, values), False), query
            call = f"SELECT c1 FROM columnar_query(?, {', '.join('?' * len(values))})"
            assert same([row[:1] for row in plain.sql(query, values)], columnar.sql(call, (query, *values)), False), query
    with CHECKS.part("the function", (AssertionError, SqlError)):
        assert columnar.sql("SELECT c1, c2 FROM columnar_query('SELECT k, count(*) FROM d GROUP BY k HAVING k = 3')") == [(3, 1)]
        assert "12 columns" in (columnar.error("SELECT * FROM columnar_query('SELECT 1,2,3,4,5,6,7,8,9,10,11,12')") or "")
        assert columnar.sql("SELECT c12 FROM columnar_query('SELECT 1,2,3,4,5,6,7,8,9,10,11,12')") == [(12,)]
        rows = columnar.sql("SELECT d.k, q.c1 FROM d, columnar_query('SELECT count(*) FROM t WHERE k = ?', d.k) q WHERE d.k < 3")
        assert rows == plain.sql("SELECT d.k, (SELECT count(*) FROM t WHERE t.k = d.k) FROM d WHERE d.k < 3"), rows
    with CHECKS.part("sums of reals that no integer holds", (AssertionError, SqlError)):
        for db, made in ((plain, "CREATE TABLE great(v NUMERIC)"), (columnar, "CREATE VIRTUAL TABLE great USING columnar(v NUMERIC)")):
            db.sql(made)
            db.sql("INSERT INTO great VALUES (1e19), (-1e19), (3)")
        query = "SELECT sum(v), sum(v + 1), max(v), min(v) FROM great"
        assert same(plain.sql(query), in_engine(columnar, query), True), (plain.sql(query), in_engine(columnar, query))
    with CHECKS.part("names of columns", (AssertionError, SqlError)):
        columnar.sql("DROP TABLE IF EXISTS temp.q")
        columnar.sql("CREATE VIRTUAL TABLE temp.q USING columnar_query(SELECT k AS key, count(*) AS rows, max(id) FROM t GROUP BY k)")
        assert [row[1] for row in columnar.sql("PRAGMA table_info(q)")] == ["key", "rows", "max(id)"]
        assert columnar.sql("SELECT key FROM q WHERE rows = (SELECT max(rows) FROM q)")
    with CHECKS.part("changes of the same transaction", (AssertionError, SqlError)):
        for db in (plain, columnar):
            db.sql("BEGIN")
            db.sql("INSERT INTO t(id, k, name) VALUES (9001, 4, 'new')")
        query = "SELECT k, count(*), max(id) FROM t GROUP BY k"
        assert same(plain.sql(query), in_engine(columnar, query), False)
        for db in (plain, columnar):
            db.sql("ROLLBACK")
        assert same(plain.sql(query), in_engine(columnar, query), False)
    with CHECKS.part("a table changes under an open query", (AssertionError, SqlError)):
        open_query = columnar.db.cursor().execute("SELECT c1 FROM columnar_query('SELECT id FROM t')")
        next(open_query)
        before = columnar.value("SELECT count(*) FROM t")
        columnar.sql("DELETE FROM t WHERE id < 100")
        assert "locked" in (columnar.error("DROP TABLE t") or "")
        assert len(list(open_query)) == before - 1
    with CHECKS.part("integers at the end of their range beside reals in another stripe", (AssertionError, SqlError)):
        columnar.sql("CREATE VIRTUAL TABLE ends USING columnar(v NUMERIC, stripe_rows=1000, chunk_rows=1000)")
        columnar.sql("INSERT INTO ends SELECT -9223372036854775807 - 1 FROM t LIMIT 1000")
        columnar.sql("INSERT INTO ends SELECT 0.5 FROM t LIMIT 1000")
        assert "several classes" in (columnar.error("SELECT c1 FROM columnar_query('SELECT min(v) FROM ends')") or "no error")
    with CHECKS.part("a query that stays", (AssertionError, SqlError)), tempfile.TemporaryDirectory(prefix="colonnade-sqlite-") as folder:
        first = Connection(f"{folder}/stays.db")
        first.sql("CREATE VIRTUAL TABLE s USING columnar(k INTEGER, v REAL)")
        first.sql("INSERT INTO s VALUES (1, 1.5), (1, 2.0), (2, 3.0)")
        first.sql("CREATE VIRTUAL TABLE by_k USING columnar_query('SELECT k, sum(v) AS total FROM s GROUP BY k')")
        first.close()
        second = Connection(f"{folder}/stays.db")
        assert second.sql("SELECT total FROM by_k WHERE k = 1") == [(3.5,)]
        second.sql("INSERT INTO s VALUES (1, 0.5)")
        assert second.sql("SELECT total FROM by_k WHERE k = 1") == [(4.0,)]
        second.sql("DROP TABLE by_k")
        second.close()
    with CHECKS.part("a query is interrupted at each step of SQLite's below it", (AssertionError, SqlError)), tempfile.TemporaryDirectory(prefix="colonnade-sqlite-") as folder:
        first = Connection(f"{folder}/stops.db")
        first.sql("CREATE VIRTUAL TABLE s USING columnar(k INTEGER, v INTEGER, stripe_rows=1000, chunk_rows=1000)")
        first.sql(f"{NUMBERS.format(count=3000)} INSERT INTO s SELECT i % 7, i FROM n")
        first.close()
        query, interrupted = "SELECT c1 FROM columnar_query('SELECT sum(v) FROM s WHERE k = 3')", 0
        for stop in range(1, 2000):
            on, steps = Connection(f"{folder}/stops.db"), itertools.count(1)
            on.db.set_progress_handler(lambda: next(steps) == stop, 1)
            error = on.error(query)
            on.db.set_progress_handler(None, 1)
            interrupted += error is not None
            assert error in (None, "interrupted"), f"step {stop}: {error}"
            # An error leaves nothing in the connection's way.
            assert on.value(query) == 643929, stop
            on.close()
            ended = next(steps) <= stop
            if ended:
                break
        assert ended and interrupted > 50, interrupted
    with CHECKS.part("explain", (AssertionError, SqlError)):
        lines = "\n".join(row[0] for row in columnar.sql("SELECT plan FROM columnar_explain('SELECT k, count(*) FROM t WHERE id < ? GROUP BY k', 100)"))
        for expected in ("Aggregate", "Scan t (rows=", "Conditions: id < 100", "Stripes: read ", " ms"):
            assert expected in lines, lines
    return CHECKS.status()


if __name__ == "__main__":
    raise SystemExit(main())
