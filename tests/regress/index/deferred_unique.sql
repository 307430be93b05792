-- Deferred unique and exclusion constraints over rows of stripes: the check fetches a row through the index,
-- ends the fetch, and looks at its values then.
SET colonnade.packing = off;
CREATE FUNCTION try(statements text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statements;
    SET CONSTRAINTS ALL IMMEDIATE;
    SET CONSTRAINTS ALL DEFERRED;
    RETURN 'ok';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE TABLE word_h (v text, n numeric, UNIQUE (v) DEFERRABLE INITIALLY DEFERRED, UNIQUE (n, v) DEFERRABLE INITIALLY DEFERRED) USING heap;
CREATE TABLE word_c (LIKE word_h, UNIQUE (v) DEFERRABLE INITIALLY DEFERRED, UNIQUE (n, v) DEFERRABLE INITIALLY DEFERRED) USING colcompress;
CREATE TABLE span_h (r int4range, wide text, EXCLUDE USING gist (r WITH &&) DEFERRABLE INITIALLY DEFERRED) USING heap;
CREATE TABLE span_c (LIKE span_h, EXCLUDE USING gist (r WITH &&) DEFERRABLE INITIALLY DEFERRED) USING colcompress;
SELECT kind, try(format('INSERT INTO word_%s SELECT ''value number '' || g, g * 1.25 FROM generate_series(1, 20000) g', kind)),
    try(format('INSERT INTO span_%s SELECT int4range(g * 10, g * 10 + 10), repeat(md5(g::text), 100) FROM generate_series(1, 3000) g', kind))
        FROM unnest(ARRAY['h', 'c']) kind;
-- Every row twice, and once again: the checks find the rows of the load.
SELECT kind,
    try(format('INSERT INTO word_%1$s SELECT * FROM word_%1$s; DELETE FROM word_%1$s WHERE ctid IN (SELECT min(ctid) FROM word_%1$s GROUP BY v)',
    kind)),
    try(format('INSERT INTO span_%1$s SELECT * FROM span_%1$s; DELETE FROM span_%1$s WHERE ctid IN (SELECT min(ctid) FROM span_%1$s GROUP BY r)',
        kind)) FROM unnest(ARRAY['h', 'c']) kind;
-- Twice for good, by a load and by single rows.
SELECT kind, try(format('INSERT INTO word_%1$s SELECT * FROM word_%1$s', kind)),
    try(format('INSERT INTO word_%1$s SELECT * FROM word_%1$s WHERE n = 12.50', kind)),
    try(format('INSERT INTO span_%1$s VALUES (''[105,106)'', ''x'')', kind)), try(format('INSERT INTO span_%1$s SELECT * FROM span_%1$s', kind))
        FROM unnest(ARRAY['h', 'c']) kind;
-- All keys change places.
SELECT kind, try(format('UPDATE word_%1$s SET v = ''value number '' || 20001 - substr(v, 14)::int', kind)),
    try(format('UPDATE span_%1$s SET r = int4range(lower(r) + 10, upper(r) + 10)', kind)) FROM unnest(ARRAY['h', 'c']) kind;
SELECT 'h', count(*), count(DISTINCT v), sum(n), md5(string_agg(v || n, ',' ORDER BY v)) FROM word_h UNION ALL SELECT 'c', count(*),
    count(DISTINCT v), sum(n), md5(string_agg(v || n, ',' ORDER BY v)) FROM word_c;
SELECT 'h', count(*), md5(string_agg(r || wide, ',' ORDER BY r)) FROM span_h UNION ALL SELECT 'c', count(*),
    md5(string_agg(r || wide, ',' ORDER BY r)) FROM span_c;
VACUUM word_c, span_c;
SELECT * FROM engine.verify('word_c') UNION ALL SELECT * FROM engine.verify('span_c');
