"""Makes a query that differs smaller while it still differs, then its tables, and writes a reproducer.

Who calls it: the program, for a difference. Parts of the query are dropped or put in place of the whole, one
at a time; what changes the answers into errors on both sides no longer differs, so that no rules of SQL are
needed here. Then the tables are copied with the columns that the query names and with ever fewer rows, all of
them cold.
"""

import re
import time

from . import answers, types


class Shrinker:
    """Asks smaller queries in the way that showed the difference, for so many seconds."""

    def __init__(self, sides, seconds, way):
        self.way = way
        self.sides, self.deadline = sides, time.monotonic() + seconds

    def differs(self, query):
        try:
            verdict = answers.judge(self.sides, query, self.way)
            # Class 42: what is left is no query any more, and the two sides may say so differently.
            return verdict.name == "different" and not (verdict.wanted.error and verdict.wanted.error[0].startswith("42"))
        except answers.Lost:
            raise
        except (ValueError, KeyError):
            return False

    def query(self, query):
        """The smallest query found that still differs."""
        progress = True
        while progress and time.monotonic() < self.deadline:
            progress = False
            size = len(query.sql())
            for smaller in query.reductions():
                if time.monotonic() > self.deadline:
                    break
                if len(smaller.sql()) < size and self.differs(smaller):
                    query, progress = smaller, True
                    break
        return query

    # -- the data ---------------------------------------------------------------------------------

    def data(self, query, tables):
        """Statements that make small tables on which the query still differs; None where copies do not
        differ."""
        text = query.sql()
        used = [t for t in tables if re.search(rf"\b{t.name}\b", text)]
        columns = {t.name: [c for c in t.columns if re.search(rf"\b{c.name}\b", text)] or t.columns[:1] for t in used}
        keep = {t.name: None for t in used}
        if not self.copies(query, used, columns, keep):
            return None
        for table in sorted(used, key=lambda t: -t.rows):
            ids = [row[0] for row in self.sides["h"].run(f"SELECT id FROM h.{table.name}").rows]
            keep[table.name] = self.fewer(ids, lambda some, name=table.name: self.copies(query, used, columns, {**keep, name: some}))
        self.copies(query, used, columns, keep)
        return [statement for table in used for statement in self.script(table, columns[table.name])]

    def fewer(self, ids, differs):
        """Removes ever smaller parts of the ids while the copies still differ."""
        part = max(1, len(ids) // 2)
        while time.monotonic() < self.deadline:
            place, removed = 0, False
            while place < len(ids) and time.monotonic() < self.deadline:
                rest = ids[:place] + ids[place + part:]
                if differs(rest):
                    ids, removed = rest, True
                else:
                    place += part
            if part == 1 and not removed:
                break
            part = max(1, part // 2)
        return ids

    def copies(self, query, used, columns, keep):
        """Makes the copies in schemas of their own; do they differ?"""
        heap, column = self.sides["h"], self.sides["c"]
        heap.run("DROP SCHEMA IF EXISTS sc, sh, sb CASCADE")
        for schema in ("sc", "sh", "sb"):
            heap.run(f"CREATE SCHEMA {schema}")
        column.run("SET colonnade.stripe_threshold_rows = 0")
        for table in used:
            names = ", ".join(dict.fromkeys(["id", *(c.name for c in columns[table.name])]))
            where = "" if keep[table.name] is None else f" WHERE id = ANY ('{{{','.join(keep[table.name])}}}')"
            heap.run(f"CREATE TABLE sh.{table.name} AS SELECT {names} FROM h.{table.name}{where}")
            heap.run(f"CREATE TABLE sb.{table.name} AS SELECT {names} FROM sh.{table.name} ORDER BY id DESC")
            method = "colcompress" if table.columnar else "heap"
            column.run(f"CREATE TABLE sc.{table.name} USING {method} AS SELECT {names} FROM sh.{table.name}")
            for schema in ("sc", "sh", "sb"):
                heap.run(f"ANALYZE {schema}.{table.name}")
        for side in "chb":
            self.sides[side].run(f"SET search_path = s{side}, public")
        try:
            return self.differs(query)
        finally:
            for side in "chb":
                self.sides[side].run(f"SET search_path = {side}, public")

    def script(self, table, columns):
        names = list(dict.fromkeys(["id", *(c.name for c in columns)]))
        sql = {"id": "bigint", **{c.name: c.sql for c in columns if c.name != "id"}}
        rows = self.sides["h"].run(f"SELECT {', '.join(f'{n}::text' for n in names)} FROM sh.{table.name}").rows
        method = " USING colcompress" if table.columnar else ""
        yield f"CREATE TABLE {table.name} ({', '.join(f'{n} {sql[n]}' for n in names)}){method};"
        if len(rows) > 60:
            yield f"-- {len(rows)} rows of the generated table are needed; run the seed to have them"
            return
        values = ["(" + ", ".join("NULL" if v is None else types.literal(v, "").rpartition("::")[0] for v in row) + ")" for row in rows]
        if values:
            yield f"INSERT INTO {table.name} VALUES\n    " + ",\n    ".join(values) + ";"
