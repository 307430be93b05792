"""Runs a query on the sides and judges the answers.

Who calls it: the program and `shrink`. A difference between colcompress and heap counts only if heap does not
differ from itself in the same way: the same query on the rows in backward order, and under other plans, shows
which error comes first, which of equal values stands for a group, and how far the order of summation moves a
float.
"""

import json
import re

from harness.session import SqlError

from .queries import float_columns, loose_columns

ERROR = re.compile(r"(ERROR|FATAL|PANIC):  (\w{5}): (.*?)(?=\n[A-Z ]+:|\nLINE \d+:|\Z)", re.S)
LITERAL = re.compile(r"'(?:[^']|'')*'::(int[248]|numeric|text|date|timestamp|timestamptz|float8|bool|bpchar|varchar|interval)\b(?!\[)")
TIMEOUT = "57014"
# Plans of heap that must all be right; each is put before the query and reset after it.
HEAP_PLANS = ("", "SET enable_hashjoin = off; SET enable_hashagg = off", "SET enable_mergejoin = off; SET enable_sort = off; SET enable_nestloop = off",
              "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET enable_material = off")


class Lost(Exception):
    """The backend went away: a crash, unless somebody stopped the server."""


class Answer:
    """Rows or an error (SQLSTATE and message)."""

    def __init__(self, rows, error):
        self.rows, self.error = rows, error

    def __eq__(self, other):
        return self.rows == other.rows and self.error == other.error

    def short(self):
        if self.error:
            return "%s: %s" % self.error
        text = "\n".join(" | ".join("NULL" if v is None else v[:80] for v in row) for row in self.rows[:8])
        return f"{text}\n({len(self.rows)} rows)"


def fetch(session):
    try:
        return Answer(session.wait().rows, None)
    except SqlError as problem:
        found = ERROR.search(str(problem))
        if found is None or found[1] != "ERROR":
            raise Lost(str(problem)) from problem
        return Answer(None, (found[2], found[3].strip()))


def both(sides, text, way="plain"):
    """The answers of colcompress, asked in the given way, and of heap, asked plainly; they work at the same
    time."""
    sides["h"].send(text)
    got = WAYS[way](sides["c"], text)
    return got, fetch(sides["h"])


def one(session, text):
    return fetch(session.send(text))


def prepared(session, text):
    """A prepared statement with some of the literals as parameters, executed twice. Equal literals are one
    parameter, so that an expression stays equal to its copy in GROUP BY."""
    kinds = dict.fromkeys(match.group() for match in LITERAL.finditer(text))
    chosen = list(kinds)[::3][:6]
    numbers = {literal: f"${place}" for place, literal in enumerate(chosen, 1)}
    body = LITERAL.sub(lambda match: numbers.get(match[0], match[0]), text)
    types = ", ".join(literal.rpartition("::")[2] for literal in chosen)
    answer = one(session, f"PREPARE asked{f' ({types})' if chosen else ''} AS {body}")
    if answer.error:
        return answer
    call = f"EXECUTE asked{' (' + ', '.join(chosen) + ')' if chosen else ''}"
    first, second = one(session, call), one(session, call)
    session.run("DEALLOCATE asked")
    return second if first == second or not first.error else first


def cursor(session, text):
    """A cursor that is read in pieces."""
    session.run("BEGIN")
    answer = one(session, f"DECLARE asked NO SCROLL CURSOR FOR {text}")
    rows = []
    for piece in ("1", "2", "ALL"):
        if not answer.error:
            answer = one(session, f"FETCH {piece} FROM asked")
            rows += answer.rows or []
    session.run("ROLLBACK")
    return answer if answer.error else Answer(rows, None)


WAYS = {"plain": one, "prepared": prepared, "cursor": cursor}


def sorted_rows(rows, floats):
    def key(row):
        return (tuple("" if v is None else "=" + v for n, v in enumerate(row) if n not in floats),
                tuple("" if v is None else f"{float(v):.5e}" for n, v in enumerate(row) if n in floats))
    return sorted(rows, key=key)


