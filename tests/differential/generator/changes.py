"""Generated statements that change rows: INSERT, UPDATE, DELETE, MERGE, ON CONFLICT, COPY, locks, cursors,
transactions.

Who calls it: generated_changes.py. What a statement does must not depend on the order in which rows are met,
which no access method promises: no statement can fail in two ways, keys move by more than their range, and a
LIMIT has an ORDER BY that is total. So heap and colcompress must agree to the byte, but for the order of what
RETURNING gives.
"""

WORDS = ("a", "b", "abc", "keep", "skip", "mark", "x y", "", "zebra", "ä", "item 7", "item 42")
# What an UPDATE may set that is no key.
SETS = ("v = 'a'", "v = v || '+'", "n = n + 1", "n = NULL", "d = d + 1", "k = k", "v = NULL", "big = NULL", "big = repeat(v, 50)", "n = k * 1.5, v = 'set'",
        "big = repeat('long ', 2000) || id", "v = left(v, 3)", "(v, n) = (SELECT 'sub', 2)", "d = DEFAULT")
# A default that is computed for each row, and gives the same for all.
VOLATILE = "bool DEFAULT (clock_timestamp() < '2000-01-01')"
LOCKS = ("UPDATE", "NO KEY UPDATE", "SHARE")


class Statement:
    """SQL for a side, whose name stands for {side}; `kind` is what it is counted under."""

    def __init__(self, kind, text):
        self.kind, self.text = kind, text


