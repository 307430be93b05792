"""Random SELECTs over generated tables, as trees that can be printed and made smaller.

Who calls it: the program, through `Queries.make`. What a query returns is determined: ORDER BY ends with what
tells rows apart wherever LIMIT, a row number or an ordered aggregate needs it; everything else is compared as
a multiset.
"""

import re

from .expressions import ACCEPTS, COMPARABLE, HAS_MIN, Expressions, Node, Source
from .types import FLOATS

# (kind, template, kinds of the arguments); "any" is any column, @9 the source's key for a total order.
AGGREGATES = [
    ("int8", "count(*)", ""), ("int8", "count(*)", ""), ("int8", "count(@1)", "any"), ("int8", "count(DISTINCT @1)", "comparable"), ("numeric", "sum(@1)", "int8"), ("int8", "sum(@1)", "int4"),
    ("numeric", "sum(@1)", "numeric"), ("numeric", "sum(@1)", "wildn"), ("float8", "sum(@1)", "float8"), ("float4", "sum(@1)", "float4"), ("float8", "sum(@1)", "wild8"), ("interval", "sum(@1)", "interval"),
    ("numeric", "avg(@1)", "int4"), ("numeric", "avg(@1)", "int8"), ("numeric", "avg(@1)", "numeric"), ("float8", "avg(@1)", "float8"), ("float8", "avg(@1)", "float4"), ("interval", "avg(@1)", "interval"),
    ("same", "min(@1)", "min"), ("same", "max(@1)", "min"), ("same", "min(@1)", "min"), ("same", "max(@1)", "min"), ("bool", "bool_and(@1)", "bool"), ("bool", "bool_or(@1)", "bool"), ("bool", "every(@1)", "bool"),
    ("int4", "bit_and(@1)", "int4"), ("int4", "bit_or(@1)", "int4"), ("int4", "bit_xor(@1)", "int4"), ("float8", "stddev(@1)", "float8"), ("numeric", "stddev_pop(@1)", "int4"), ("numeric", "variance(@1)", "numeric"),
    ("float8", "var_pop(@1)", "float8"), ("float8", "corr(@1, @2)", "float8 float8"), ("float8", "regr_slope(@1, @2)", "float8 float8"), ("int8", "regr_count(@1, @2)", "float8 float8"), ("float8", "covar_pop(@1, @2)", "float8 float8"),
    ("float8", "regr_r2(@1, @2)", "float8 float8"), ("text", "string_agg(@1, ',' ORDER BY @1, @9)", "text"), ("text", "string_agg(DISTINCT @1, '|')", "text"), ("text", "array_agg(@1 ORDER BY @1 DESC NULLS LAST, @9)::text", "comparable"),
    ("text", "array_agg(@1 ORDER BY @9)::text", "any"), ("text", "array_agg(DISTINCT @1)::text", "comparable"), ("text", "jsonb_agg(@1 ORDER BY @9)::text", "int4"), ("numeric", "sum(DISTINCT @1)", "numeric"), ("numeric", "avg(DISTINCT @1)", "int4"),
    ("same", "percentile_disc(0.5) WITHIN GROUP (ORDER BY @1)", "min"), ("float8", "percentile_cont(0.9) WITHIN GROUP (ORDER BY @1)", "float8"), ("interval", "percentile_cont(0.25) WITHIN GROUP (ORDER BY @1)", "interval"),
    ("text", "percentile_disc(ARRAY[0, 0.3, 1]) WITHIN GROUP (ORDER BY @1)::text", "numeric"), ("same", "mode() WITHIN GROUP (ORDER BY @1)", "min"), ("int8", "rank(3) WITHIN GROUP (ORDER BY @1)", "int4"),
    ("text", "array_agg(DISTINCT @1 ORDER BY @1 DESC)::text", "comparable"), ("text", "string_agg(DISTINCT @1, '|' ORDER BY @1 DESC)", "text"), ("text", "string_agg(@1, @2 ORDER BY @9 DESC)", "text text"), ("text", "json_agg(@1 ORDER BY @9)::text", "date"),
    ("float8", "covar_samp(@1, @2)", "float8 float8"), ("float8", "regr_intercept(@1, @2)", "float8 float8"), ("float8", "regr_sxy(@1, @2)", "float8 float8"), ("float8", "regr_avgx(@1, @2)", "float8 float8"),
    ("float8", "regr_syy(@1, @2)", "float8 wild8"), ("int2", "bit_and(@1)", "int2"), ("int8", "bit_or(@1)", "int8"), ("bit", "bit_xor(@1)", "bit"), ("text", "percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY @1)::text", "int4"),
    ("text", "percentile_disc(ARRAY[0.75, 0.25]) WITHIN GROUP (ORDER BY @1)::text", "text"), ("float8", "percentile_cont(NULL::float8) WITHIN GROUP (ORDER BY @1)", "float8"), ("text", "array_agg(upper(left(@1, 5)) ORDER BY @9)::text", "text"),
    ("text", "(range_agg(@1))::text", "int4range"), ("numeric", "sum(CASE WHEN @1 THEN @2 END)", "bool numeric"), ("numeric", "sum(@1 * (1 - @2))", "numeric numeric"), ("int8", "count(DISTINCT (@1, @2))", "comparable comparable"),
]
WINDOWS = [
    ("int8", "row_number()", "", True), ("int8", "rank()", "", False), ("int8", "dense_rank()", "", False), ("float8", "percent_rank()", "", False), ("float8", "cume_dist()", "", False), ("int4", "ntile(4)", "", True),
    ("same", "lag(@1)", "any", True), ("same", "lead(@1, 2)", "any", True), ("same", "first_value(@1)", "any", True), ("same", "last_value(@1)", "any", True), ("same", "nth_value(@1, 3)", "any", True), ("int8", "sum(@1)", "int4", False),
    ("numeric", "avg(@1)", "numeric", False), ("int8", "count(*)", "", False), ("int8", "count(@1)", "any", False), ("same", "max(@1)", "min", False), ("same", "min(@1)", "min", False), ("float8", "sum(@1)", "float8", False),
    ("same", "lag(@1, 1, @2)", "int4 int4", True), ("int8", "count(*) FILTER (WHERE @1)", "bool", False),
    ("same", "lead(@1, -3)", "any", True), ("same", "nth_value(@1, 1)", "any", True), ("numeric", "sum(@1)", "int8", False), ("numeric", "sum(@1)", "numeric", False), ("numeric", "avg(@1)", "int4", False),
    ("float8", "avg(@1)", "float8", False), ("numeric", "variance(@1)", "int4", False), ("numeric", "stddev_pop(@1)", "numeric", False), ("float8", "var_samp(@1)", "float8", False), ("bool", "bool_and(@1)", "bool", False),
    ("bool", "bool_or(@1)", "bool", False), ("text", "string_agg(@1, '+')", "text", True), ("numeric", "sum(@1) FILTER (WHERE @2)", "numeric bool", False), ("numeric", "avg(@1)", "wildn", False), ("numeric", "sum(@1)", "wildn", False), ("same", "max(@1)", "wildn", False), ("same", "min(@1)", "min", False),
]
# What RANGE moves by, for each kind of column that it can.
DISTANCES = {"int4": ("0", "3", "1000"), "int8": ("2", "100000", "9223372036854775807"), "numeric": ("0.5", "12.25"), "float8": ("0.5::float8", "1e6::float8", "'Infinity'::float8"),
             "date": ("interval '3 days'", "interval '1 month'"), "timestamp": ("interval '5 hours'", "interval '1 month 2 days'"), "timestamptz": ("interval '90 minutes'", "interval '1 day'")}
