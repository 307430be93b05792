"""Generated tables, changes and queries: a columnar table must answer as a plain one does, errors included,
and hold the same rows.

Each round makes one pair of tables of random columns (types, collations, NOT NULL, an INTEGER PRIMARY KEY or
none) and small stripes, and then asks and changes both by the same statements, some in transactions with
savepoints. Short: some hundred statements. Long: STATEMENTS (20,000), SEED=number.
"""

import os
import random
import sys

from harness.checks import Checks
from harness.sqlite import Connection, Twins

LONG = os.environ.get("COLONNADE_LONG") == "1"
STATEMENTS = int(os.environ.get("STATEMENTS") or (20_000 if LONG else 700))
SEED = int(os.environ.get("SEED") or os.environ.get("COLONNADE_SEED") or 20261127)
ROUND = 140
CHECKS = Checks("generated", SEED)
TYPES = ("INTEGER", "TEXT", "REAL", "NUMERIC", "", "BLOB", "VARCHAR(10)", "DECIMAL(8,2)", "BOOLEAN", "DATE")
COLLATIONS = ("", "", " COLLATE NOCASE", " COLLATE RTRIM")
VALUES = ("NULL", "0", "1", "-1", "7", "42", "1.5", "-0.0", "0.1", "2.0", "9007199254740993", "9223372036854775807", "-9223372036854775808", "1e300",
          "''", "'a'", "'A'", "'b'", "'ab'", "'a '", "'7'", "'1.50'", "'x7'", "'ü'", "x''", "x'61'", "x'6200'")


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.columns = [f"c{at}" for at in range(rng.randint(2, 6))]
        self.types = {column: rng.choice(TYPES) for column in self.columns}
        self.collations = {column: rng.choice(COLLATIONS) for column in self.columns}
        self.key = rng.random() < 0.4
        if self.key:
            self.types[self.columns[0]], self.collations[self.columns[0]] = "INTEGER PRIMARY KEY", ""
        self.not_null = {column for column in self.columns[1:] if rng.random() < 0.15}

    def definition(self):
        one = "{} {}{}{}".format
        return ", ".join(one(column, self.types[column], self.collations[column], " NOT NULL" if column in self.not_null else "") for column in self.columns)

    def value(self, column=None):
        if self.key and column == self.columns[0]:
            # Other values are errors in the middle of a statement, after which plain tables keep some rows;
            # the greatest id makes later ones random.
            return self.rng.choice(("NULL", str(self.rng.randint(-20, 400))))
        kind = self.rng.random()
        if kind < 0.5:
            return self.rng.choice(VALUES)
        if kind < 0.75:
            return str(self.rng.randint(-20, 200))
        return f"'{self.rng.choice('abcAB')}{self.rng.randint(0, 9)}'" if kind < 0.9 else str(self.rng.randint(0, 400) / 4)

    def column(self):
        return self.rng.choice(self.columns + ["rowid"])

    def condition(self, depth=0):
        rng, column = self.rng, self.column()
        kind = rng.random()
        if depth < 2 and kind < 0.3:
            return f"({self.condition(depth + 1)} {rng.choice(('AND', 'AND', 'OR'))} {self.condition(depth + 1)})"
        if kind < 0.7:
            return f"{column} {rng.choice(('=', '<', '<=', '>', '>=', '<>', 'IS', 'IS NOT'))} {self.value()}"
        if kind < 0.78:
            return f"{column} BETWEEN {self.value()} AND {self.value()}"
        if kind < 0.86:
            return f"{column} IN ({', '.join(self.value() for _ in range(rng.randint(1, 4)))})"
        if kind < 0.91:
            return f"{column} IS {rng.choice(('', 'NOT '))}NULL"
        if kind < 0.95:
            return f"{column} {rng.choice(('LIKE', 'GLOB'))} '{rng.choice(('a', 'A', 'b1', '7', ''))}{rng.choice(('%', '*'))}'"
        return f"{column} {rng.choice(('=', '<', '>='))} {self.column()}"

    def query(self):
        rng = self.rng
        where = f" WHERE {self.condition()}" if rng.random() < 0.75 else ""
        kind = rng.random()
        picked = rng.sample(self.columns, rng.randint(1, len(self.columns)))
        listed = ", ".join(picked)
        if kind < 0.25:
            return f"SELECT rowid, {listed} FROM @{where}"
        if kind < 0.45:
            order = ", ".join(f"{column}{rng.choice(('', ' DESC', ' ASC'))}" for column in picked)
            limit = rng.choice(("", f" LIMIT {rng.randint(0, 40)}", f" LIMIT {rng.randint(1, 20)} OFFSET {rng.randint(0, 30)}"))
            return f"SELECT {listed}, rowid FROM @{where} ORDER BY {order}, rowid{rng.choice(('', ' DESC'))}{limit}"
        if kind < 0.6:
            # Columns whose equal values differ may show any of them.
            plain = [column for column in picked if not self.collations[column]] or ["rowid"]
            keys = ", ".join(plain)
            return f"SELECT count(*), count({self.column()}), total(length({self.column()})) FROM @{where} GROUP BY {keys}"
        if kind < 0.7:
            return f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM @{where})"
        if kind < 0.8:
            column = rng.choice([column for column in self.columns if not self.collations[column]] or ["rowid"])
            return f"SELECT {rng.choice(('min', 'max'))}({column}) = {rng.choice(('min', 'max'))}({column}), typeof({column}) IS NULL FROM @{where}"
        if kind < 0.9:
            return f"SELECT count(*), max(rowid), min(rowid), sum(typeof({self.column()}) = 'text') FROM @{where}"
        # Plain tables of 3.40 miss pairs that are equal by RTRIM only, where they make an index for a join.
        plain = [column for column in self.columns if not self.collations[column]] + ["rowid"]
        return f"SELECT count(*) FROM @ a JOIN @ b ON a.{rng.choice(plain)} = b.{rng.choice(plain)} WHERE a.rowid < 40 AND b.rowid < {rng.randint(20, 90)}"

    def insert(self):
        rng = self.rng
        clause = rng.choice(("", "", " OR IGNORE", " OR REPLACE", " OR FAIL"))
        if rng.random() < 0.3:
            return f"INSERT{clause} INTO @(rowid, {', '.join(self.columns[1:])}) VALUES ({rng.randint(-5, 300)}, {', '.join(map(self.value, self.columns[1:]))})"
        if rng.random() < 0.3:
            rows = self.columns[1:] if self.key else self.columns
            return f"INSERT{clause} INTO @({', '.join(rows)}) SELECT {', '.join(rows)} FROM @ WHERE {self.condition()} ORDER BY rowid LIMIT {rng.choice((5, 200, 1500))}"
        columns = self.columns[1:] if self.key and rng.random() < 0.8 else self.columns
        rows = ", ".join(f"({', '.join(map(self.value, columns))})" for _ in range(rng.choice((1, 1, 3, 60))))
        return f"INSERT{clause} INTO @({', '.join(columns)}) VALUES {rows}"

    def change(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return self.insert()
        if kind < 0.8:
            clause = rng.choice(("", "", " OR IGNORE", " OR REPLACE"))
            column = rng.choice(self.columns)
            value = rng.choice((self.value(), rng.choice(self.columns), f"{column} + 1", f"{column} || 'z'"))
            if rng.random() < 0.1:
                # Which rows are in the way depends on the order of rows, which is nobody's promise.
                return f"UPDATE{clause} @ SET rowid = rowid + 100000 WHERE rowid = (SELECT max(rowid) FROM @ WHERE rowid < 90000)"
            if self.key and column == self.columns[0]:
                return f"UPDATE{clause} @ SET {column} = {self.rng.randint(-20, 400)} WHERE rowid = (SELECT min(rowid) FROM @)"
            return f"UPDATE{clause} @ SET {column} = {value} WHERE {self.condition()}" if not self.not_null else f"UPDATE @ SET {column} = {value} WHERE rowid = (SELECT max(rowid) FROM @)"
        if kind < 0.93:
            return f"DELETE FROM @ WHERE {self.condition()} AND rowid % 3 = {rng.randint(0, 2)}"
        return f"DELETE FROM @ WHERE rowid IN (SELECT rowid FROM @ ORDER BY rowid LIMIT {rng.randint(1, 100)})"


def main():
    rng = random.Random(SEED)
    done = errors = changed = in_stripes = 0
    rounds = 0
    with CHECKS.part(f"{STATEMENTS} statements") as tell:
        while done < STATEMENTS:
            rounds += 1
            generator = Generator(rng)
            on = Connection()
            orderby = rng.choice(("", "", f", orderby='{rng.choice(generator.columns)} {rng.choice(('', 'DESC'))}'"))
            twins = Twins(on, generator.definition(), f"stripe_rows=1000, chunk_rows=1000{orderby}")
            about = f"round {rounds}, ({generator.definition()}{orderby})"
            depth, last = 0, ""
            try:
                for _ in range((8, 0, 1)[rounds % 3 - 1]):
                    twins.run(f"INSERT OR IGNORE INTO @({', '.join(generator.columns[generator.key:])}) VALUES " + ", ".join(
                        f"({', '.join(map(generator.value, generator.columns[generator.key:]))})" for _ in range(400)))
                in_stripes += on.value("SELECT count(*) FROM c_stripe")
                for _ in range(ROUND):
                    done += 1
                    step = rng.random()
                    if step < 0.5:
                        errors += isinstance(twins.run(generator.query()), str)
                    elif step < 0.85:
                        last = generator.change()
                        failed = isinstance(twins.run(last), str)
                        errors += failed
                        changed += not failed
                        twins.run("SELECT count(*), max(rowid), min(rowid) FROM @")
                    elif step < 0.9 and depth == 0:
                        on.sql("BEGIN")
                        depth = 1
                    elif depth and step < 0.94:
                        on.sql(f"SAVEPOINT s{depth}")
                        depth += 1
                    elif depth:
                        if depth > 1 and rng.random() < 0.6:
                            depth -= 1
                            on.sql(f"ROLLBACK TO s{depth}")
                            on.sql(f"RELEASE s{depth}")
                        else:
                            on.sql(rng.choice(("COMMIT", "ROLLBACK")))
                            depth = 0
                        twins.expect_same()
                    else:
                        twins.expect_same()
                if depth:
                    on.sql("COMMIT")
                twins.expect_same()
                assert on.sql("SELECT * FROM columnar_verify('c')") == [], "columnar_verify finds faults"
            except AssertionError as problem:
                raise AssertionError(f"{about}: {problem}; changed last by {last[:600]}") from None
            on.close()
        tell(f"{rounds} rounds, {changed} changes, {errors} errors alike, {in_stripes} stripes at the beginning")
        # A short run may meet no error.
        met = changed > STATEMENTS / 6 and in_stripes > 0 and (errors > 0 or STATEMENTS < 5000)
        assert met, f"premise: {changed} changes, {in_stripes} stripes, {errors} errors in {rounds} rounds"
    return CHECKS.status()


if __name__ == "__main__":
    sys.exit(main())
