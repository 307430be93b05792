"""Generated tables: columns, rows, and how they come into heap and colcompress.

Who calls it: the program, once a round. Every table exists in three schemas: `c` (colcompress, or heap with a
columnstore index of all columns, some blocks of which changed after they were copied), `h` (heap,
the same rows in the same physical order, so that "the first row of a group" means the same) and `b` (heap
backward, which shows what depends on that order and so is no difference). Queries name no schema: the search
path chooses.
Invariant: the rows of `c` and `h` are loaded from the same statements and compared before `h` is put in `c`'s
order.
"""

import os

from . import types

NULL = "\\N"


class Column:
    """A column: its type, and how its values are spread: a few distinct ones, many, or rising with the rows.
    """

    def __init__(self, name, kind_type, rng):
        self.name, self.type = name, kind_type
        self.kind = kind_type.kind
        self.comparable = kind_type.comparable
        self.sql = kind_type.sql
        self.null_share = rng.choice((0, 0, 0.02, 0.02, 0.3, 0.97))
        self.rising = kind_type.series is not None and rng.random() < 0.4
        distinct = rng.choice((1, 2, 6, 25, 25, 200, 2000))
        self.pool = [kind_type.make(rng) for _ in range(distinct)]
        # Runs of equal values, or no pattern.
        self.run = rng.choice((1, 1, 1, 7, 300))

    def value(self, rng, row):
        if rng.random() < self.null_share:
            return None
        if self.rising:
            return self.type.series(row)
        if self.run > 1:
            return self.pool[row // self.run % len(self.pool)]
        return rng.choice(self.pool)

    def sample(self, rng, rows):
        """A value that occurs, or might."""
        if self.rising:
            return self.type.series(rng.randrange(rows + 20))
        roll = rng.random()
        if roll < 0.3:
            # The least and the greatest are where pruning goes wrong.
            finite = [value for value in self.pool if value.lower().lstrip("-") not in ("nan", "infinity")]
            return rng.choice((min, max))(finite if finite and rng.random() < 0.8 else self.pool, key=rank)
        return rng.choice(self.pool) if roll < 0.85 else self.type.make(rng)


def rank(text):
    """An order of values that is good enough to find the extremes."""
    try:
        number = float(text)
    except ValueError:
        return 1, 0.0, text
    return 0, number if number == number else float("inf"), ""


class Table:
    """One table: its columns, its row count, and the statements that made it (for the reproducer)."""

    def __init__(self, name, columns, rows, columnar):
        self.name, self.columns, self.rows, self.columnar = name, columns, rows, columnar


INT8 = types.Type("int8", "bigint", types.between(0, 9))
KEY = types.Type("int4", "integer", types.between(0, 9))


def key_column(rng, rows):
    """The column that joins match on: as many values as a quarter of a small table, some of them missing."""
    column = Column("k", KEY, rng)
    column.rising, column.null_share, column.run = False, rng.choice((0, 0.03)), rng.choice((1, 1, 40))
    low = rng.choice((0, 0, 20))
    column.pool = [str(low + n) for n in range(max(3, min(300, rows // 4)))]
    return column


def make_columns(rng, rows, count):
    columns = [key_column(rng, rows)]
    if rows > 1000:
        for kind in ("int4", "int8", "numeric", "float8", "text", "date", "timestamp", "bool"):
            columns.append(Column(f"c{len(columns)}", rng.choice([t for t in types.TYPES if t.kind == kind]), rng))
    # Types that the vectors know come often, the others now and then.
    common = [t for t in types.TYPES if t.kind in ("int4", "int8", "numeric", "float8", "text", "date", "timestamp", "timestamptz", "bool", "char",
                                                   "varchar", "int2", "float4", "interval", "jsonb", "text[]", "uuid", "wildn", "wildn", "wild8", "edge8", "edge4")]
    for _ in range(count):
        kind_type = rng.choice(common if rng.random() < 0.4 else types.TYPES)
        columns.append(Column(f"c{len(columns)}", kind_type, rng))
    return columns


def csv_field(value):
    return NULL if value is None else '"' + value.replace('"', '""') + '"'


class Builder:
    """Makes and loads the tables of one round through the sides' sessions."""

    def __init__(self, rng, sides, folder, log, store="colcompress"):
        self.rng, self.sides, self.folder, self.log, self.store = rng, sides, folder, log, store
        self.files = 0
        self.collation = rng.choice(types.COLLATIONS)

    def tables(self):
        rng = self.rng
        sizes = [("big", rng.randint(5000, 8000), True), ("mid", rng.randint(1500, 3000), True), ("small", rng.randint(100, 300), True),
                 ("tiny", rng.randint(0, 12), True), ("plain", rng.randint(100, 400), False)]
        return [self.table(*size) for size in sizes]

    def table(self, name, rows, columnar):
        rng = self.rng
        columns = make_columns(rng, rows, rng.randint(5, 12) if rows > 20 else rng.randint(4, 8))
        for column in columns:
            if column.kind in types.COLLATED:
                column.sql += self.collation
        # The last columns may come later, by ADD COLUMN.
        late = [c for c in columns[3:] if rng.random() < 0.12]
        first = [c for c in columns if c not in late]
        columnar_heap = columnar and self.store == "columnstore"
        options = self.options(first) if columnar else ""
        heads = ", ".join(f"{c.name} {c.sql}" for c in first)
        for side in ("c", "h"):
            method = f"colcompress{options}" if columnar and side == "c" and not columnar_heap else "heap"
            self.run(side, f"CREATE TABLE {name} (id bigint NOT NULL, {heads}) USING {method}")
        indexes = [f"CREATE INDEX ON {name} (k)"] * (rng.random() < 0.25) + [f"ALTER TABLE {name} ADD PRIMARY KEY (id)"] * (rng.random() < 0.2)
        self.both(*indexes)
        done, present, waiting = 0, list(first), list(late)
        while done < rows:
            part = min(rows - done, rng.choice((40, 500, 1500, 3000)))
            self.load(name, present, done, part, rng.random() < 0.8 and part > 40)
            done += part
            if waiting and rng.random() < 0.7:
                self.add_column(name, present, waiting.pop())
            if rng.random() < 0.15:
                self.both(f"VACUUM {name}")
        while waiting:
            self.add_column(name, present, waiting.pop())
        if rng.random() < 0.3:
            self.both(f"ALTER TABLE {name} ADD COLUMN gone int DEFAULT 3", f"ALTER TABLE {name} DROP COLUMN gone")
        if columnar_heap:
            self.copy_blocks(name, present)
        elif columnar and rng.random() < 0.2:
            self.run("c", f"SELECT engine.colcompress_merge('{name}')")
        present.sort(key=columns.index)
        ident = Column("id", INT8, rng)
        ident.null_share, ident.rising, ident.run = 0, False, 1
        ident.pool = [str(n + 1) for n in sorted(rng.sample(range(rows), min(rows, 50)))] or ["1"]
        table = Table(name, [ident, *present], rows, columnar)
        self.align(table, indexes)
        return table

    def copy_blocks(self, name, columns):
        """An index of all columns, or two; blocks that changed since, some copied anew; deleted rows come
        back.
        """
        rng = self.rng
        names = ["id", *(column.name for column in columns)]
        rng.shuffle(names)
        codec = rng.choice(("none", "lz4", "zstd"))
        parts = [names[:len(names) // 2], names[len(names) // 2 - 1:]] if rng.random() < 0.4 else [names]
        for suffix, part in zip(("", "2"), parts):
            self.run("c", f"CREATE INDEX {name}_copy{suffix} ON {name} USING columnstore ({', '.join(part)}) WITH (compression_type = {codec}, chunk_group_row_limit = 1000)")
        for step in rng.sample((f"UPDATE {name} SET k = k WHERE id % 211 = 5", f"UPDATE {name} SET id = id WHERE id BETWEEN 20 AND 60", f"VACUUM {name}",
                                f"CALL engine.columnstore_refresh('{name}_copy')", f"VACUUM (INDEX_CLEANUP ON) {name}"), 4):
            self.run("c", step)

    def options(self, columns):
        rng = self.rng
        options = [f"stripe_row_limit={rng.choice((1000, 2000, 5000))}", "chunk_group_row_limit=1000",
                   f"compression='{rng.choice(('none', 'zstd', 'lz4', 'pglz'))}'"]
        sortable = [c for c in columns if c.comparable]
        if sortable and rng.random() < 0.5:
            options.append(f"orderby='{rng.choice(sortable).name}{rng.choice(('', ' DESC', ' ASC NULLS FIRST'))}'")
        return f" WITH ({', '.join(options)})"

    def add_column(self, name, present, column):
        rng = self.rng
        default = ""
        if rng.random() < 0.6:
            default = f" DEFAULT {types.literal(column.pool[0], column.type.sql)}"
        self.both(f"ALTER TABLE {name} ADD COLUMN {column.name} {column.sql}{default}")
        present.append(column)

    def load(self, name, columns, start, count, cold):
        """One COPY; `cold` says whether it is to make stripes."""
        self.files += 1
        path = self.folder / f"load{self.files}.csv"
        with open(path, "w", encoding="utf-8", newline="") as out:
            for row in range(start, start + count):
                out.write(",".join([str(row + 1), *(csv_field(c.value(self.rng, row)) for c in columns)]) + "\n")
        os.chmod(path, 0o644)
        self.run("c", f"SET colonnade.stripe_threshold_rows = {0 if cold else 1000000}")
        self.both(f"COPY {name} (id, {', '.join(c.name for c in columns)}) FROM '{path}' (FORMAT csv, NULL '{NULL}')")
        path.unlink()

    def align(self, table, indexes):
        """Compares the two loads, then gives `h` the physical order of `c` and makes `b`, the same backward.
        """
        name = table.name
        stored = self.run("c", f"SELECT id, x::text FROM c.{name} x ORDER BY 1").rows
        wanted = self.run("h", f"SELECT id, x::text FROM h.{name} x ORDER BY 1").rows
        if stored != wanted:
            differing = [(a, b) for a, b in zip(stored, wanted) if a != b][:3]
            raise AssertionError(f"table {name}: {len(stored)} rows in colcompress, {len(wanted)} in heap; first different: {differing}")
        heap = self.sides["h"]
        # CREATE TABLE AS appends in order; INSERT would fill gaps of earlier pages. A columnstore index gives
        # copied rows first: it is read as it will be.
        heap.run(f"DROP TABLE h.{name}")
        if self.store == "columnstore":
            heap.run("SET enable_seqscan = off; SET colonnade.vectorised_min_rows = 0")
        heap.run(f"CREATE TABLE h.{name} AS SELECT * FROM c.{name}")
        heap.run("RESET enable_seqscan; RESET colonnade.vectorised_min_rows")
        for statement in indexes:
            heap.run(statement)
        heap.run(f"CREATE TABLE b.{name} AS SELECT * FROM h.{name} ORDER BY id DESC")
        for schema in "chb":
            heap.run(f"ANALYZE {schema}.{name}")

    def run(self, side, statement):
        self.log(side, statement)
        return self.sides[side].run(statement)

    def both(self, *statements):
        for statement in statements:
            self.run("c", statement)
            self.run("h", statement)
