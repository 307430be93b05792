-- A join whose range has ends of another table's row: the server takes a ninth of the rows for it. The heap's look-ups stay, although
-- the copies would cost less by that estimate.
SET enable_seqscan = on;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE districts (id int PRIMARY KEY, next_order int) WITH (autovacuum_enabled = off);
CREATE TABLE lines (district int, number int, line int, item int, amount numeric(8,2), PRIMARY KEY (district, number, line)) WITH (autovacuum_enabled = off);
INSERT INTO districts SELECT d, 2001 FROM generate_series(1, 10) d;
INSERT INTO lines SELECT d, o, l, (o * 7919 + l) % 5000, l / 4.0 FROM generate_series(1, 2000) o, generate_series(1, 10) d, generate_series(1, 5) l;
CALL harness.settle();
CREATE INDEX ON lines USING columnstore (district, number, line, item, amount);
VACUUM ANALYZE districts, lines;

PREPARE newest(int) AS SELECT count(*), sum(item) FROM districts, lines
    WHERE id = $1 AND district = $1 AND number < next_order AND number >= next_order - 20;
EXPLAIN (COSTS OFF) EXECUTE newest(3);
EXECUTE newest(3);

-- The copies are read where no range is guessed, and where the heap has no index for it.
EXPLAIN (COSTS OFF) SELECT count(*), sum(item) FROM districts, lines WHERE id = district AND number < 1000 AND next_order > 2000;
EXPLAIN (COSTS OFF) SELECT count(*), sum(item) FROM districts, lines WHERE id = 3 AND district = 3 AND amount < next_order AND amount > next_order - 2001;
SELECT count(*), sum(item) FROM districts, lines WHERE id = 3 AND district = 3 AND amount < next_order AND amount > next_order - 2001;

-- Or where look-ups would cost far more.
EXPLAIN (COSTS OFF) SELECT sum(amount) FROM districts, lines WHERE district = id AND number < next_order AND number >= next_order - 1999;
SELECT sum(amount) FROM districts, lines WHERE district = id AND number < next_order AND number >= next_order - 1999;
DROP TABLE districts, lines;