def distance(a, b):
    """How far two floats are apart, relatively; None if no closeness makes them equal."""
    if a == b:
        return 0.0
    if a is None or b is None:
        return None
    x, y = float(a), float(b)
    if x == y or (x != x and y != y):
        return 0.0 if a.lstrip("-") == b.lstrip("-") else None
    if x != x or y != y or abs(x) == float("inf") or abs(y) == float("inf"):
        return None
    return abs(x - y) / max(abs(x), abs(y))


def apart(left, right, floats, ordered):
    """How two lists of rows differ: 0.0 not at all, for floats only how far relative to what `floats` allows,
    else None."""
    if len(left) != len(right):
        return None
    if left == right:
        return 0.0
    if not ordered or floats:
        left, right = sorted_rows(left, floats), sorted_rows(right, floats)
    if left == right:
        return 0.0
    worst = 0.0
    for a, b in zip(left, right):
        if a == b:
            continue
        for n, (x, y) in enumerate(zip(a, b)):
            if x == y:
                continue
            far = distance(x, y) if n in floats else None
            if far is None:
                return None
            worst = max(worst, far / floats[n])
    return worst


def plain_value(text):
    """One text for values that are equal: trailing zeros, the sign of zero and the ways to write an interval
    go."""
    if text is None:
        return None
    if re.fullmatch(r"-?\d+(\.\d*)?", text):
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text in ("-0", "") else text
    if re.search(r"\b(mons?|days?|years?)\b|^-?\d+:\d\d:\d\d", text) and re.fullmatch(r"[-+\d :.a-z]+", text):
        total = 0.0
        for count, unit in re.findall(r"([-+]?\d+) (year|mon|day)", text):
            total += int(count) * {"year": 360, "mon": 30, "day": 1}[unit] * 86400
        for sign, hours, minutes, seconds in re.findall(r"([-+]?)(\d+):(\d\d):([\d.]+)", text):
            total += (-1 if sign == "-" else 1) * (int(hours) * 3600 + int(minutes) * 60 + float(seconds))
        return f"interval {total:.6f}"
    if text[:1] in ("[", "{", "("):
        return ",".join(plain_value(part.strip("[](){}\" ")) for part in text.split(","))
    return text


class Verdict:
    """Equal, tolerated (heap differs from itself too), skipped (a timeout), or different."""

    def __init__(self, name, got, wanted):
        self.name, self.got, self.wanted = name, got, wanted


def order_overflows(got, wanted):
    """Whether one side alone says that a float overflowed: sums of huge values pass the largest float, or do
    not, by the order of their rows."""
    errors = [answer.error for answer in (got, wanted) if answer.error]
    return len(errors) == 1 and any("value out of range: overflow" in str(part) for part in errors[0])


CANCELS = re.compile(r"\b(regr_intercept|regr_slope|regr_s(?:xx|xy|yy)|corr|covar_\w+)\(")


LINES = re.compile(r"\b(regr_intercept|regr_slope|regr_r2|corr)\(")


def cancelled(sides, text, floats, got, wanted):
    """Whether floats differ only by what is left of a sum whose parts cancel each other, which depends on the
    order of the rows."""
    if not floats or got.error or wanted.error or not CANCELS.search(text):
        return False
    nothing = upright(sides, text, floats)
    def settled(rows):
        return [[("0" if n in floats and (nothing or (value is not None and tiny(value))) else value) for n, value in enumerate(row)] for row in rows]
    return within(apart(settled(plain_rows(got.rows)), settled(plain_rows(wanted.rows)), floats, False), 1)


def upright(sides, text, floats):
    """Whether a line goes through points of one x: then all of it is what is left of their sums."""
    if not LINES.search(text):
        return False
    spread, middle = (one(sides["h"], LINES.sub(name + "(", text)) for name in ("regr_sxx", "regr_avgx"))
    if spread.error or middle.error:
        return False
    pairs = ((row[n], other[n]) for row, other in zip(spread.rows, middle.rows) for n in floats if None not in (row[n], other[n]))
    return any(abs(float(sxx)) <= 1e-9 * float(avgx) ** 2 for sxx, avgx in pairs)


