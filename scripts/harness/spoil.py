"""Files whose bytes were spoiled, for tests of readers.

Who calls it: tests/parquet.py, tests/sqlite/transfer.py.
"""


def spoiled(whole, chance):
    """These bytes with one to three changed, sometimes cut short. Half of the changes are in the last
    quarter, where a Parquet file says what is where."""
    size = len(whole)
    bad = bytearray(whole)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(size) if chance.random() < 0.5 else chance.randrange(size * 3 // 4, size)
        bad[at] = chance.randrange(256)
    return bytes(bad[:chance.randrange(size)] if chance.random() < 0.1 else bad)