FRAMES = ("", "", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES",
          " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", " ROWS BETWEEN CURRENT ROW AND 5 FOLLOWING EXCLUDE CURRENT ROW",
          " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", " GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING EXCLUDE GROUP", " GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE TIES", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
          " ROWS BETWEEN 40 PRECEDING AND 20 FOLLOWING EXCLUDE GROUP")


def result_kind(kind, template, args):
    """The kind of what an aggregate gives. The sum of a real that was taken where a double precision was
    wanted is a real."""
    first = args[0].kind if args else None
    return first if kind == "same" or (template.startswith("sum(@1)") and kind == "float8" and first in FLOATS) else kind


def replaced(items, place, value):
    return [*items[:place], value, *items[place + 1:]]


class Join:
    """One joined item: `text` is a table or a bracketed query (then @1 of its node), `on` its conditions."""

    def __init__(self, kind, item, on):
        self.kind, self.item, self.on = kind, item, on

    def sql(self):
        if self.kind == "CROSS":
            return f" CROSS JOIN {self.item.sql()}"
        return f" {self.kind} JOIN {self.item.sql()} ON {' AND '.join(node.sql() for node in self.on) or 'true'}"

    def reductions(self):
        if self.kind != "INNER":
            yield Join("INNER", self.item, self.on)
        for smaller in self.item.reductions():
            yield Join(self.kind, smaller, self.on)
        yield from (Join(self.kind, self.item, on) for on in smaller_lists(self.on, 1))


