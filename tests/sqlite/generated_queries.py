"""Generated SELECTs: columnar_query gives what SQLite gives on plain tables, or says that it cannot.

Each round makes two pairs of tables whose columns are mostly of one class, with NULLs and odd values among
them, and asks random queries: expressions, conditions, groups, joins, subqueries, sets and orders. Short:
some hundred queries. Long: STATEMENTS (20,000), SEED=number.
"""

import os
import random
import sys

from harness.checks import Checks
from harness.sqlite import Connection, SqlError, alike, by_value, difference, in_engine, version

LONG = os.environ.get("COLONNADE_LONG") == "1"
STATEMENTS = int(os.environ.get("STATEMENTS") or (20_000 if LONG else 600))
SEED = int(os.environ.get("SEED") or os.environ.get("COLONNADE_SEED") or 20261127)
ROUND = 120
CHECKS = Checks("generated_queries", SEED)
VALUES = {
    "INTEGER": ("0", "1", "-1", "7", "42", "-7", "9007199254740993", "100000"),
    "REAL": ("0.0", "-0.0", "1.5", "-2.25", "0.1", "1e10", "3.0", "1e300"),
    "NUMERIC": ("0", "1", "1.5", "-2.5", "3", "100", "0.25"),
    "TEXT": ("''", "'a'", "'A'", "'ab'", "'b '", "'7'", "'1.50'", "'ü'", "'a%b'", "'2024-03-31'"),
}
SKIPPED = ("cannot do this", "integer overflow", "the engine cannot compute")


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.tables = {}
        for table in ("t", "u"):
            kinds = ["INTEGER", "INTEGER", "REAL", "NUMERIC", "TEXT", "TEXT"]
            rng.shuffle(kinds)
            self.tables[table] = [(f"{table}{at}", kind) for at, kind in enumerate(kinds[:rng.randint(3, 6)])]
        texts = [name for columns in self.tables.values() for name, kind in columns if kind == "TEXT"]
        self.collations = {name: rng.choice((" COLLATE NOCASE", " COLLATE RTRIM")) for name in texts if rng.random() < 0.3}

    def definition(self, table):
        return ", ".join(f"{name} {kind}{self.collations.get(name, '')}" for name, kind in self.tables[table])

    def value(self, kind):
        rng = self.rng
        if rng.random() < 0.12:
            return "NULL"
        if rng.random() < 0.25:
            return rng.choice(VALUES[kind])
        if kind == "INTEGER":
            return str(rng.randint(-5, 30))
        if kind == "REAL":
            return str(rng.randint(-20, 200) / 8)
        if kind == "NUMERIC":
            return str(rng.choice((rng.randint(0, 20), rng.randint(0, 80) / 4)))
        return f"'{rng.choice('abcAB')}{rng.randint(0, 9)}'"

    def rows(self, table, count):
        return ", ".join(f"({', '.join(self.value(kind) for _, kind in self.tables[table])})" for _ in range(count))

    def column(self, scope, kinds):
        found = [name for name, kind in scope if kind in kinds]
        return self.rng.choice(found) if found else None

    def number(self, scope, depth=0):
        rng = self.rng
        kind = rng.random()
        column = self.column(scope, ("INTEGER", "REAL", "NUMERIC"))
        if column is None or kind < 0.12:
            return self.value(rng.choice(("INTEGER", "REAL", "NUMERIC")))
        if depth > 2 or kind < 0.5:
            return column
        if kind < 0.78:
            return f"({self.number(scope, depth + 1)} {rng.choice('+-*/')} {self.number(scope, depth + 1)})"
        if kind < 0.84:
            return f"CASE WHEN {self.condition(scope, depth + 1)} THEN {self.number(scope, depth + 1)} ELSE {self.number(scope, depth + 1)} END"
        if kind < 0.9:
            return f"{rng.choice(('coalesce', 'ifnull', 'nullif'))}({self.number(scope, depth + 1)}, {self.number(scope, depth + 1)})"
        if kind < 0.95:
            return f"{rng.choice(('abs', '-', '+'))}({self.number(scope, depth + 1)})"
        text = self.text(scope, depth + 1)
        return f"length({text})" if kind < 0.98 else f"CAST({self.number(scope, depth + 1)} AS {rng.choice(('INTEGER', 'REAL'))})"

    def text(self, scope, depth=0):
        rng = self.rng
        column = self.column(scope, ("TEXT",))
        if column is None:
            return self.value("TEXT")
        kind = rng.random()
        if depth > 2 or kind < 0.6:
            return column
        if kind < 0.7:
            return f"{rng.choice(('upper', 'lower', 'trim'))}({self.text(scope, depth + 1)})"
        if kind < 0.8:
            return f"substr({self.text(scope, depth + 1)}, {rng.randint(-3, 4)}, {rng.randint(-2, 4)})"
        if kind < 0.9:
            return f"({self.text(scope, depth + 1)} || {self.text(scope, depth + 1)})"
        return f"replace({self.text(scope, depth + 1)}, 'a', {self.value('TEXT')})"

    def condition(self, scope, depth=0):
        rng = self.rng
        kind = rng.random()
        if depth < 2 and kind < 0.25:
            return f"({self.condition(scope, depth + 1)} {rng.choice(('AND', 'OR'))} {self.condition(scope, depth + 1)})"
        if kind < 0.3:
            return f"NOT ({self.condition(scope, depth + 1)})"
        operator = rng.choice(("=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT"))
        if kind < 0.5:
            return f"{self.number(scope, depth + 1)} {operator} {self.number(scope, depth + 1)}"
        if kind < 0.62:
            return f"{self.text(scope, depth + 1)} {operator} {self.text(scope, depth + 1)}"
        if kind < 0.7:
            column, kind = rng.choice(scope)
            return f"{column} {operator} {self.value(rng.choice((kind, kind, rng.choice(tuple(VALUES)))))}"
        if kind < 0.78:
            column, kind = rng.choice(scope)
            return f"{column} {rng.choice(('', 'NOT '))}IN ({', '.join(self.value(kind) for _ in range(rng.randint(1, 4)))})"
        if kind < 0.86:
            column, kind = rng.choice(scope)
            return f"{column} {rng.choice(('', 'NOT '))}BETWEEN {self.value(kind)} AND {self.value(kind)}"
        if kind < 0.93:
            return f"{rng.choice(scope)[0]} IS {rng.choice(('', 'NOT '))}NULL"
        pattern = rng.choice(("'a%'", "'%1'", "'_2'", "'A_'", "'%'", "'a!%%' ESCAPE '!'"))
        return f"{self.text(scope, depth + 1)} {rng.choice(('', 'NOT '))}LIKE {pattern}"

    def any(self, scope):
        return self.number(scope) if self.rng.random() < 0.65 else self.text(scope)

    def aggregate(self, scope):
        rng = self.rng
        kind = rng.random()
        if kind < 0.2:
            return "count(*)"
        if kind < 0.35:
            return f"count({rng.choice(('', 'DISTINCT '))}{self.any(scope)})"
        if kind < 0.7:
            filtered = f" FILTER (WHERE {self.condition(scope)})" if rng.random() < 0.2 else ""
            return f"{rng.choice(('sum', 'avg', 'total'))}({self.number(scope)}){filtered}"
        return f"{rng.choice(('min', 'max'))}({self.any(scope)})"

    def subquery(self, scope):
        """A condition with a subquery over the table u."""
        rng = self.rng
        inner = [(f"v.{name}", kind) for name, kind in self.tables["u"]]
        where = f" WHERE {self.condition(inner)}" if rng.random() < 0.6 else ""
        mine, theirs = self.column(scope, ("INTEGER",)), self.column(inner, ("INTEGER",))
        kind = rng.random()
        if mine and theirs and kind < 0.35:
            more = f" AND {self.condition(inner)}" if rng.random() < 0.6 else ""
            return f"{rng.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM u v WHERE {theirs} = {mine}{more})"
        if mine and theirs and kind < 0.65:
            return f"{mine} {rng.choice(('', 'NOT '))}IN (SELECT {theirs} FROM u v{where})"
        if mine and theirs and kind < 0.8:
            return f"{self.number(scope)} < (SELECT {rng.choice(('max', 'min', 'count', 'sum'))}({self.number(inner)}) FROM u v WHERE {theirs} = {mine})"
        return f"{self.number(scope)} >= (SELECT {rng.choice(('avg', 'min', 'count'))}({self.number(inner)}) FROM u v{where})"

    def query(self):
        rng = self.rng
        t = [(f"t.{name}", kind) for name, kind in self.tables["t"]]
        scope, source = t, "t"
        if rng.random() < 0.35:
            scope = t + [(f"u.{name}", kind) for name, kind in self.tables["u"]]
            a, b = self.column(t, ("INTEGER", "TEXT")), None
            if a:
                kind = dict(t)[a]
                b = self.column(scope[len(t):], (kind,))
            on = f"{a} = {b}" if b else self.condition(scope)
            extra = f" AND {self.condition(scope)}" if rng.random() < 0.4 else ""
            source = f"t {rng.choice(('JOIN', 'JOIN', 'LEFT JOIN'))} u ON {on}{extra}"
        where = []
        if rng.random() < 0.7:
            where.append(self.condition(scope))
        if rng.random() < 0.25:
            where.append(self.subquery(scope))
        where = f" WHERE {' AND '.join(where)}" if where else ""
        kind = rng.random()
        if kind < 0.35:
            listed = ", ".join(self.any(scope) for _ in range(rng.randint(1, 4)))
            return f"SELECT {rng.choice(('', '', 'DISTINCT '))}{listed} FROM {source}{where}"
        if kind < 0.7:
            keys = [self.any(scope) if rng.random() < 0.4 else rng.choice(scope)[0] for _ in range(rng.randint(1, 2))]
            listed = ", ".join(keys + [self.aggregate(scope) for _ in range(rng.randint(1, 3))])
            having = f" HAVING {self.aggregate(scope)} {rng.choice(('>', '<=', 'IS NOT'))} {self.value('INTEGER')}" if rng.random() < 0.2 else ""
            # An integer would stand for a result.
            keys = [key for key in keys if not key.lstrip("-").isdigit()] or ["t.rowid"]
            return f"SELECT {listed} FROM {source}{where} GROUP BY {', '.join(keys)}{having}"
        if kind < 0.8:
            return f"SELECT {', '.join(self.aggregate(scope) for _ in range(rng.randint(1, 4)))} FROM {source}{where}"
        if kind < 0.9:
            one, other = self.column(t, ("INTEGER",)) or "1", self.column([(f"u.{name}", kind) for name, kind in self.tables["u"]], ("INTEGER",)) or "2"
            return f"SELECT {one} FROM t{where if source == 't' else ''} {rng.choice(('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT'))} SELECT {other} FROM u"
        column = rng.choice(t)[0]
        order = f"{self.any(t)}, t.rowid"
        function = rng.choice(("row_number()", "rank()", "sum(t.rowid)", "count(*)", f"max({column})", "lag(t.rowid)"))
        if rng.random() < 0.5:
            return f"SELECT t.rowid, {function} OVER (PARTITION BY {column} ORDER BY t.rowid) FROM t"
        return f"SELECT {column}, t.rowid FROM t ORDER BY {order} LIMIT {rng.randint(1, 60)} OFFSET {rng.randint(0, 20)}"