def tiny(text):
    try:
        return abs(float(text)) < 1e-9
    except ValueError:
        return False



def judge(sides, query, way="plain"):
    """Asks a query (a tree of `queries`) on colcompress in the given way and on heap plainly."""
    text, floats, ordered, loose = query.sql(), float_columns(query), bool(query.order), loose_columns(query)
    got, wanted = both(sides, text, way)
    if TIMEOUT in (got.error or ("",))[0] or TIMEOUT in (wanted.error or ("",))[0]:
        return Verdict("skipped", got, wanted)
    if got == wanted or (not got.error and not wanted.error and within(apart(got.rows, wanted.rows, floats, ordered), 1)):
        return Verdict("equal", got, wanted)
    if loose and not got.error and not wanted.error and \
            within(apart(plain_rows(got.rows, loose), plain_rows(wanted.rows, loose), floats, False), 1):
        return Verdict("tolerated", got, wanted)
    if floats and (order_overflows(got, wanted) or cancelled(sides, text, floats, got, wanted)):
        return Verdict("tolerated", got, wanted)
    others = heap_answers(sides, text)
    return Verdict("tolerated" if heap_differs_too(got, wanted, others, floats, ordered) else "different", got, wanted)


def unnamed(message):
    """An error's message without the value it names."""
    return re.sub(r'"(?:[^"]|"")*"', '""', message)


def within(far, limit):
    return far is not None and far <= limit


def heap_differs_too(got, wanted, others, floats, ordered):
    """Is `got` as far from `wanted` as heap's other answers are, in the same ways?"""
    if got.error or wanted.error:
        # Which row meets its error first is the plan's choice, so the same error may name another value.
        messages = {other.error for other in [*others, wanted] if other.error}
        return any(other == got for other in others) or \
            (bool(got.error and wanted.error) and got.error[0] == wanted.error[0] and
             (len(messages) > 1 or unnamed(got.error[1]) == unnamed(wanted.error[1])))
    others = [other for other in others if not other.error]
    if any(apart(got.rows, other.rows, floats, ordered) == 0.0 for other in others):
        return True
    # The texts of equal values may differ if they do among heap's answers; floats may be ten times as far
    # apart.
    texts_vary = any(apart(wanted.rows, other.rows, floats, ordered) is None for other in others)
    mine, base = plain_rows(got.rows), plain_rows(wanted.rows)
    if not texts_vary and apart(got.rows, wanted.rows, floats, ordered) is None:
        return False
    spread = max((apart(base, plain_rows(other.rows), floats, False) or 0.0 for other in others), default=0.0)
    return within(apart(mine, base, floats, False), max(1, 10 * spread))


def plain_rows(rows, columns=None):
    """The rows with one text for equal values, in all columns or in some."""
    return [tuple(plain_value(value) if columns is None or place in columns else value for place, value in enumerate(row)) for row in rows]


def heap_answers(sides, text):
    answers = []
    for side in ("b", "h"):
        for plan in HEAP_PLANS:
            session = sides[side]
            if plan:
                session.run("BEGIN")
                for setting in plan.split("; "):
                    session.run(setting.replace("SET ", "SET LOCAL "))
            answer = one(session, text)
            if plan:
                session.run("ROLLBACK")
            if not answer.error or answer.error[0] != TIMEOUT:
                answers.append(answer)
    return answers


def plan_nodes(session, text):
    """(nodes of Colonnade in the plan, is the whole plan one of them); (0, False) where EXPLAIN fails."""
    answer = one(session, f"EXPLAIN (FORMAT JSON, COSTS OFF) {text}")
    if answer.error:
        return 0, False
    plan = json.loads("\n".join(row[0] for row in answer.rows))[0]["Plan"]

    def ours(node):
        return node["Node Type"] == "Custom Scan" and node.get("Custom Plan Provider", "").startswith("Colonnade")

    def count(node):
        return ours(node) + sum(count(child) for child in node.get("Plans", ()))
    # A scan names its relation; an upper node has none.
    return count(plan), ours(plan) and "Relation Name" not in plan