def smaller_lists(items, least=0):
    """The list without one of its members, or with one of them made smaller."""
    for place in range(len(items)):
        if len(items) > least:
            yield [*items[:place], *items[place + 1:]]
    for place, item in enumerate(items):
        for smaller in item.reductions():
            yield replaced(items, place, smaller)


class Select:
    """One SELECT, its parts as lists."""

    PARTS = ("ctes", "distinct", "items", "first", "joins", "where", "group", "sets", "having", "order", "limit")

    def __init__(self, **parts):
        self.ctes, self.distinct, self.items, self.first, self.joins = [], "", [], None, []
        self.where, self.group, self.sets, self.having, self.order, self.limit = [], [], "", [], [], ""
        self.__dict__.update(parts)

    def but(self, **parts):
        return Select(**{name: getattr(self, name) for name in self.PARTS} | parts)

    @property
    def kinds(self):
        return [item.kind for item in self.items]

    def body(self):
        text = f"SELECT {self.distinct}{', '.join(f'{item.sql()} AS o{n + 1}' for n, item in enumerate(self.items))}"
        if self.first is not None:
            text += f" FROM {self.first.sql()}" + "".join(join.sql() for join in self.joins)
        if self.where:
            text += " WHERE " + " AND ".join(node.sql() for node in self.where)
        if self.group:
            keys = [node.sql() for node in self.group]
            text += " GROUP BY " + {"": ", ".join(keys), "ROLLUP": f"ROLLUP ({', '.join(keys)})", "CUBE": f"CUBE ({', '.join(keys)})",
                                    "SETS": f"GROUPING SETS (({keys[0]}), ({', '.join(keys)}), ())"}[self.sets]
        if self.having:
            text += " HAVING " + " AND ".join(node.sql() for node in self.having)
        return text

    def sql(self):
        ctes = ", ".join(f"{name} AS {how}({query.sql()})" for name, how, query in self.ctes)
        text = (f"WITH {ctes} " if ctes else "") + self.body()
        if self.order:
            text += " ORDER BY " + ", ".join(node.sql() + suffix for node, suffix in self.order)
        return text + self.limit

    def reductions(self):
        for place, (name, how, query) in enumerate(self.ctes):
            yield self.but(ctes=[*self.ctes[:place], *self.ctes[place + 1:]])
            for smaller in query.reductions():
                yield self.but(ctes=replaced(self.ctes, place, (name, how, smaller)))
        for name, empty in (("limit", ""), ("having", []), ("distinct", ""), ("sets", "")):
            if getattr(self, name):
                yield self.but(**{name: empty})
        if self.order and not self.limit:
            yield self.but(order=[])
        for place in range(len(self.joins)):
            yield self.but(joins=[*self.joins[:place], *self.joins[place + 1:]])
        for name, least in (("where", 0), ("items", 1), ("having", 0), ("group", 1 if self.sets else 0)):
            for smaller in smaller_lists(getattr(self, name), least):
                yield self.but(**{name: smaller})
        for place, join in enumerate(self.joins):
            for smaller in join.reductions():
                yield self.but(joins=replaced(self.joins, place, smaller))
        if self.first is not None:
            for smaller in self.first.reductions():
                yield self.but(first=smaller)


class SetOperation:
    """UNION, INTERSECT or EXCEPT of two queries of the same kinds."""

    def __init__(self, word, left, right, limit=""):
        self.word, self.left, self.right, self.limit = word, left, right, limit
        self.order = bool(limit)

    @property
    def kinds(self):
        return self.left.kinds

    def sql(self):
        order = f" ORDER BY {', '.join(str(n + 1) for n in range(len(self.kinds)))}{self.limit}" if self.order else ""
        return f"(({self.left.sql()}) {self.word} ({self.right.sql()}){order})"

    def reductions(self):
        yield self.left
        yield self.right
        if self.limit:
            yield SetOperation(self.word, self.left, self.right)
        for smaller in self.left.reductions():
            yield SetOperation(self.word, smaller, self.right, self.limit)
        for smaller in self.right.reductions():
            yield SetOperation(self.word, self.left, smaller, self.limit)


