"""Writes a `hits` table as CSV: web analytics of 105 columns, ROWS rows, the same on every run. hits.py ROWS >
OUT

Run with the Python of target/venv, which has numpy and pyarrow. The columns are those of ClickBench's table;
the rows are made here, with the skew of such data: few counters, regions and phrases take most of the hits,
most text is empty, visits come in bursts of one user, hits of a counter lie together, and most of the small
numbers are zero.
"""

import sys

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.csv
from hits_columns import columns

FIRST_DAY, DAYS = numpy.datetime64("2013-07-01"), 31
SYLLABLES = numpy.array("ka lo mi ne ru sa ti vo ze bi da fu ge ho ja pe qua ris sto tra wen xi yol ber con del fin gar hil mon".split())


class Hits:
    """Makes columns from one generator; what belongs together (user, counter, address) is made once."""

    def __init__(self, rows):
        self.rows = rows
        self.random = numpy.random.default_rng(20130715)
        # Hits come by counter and time; a visit is a run of hits of one user.
        self.counters = numpy.sort(self.zipf(6506, 1.1)) * 7 + 62
        seconds = self.random.integers(0, DAYS * 86400, rows)
        self.seconds = seconds[numpy.lexsort((seconds, self.counters))]
        visits = numpy.cumsum(self.random.random(rows) < 0.22)
        people = self.random.integers(-2**62, 2**62, max(2, rows // 6))
        self.users = people[self.skewed(visits, len(people))]
        self.addresses = self.random.integers(-2**31 + 9, 2**31 - 1, len(people))[self.skewed(visits, len(people))]
        self.made = {}

    def zipf(self, most, strength=1.35):
        """Numbers from 0: 0 is the most frequent, `most` are possible."""
        return (self.random.zipf(strength, self.rows) - 1) % most

    def skewed(self, visits, many):
        """One person a visit, some far more often than others."""
        chosen = (self.random.random(visits[-1] + 1) ** 2.2 * many).astype(numpy.int64)
        return numpy.minimum(chosen, many - 1)[visits]

    def text(self, numbers, make):
        """Text by number: each different one is made once."""
        different, places = numpy.unique(numbers, return_inverse=True)
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(places.astype(numpy.int32)), pyarrow.array([make(int(n)) for n in different])).cast(pyarrow.string())

    @staticmethod
    def words(number, count, space=" "):
        state, parts = number * 2654435761 + 12345, []
        for _ in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            parts.append("".join(SYLLABLES[(state >> shift) % len(SYLLABLES)] for shift in (33, 40, 48)[: 1 + (state >> 20) % 3]))
        return space.join(parts)

    def url(self, number):
        host = ("google", "yandex", "shop", "news", "forum", "auto", "kino")[number % 7] if number % 5 == 0 else self.words(number % 4001, 1)
        query = f"?id={number % 77777}&from={self.words(number % 313, 1)}" if number % 3 else ""
        return f"http{'s' * (number % 11 == 0)}://{'www.' * (number % 4 == 0)}{host}.{('ru', 'com', 'net')[number % 3]}/{self.words(number, 2, '/')}/{number}.html{query}"

    def numbers(self, what, many):
        """Numbers that several columns share: of URLs and referers."""
        if what not in self.made:
            spread = self.zipf(many, 1.12) * 31 + self.counters % 31
            self.made[what] = spread if what == "url" else numpy.where(self.random.random(self.rows) < 0.19, 0, spread + 1)
        return self.made[what]

    def column(self, kind, how):
        how, _, detail = how.partition(":")
        rows, random = self.rows, self.random
        if how == "unique":
            return pyarrow.array(random.permutation(rows).astype(numpy.int64) * 4611686018427 + 61)
        if how in ("none", "one"):
            return pyarrow.array(numpy.full(rows, int(how == "one")))
        if how == "flag":
            return pyarrow.array((random.random(rows) < float(detail)).astype(numpy.int64))
        if how in ("few", "words"):
            values = detail.split(",")
            chosen = random.integers(0, len(values), rows)
            return self.text(chosen, lambda n: values[n]) if kind in "tc" else pyarrow.array(numpy.array(values, dtype=numpy.int64)[chosen])
        if how == "zipf":
            return pyarrow.array(self.zipf(int(detail)))
        if how == "rare":
            return pyarrow.array(numpy.where(random.random(rows) < 0.03, self.zipf(int(detail)) + 1, 0))
        if how == "random":
            return pyarrow.array(random.integers(0, 2**30, rows))
        if how == "timing":
            return pyarrow.array(numpy.where(random.random(rows) < 0.3, random.exponential(400, rows).astype(numpy.int64), 0))
        if how in ("width", "height"):
            widths = numpy.array([0, 1024, 1087, 1280, 1366, 1368, 1638, 1828, 1990])[random.integers(0, 9, rows)]
            return pyarrow.array(widths if how == "width" else widths * 3 // 4)
        if how == "engine":
            return pyarrow.array(numpy.where(self.phrases() > 0, numpy.array([2, 3, 4, 4, 5, 22])[self.phrases() % 6], 0))
        if how in ("counter", "user", "ip"):
            return pyarrow.array({"counter": self.counters, "user": self.users, "ip": self.addresses}[how])
        if how == "region":
            return pyarrow.array(numpy.where(self.counters % 3 == 0, 229, self.zipf(9040) + 1))
        if how == "time":
            # The server's clock; the columns after it tell the visitor's.
            late = random.integers(0, 9, rows) if "clock" in self.made else 0
            self.made["clock"] = True
            return pyarrow.array(FIRST_DAY.astype("datetime64[s]") + self.seconds + late)
        if how == "date":
            return pyarrow.array((FIRST_DAY.astype("datetime64[s]") + self.seconds).astype("datetime64[D]"))
        if how == "hash":
            return pyarrow.array((self.numbers(detail, rows // 3 + 2).astype(numpy.uint64) * numpy.uint64(11400714819323198485)).astype(numpy.int64))
        if how == "empty":
            return pyarrow.array(numpy.full(rows, "", dtype=object), pyarrow.string())
        if how == "sparse":
            return self.text(numpy.where(random.random(rows) < 0.02, self.zipf(4000) + 1, 0), lambda n: self.words(n, 1) if n else "")
        if how == "model":
            return self.text(numpy.where(random.random(rows) < 0.05, self.zipf(165) + 1, 0), lambda n: f"{('iPad', 'iPhone', 'Nexus', 'A')[n % 4]} {n}" if n else "")
        if how == "phrase":
            return self.text(self.phrases(), lambda n: self.words(n, 1 + n % 4) if n else "")
        if how == "title":
            return self.text(self.numbers("url", rows // 3 + 2) // 3, lambda n: ("Google " if n % 97 == 0 else "") + self.words(n, 3 + n % 5).capitalize())
        if how in ("url", "referer"):
            return self.text(self.numbers(how, rows // 3 + 2), lambda n: self.url(n) if n or how == "url" else "")
        raise ValueError(how)

    def phrases(self):
        if "phrases" not in self.made:
            self.made["phrases"] = numpy.where(self.random.random(self.rows) < 0.13, self.zipf(self.rows // 5 + 2, 1.2) + 1, 0)
        return self.made["phrases"]


def main(rows):
    hits = Hits(rows)
    table = pyarrow.table({name: hits.column(kind, how) for name, kind, how in columns()})
    stamps = [index for index, (_, kind, _) in enumerate(columns()) if kind == "z"]
    for index in stamps:
        table = table.set_column(index, table.column_names[index], pyarrow.compute.strftime(table.column(index), "%Y-%m-%d %H:%M:%S"))
    pyarrow.csv.write_csv(table, sys.stdout.buffer, pyarrow.csv.WriteOptions(include_header=False))


if __name__ == "__main__":
    main(int(sys.argv[1]))
