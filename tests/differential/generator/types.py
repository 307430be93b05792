"""The column types of generated tables and the values that go into them.

Who calls it: `tables` makes columns of them, `expressions` takes literals from them. A type's `kind` is what
expressions are typed by. The values lean towards what breaks comparisons and encodings: equal values of
different bytes (1.0 and 1.00, -0 and 0, 1 month and 30 days, padded text), NaN, infinities, empty and long
ones, extremes.
"""

import json

WORDS = ("", "a", "A", "b", "ab", "abc", "Abc", "abd", "ä", "Äpfel", "zebra", "ZEBRA", "x_y", "x%y", "50%", "a\\b", "it's", "tail ",
         " head", "tab\there", "two\nlines", "123", " 42 ", "-7", "3.14", "1e3", "true", "NULL", "null", "naïve", "日本", "😀", "e\u0301", "é")
MOODS = ("sad", "ok", "happy", "elated")


def pick(*values):
    return lambda rng: rng.choice(values)


def mixed(*choices):
    """A generator out of (weight, generator) pairs."""
    weights = [weight for weight, _ in choices]
    makers = [maker for _, maker in choices]
    return lambda rng: rng.choices(makers, weights)[0](rng)


def between(low, high):
    return lambda rng: str(rng.randint(low, high))


def word(rng):
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(WORDS)
    if kind < 0.8:
        return f"item-{rng.randint(0, 400):05d}"
    if kind < 0.95:
        return "".join(rng.choice("abcdeXYZ 01") for _ in range(rng.randint(1, 24)))
    return rng.choice("pqr") * rng.randint(30, 3000)


def short(limit):
    return lambda rng: word(rng)[:limit]


def number(digits, scale):
    def make(rng):
        whole = rng.randint(-(10 ** (digits - scale)) + 1, 10 ** (digits - scale) - 1) if rng.random() < 0.2 else rng.randint(-500, 500)
        shown = rng.randint(0, scale)
        return str(whole) if shown == 0 else f"{whole}.{rng.randint(0, 10 ** shown - 1):0{shown}d}"
    return make


def real(rng):
    return repr(round(rng.uniform(0.5, 900.0), rng.choice((0, 1, 2, 6, 14))))


def day(rng):
    return f"{rng.randint(1995, 2031)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def clock(rng):
    text = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"
    return text + (f".{rng.randint(0, 999999):06d}" if rng.random() < 0.3 else "")


def moment(rng):
    return f"{day(rng)} {clock(rng)}"


def span(rng):
    return rng.choice((f"{rng.randint(-40, 40)} days", f"{rng.randint(-30, 30)} mons {rng.randint(0, 40)} days",
                       f"{rng.randint(0, 800)}:00:00", f"{rng.randint(-3, 9)} years {clock(rng)}"))


def octets(rng):
    return "\\x" + bytes(rng.randrange(256) for _ in range(rng.choice((0, 1, 4, 16, 200)))).hex()


def uuid(rng):
    return f"{rng.choice((0, 7, rng.getrandbits(32))):08x}-0000-4000-8000-{rng.randint(0, 60):012x}"


def address(rng):
    text = f"10.{rng.randint(0, 3)}.{rng.randint(0, 9)}.{rng.randint(0, 255)}"
    return rng.choice((text, text, f"{text}/{rng.randint(8, 32)}", f"fe80::{rng.randint(0, 99):x}"))


def network(rng):
    return rng.choice((f"10.{rng.randint(0, 3)}.0.0/16", f"192.168.{rng.randint(0, 9)}.0/24", "::/0"))