def folded(row):
    """Of equal numbers a group, a DISTINCT or an extreme may show the integer or the real, of texts that a
    collation calls equal each."""
    def one(value):
        if isinstance(value, str):
            return value.lower().rstrip(" ")
        return float(value) if isinstance(value, int) and abs(value) <= 1 << 53 else value
    return tuple(map(one, row))


def rough(row):
    """Before 3.43 SQLite adds reals up without what it rounds: where they cancel each other out, no digit of
    the sum is right. Small whole numbers are looked at, as they may be a group's."""
    return tuple("a real" if isinstance(value, float) and (abs(value) > 100 or value % 1) else value for value in folded(row))


def same(plain, columnar, query):
    fold = any(word in query for word in ("GROUP BY", "DISTINCT", "min(", "max(", "UNION", "EXCEPT", "INTERSECT"))
    if "ORDER BY" not in query or "OVER" in query:
        plain, columnar = sorted(plain, key=by_value), sorted(columnar, key=by_value)
    if alike(plain, columnar):
        return True
    is_rough = version() < (3, 43) and any(word in query for word in ("sum(", "avg(", "total("))
    by = rough if is_rough else folded
    return (fold or is_rough) and alike(sorted(map(by, plain), key=by_value), sorted(map(by, columnar), key=by_value))


