"""Typed random expressions over the columns of a query's sources.

Who calls it: `queries`. An expression is a tree of `Node`s, so that a failing query can be made smaller by
putting a part in place of the whole. Templates name their arguments @1, @2, ...; each says the kinds it takes
and the kind it gives. The risky ones can raise errors: only a query that allows risk has them, because which
row meets an error first is the plan's choice.
"""

import re

from . import types

SLOT = re.compile(r"@([1-9])(?![0-9])")


class Node:
    """An expression: text with arguments (nodes, or anything that has `sql` and `reductions`)."""

    __slots__ = ("kind", "template", "args")

    def __init__(self, kind, template, args=()):
        self.kind, self.template, self.args = kind, template, tuple(args)

    def sql(self):
        if not self.args:
            return self.template
        return SLOT.sub(lambda m: self.args[int(m[1]) - 1].sql(), self.template)

    def reductions(self):
        """Smaller expressions of the same kind, the smallest first."""
        if self.args and self.kind not in ("from", "any"):
            yield Node(self.kind, types.literal(None, self.kind))
            if self.kind == "bool":
                yield Node("bool", "true")
            for arg in self.args:
                if isinstance(arg, Node) and arg.kind == self.kind:
                    yield arg
            for place, arg in enumerate(self.args):
                for smaller in arg.reductions():
                    yield Node(self.kind, self.template, (*self.args[:place], smaller, *self.args[place + 1:]))