def document(rng):
    value = {"k": rng.choice((rng.randint(0, 9), rng.randint(0, 9) * 1.5, None, "x", [1, 2], {"deep": rng.randint(0, 3)}))}
    if rng.random() < 0.7:
        value["s"] = rng.choice(WORDS[:12])
    if rng.random() < 0.3:
        value["list"] = [rng.randint(0, 5) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.08:
        value = rng.choice(([], {}, 1, "text", None, True, [1, "a", None]))
    text = json.dumps(value)
    # 1.0 and 1.00 are equal in jsonb and shown as they were written.
    return text.replace("1.5", rng.choice(("1.5", "1.50")))


def array(maker, empty=0.1):
    def make(rng):
        if rng.random() < empty:
            return "{}"
        items = [maker(rng) if rng.random() < 0.9 else None for _ in range(rng.randint(1, 5))]
        return "{" + ",".join("NULL" if item is None else '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items) + "}"
    return make


def interval_of(maker, key=float):
    def make(rng):
        if rng.random() < 0.1:
            return rng.choice(("empty", "(,)"))
        low, high = sorted((maker(rng), maker(rng)), key=key)
        return f"{rng.choice('[(')}{rng.choice((low, low, ''))},{rng.choice((high, high, ''))}{rng.choice('])')}"
    return make


class Type:
    """A column type: its kind, its SQL, how to make a value, whether it can be compared and sorted, and
    whether its values can run in ascending order with the rows (`series`)."""

    def __init__(self, kind, sql, make, comparable=True, series=None, sort_text=None):
        self.kind, self.sql, self.make, self.comparable, self.series = kind, sql, make, comparable, series
        self.sort_text = sort_text


def days_from(n):
    return f"{2000 + n // 336}-{n // 28 % 12 + 1:02d}-{n % 28 + 1:02d}"


TYPES = [
    Type("bool", "boolean", pick("t", "f")),
    Type("int2", "smallint", mixed((8, between(-40, 40)), (1, pick("32767", "-32768", "0")))),
    Type("int4", "integer", between(-1000, 1000), series=lambda n: str(n // 3)),
    Type("edge4", "integer", mixed((6, between(-9, 9)), (1, pick("2147483647", "-2147483648", "2147483646")))),
    Type("int8", "bigint", between(-10**9, 10**9), series=lambda n: str(10**10 + n * 7)),
    Type("edge8", "bigint", mixed((6, between(-9, 9)), (1, pick("9223372036854775807", "-9223372036854775808", "4611686018427387904")))),
    Type("float4", "real", lambda rng: repr(round(rng.uniform(0, 99), 2))),
    Type("float8", "double precision", real, series=lambda n: repr(n / 8)),
    Type("wild8", "double precision", mixed((5, real), (3, pick("NaN", "Infinity", "-Infinity", "-0", "0", "1e308", "-1e308", "5e-324", "0.1")))),
    Type("wild4", "real", mixed((5, between(-9, 9)), (3, pick("NaN", "Infinity", "-Infinity", "-0", "0", "3e38", "1e-45")))),
    Type("numeric", "numeric", mixed((6, number(12, 4)), (2, pick("1", "1.0", "1.00", "1.000", "0", "0.0", "-0.00", "2.50", "2.5")))),
    Type("numeric", "numeric(12,2)", number(12, 2), series=lambda n: f"{n}.50"),
    Type("numeric", "numeric(38,10)", number(38, 10)),
    Type("wildn", "numeric", mixed((5, number(12, 4)), (3, pick("NaN", "Infinity", "-Infinity", "1e-30", "0", "0.000",
                                                              "123456789012345678901234567890.123456789", "-99999999999999999999999999999999999999999")))),
    Type("text", "text", word, series=lambda n: f"row {n:07d}"),
    Type("text", "text", short(12), series=lambda n: f"key/{n // 10:06d}"),
    Type("varchar", "varchar(12)", short(12)),
    Type("char", "char(8)", short(8)),
    Type("char", "char(1)", pick("a", "b", " ", "Z", "é")),
    Type("onechar", '"char"', pick("a", "b", "~")),
    Type("name", "name", short(20)),
    Type("bytea", "bytea", octets),
    Type("date", "date", mixed((9, day), (1, pick("infinity", "-infinity", "0044-03-15 BC", "2024-02-29", "1969-12-31"))), series=days_from),
    Type("timestamp", "timestamp", mixed((9, moment), (1, pick("infinity", "-infinity", "1970-01-01 00:00:00", "2000-01-01 00:00:00.000001"))),
         series=lambda n: f"{days_from(n // 9)} 0{n % 9}:00:00"),
    Type("timestamptz", "timestamptz", mixed((9, lambda rng: moment(rng) + rng.choice(("+00", "-05", "+05:30"))), (1, pick("infinity", "-infinity"))),
         series=lambda n: f"{days_from(n // 9)} 0{n % 9}:30:00+00"),
    Type("time", "time", clock),
    Type("timetz", "timetz", lambda rng: clock(rng) + rng.choice(("+00", "-05", "+02"))),
    Type("interval", "interval", mixed((4, span), (3, pick("1 mon", "30 days", "720:00:00", "1 day", "24:00:00", "0", "-1 mon")))),
    Type("uuid", "uuid", uuid),
    Type("inet", "inet", address),
    Type("cidr", "cidr", network),
    Type("macaddr", "macaddr", lambda rng: f"08:00:2b:01:02:{rng.randint(0, 40):02x}"),
    Type("json", "json", document, comparable=False),
    Type("jsonb", "jsonb", document),
    Type("bit", "bit(8)", lambda rng: f"{rng.randint(0, 255):08b}"),
    Type("varbit", "varbit", lambda rng: f"{rng.randint(0, 63):b}"),
    Type("int4[]", "integer[]", array(between(-5, 20))),
    Type("text[]", "text[]", array(pick(*WORDS[:14]))),
    Type("numeric[]", "numeric[]", array(pick("1", "1.0", "2.50", "NaN", "-3"))),
    Type("mood", "mood", pick(*MOODS)),
    Type("int4", "positive", between(1, 99)),
    Type("text", "label", short(15)),
    Type("int4range", "int4range", interval_of(between(-20, 60))),
    Type("numrange", "numrange", interval_of(number(6, 2))),
    Type("daterange", "daterange", interval_of(day, key=str)),
    Type("int4multirange", "int4multirange", lambda rng: "{" + f"[{rng.randint(0, 9)},{rng.randint(10, 19)})" + rng.choice(("", ",[30,35)")) + "}"),
    Type("point", "point", lambda rng: f"({rng.randint(0, 9)},{rng.randint(0, 9)})", comparable=False),
    Type("money", "money", number(8, 2)),
    Type("oid", "oid", between(0, 70000)),
    Type("pair", "pair", lambda rng: f"({rng.randint(0, 5)},{rng.choice(('x', 'y', ''))})"),
    Type("tsvector", "tsvector", lambda rng: " ".join(rng.sample(("cat", "dog", "fish", "ox"), rng.randint(0, 3)))),
    Type("pg_lsn", "pg_lsn", lambda rng: f"{rng.randint(0, 3):X}/{rng.randint(0, 999):X}"),
]

# Kinds with a collation: all columns of a round have the same one, as the server refuses to compare two.
COLLATED = {"text", "varchar", "char"}
COLLATIONS = ("", "", ' COLLATE "C"', ' COLLATE "en-x-icu"')

# Made once in each database, before the tables.
PRELUDE = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'elated');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN label AS text;
CREATE TYPE pair AS (a integer, b text);
"""

# How a literal of a kind is cast; kinds that are not their own type's name.
CASTS = {"edge4": "int4", "edge8": "int8", "wild8": "float8", "wild4": "float4", "wildn": "numeric", "char": "bpchar", "onechar": '"char"',
         "bit": "varbit"}
FLOATS = {"float4", "float8", "wild4", "wild8"}


def literal(text, kind):
    if text is None:
        return f"NULL::{CASTS.get(kind, kind)}"
    quoted = text.replace("'", "''")
    return f"'{quoted}'::{CASTS.get(kind, kind)}"
