-- The names that storage_engine's scripts call functions of engine.uint8 by.
SELECT engine.uint8lt('1', '2') AS lt, engine.uint8le('2', '2') AS le, engine.uint8eq('1', '2') AS eq, engine.uint8ne('1', '2') AS ne,
       engine.uint8ge('1', '2') AS ge, engine.uint8gt('18446744073709551615', '2') AS gt, engine.uint8cmp('1', '2') AS cmp;
SELECT engine.uint8larger('1', '18446744073709551615'), engine.uint8smaller('1', '18446744073709551615');
SELECT engine.uint8hash('7') = engine.uint8_hash('7'::engine.uint8) AS hash;
-- These two take and give bits, as there; the cast looks at ranges.
SELECT engine.int8_to_uint8(-1), engine.uint8_to_int8('18446744073709551615');
SELECT engine.uint8_to_numeric('18446744073709551615'), engine.numeric_to_uint8(7.0);