# (kind of the result, template, kinds of the arguments)
SAFE = [
    ("bool", "(@1 AND @2)", "bool bool"), ("bool", "(@1 OR @2)", "bool bool"), ("bool", "(NOT @1)", "bool"), ("bool", "(@1 IS NOT TRUE)", "bool"),
    ("bool", "(@1 IS UNKNOWN)", "bool"), ("bool", "(@1 = @2)", "bool bool"), ("bool", "(@1 < @2)", "int4 int8"), ("bool", "(@1 >= @2)", "int4 numeric"),
    ("bool", "(@1 = @2)", "int8 float8"), ("bool", "(@1 > @2)", "numeric float8"), ("bool", "(@1 < @2)", "float4 float8"), ("bool", "(@1 <> @2)", "int2 int8"),
    ("bool", "(@1 <= @2)", "date timestamp"), ("bool", "(@1 > @2)", "timestamp date"), ("bool", "(@1 < @2)", "timestamptz date"), ("bool", "(@1 = @2)", "varchar text"),
    ("bool", "(@1 = @2)", "char text"), ("bool", "(@1 LIKE '%a%')", "text"), ("bool", "(@1 LIKE 'item-000%')", "text"), ("bool", "(@1 NOT LIKE '_b%')", "text"),
    ("bool", "(@1 LIKE 'x\\_y')", "text"), ("bool", "(@1 LIKE '%3')", "text"), ("bool", "(@1 LIKE 'row 00001%')", "text"), ("bool", "(@1 LIKE '')", "text"),
    ("bool", "(@1 ILIKE 'AB%')", "text"), ("bool", "(@1 ~ '^[a-c]+')", "text"), ("bool", "(@1 !~* 'A.*[0-9]')", "text"), ("bool", "(@1 SIMILAR TO '(a|b)%')", "text"),
    ("bool", "(@1 LIKE @2)", "char text"), ("bool", "starts_with(@1, 'it')", "text"), ("bool", "(@1 @> '{3}')", "int4[]"), ("bool", "(@1 && '{1,2,7}')", "int4[]"),
    ("bool", "(@1 <@ '{1,2,3,4,5}')", "int4[]"), ("bool", "(@1 @> ARRAY['a'])", "text[]"), ("bool", "('ab' = ANY (@1))", "text[]"), ("bool", "(7 > ALL (@1))", "int4[]"),
    ("bool", "(@1 = ANY (@2))", "int4 int4[]"), ("bool", "(@1 @> '{\"k\": 3}')", "jsonb"), ("bool", "(@1 ? 's')", "jsonb"), ("bool", "(@1 ?| '{k,list}')", "jsonb"),
    ("bool", "(@1 <@ '{\"k\": 1, \"s\": \"a\"}')", "jsonb"), ("bool", "(@1 @> @2::int4)", "int4range int4"), ("bool", "(@1 && '[5,20)')", "int4range"), ("bool", "isempty(@1)", "numrange"),
    ("bool", "(@1 <<= '10.1.0.0/16')", "inet"), ("bool", "((@1, @2) < (@3, @4))", "int4 text int4 text"), ("bool", "((@1, @2) = (@3, @4))", "int4 date int4 date"),
    ("int8", "(@1::int8 + @2)", "int4 int4"), ("int8", "(@1::int8 * @2)", "int4 int4"), ("int8", "(@1 % 13)", "int8"), ("int8", "(@1 / 7)", "int8"),
    ("int8", "abs(@1 % 1000)", "int8"), ("int8", "(- (@1 / 3))", "int8"), ("int8", "CASE WHEN @1 THEN 1 ELSE 0 END::int8", "bool"), ("int8", "@1::int8", "int4"),
    ("int4", "(@1 % 10)", "int4"), ("int4", "(@1 & 7)", "int4"), ("int4", "(@1 | 9)", "int4"), ("int4", "(@1 # 5)", "int4"), ("int4", "(@1 >> 1)", "int4"), ("int4", "(@1 / 3)", "int4"),
    ("int4", "length(@1)", "text"), ("int4", "octet_length(@1)", "text"), ("int4", "strpos(@1, 'b')", "text"), ("int4", "ascii(@1)", "text"), ("int4", "length(@1)", "bytea"),
    ("int4", "cardinality(@1)", "int4[]"), ("int4", "array_length(@1, 1)", "text[]"), ("int4", "(@1)[1]", "int4[]"), ("int4", "@1::int4", "bool"), ("int4", "length(@1)", "char"),
    ("int4", "array_position(@1, 3)", "int4[]"), ("int4", "num_nulls(@1, @2)", "text date"), ("int4", "sign(@1::float8)::int4", "int4"), ("int4", "bit_length(@1)", "varchar"),
    ("int2", "(@1 % 7::int2)", "int2"),
    ("numeric", "(@1 + @2)", "numeric numeric"), ("numeric", "(@1 / 3)", "wildn"), ("numeric", "round(@1, 2)", "wildn"), ("numeric", "floor(@1)", "wildn"), ("numeric", "(1.5 / NULLIF(@1, 0))", "wildn"),
    ("numeric", "(@1 - @2)", "numeric numeric"), ("numeric", "(@1 * @2)", "numeric numeric"), ("numeric", "(@1 / 3)", "numeric"),
    ("numeric", "(@1 * 1.10)", "numeric"), ("numeric", "round(@1, 1)", "numeric"), ("numeric", "round(@1)", "numeric"), ("numeric", "trunc(@1, 1)", "numeric"), ("numeric", "abs(@1)", "numeric"),
    ("numeric", "(- @1)", "numeric"), ("numeric", "(@1 % 7)", "numeric"), ("numeric", "sign(@1)", "numeric"), ("numeric", "ceil(@1)", "numeric"), ("numeric", "floor(@1)", "numeric"),
    ("numeric", "@1::numeric", "int4"), ("numeric", "(@1 * @2)", "int8 numeric"), ("numeric", "extract(year FROM @1)", "date"), ("numeric", "extract(dow FROM @1)", "timestamp"),
    ("numeric", "extract(epoch FROM @1)", "timestamptz"), ("numeric", "extract(day FROM @1)", "interval"), ("numeric", "extract(quarter FROM @1)", "date"), ("numeric", "trim_scale(@1)", "numeric"),
    ("numeric", "date_part('month', @1)::numeric", "date"), ("numeric", "(@1 * (1 - @2))", "numeric numeric"), ("numeric", "extract(week FROM @1)", "timestamp"), ("numeric", "scale(@1)::numeric", "numeric"),
    ("float8", "(@1 + @2)", "float8 float8"), ("float8", "(@1 * 2)", "float8"), ("float8", "(@1 / 3)", "float8"), ("float8", "(@1 - @2)", "float8 float4"), ("float8", "sqrt(abs(@1))", "float8"),
    ("float8", "floor(@1)", "float8"), ("float8", "round(@1)", "float8"), ("float8", "ln(abs(@1) + 1)", "float8"), ("float8", "power(@1, 2)", "float8"), ("float8", "@1::float8", "int4"),
    ("float8", "@1::float8", "numeric"), ("float8", "(@1 * @2)", "float8 int4"), ("float8", "abs(@1)", "wild8"), ("float8", "(- @1)", "wild8"), ("float4", "(@1 / 4)::float4", "float4"),
    ("text", "upper(@1)", "text"), ("text", "lower(@1)", "text"), ("text", "initcap(@1)", "text"), ("text", "(@1 || @2)", "text text"), ("text", "substr(@1, 2, 3)", "text"),
    ("text", "left(@1, 3)", "text"), ("text", "right(@1, 2)", "text"), ("text", "left(@1, -1)", "text"), ("text", "trim(@1)", "text"), ("text", "ltrim(@1, 'ab')", "text"), ("text", "rtrim(@1)", "text"),
    ("text", "replace(@1, 'a', 'bb')", "text"), ("text", "reverse(left(@1, 40))", "text"), ("text", "lpad(@1, 8, '*')", "text"), ("text", "rpad(left(@1, 9), 5)", "text"), ("text", "split_part(@1, '-', 2)", "text"),
    ("text", "translate(left(@1, 30), 'abc', 'xy')", "text"), ("text", "md5(@1)", "text"), ("text", "concat(left(@1, 20), @2, NULL, left(@3, 5))", "text int4 text"), ("text", "concat_ws('-', left(@1, 9), @2)", "text date"),
    ("text", "regexp_replace(@1, '[0-9]+', '#')", "text"), ("text", r"regexp_replace(@1, '^([a-z]*)[^a-z]?(.*)$', '\2-\1')", "text"), ("text", r"regexp_replace(@1, '^(.+)([0-9]+)(?:aa)?$', '\1')", "text"), ("text", "substring(@1 FROM '[a-z]+')", "text"), ("text", "to_char(@1, 'FM999990.00')", "numeric"), ("text", "to_char(@1, 'YYYY-MM')", "timestamp"),
    ("text", "to_char(@1, 'Mon DD, HH24:MI')", "timestamptz"), ("text", "@1::text", "numeric"), ("text", "@1::text", "date"), ("text", "@1::text", "timestamptz"), ("text", "@1::text", "float8"), ("text", "@1::text", "bool"),
    ("text", "@1::text", "char"), ("text", "@1::text", "int8"), ("text", "@1::text", "interval"), ("text", "@1::text", "jsonb"), ("text", "(@1 ->> 'k')", "jsonb"), ("text", "(@1 ->> 's')", "json"), ("text", "(@1 #>> '{k,deep}')", "jsonb"),
    ("text", "(@1)[1]", "text[]"), ("text", "array_to_string(@1, ',', '*')", "text[]"), ("text", "@1::text", "mood"), ("text", "jsonb_typeof(@1)", "jsonb"), ("text", "@1::varchar(3)::text", "text"), ("text", "host(@1)", "inet"),
    ("text", "encode(@1, 'hex')", "bytea"), ("text", "(@1 || 'x')", "char"), ("text", "overlay(@1 PLACING '__' FROM 2)", "text"), ("text", "quote_literal(left(@1, 9))", "text"),
    ("char", "@1::char(4)::bpchar", "text"), ("varchar", "@1::varchar(4)", "text"),
    ("date", "(@1 + 30)", "date"), ("date", "@1::date", "timestamp"), ("date", "date_trunc('month', @1)::date", "timestamp"), ("date", "(@1 - 7)", "date"), ("date", "'2024-05-05'::date", ""),
    ("timestamp", "(@1 + interval '1 day')", "timestamp"), ("timestamp", "date_trunc('hour', @1)", "timestamp"), ("timestamp", "@1::timestamp", "date"), ("timestamp", "(@1 + interval '1 month')", "date"),
    ("timestamp", "(@1 AT TIME ZONE 'Asia/Tokyo')", "timestamptz"), ("timestamp", "date_trunc('year', @1)", "timestamp"), ("timestamptz", "date_trunc('day', @1)", "timestamptz"), ("timestamptz", "@1::timestamptz", "date"),
    ("timestamptz", "(@1 + interval '36 hours')", "timestamptz"), ("timestamptz", "(@1 AT TIME ZONE 'UTC')", "timestamp"), ("timestamptz", "date_trunc('week', @1)", "timestamptz"),
    ("interval", "(@1 * 2)", "interval"), ("interval", "(- @1)", "interval"), ("interval", "justify_days(@1)", "interval"), ("interval", "(@1 + interval '1 hour')", "interval"), ("interval", "make_interval(days => @1 % 100)", "int4"),
    ("time", "@1::time", "timestamp"), ("jsonb", "(@1 -> 'k')", "jsonb"), ("jsonb", "(@1 #> '{k}')", "jsonb"), ("jsonb", "@1::jsonb", "json"), ("jsonb", "to_jsonb(@1)", "numeric"), ("jsonb", "(@1 -> 0)", "jsonb"),
    ("int4[]", "(@1 || 3)", "int4[]"), ("int4[]", "array_remove(@1, 3)", "int4[]"), ("int4[]", "(@1)[1:2]", "int4[]"), ("int4[]", "ARRAY[@1, @2]", "int4 int4"), ("text[]", "string_to_array(@1, '-')", "text"),
    ("bytea", "substr(@1, 1, 2)", "bytea"), ("uuid", "md5(@1)::uuid", "text"), ("bit", "(@1 & B'11110000')", "bit"), ("int4range", "(@1 * '[0,30)'::int4range)", "int4range"), ("mood", "enum_last(@1)", "mood"),
    ("inet", "set_masklen(@1, 8)", "inet"), ("time", "(@1 + interval '1 hour')", "time"),
    ("bool", "(@1 LIKE left(@2, 2) || '%')", "text text"), ("bool", "(@1 ILIKE right(@2, 1) || '%')", "text varchar"), ("bool", "(@1 ?& '{k,s}')", "jsonb"), ("bool", "(@1 = ANY (@2))", "text text[]"), ("bool", "(@1 && @2)", "int4[] int4[]"),
    ("bool", "(@1 @> @2)", "text[] text[]"), ("bool", "regexp_like(left(@1, 30), '^[' || @2 || ']')", "text int4"), ("int4", "width_bucket(@1, 0.0, 10.0, 5)", "numeric"), ("int4", "date_part('hour', @1)::int4", "timestamptz"),
    ("int4", "(@1)[@2 % 3]", "int4[] int4"), ("int4", "regexp_count(left(@1, 30), '[a-z]')", "text"), ("numeric", "extract(month FROM @1)", "timestamptz"), ("numeric", "GREATEST(@1, @2, 3, 4.5, @1 - 1)", "numeric numeric"),
    ("text", "to_char(@1, 'Day, DDth Month YYYY AD')", "date"), ("text", "to_char(@1, 'HH12:MI:SS.US AM TZ')", "timestamptz"), ("text", "to_char(@1, 'SG999G999D99')", "int4"), ("text", "to_char(@1, left(@2, 3))", "timestamp text"),
    ("text", "(regexp_match(left(@1, 30), '([a-z]+)[^a-z]*([0-9]*)'))[1]", "text"), ("text", "format('%s-%s', left(@1, 5), @2)", "text int4"), ("text", "(ROW(@1, @2))::text", "int4 date"), ("text", "(@1 #>> @2)", "jsonb text[]"),
    ("text", "CASE left(@1, 1) WHEN 'a' THEN format('%s', @2) ELSE initcap(left(@1, 9)) END", "text int4"), ("timestamptz", "date_trunc('day', @1, 'America/New_York')", "timestamptz"), ("timestamptz", "(@1 + @2)", "timestamptz interval"),
    ("timestamp", "(@1 AT TIME ZONE 'America/New_York')", "timestamptz"), ("jsonb", "jsonb_build_object('a', @1, 'b', left(@2, 9))", "int4 text"), ("text[]", "ARRAY[left(@1, 4), @2::text, NULL]", "text int4"), ("float8", "(exp(@1 / 1e6) + sign(@1))", "int4"),
]
RISKY = [
    ("int4", "(@1 + @2)", "edge4 int4"), ("int4", "(@1 * @2)", "edge4 edge4"), ("int4", "(@1 - @2)", "int4 edge4"), ("int4", "(@1 / @2)", "int4 int4"), ("int4", "(@1 % @2)", "int4 int4"), ("int4", "(- @1)", "edge4"),
    ("int2", "(@1 * @2)", "int2 int2"), ("int2", "(@1 + @2)", "int2 int2"), ("int2", "abs(@1)", "int2"), ("int8", "(@1 + @2)", "edge8 edge8"), ("int8", "(@1 * @2)", "edge8 int8"), ("int8", "(@1 / @2)", "int8 int4"),
    ("int8", "(@1 - @2)", "edge8 edge8"), ("int2", "@1::int2", "int4"), ("int4", "@1::int4", "int8"), ("int4", "@1::int4", "numeric"), ("int4", "@1::int4", "wildn"), ("int8", "@1::int8", "wild8"), ("int4", "@1::int4", "text"),
    ("numeric", "@1::numeric", "text"), ("numeric", "(@1 / @2)", "numeric numeric"), ("numeric", "@1::numeric(5,2)", "numeric"), ("numeric", "sqrt(@1)", "numeric"), ("numeric", "(@1 * @2)", "wildn wildn"), ("numeric", "(@1 / @2)", "wildn wildn"), ("numeric", "@1::numeric", "wild8"), ("float8", "@1::float8", "wildn"), ("numeric", "@1::numeric(6,1)", "wildn"), ("float8", "sqrt(@1)", "wild8"),
    ("float8", "ln(@1)", "wild8"), ("float8", "(@1 * @2)", "wild8 wild8"), ("float8", "(@1 / @2)", "wild8 wild8"), ("float8", "exp(@1)", "wild8"), ("float4", "(@1 * @2)", "wild4 wild4"), ("float4", "@1::float4", "wild8"), ("float8", "power(@1, @2)", "wild8 int4"),
    ("text", "substr(@1, 2, @2)", "text int4"), ("text", "chr(@1)", "int4"), ("text", "split_part(@1, 'a', @2)", "text int4"), ("date", "@1::date", "text"), ("date", "(@1 + @2)", "date edge4"), ("bool", "@1::bool", "text"), ("int4", "(@1 - @2)", "date date"),
    ("interval", "(@1 - @2)", "timestamp timestamp"), ("int4", "@1::positive::int4", "int4"), ("jsonb", "@1::jsonb", "text"), ("interval", "age(@1, @2)", "timestamp timestamp"), ("numeric", "ln(@1)", "numeric"), ("mood", "@1::mood", "text"),
    ("float8", "@1::float8", "text"), ("int4", "width_bucket(@1, 0, 10, @2)", "float8 int4"), ("uuid", "@1::uuid", "text"), ("int8", "(@1 << 3)", "edge8"), ("numeric", "div(@1, @2)", "numeric int4"), ("text", "@1::char(2)::text", "text"),
]
# What a template's argument may be besides its own kind.
ACCEPTS = {"int4": ("int4", "int2"), "int8": ("int8", "int4", "int2"), "text": ("text", "varchar", "char"), "float8": ("float8", "float4"), "numeric": ("numeric", "wildn", "numeric"),
           "edge4": ("edge4", "int4"), "edge8": ("edge8", "int8", "int4"), "wild8": ("wild8", "float8"), "wild4": ("wild4", "float4"), "wildn": ("wildn", "numeric")}