def main():
    rng = random.Random(SEED)
    done = asked = errors = 0
    reasons = {}
    with CHECKS.part(f"{STATEMENTS} queries", (AssertionError, SqlError)) as tell:
        while done < STATEMENTS:
            generator = Generator(rng)
            plain, columnar = Connection(), Connection()
            columnar.value(f"SELECT columnar_threads({rng.choice((1, 1, 3))})")
            for table in ("t", "u"):
                plain.sql(f"CREATE TABLE {table}({generator.definition(table)})")
                columnar.sql(f"CREATE VIRTUAL TABLE {table} USING columnar({generator.definition(table)}, stripe_rows=1000, chunk_rows=1000)")
                for _ in range(rng.choice((0, 1, 4)) if table == "t" else 1):
                    rows = generator.rows(table, rng.choice((3, 60, 400)))
                    for db in (plain, columnar):
                        db.sql(f"INSERT INTO {table} VALUES {rows}")
                for db in (plain, columnar):
                    db.sql(f"DELETE FROM {table} WHERE rowid % 11 = 3")
            for _ in range(ROUND):
                done += 1
                query = generator.query()
                try:
                    expected = plain.sql(query)
                except SqlError as error:
                    expected = str(error)
                try:
                    found = in_engine(columnar, query)
                except SqlError as error:
                    errors += 1
                    text = str(error)
                    assert any(part in text for part in SKIPPED) or text == expected, f"{query}: {text}, {expected if isinstance(expected, str) else 'rows'} of a plain table"
                    reasons[text[:70]] = reasons.get(text[:70], 0) + 1
                    continue
                assert not isinstance(expected, str), f"{query}: no error, where a plain table gives {expected}"
                asked += 1
                tables = "; ".join(f"{table}({generator.definition(table)})" for table in ("t", "u"))
                assert same(expected, found, query), f"{query} [{tables}]: {difference(sorted(expected, key=by_value), sorted(found, key=by_value))}"
            plain.close()
            columnar.close()
        tell(f"{asked} compared, {errors} refused")
        if os.environ.get("REASONS"):
            for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1])[:25]:
                print(f"    {count} {reason}")
        assert asked > STATEMENTS * 0.6, f"premise: {asked} of {STATEMENTS} could be compared"
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