class Changes:
    """Makes statements for a shape. Remembers what ids there may be, and the state of the transaction."""

    def __init__(self, rng, shape, folder):
        self.rng, self.shape, self.folder = rng, shape, folder
        self.top = 0
        # The open transaction has rewritten a table of one side, which nobody else can read until it ends.
        self.rewritten = False
        self.inside, self.serializable, self.savepoints, self.prepared, self.files = False, False, 0, False, 0

    # -- values -----------------------------------------------------------------------------------

    def ident(self):
        """An id that there may be."""
        return self.rng.randint(1, max(1, self.top) + 3)

    def fresh(self, count=1):
        """The first of so many ids that there never were."""
        first = self.top + 1
        self.top += count
        return first

    def k(self):
        return self.rng.randint(0, 99)

    def word(self):
        return self.rng.choice(WORDS)

    def row(self, ident):
        """The values of one row, as literals; now and then one that the CHECK refuses, in rows that meet no
        other fault."""
        rng = self.rng
        n = rng.choice(("NULL::numeric", str(rng.randint(-500, 5000)), f"{rng.randint(0, 900)}.{rng.randint(0, 99):02d}"))
        big = "NULL" if rng.random() < 0.9 else f"repeat('{rng.choice('pqr')}', {rng.choice((10, 3000, 30000))})"
        values = [str(ident), str(self.k()), "NULL" if rng.random() < 0.1 else f"'{self.word()}'", n, f"date '2024-01-01' + {rng.randint(0, 400)}", big]
        if self.shape.unique:
            values.append("NULL::bigint" if rng.random() < 0.1 else str(ident))
        return f"({', '.join(values)})"

    def series(self, first, last):
        """SELECT list over generate_series g for the table's columns."""
        extra = ", g" if self.shape.unique else ""
        return (f"SELECT g, g * 7 % 100, '{self.word()}' || g % {self.rng.choice((1, 5, 1000))}, g % 1000, date '2024-01-01' + (g % 90)::int, "
                f"CASE WHEN g % 50 = 0 THEN repeat('b', 3000) END{extra} FROM generate_series({first}::bigint, {last}) g")

    def heads(self):
        return ", ".join(self.shape.columns())

    def where(self, alias=""):
        """A condition on rows of `t`."""
        rng = self.rng
        a = f"{alias}." if alias else ""
        low = self.ident()
        plain = (
            lambda: f"{a}id = {self.ident()}", lambda: f"{a}id = {self.ident()}", lambda: f"{a}id = {self.ident()}",
            lambda: f"{a}id IN ({', '.join(str(self.ident()) for _ in range(rng.randint(2, 8)))})",
            lambda: f"{a}id BETWEEN {low} AND {low + rng.choice((3, 20, 200))}",
            lambda: f"{a}id % {rng.choice((7, 31, 101))} = {rng.randint(0, 6)}",
            lambda: f"{a}k = {self.k()}", lambda: f"{a}k BETWEEN {self.k()} AND {self.k()}",
            lambda: f"{a}v = '{self.word()}'", lambda: f"{a}v LIKE '{rng.choice(('a', 'item', 'z'))}%' AND {a}k < {self.k()}",
            lambda: f"{a}n > {rng.randint(0, 4000)} AND {a}k = {self.k()}", lambda: f"{a}n IS NULL AND {a}id % 3 = 0",
            lambda: f"{a}d = date '2024-01-01' + {rng.randint(0, 90)}",
            lambda: f"{a}id IN (SELECT u.id FROM u WHERE u.k = {self.k()})",
            lambda: f"EXISTS (SELECT FROM u WHERE u.id = {a}id AND u.k < {self.k()})",
            lambda: f"{a}id = (SELECT max(id) FROM t)", lambda: f"{a}id IN (SELECT id FROM t ORDER BY id LIMIT {rng.randint(1, 9)} OFFSET {rng.randint(0, 40)})",
            lambda: f"{a}k % 7 = {rng.randint(0, 6)} AND {a}id > {low}", lambda: f"{a}id % 3 < 2", lambda: f"{a}id < {low}", lambda: f"ARRAY[{a}k, {a}k % 3] @> ARRAY[{self.k()}]",
        )
        by_place = (
            lambda: f"{a}ctid = (SELECT ctid FROM t WHERE id = {self.ident()} ORDER BY id LIMIT 1)",
            lambda: f"{a}ctid = ANY (ARRAY(SELECT ctid FROM t WHERE k = {self.k()}))",
            lambda: f"{a}ctid >= '(0,0)' AND {a}k = {self.k()}",
        )
        made = rng.choice(plain + (by_place if self.shape.key and not self.shape.partitioned else ()))()
        return f"({made} OR {a}id = {self.ident()})" if rng.random() < 0.1 else made

    def returning(self):
        return self.rng.choice(("", "", " RETURNING *", " RETURNING id, v", " RETURNING id * 2 AS twice, upper(v), n IS NULL"))

    # -- statements -------------------------------------------------------------------------------

    def insert(self):
        rng = self.rng
        count = rng.choice((1, 1, 1, 2, 5))
        rows = ", ".join(self.row(ident) for ident in range(self.fresh(count), self.top + 1))
        return Statement("INSERT", f"INSERT INTO t ({self.heads()}) VALUES {rows}{self.returning()}")

    def insert_existing(self):
        """One row whose id may be there: a unique violation, unless it is not."""
        return Statement("INSERT that may conflict", f"INSERT INTO t ({self.heads()}) VALUES {self.row(self.ident())}{self.returning()}")

    def insert_many(self):
        rng = self.rng
        count = rng.choice((50, 200, 600))
        first = self.fresh(count)
        ending = rng.choice(("", "", " RETURNING id")) if count < 300 else ""
        return Statement("INSERT SELECT", f"INSERT INTO t ({self.heads()}) {self.series(first, self.top)}{ending}")

    def copy(self):
        rng = self.rng
        self.files += 1
        path = self.folder / f"changes{self.files % 20}.txt"
        first = self.fresh(rng.choice((1, 5, 150)))
        with open(path, "w", encoding="utf-8") as out:
            for ident in range(first, self.top + 1):
                fields = [ident, self.k(), self.word(), "\\N" if rng.random() < 0.2 else rng.randint(0, 999), "2024-05-05", "\\N"] + ([ident] if self.shape.unique else [])
                out.write("\t".join(map(str, fields)) + "\n")
        path.chmod(0o644)
        condition = " WHERE k < 80" if rng.random() < 0.2 else ""
        return Statement("COPY", f"COPY t ({self.heads()}) FROM '{path}'{condition}")

    def copy_self(self):
        first = self.top + 10
        span = self.top + 10
        self.top += span + 10
        extra = f", w + {first}" if self.shape.unique else ""
        return Statement("INSERT from itself", f"INSERT INTO t ({self.heads()}) SELECT id + {first}, k, v, n, d, big{extra} FROM t WHERE id <= {span} AND {self.where()} LIMIT 100"
                         .replace(" LIMIT 100", " AND id % 5 = 1"))

    def on_conflict(self):
        rng = self.rng
        idents = rng.sample(range(1, self.top + 6), min(self.top + 5, rng.choice((1, 2, 6))))
        if rng.random() < 0.05:
            idents.append(idents[0])
        rows = ", ".join(self.row(ident) for ident in idents)
        target = "(id, k)" if self.shape.partitioned else "(id)"
        if not self.shape.key or rng.random() < 0.3:
            # Without a target a deferrable constraint is no arbiter: PostgreSQL refuses it, alike on both
            # sides.
            return Statement("ON CONFLICT DO NOTHING", f"INSERT INTO t ({self.heads()}) VALUES {rows} ON CONFLICT DO NOTHING{self.returning()}")
        action = rng.choice(("v = excluded.v", "n = coalesce(t.n, 0) + 1, v = t.v || excluded.v", "d = excluded.d, big = excluded.big", "v = 'was there'"))
        condition = rng.choice(("", "", f" WHERE t.k < {self.k()}"))
        return Statement("ON CONFLICT DO UPDATE", f"INSERT INTO t ({self.heads()}) VALUES {rows} ON CONFLICT {target} DO UPDATE SET {action}{condition}{self.returning()}")

    def update(self):
        sets = self.rng.choice(SETS)
        if self.shape.partitioned and self.rng.random() < 0.3:
            sets = "k = (k + 37) % 100"
        return Statement("UPDATE", f"UPDATE t SET {sets} WHERE {self.where()}{self.returning()}")

    def update_nested(self):
        """Statements within the statement, about rows that it leaves alone itself."""
        return Statement("UPDATE with statements inside", f"UPDATE t SET v = {self.rng.choice(('look', 'touch'))}(id) WHERE id % 2 = 0 AND {self.where()}{self.returning()}")

    def update_key(self):
        """Keys that move to where none are, or one that may move onto another."""
        rng = self.rng
        if rng.random() < 0.3:
            return Statement("UPDATE of a key", f"UPDATE t SET id = {self.ident()} WHERE id = {self.ident()}{self.returning()}")
        shift = self.top + 5
        column = "w" if self.shape.unique and rng.random() < 0.5 else "id"
        condition = self.where()
        bound = f"id < {shift}" if column == "id" else f"w < {shift}"
        if rng.random() < 0.9:
            bound += f" AND id % 5 = {rng.randint(0, 4)}"
        self.top += shift
        return Statement("UPDATE of a key", f"UPDATE t SET {column} = {column} + {shift} WHERE {bound} AND ({condition}){self.returning()}")

    def update_from(self):
        return Statement("UPDATE FROM", f"UPDATE t SET v = u.v, n = u.n FROM u WHERE u.id = t.id AND u.k < {self.k()} AND {self.where('t')}"
                         + self.rng.choice(("", " RETURNING t.id, t.v, u.k")))

    def delete(self):
        return Statement("DELETE", f"DELETE FROM t WHERE {self.where()}{self.returning()}")

    def delete_using(self):
        return Statement("DELETE USING", f"DELETE FROM t USING u WHERE u.id = t.id AND u.k = {self.k()} AND t.k < {self.k()}" + self.rng.choice(("", " RETURNING t.id, u.v")))

    def merge(self):
        rng = self.rng
        source = f"(SELECT id, k, v, n FROM u WHERE id BETWEEN {self.ident()} AND {self.ident() + 30})" if rng.random() < 0.6 else \
            f"(SELECT g AS id, 5 AS k, 'merged' AS v, 1.5 AS n FROM generate_series({self.ident()}, {self.ident() + 5}) g)"
        extra = ", s.id" if self.shape.unique else ""
        matched = rng.sample((f"WHEN MATCHED AND t.k < {self.k()} THEN DELETE", "WHEN MATCHED AND s.n > 20 THEN UPDATE SET n = s.n, v = 'm' || s.v",
                              f"WHEN MATCHED AND t.k > {self.k()} THEN DO NOTHING", "WHEN MATCHED THEN UPDATE SET v = t.v || s.v"), rng.randint(1, 4))
        # A branch without a condition ends the list.
        matched.sort(key=lambda text: " AND " not in text)
        missing = rng.choice(("", "WHEN NOT MATCHED THEN DO NOTHING",
                              f"WHEN NOT MATCHED AND s.id <= {self.top} THEN INSERT ({self.heads()}) VALUES (s.id, s.k, s.v, s.n, DEFAULT, NULL{extra})"))
        if self.shape.unique:
            missing = ""
        return Statement("MERGE", f"MERGE INTO t USING {source} s ON t.id = s.id {' '.join(matched)} {missing}")

    def with_changes(self):
        """Rows that one command moves: the statements of WITH see the same snapshot."""
        rng = self.rng
        first = self.top + 10
        condition = f"id < {first} AND id % 5 = 2 AND {self.where()}"
        self.top = 2 * first + 10
        columns = self.heads().replace("id", f"id + {first}", 1)
        if self.shape.unique:
            columns = columns.removesuffix("w") + f"w + {first}"
        return rng.choice((
            Statement("WITH DELETE INSERT", f"WITH gone AS (DELETE FROM t WHERE {condition} RETURNING *) INSERT INTO t ({self.heads()}) SELECT {columns} FROM gone"),
            Statement("WITH UPDATE SELECT", f"WITH new AS (UPDATE t SET n = 7 WHERE {self.where()} RETURNING id, n) SELECT new.id, new.n, t.n, t.v FROM new JOIN t USING (id)"),
            Statement("WITH DELETE SELECT", f"WITH gone AS (DELETE FROM t WHERE {self.where()} RETURNING id) SELECT count(*), (SELECT count(*) FROM t) FROM gone")))

    def lock(self):
        rng = self.rng
        wait = rng.choice(("", " NOWAIT", " SKIP LOCKED"))
        strength = rng.choice(LOCKS if self.shape.crowded else (*LOCKS, "KEY SHARE"))
        return Statement("SELECT FOR", f"SELECT id, v, n FROM t WHERE {self.where()} ORDER BY id, k, v FOR {strength}{wait}")

    def select(self):
        rng = self.rng
        return Statement("SELECT", rng.choice((f"SELECT * FROM t WHERE {self.where()}", f"SELECT k, count(*), sum(n), min(v COLLATE \"C\") FROM t WHERE {self.where()} GROUP BY k",
                                               f"SELECT t.id, u.v FROM t JOIN u USING (id) WHERE {self.where('t')}")))

    def in_plpgsql(self):
        """Statements in subtransactions some of which fail."""
        rng = self.rng
        target = self.ident()
        return Statement("DO with exceptions", f"DO $$ BEGIN FOR i IN 1..{rng.randint(2, 6)} LOOP BEGIN "
                         f"UPDATE t SET n = coalesce(n, 0) + i, v = 'do' WHERE id BETWEEN {target} AND {target + rng.randint(0, 9)}; "
                         f"IF i % 2 = 0 THEN DELETE FROM t WHERE id = {target}; RAISE EXCEPTION 'no'; END IF; "
                         "EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$")

    def current_of(self):
        rng = self.rng
        name = f"c{rng.randint(1, 10**6)}"
        change = rng.choice(("UPDATE t SET v = 'current' WHERE CURRENT OF {}", "DELETE FROM t WHERE CURRENT OF {}", "UPDATE t SET k = k WHERE CURRENT OF {} RETURNING id, v"))
        moves = ("FETCH 1 FROM {}", "FETCH 1 FROM {}", change, change, "FETCH 1 FROM {}", change, "CLOSE {}")
        return [Statement("cursor", f"DECLARE {name} CURSOR FOR SELECT * FROM t WHERE id <= {self.top} AND {self.where()} ORDER BY id, k, v FOR UPDATE"),
                *(Statement("CURRENT OF", move.format(name)) for move in moves)]

    def scroll(self):
        name = f"s{self.rng.randint(1, 10**6)}"
        moves = ("FETCH 3 FROM {}", "FETCH BACKWARD 2 FROM {}", "FETCH LAST FROM {}", "FETCH PRIOR FROM {}", "FETCH ABSOLUTE 2 FROM {}", "CLOSE {}")
        return [Statement("cursor", f"DECLARE {name} SCROLL CURSOR WITH HOLD FOR SELECT id, v FROM t WHERE {self.where()} ORDER BY id, k, v"),
                *(Statement("FETCH", move.format(name)) for move in moves)]

    def other_table(self):
        """The child's rows, or those of the table that is joined."""
        rng = self.rng
        if self.shape.child and rng.random() < 0.8:
            return rng.choice((
                lambda: Statement("child", f"INSERT INTO child VALUES ({rng.randint(1, 10**9)}, {self.ident()}, 'c')"),
                lambda: Statement("child", f"INSERT INTO child SELECT {rng.randint(1, 10**9)} + id, id, 'many' FROM t WHERE {self.where()} AND id % 3 = 0"),
                lambda: Statement("child", f"UPDATE child SET t_id = {self.ident()} WHERE cid % 13 = {rng.randint(0, 12)}"),
                lambda: Statement("child", f"DELETE FROM child WHERE cid % 29 = {rng.randint(0, 28)} RETURNING cid")))()
        return rng.choice((
            lambda: Statement("joined table", f"INSERT INTO u SELECT g, g % 100, 'u' || g, g % 40 FROM generate_series({self.ident()}, {self.ident() + 20}) g ON CONFLICT DO NOTHING"),
            lambda: Statement("joined table", f"UPDATE u SET k = (k * 3 + 1) % 100 WHERE id % 17 = {rng.randint(0, 16)}"),
            lambda: Statement("joined table", f"DELETE FROM u WHERE k = {self.k()}")))()

    def maintain(self, busy):
        """A command that reaches into storage; what another transaction must not be open beside only where
        none is."""
        rng = self.rng
        table = rng.choice(self.shape.tables())
        choices = [("VACUUM", f"VACUUM {table}"), ("VACUUM", f"VACUUM (FREEZE, ANALYZE) {table}"), ("ANALYZE", f"ANALYZE {table}")]
        if not busy:
            extra = f"extra{rng.randint(1, 4)}"
            choices += 6 * [("merge", table)]
            choices += [("unpack", table), ("method", table), ("VACUUM FULL", f"VACUUM FULL {table}"), ("REINDEX", f"REINDEX TABLE {table}"),
                        ("ADD COLUMN", f"ALTER TABLE t ADD COLUMN IF NOT EXISTS {extra} {rng.choice(('int DEFAULT 3', 'int', VOLATILE))}"),
                        ("DROP COLUMN", f"ALTER TABLE t DROP COLUMN IF EXISTS {extra}"),
                        ("ALTER TYPE", f"ALTER TABLE t ALTER v TYPE {rng.choice(('text', 'varchar', 'varchar(4000)'))}"),
                        ("SET LOGGED", f"ALTER TABLE u SET {rng.choice(('LOGGED', 'UNLOGGED'))}")]
            if self.shape.key and not self.shape.partitioned:
                choices += [("CLUSTER", "CLUSTER t USING t_pkey"), ("REINDEX", "REINDEX TABLE CONCURRENTLY t")]
            if not self.shape.child and not self.shape.partitioned and rng.random() < 0.2:
                return [Statement("BEGIN", "BEGIN"), Statement("TRUNCATE", "TRUNCATE t"), Statement("COPY FREEZE", self.copy().text.replace("'", "' (FREEZE)", 2).replace("' (FREEZE)", "'", 1)
                                                                                                   .replace(" WHERE k < 80", "")),
                        Statement("end", rng.choice(("COMMIT", "ROLLBACK", "ROLLBACK")))]
        kind, text = rng.choice(choices)
        return Statement(kind, text)

    # -- transactions -----------------------------------------------------------------------------

    def begin(self):
        level = self.rng.choice(("", "", " ISOLATION LEVEL REPEATABLE READ", " ISOLATION LEVEL SERIALIZABLE"))
        self.inside, self.serializable, self.savepoints = True, "SERIALIZABLE" in level, 0
        return Statement("BEGIN", f"BEGIN{level}")

    def end(self, aborted=False):
        """The transaction's next step: an end, or something about its savepoints."""
        rng = self.rng
        roll = rng.random()
        if aborted:
            return self.leave("ROLLBACK") if not self.savepoints or roll < 0.4 else self.back()
        if roll < 0.35:
            self.savepoints += 1
            return Statement("SAVEPOINT", f"SAVEPOINT s{self.savepoints}")
        if roll < 0.6 and self.savepoints:
            return self.back()
        if roll < 0.7 and self.savepoints:
            return self.release()
        if roll < 0.75 and self.shape.unique:
            return Statement("SET CONSTRAINTS", f"SET CONSTRAINTS ALL {rng.choice(('IMMEDIATE', 'DEFERRED'))}")
        if roll < 0.8:
            return self.leave("ROLLBACK")
        if roll < 0.88 and not self.serializable and not self.prepared and not self.rewritten:
            self.prepared = True
            return self.leave("PREPARE TRANSACTION 'changes_{side}'")
        return self.leave("COMMIT")

    def leave(self, text):
        self.inside, self.savepoints, self.rewritten = False, 0, False
        return Statement(text.split()[0], text)

    def back(self):
        self.savepoints = self.rng.randint(1, self.savepoints)
        return Statement("ROLLBACK TO", f"ROLLBACK TO s{self.savepoints}")

    def release(self):
        kept = self.rng.randint(0, self.savepoints - 1)
        self.savepoints = kept
        return Statement("RELEASE", f"RELEASE s{kept + 1}")

    def finish_prepared(self):
        self.prepared = False
        return Statement("COMMIT PREPARED", self.rng.choice(("COMMIT", "COMMIT", "ROLLBACK")) + " PREPARED 'changes_{side}'")

    # -- choosing ---------------------------------------------------------------------------------

    def change(self):
        """One statement that changes or locks rows, or a list of some that belong together."""
        rng = self.rng
        weighted = ((self.insert, 10), (self.insert_existing, 4), (self.insert_many, 3), (self.copy, 4), (self.copy_self, 1), (self.on_conflict, 10), (self.update, 16),
                    (self.update_nested, 2), (self.update_key, 5), (self.update_from, 3), (self.delete, 8), (self.delete_using, 2), (self.merge, 6), (self.with_changes, 4), (self.lock, 6),
                    (self.select, 4), (self.in_plpgsql, 3), (self.other_table, 6), (self.current_of if self.inside else self.update, 5), (self.scroll, 1))
        return rng.choices([maker for maker, _ in weighted], [weight for _, weight in weighted])[0]()