# Kinds of one SQL type, for COALESCE and comparisons.
FAMILY = {"edge4": "int4", "edge8": "int8", "wild8": "float8", "wild4": "float4", "wildn": "numeric"}
COMPARABLE = {t.kind for t in types.TYPES if t.comparable}
HAS_MIN = {"int2", "int4", "int8", "edge4", "edge8", "float4", "float8", "wild4", "wild8", "numeric", "wildn", "text", "varchar", "char", "date", "timestamp", "timestamptz", "time", "timetz", "interval", "inet",
           "money", "oid", "mood", "pg_lsn", "int4[]", "text[]", "numeric[]"}
BY_KIND = {kind: kind_type for kind_type in reversed(types.TYPES) for kind in (kind_type.kind,)}


def by_result(templates):
    found = {}
    for result, template, args in templates:
        found.setdefault(result, []).append((template, args.split()))
    return found


SAFE_BY_KIND, RISKY_BY_KIND = by_result(SAFE), by_result(RISKY)


class Source:
    """Something in FROM: its alias, its columns, and the columns that tell its rows apart."""

    def __init__(self, alias, columns, keys, rows, columnar):
        self.alias, self.columns, self.keys, self.rows, self.columnar = alias, columns, keys, rows, columnar


class Expressions:
    """Makes expressions over some sources. `subquery`, where given, makes a scalar subquery of a kind."""

    def __init__(self, rng, sources, risky, subquery=None):
        self.rng, self.sources, self.risky, self.subquery = rng, sources, risky, subquery
        self.columns = [(source, column) for source in sources for column in source.columns]

    def column(self, kinds=None):
        fitting = [pair for pair in self.columns if kinds is None or pair[1].kind in kinds]
        return self.rng.choice(fitting) if fitting else None

    @staticmethod
    def reference(source, column):
        return Node(column.kind, f"{source.alias}.{column.name}")

    def literal(self, kind):
        rng = self.rng
        if rng.random() < 0.04:
            return Node(kind, types.literal(None, kind))
        found = self.column((kind,))
        if found is not None and hasattr(found[1], "sample"):
            return Node(kind, types.literal(found[1].sample(rng, found[0].rows), kind))
        return Node(kind, types.literal(BY_KIND[kind].make(rng), kind))

    def make(self, kind, depth=2):
        """An expression of this kind."""
        rng = self.rng
        roll = rng.random()
        if depth > 0 and roll < 0.45:
            made = self.compound(kind, depth)
            if made is not None:
                return made
        found = self.column(ACCEPTS.get(kind, (kind,)))
        if found is not None and (roll < 0.94 or depth <= 0):
            return self.reference(*found)
        # No such column: out of another kind, so that the server does not fold it all to a constant.
        made = self.compound(kind, depth) if found is None and depth >= 0 and rng.random() < 0.8 else None
        return self.literal(kind) if made is None else made

    def compound(self, kind, depth):
        rng = self.rng
        roll = rng.random()
        if kind == "bool" and roll < 0.55:
            return self.predicate(depth - 1)
        if roll < 0.08:
            return Node(kind, "CASE WHEN @1 THEN @2 ELSE @3 END", (self.predicate(depth - 1), self.make(kind, depth - 1), self.make(kind, depth - 1)))
        if roll < 0.14 and kind not in ("json", "point"):
            return Node(kind, rng.choice(("COALESCE(@1, @2)", "NULLIF(@1, @2)", "GREATEST(@1, @2)", "LEAST(@1, @2)") if kind in COMPARABLE else ("COALESCE(@1, @2)",)),
                        (self.make(kind, depth - 1), self.make(kind, depth - 1)))
        if roll < 0.17:
            return Node(kind, "CASE @1 WHEN @2 THEN @3 WHEN @4 THEN @5 END",
                        (self.make("int4", 0), self.literal("int4"), self.make(kind, depth - 1), self.literal("int4"), self.make(kind, 0)))
        if roll < 0.19 and self.subquery is not None:
            made = self.subquery(kind)
            if made is not None:
                return made
        templates = list(SAFE_BY_KIND.get(kind, ()))
        if self.risky:
            templates += RISKY_BY_KIND.get(kind, ()) * 4
        if not templates:
            return None
        template, args = rng.choice(templates)
        return Node(kind, template, [self.make(arg, depth - 1) for arg in args]) if args else Node(kind, template)

    def predicate(self, depth=1):
        """A condition, mostly about one column, so that the scan can use it."""
        rng = self.rng
        roll = rng.random()
        if depth > 0 and roll < 0.2:
            return Node("bool", rng.choice(("(@1 AND @2)", "(@1 OR @2)", "(@1 OR @2)")), (self.predicate(depth - 1), self.predicate(depth - 1)))
        if depth > 0 and roll < 0.26:
            return Node("bool", "(NOT @1)", (self.predicate(depth - 1),))
        if roll < 0.42:
            template, args = rng.choice(SAFE_BY_KIND["bool"])
            if self.risky and rng.random() < 0.3:
                template, args = rng.choice(RISKY_BY_KIND["bool"])
            return Node("bool", template, [self.make(arg, min(depth, 1)) for arg in args])
        found = self.column(COMPARABLE)
        if found is None:
            return Node("bool", "true")
        kind = found[1].kind
        left = self.reference(*found)
        if rng.random() < 0.12:
            left = self.make(kind, min(depth, 1))
        if roll < 0.5:
            return Node("bool", rng.choice(("(@1 IS NULL)", "(@1 IS NOT NULL)")), (left,))
        if roll < 0.62:
            values = [self.literal(kind) for _ in range(rng.randint(1, 6))]
            slots = ", ".join(f"@{n + 2}" for n in range(len(values)))
            shapes = [f"(@1 IN ({slots}))", f"(@1 NOT IN ({slots}))"]
            if not kind.endswith("[]"):
                shapes.append(f"(@1 = ANY (ARRAY[{slots}]))")
            return Node("bool", rng.choice(shapes), (left, *values))
        if roll < 0.72:
            return Node("bool", rng.choice(("(@1 BETWEEN @2 AND @3)", "(@1 BETWEEN @2 AND @3)", "(@1 NOT BETWEEN SYMMETRIC @2 AND @3)")), (left, self.literal(kind), self.literal(kind)))
        operator = rng.choice(("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
        right = self.literal(kind) if rng.random() < 0.75 else self.make(kind, depth)
        return Node("bool", f"(@1 {operator} @2)", (left, right))