def same_type(a, b):
    """Is it one SQL type? Columns of two collations cannot be compared."""
    return getattr(a, "type", None) is getattr(b, "type", None)


class Derived:
    """A column of a subquery in FROM."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind


class Queries:
    """Makes queries over one round's tables."""

    def __init__(self, rng, tables):
        self.rng, self.tables = rng, tables
        self.by_name = {table.name: table for table in tables}
        self.aliases = 0
        self.risky = False

    def make(self):
        rng = self.rng
        self.aliases = 0
        # A query that may raise an error is kept simple: then no plan can avoid the error or meet another one
        # first.
        self.risky = rng.random() < 0.18
        if self.risky:
            return rng.choice((self.plain, self.aggregate))(joins=0, limit=False)
        make = rng.choices((self.plain, self.aggregate, self.window, self.set_operation, self.with_cte), (32, 42, 10, 9, 7))[0]
        return make()

    # -- sources ----------------------------------------------------------------------------------

    def alias(self):
        self.aliases += 1
        return f"t{self.aliases}"

    def scan(self, names=None):
        """A table with an alias: its node and its source."""
        rng = self.rng
        table = self.by_name[rng.choice(names) if names else rng.choices(("big", "mid", "small", "tiny", "plain"), (40, 28, 14, 6, 12))[0]]
        alias = self.alias()
        return Node("from", f"{table.name} {alias}"), Source(alias, table.columns, ["id"], table.rows, table.columnar)

    def item(self, small=False):
        """Something to read from: mostly a table, sometimes a subquery."""
        rng = self.rng
        roll = rng.random()
        names = ("small", "small", "tiny", "plain") if small else None
        if roll < 0.8 or self.risky:
            return self.scan(names)
        node, source = self.scan(names)
        make = Expressions(rng, [source], self.risky)
        alias = self.alias()
        if roll < 0.92:
            found = [make.column() for _ in range(3)]
            items = [Node("int8", f"{source.alias}.id"), Node("int4", f"{source.alias}.k"), *(make.reference(*pair) for pair in found)]
            items += [make.make(rng.choice(("int8", "numeric", "text")), 1)]
            query = Select(items=items, first=node, where=[make.predicate()] if rng.random() < 0.6 else [])
            names, keys, rows = ["id", "k"] + [f"e{n}" for n in range(len(items) - 2)], ["id"], source.rows
        else:
            items = [Node("int4", f"{source.alias}.k"), Node("int8", "count(*)"), self.aggregated(make, True), self.aggregated(make, True)]
            query = Select(items=items, first=node, group=[items[0]], where=[make.predicate()] if rng.random() < 0.4 else [])
            names, keys, rows = ["k", "n", "e0", "e1"], ["k"], 100
        columns = [Derived(name, item.kind) for name, item in zip(names, items)]
        return Node("from", f"(@1) AS {alias} ({', '.join(names)})", (query,)), Source(alias, columns, keys, rows, source.columnar)

    def sources(self, joins=None):
        """FROM: the first item, the joins, and all sources."""
        rng = self.rng
        count = rng.choices((0, 1, 2, 3), (52, 32, 13, 3))[0] if joins is None else joins
        node, source = self.item()
        sources, made = [source], []
        for _ in range(count):
            item, other = self.item(small=rng.random() < 0.75 or any(s.rows > 1000 for s in sources[1:]))
            partner = rng.choice(sources)
            on = [Node("bool", f"({partner.alias}.k = {other.alias}.k)")]
            if other.rows * partner.rows < 200_000 and rng.random() < 0.3:
                match = self.matching(partner, other)
                on = [match] if match is not None else on
            if rng.random() < 0.25:
                on.append(Expressions(rng, [*sources, other], self.risky).predicate())
            kind = rng.choices(("INNER", "LEFT", "RIGHT", "FULL", "CROSS"), (45, 27, 10, 14, 4))[0]
            if kind == "CROSS" and other.rows * source.rows > 30_000:
                kind = "INNER"
            made.append(Join(kind, item, on))
            sources.append(other)
        return node, made, sources

    def matching(self, left, right):
        """An equality of two columns of one kind."""
        pairs = [(a, b) for a in left.columns for b in right.columns if a.kind == b.kind and a.kind in COMPARABLE and same_type(a, b) and a.name not in ("id", "k")]
        if not pairs:
            return None
        a, b = self.rng.choice(pairs)
        return Node("bool", f"({left.alias}.{a.name} = {right.alias}.{b.name})")

    # -- conditions -------------------------------------------------------------------------------

    def conditions(self, sources, at_most=3):
        rng = self.rng
        make = Expressions(rng, sources, self.risky)
        if self.risky and rng.random() < 0.3:
            # Alone: of two conditions the server tries the cheaper one first, a scan that prunes the other.
            return [Node("bool", "(@1 IS NOT NULL)", (make.make(rng.choice(("int4", "int8", "numeric", "float8", "text", "date")), 2),))]
        make.risky = False
        where = [make.predicate(2) for _ in range(rng.choices((0, 1, 2, 3), (25, 45, 22, 8))[0])][:at_most]
        if rng.random() < 0.16 and not self.risky:
            where.append(self.membership(sources))
        return where

    def rows(self, shape, outer, inner, node, where):
        """IN or NOT IN of two or three columns."""
        rng = self.rng
        pairs = [(mine, other) for mine in outer.columns for other in inner.columns if mine.kind == other.kind and mine.kind in COMPARABLE]
        pairs = rng.sample(pairs, min(len(pairs), rng.choice((2, 2, 3)))) or [(outer, inner)]
        names = lambda source, at: ", ".join(f"{source.alias}.{pair[at].name if pair[at] is not source else 'k'}" for pair in pairs)
        query = Select(items=[Node("any", names(inner, 1))], first=node, where=where)
        return Node("bool", f"(({names(outer, 0)}) {shape.upper()} (@1))", (query,))

    def membership(self, sources):
        """IN, NOT IN, EXISTS, ANY, ALL or a comparison with a subquery."""
        rng = self.rng
        outer = rng.choice(sources)
        # The subquery may be the larger side, too; then it is joined by hash, not compared row by row.
        large = rng.random() < 0.35
        node, inner = self.scan(("mid", "big") if large else ("small", "tiny", "plain", "small", "mid"))
        make = Expressions(rng, [inner], False)
        where = [make.predicate()] if rng.random() < 0.5 else []
        correlated = Node("bool", f"({rng.choice(('{0}', '{0}', '{0} / 3', 'abs({0} - 20)')).format(inner.alias + '.k')} = {outer.alias}.k)")
        shape = rng.choice(("in", "not in", "exists", "not exists") if large else ("in", "not in", "exists", "not exists", "any", "all", "scalar", "correlated"))
        if shape in ("in", "not in", "any", "all"):
            pair = next((p for p in [make.column(COMPARABLE) for _ in range(6)] if p and any(c.kind == p[1].kind for c in outer.columns)), None)
            name, other = (pair[1].name, next(c for c in outer.columns if c.kind == pair[1].kind).name) if pair else ("k", "k")
            # Of an expression half of the time: a plan that makes its values distinct computes it once more
            # in the join.
            made = make.compound(pair[1].kind if pair else "int4", 1) if rng.random() < 0.5 else None
            query = Select(items=[made or Node("any", f"{inner.alias}.{name}")], first=node, where=where)
            if shape in ("in", "not in") and rng.random() < 0.4:
                return self.rows(shape, outer, inner, node, where)
            word = {"in": "IN", "not in": "NOT IN", "any": "= ANY", "all": rng.choice(("<> ALL", ">= ALL", "< ALL"))}[shape]
            return Node("bool", f"({outer.alias}.{other} {word} (@1))", (query,))
        if shape in ("exists", "not exists"):
            if rng.random() < 0.4:
                where.append(Expressions(rng, [outer, inner], False).predicate())
            if rng.random() < 0.3:
                where.append(Node("bool", f"({inner.alias}.k <> {outer.alias}.k + {inner.alias}.k % 3)"))
            query = Select(items=[Node("int4", "1")], first=node, where=[correlated, *where])
            return Node("bool", f"({shape.upper()} (@1))", (query,))
        if shape == "correlated":
            node, inner = self.scan(("small", "tiny", "plain")) if outer.rows > 1000 else (node, inner)
            where, correlated = [], Node("bool", f"({inner.alias}.k = {outer.alias}.k)")
            query = Select(items=[Node("int8", f"{rng.choice(('max', 'min', 'avg', 'count', 'sum'))}({inner.alias}.id)")], first=node, where=[correlated])
        else:
            query = Select(items=[Node("int8", f"{rng.choice(('max', 'min', 'avg', 'count'))}({inner.alias}.id)")], first=node, where=where)
        return Node("bool", f"({outer.alias}.id {rng.choice('<>=')} (@1))" if "id" in [c.name for c in outer.columns] else f"({outer.alias}.k < (@1))", (query,))

    # -- kinds of queries -------------------------------------------------------------------------

    def plain(self, joins=None, limit=True):
        rng = self.rng
        node, made, sources = self.sources(joins)
        make = Expressions(rng, sources, self.risky, None if self.risky else self.scalar(sources))
        items = [self.output(make) for _ in range(rng.randint(1, 5))]
        query = Select(items=items, first=node, joins=made, where=self.conditions(sources))
        roll = rng.random()
        if roll < 0.15:
            items = [item for item in items if item.kind in COMPARABLE] or [Node("int4", f"{sources[0].alias}.k")]
            query = query.but(items=items, distinct="DISTINCT ")
            if rng.random() < 0.4 and limit:
                query = query.but(order=[(Node("int4", str(n + 1)), rng.choice(("", " DESC"))) for n in range(len(items))], limit=self.limits())
        elif roll < 0.5 and limit:
            if rng.random() < 0.5:
                order = self.stored_order(make, sources)
            else:
                order = [(make.make(kind, 1), self.direction()) for kind in self.kinds_to_sort(make)] + self.total(sources)
            if rng.random() < 0.15 and not made:
                key = order[0][0]
                query = query.but(distinct=f"DISTINCT ON ({key.sql()}) ")
            query = query.but(order=order, limit=self.limits() if rng.random() < 0.75 else "")
        return query

    def scalar(self, sources):
        """A maker of scalar subqueries for expressions."""
        def make(kind):
            rng = self.rng
            outer = rng.choice(sources)
            node, inner = self.scan(("small", "tiny", "plain"))
            fitting = [c for c in inner.columns if c.kind == kind and kind in HAS_MIN]
            if not fitting:
                return None
            where = [Node("bool", f"({inner.alias}.k = {outer.alias}.k)")] if rng.random() < 0.5 and outer.rows < 4000 else []
            return Node(kind, "(@1)", (Select(items=[Node(kind, f"max({inner.alias}.{rng.choice(fitting).name})")], first=node, where=where),))
        return make

    def output(self, make):
        rng = self.rng
        if rng.random() < 0.4:
            return make.reference(*make.column())
        return make.make(rng.choice(("int4", "int8", "numeric", "text", "float8", "date", "timestamp", "timestamptz", "bool", "interval", "jsonb", "char", "int4[]")), 3)

    def kinds_to_sort(self, make):
        kinds = [c.kind for _, c in make.columns if c.kind in COMPARABLE]
        return [self.rng.choice(kinds) for _ in range(self.rng.randint(0, 2))]

    def stored_order(self, make, sources):
        """A column as it is stored, whose statistics tell a top-N sort what to read first; or a unique one
        alone."""
        rng = self.rng
        total = self.total(sources)
        if len(total) == 1 and rng.random() < 0.3:
            return [(total[0][0], rng.choice(("", " DESC")))]
        found = make.column(COMPARABLE)
        return ([(make.reference(*found), self.direction())] if found else []) + total

    def direction(self):
        return self.rng.choice(("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))

    def limits(self):
        rng = self.rng
        return f" LIMIT {rng.choice((0, 1, 5, 20, 100, 1000))}" + (f" OFFSET {rng.choice((1, 10, 500))}" if rng.random() < 0.3 else "")

    @staticmethod
    def total(sources):
        return [(Node("int8", f"{source.alias}.{key}"), "") for source in sources for key in source.keys]

    def aggregated(self, make, inner=False):
        """One aggregate call. An inner one must not show which of several equal values it met (1.0 or 1.00),
        which is the plan's choice: what is then computed from that could be anything."""
        rng = self.rng
        for _ in range(8):
            kind, template, wanted = rng.choice(AGGREGATES)
            if inner and (kind in ("same", "float4", "float8") or "::text" in template or "DISTINCT" in template or "agg(" in template):
                continue
            args = []
            for want in wanted.split():
                if want in ("any", "comparable", "min"):
                    found = make.column({"any": None, "comparable": COMPARABLE, "min": HAS_MIN}[want])
                    if found is None:
                        break
                    args.append(make.reference(*found))
                else:
                    if want.startswith("wild") and make.column((want,)) is None:
                        break
                    if want in ("bool",) or rng.random() < 0.4:
                        args.append(make.make(want, 2))
                    else:
                        found = make.column(ACCEPTS.get(want, (want,)))
                        args.append(make.reference(*found) if found else make.make(want, 1))
            if len(args) < len(wanted.split()):
                continue
            kind = result_kind(kind, template, args)
            template = template.replace("@9", ", ".join(f"{s.alias}.{key}" for s in make.sources for key in s.keys))
            if rng.random() < 0.12 and "WITHIN" not in template and "::" not in template:
                args.append(make.predicate())
                template += f" FILTER (WHERE @{len(args)})"
            return Node(kind, template, args)
        return Node("int8", "count(*)")

    def aggregate(self, joins=None, limit=True):
        rng = self.rng
        node, made, sources = self.sources(joins)
        make = Expressions(rng, sources, self.risky)
        keys = []
        for _ in range(rng.choices((0, 1, 2, 3), (30, 40, 22, 8))[0]):
            found = make.column(COMPARABLE)
            key = make.reference(*found) if rng.random() < 0.75 else make.make(rng.choice(("int8", "text", "numeric", "date", "bool")), 2)
            if not self.constant(key):
                keys.append(key)
        items = [*keys, *(self.aggregated(make) for _ in range(rng.randint(1, 4)))]
        query = Select(items=items, first=node, joins=made, where=self.conditions(sources), group=keys)
        if keys and rng.random() < 0.14:
            query = query.but(sets=rng.choice(("ROLLUP", "CUBE", "SETS")))
            if rng.random() < 0.5:
                query.items.append(Node("int4", f"GROUPING({', '.join(key.sql() for key in keys)})"))
        if rng.random() < 0.15:
            query = query.but(having=[Node("bool", rng.choice(("(count(*) > 2)", "(count(*) % 2 = 0)", "(min(@1) IS NOT NULL)")), (self.column_of(make, HAS_MIN),))])
        if keys and limit and rng.random() < 0.4 and all(item.kind not in ("json", "point") for item in query.items):
            order = [(Node("int4", str(n + 1)), self.direction()) for n in range(len(query.items))]
            rng.shuffle(order)
            query = query.but(order=order, limit=self.limits() if rng.random() < 0.6 else "")
        return query

    def column_of(self, make, kinds):
        found = make.column(kinds)
        return make.reference(*found) if found else Node("int4", "1")

    @staticmethod
    def constant(node):
        """Has it no column? GROUP BY would take such an integer for a position."""
        return not any(f"t{n}." in node.sql() for n in range(1, 30))

    def window(self):
        rng = self.rng
        node, made, sources = self.sources(rng.choice((0, 0, 0, 1)))
        make = Expressions(rng, sources, False)
        items = [Node("int8", f"{s.alias}.{key}") for s in sources for key in s.keys]
        for _ in range(rng.randint(1, 3)):
            kind, template, wanted, total = rng.choice(WINDOWS)
            args = [make.reference(*make.column()) if want == "any" else self.column_of(make, HAS_MIN) if want == "min" else make.make(want, 1) for want in wanted.split()]
            kind = result_kind(kind, template, args)
            parts = []
            if rng.random() < 0.7:
                parts.append("PARTITION BY " + self.column_of(make, COMPARABLE).sql())
            frame = rng.choice(FRAMES) if "rank" not in template and "cume" not in template else ""
            keys = [self.column_of(make, COMPARABLE).sql() + self.direction()] if rng.random() < 0.8 else []
            if total or "ROWS" in frame:
                keys += [key.sql() for key, _ in self.total(sources)]
            elif rng.random() < 0.25 and (key := self.column_of(make, tuple(DISTANCES))) is not None:
                first, last = (rng.choice(DISTANCES[key.kind]) for _ in range(2))
                frame = f" RANGE BETWEEN {first} PRECEDING AND {last} {rng.choice(('FOLLOWING', 'FOLLOWING', 'PRECEDING'))}{rng.choice(('', '', ' EXCLUDE TIES'))}"
                keys = [key.sql() + self.direction()]
            if keys:
                parts.append("ORDER BY " + ", ".join(keys))
            elif "GROUPS" in frame or "TIES" in frame:
                frame = ""
            items.append(Node(kind, f"{template} OVER ({' '.join(parts)}{frame})", args))
        query = Select(items=items, first=node, joins=made, where=self.conditions(sources, 1))
        if rng.random() < 0.3:
            query = query.but(order=self.total(sources), limit=self.limits())
        return query

    def branch(self, kinds):
        rng = self.rng
        node, made, sources = self.sources(rng.choice((0, 0, 0, 1)))
        make = Expressions(rng, sources, False)
        items = [make.make(kind, 1) for kind in kinds]
        return Select(items=items, first=node, joins=made, where=self.conditions(sources, 2))

    def set_operation(self):
        rng = self.rng
        kinds = [rng.choice(("int4", "int8", "numeric", "text", "date", "bool", "char", "timestamp", "varchar")) for _ in range(rng.randint(1, 3))]
        word = rng.choice(("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
        limit = rng.choice(("", "", "", " LIMIT 50", " LIMIT 20 OFFSET 5"))
        return SetOperation(word, self.branch(kinds), self.branch(kinds), limit)

    def with_cte(self):
        """A query that reads a common table expression, once or twice."""
        rng = self.rng
        node, source = self.scan()
        make = Expressions(rng, [source], False)
        found = [make.column() for _ in range(4)]
        items = [Node("int8", f"{source.alias}.id"), Node("int4", f"{source.alias}.k"), *(make.reference(*pair) for pair in found)]
        # The names of a CTE's columns are those that Select gives its items.
        columns = [Derived(f"o{n + 1}", item.kind) for n, item in enumerate(items)]
        inner = Select(items=items, first=node, where=[make.predicate()])
        alias, other = self.alias(), self.alias()
        first = Source(alias, columns, ["o1"], source.rows, source.columnar)
        sources, joins = [first], []
        if rng.random() < 0.5:
            sources.append(Source(other, columns, ["o1"], source.rows, source.columnar))
            joins.append(Join(rng.choice(("INNER", "LEFT")), Node("from", f"w {other}"), [Node("bool", f"({alias}.o1 = {other}.o1 + 1)")]))
        make = Expressions(rng, sources, False)
        keys = [make.reference(*make.column(COMPARABLE))]
        items = [*keys, *(self.aggregated(make) for _ in range(rng.randint(1, 3)))]
        return Select(ctes=[("w", rng.choice(("", "MATERIALIZED ", "NOT MATERIALIZED ")), inner)], items=items, first=Node("from", f"w {alias}"), joins=joins,
                      where=[make.predicate()] if rng.random() < 0.5 else [], group=keys)


SUMMED = re.compile(r"\b(sum|avg|stddev|variance|var_\w+|corr|regr_\w+|covar_\w+|percentile_cont)\(")


# What is left where values near each other are taken from each other: about as many digits fewer.
SPREAD = re.compile(r"\b(stddev\w*|variance|var_\w+|corr|regr_\w+|covar_\w+)\(")


def float_columns(query):
    """The output columns that are floats and may differ a little, with the relative difference allowed: the
    order of summation is free. A query that sums nothing has none."""
    text = query.sql()
    if not SUMMED.search(text):
        return {}
    # A sum of tens of thousands of reals keeps four digits.
    single = 1e-3 if "sum(" in text else 1e-5
    double = 1e-8 if SPREAD.search(text) else 1e-12
    return {place: single if kind in ("float4", "wild4") else double for place, kind in enumerate(query.kinds) if kind in FLOATS}


STANDS_FOR_OTHERS = re.compile(r"t\d+\.\w+$|(min|max|percentile_disc|mode|array_agg|first_value)\(")
# Of intervals ('1 day' or '24:00:00') this does, too.
BETWEEN_OTHERS = re.compile(r"percentile_cont\(")


def loose_columns(query):
    """The output columns that show one of several equal values (1.0 or 1.00): which one, sorting and hashing
    decide."""
    if not isinstance(query, Select) or not (query.group or query.distinct or any("(" in item.sql() for item in query.items)):
        return set()
    shown = ((place, item.kind, item.sql()) for place, item in enumerate(query.items))
    return {place for place, kind, sql in shown if STANDS_FOR_OTHERS.match(sql) or (kind == "interval" and BETWEEN_OTHERS.match(sql))}
