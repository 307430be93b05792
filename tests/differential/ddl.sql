-- Definitions change under rows of both kinds.
CREATE TABLE a (id int, v text, n numeric(10,2));
INSERT INTO a SELECT g, 'v' || g, g / 3.0 FROM generate_series(1, 20000) g;
INSERT INTO a VALUES (0, NULL, NULL);
ALTER TABLE a ADD COLUMN b int;
ALTER TABLE a ADD COLUMN c text DEFAULT 'constant' NOT NULL;
ALTER TABLE a ADD COLUMN d timestamptz DEFAULT '2020-01-01 00:00+00';
ALTER TABLE a ADD COLUMN e int[] DEFAULT '{1,2}';
SELECT count(*), count(b), count(c), min(c), count(d), count(e) FROM a;
SELECT * FROM a WHERE id IN (0, 1, 20000) ORDER BY id;
INSERT INTO a (id, c) VALUES (-1, 'own'); INSERT INTO a (id, c, b) SELECT g, 'later', g FROM generate_series(30001, 50000) g;
ALTER TABLE a ALTER c SET DEFAULT 'other'; INSERT INTO a (id) VALUES (-2);
SELECT c, count(*), sum(id), count(b), min(e) FROM a GROUP BY c ORDER BY c;
ALTER TABLE a DROP COLUMN v;
SELECT * FROM a WHERE id IN (-1, 0, 1, 20000, 30001) ORDER BY id;
ALTER TABLE a ADD COLUMN v text DEFAULT 'new v';
SELECT v, count(*) FROM a GROUP BY v;
ALTER TABLE a ADD COLUMN serial_ serial;
SELECT count(DISTINCT serial_), min(serial_), max(serial_) FROM a;
-- in the order of the scan, which is not heap's
ALTER TABLE a DROP COLUMN serial_;
ALTER TABLE a ADD COLUMN gen int GENERATED ALWAYS AS (id * 2) STORED;
SELECT sum(gen) FROM a;
ALTER TABLE a ALTER id TYPE bigint;
ALTER TABLE a ALTER n TYPE text USING n::text || '?';
SELECT * FROM a WHERE id IN (-1, 0, 1, 20000, 30001) ORDER BY id;
SELECT count(*), sum(id), max(n COLLATE "C") FROM a;
ALTER TABLE a ALTER id TYPE int USING (1 / (id - 5));
ALTER TABLE a ALTER e TYPE text;
ALTER TABLE a RENAME COLUMN c TO cc; ALTER TABLE a RENAME TO aa; ALTER TABLE aa SET SCHEMA information_schema; ALTER TABLE information_schema.aa SET SCHEMA public;
SELECT cc, count(*) FROM aa GROUP BY cc ORDER BY cc;
ALTER TABLE aa ADD CHECK (id > 0); ALTER TABLE aa ADD CHECK (id > -10); ALTER TABLE aa ALTER b SET NOT NULL;
ALTER TABLE aa ALTER cc SET STORAGE EXTERNAL; ALTER TABLE aa ALTER cc SET STATISTICS 10; ALTER TABLE aa ALTER cc SET COMPRESSION pglz;
ALTER TABLE aa CLUSTER ON nosuch;
ALTER TABLE aa SET LOGGED; ALTER TABLE aa SET UNLOGGED; SELECT count(*), sum(id) FROM aa; ALTER TABLE aa SET LOGGED; SELECT count(*), sum(id) FROM aa;
ALTER TABLE aa REPLICA IDENTITY FULL;
SELECT count(*), sum(length(aa::text)) FROM aa;
-- whole rows and types made from the table
CREATE FUNCTION whole(aa) RETURNS text LANGUAGE sql AS $$ SELECT $1.id || $1.cc $$;
SELECT whole(aa) FROM aa WHERE id IN (0, 5, 30002) ORDER BY id;
CREATE TABLE holder (r aa); INSERT INTO holder SELECT aa FROM aa WHERE id < 3; SELECT (r).id, (r).cc FROM holder ORDER BY 1; DROP TABLE holder CASCADE;
ALTER TABLE aa DROP COLUMN gen, DROP COLUMN id, ADD COLUMN id int DEFAULT 3;
SELECT sum(id), count(*) FROM aa;
DROP FUNCTION whole; DROP TABLE aa;

-- indexes over rows of both kinds
CREATE TABLE i (id int, k int, v text, p point, arr int[], ts tsvector);
INSERT INTO i SELECT g, g % 100, md5(g::text), point(g, g), ARRAY[g % 7, g], to_tsvector('simple', 'w' || g % 50) FROM generate_series(1, 20000) g;
INSERT INTO i VALUES (-1, 1, 'hot', point(1, 1), '{1}', 'w1'), (-2, NULL, NULL, NULL, NULL, NULL);
CREATE UNIQUE INDEX i_id ON i (id); CREATE INDEX i_k ON i (k DESC NULLS LAST, id); CREATE INDEX i_v ON i USING hash (v); CREATE INDEX i_p ON i USING gist (p);
CREATE INDEX i_arr ON i USING gin (arr); CREATE INDEX i_ts ON i USING gin (ts); CREATE INDEX i_expr ON i ((k * 2)) WHERE id % 2 = 0; CREATE INDEX i_incl ON i (k) INCLUDE (v); CREATE INDEX i_sp ON i USING spgist (p);
\set VERBOSITY terse
CREATE UNIQUE INDEX i_bad ON i (k);
\set VERBOSITY default
CREATE INDEX i_div ON i ((1 / (id - 20)));
SET enable_seqscan = off;
SELECT id, k FROM i WHERE id = 12345; SELECT id FROM i WHERE id = -1; SELECT count(*), sum(id) FROM i WHERE k = 5; SELECT count(*) FROM i WHERE k IS NULL;
SELECT id FROM i WHERE v = md5('777'); SELECT id FROM i WHERE v = 'hot'; SELECT count(*) FROM i WHERE p <@ box(point(0, 0), point(100, 100)); SELECT id FROM i ORDER BY p <-> point(50.2, 50), id LIMIT 3;
SELECT count(*), sum(id) FROM i WHERE arr @> '{3}'; SELECT count(*), sum(id) FROM i WHERE ts @@ 'w7 | w1'; SELECT count(*), sum(id) FROM i WHERE k * 2 = 20 AND id % 2 = 0;
SELECT k, v FROM i WHERE k BETWEEN 3 AND 3 ORDER BY v LIMIT 3; SELECT k, id FROM i ORDER BY k DESC NULLS LAST, id LIMIT 3; SELECT k, id FROM i ORDER BY k NULLS FIRST, id DESC LIMIT 3;
SELECT id FROM i WHERE id IN (5, 20000, 7, -2) ORDER BY id; SELECT count(*) FROM i WHERE (k = 5 OR k = 7) AND id < 10000; SELECT min(id), max(id) FROM i;
INSERT INTO i (id) VALUES (12345); INSERT INTO i (id, k) SELECT g, 500 FROM generate_series(20001, 40000) g; SELECT count(*), sum(id) FROM i WHERE k = 500;
REINDEX TABLE i; SELECT count(*), sum(id) FROM i WHERE k = 500; REINDEX INDEX i_id; SELECT id FROM i WHERE id = 30000;
CREATE INDEX CONCURRENTLY i_conc ON i (v text_pattern_ops); SELECT count(*) FROM i WHERE v LIKE 'ab%'; REINDEX INDEX CONCURRENTLY i_conc; SELECT count(*) FROM i WHERE v LIKE 'ab%'; DROP INDEX CONCURRENTLY i_conc;
\set VERBOSITY terse
CREATE UNIQUE INDEX CONCURRENTLY i_bad2 ON i (k);
\set VERBOSITY default
RESET enable_seqscan;
ALTER TABLE i ADD PRIMARY KEY USING INDEX i_id; ALTER TABLE i ADD CONSTRAINT u_v UNIQUE (v);
VACUUM i; SELECT count(*), sum(id) FROM i; VACUUM (FREEZE) i; SELECT count(*), sum(id) FROM i; ANALYZE i;
SELECT reltuples = (SELECT count(*) FROM i) AS right_estimate FROM pg_class WHERE relname = 'i';
SELECT attname, null_frac < 0.6, n_distinct <> 0 FROM pg_stats WHERE tablename = 'i' AND attname IN ('id', 'k') ORDER BY 1;
VACUUM FULL i; SELECT count(*), sum(id), sum(k) FROM i; CLUSTER i USING i_pkey; CLUSTER i USING i_k; SELECT count(*), sum(id), sum(k) FROM i;
SET enable_seqscan = off; SELECT id, k FROM i WHERE id = 12345; SELECT count(*), sum(id) FROM i WHERE k = 5; RESET enable_seqscan;
DROP TABLE i;

-- partitions
CREATE TABLE p (id int, k int, v text) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10000); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10000) TO (20000); CREATE TABLE pd PARTITION OF p DEFAULT;
INSERT INTO p SELECT g, g % 10, g FROM generate_series(0, 29999) g;
SELECT tableoid::regclass, count(*), sum(id) FROM p GROUP BY 1 ORDER BY 1;
CREATE INDEX ON p (k); CREATE UNIQUE INDEX ON p (id);
SELECT count(*), sum(id) FROM p WHERE k = 3; SELECT * FROM p WHERE id = 15000; SELECT * FROM p WHERE id BETWEEN 9999 AND 10001 ORDER BY id;
INSERT INTO p VALUES (5, 1, 'twice');
ALTER TABLE p DETACH PARTITION p2; SELECT count(*) FROM p; SELECT count(*) FROM p2; ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10000) TO (20000); SELECT count(*) FROM p;
CREATE TABLE p4 (LIKE p INCLUDING ALL); INSERT INTO p4 SELECT g, 1, 'x' FROM generate_series(40000, 41000) g; ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (35000) TO (40500); ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (40000) TO (50000);
SELECT tableoid::regclass, count(*), sum(id) FROM p GROUP BY 1 ORDER BY 1; TRUNCATE p1; SELECT count(*) FROM p; DROP TABLE p2; SELECT count(*) FROM p; TRUNCATE p; SELECT count(*) FROM p;
DROP TABLE p;

-- temporary and unlogged
CREATE TEMP TABLE t (i int) ON COMMIT DELETE ROWS; BEGIN; INSERT INTO t SELECT g FROM generate_series(1, 20000) g; SELECT count(*), sum(i) FROM t; COMMIT; SELECT count(*) FROM t; INSERT INTO t SELECT g FROM generate_series(1, 20000) g; SELECT count(*) FROM t;
CREATE TEMP TABLE td ON COMMIT DROP AS SELECT 1 AS x; SELECT * FROM td;
CREATE TEMP TABLE tp (id int PRIMARY KEY, v text); INSERT INTO tp SELECT g, g FROM generate_series(1, 20000) g; SELECT v FROM tp WHERE id = 777; UPDATE tp SET v = 'hot' WHERE id = -1; INSERT INTO tp VALUES (-1, 'x'); UPDATE tp SET v = 'hot' WHERE id = -1; SELECT count(*), sum(id) FROM tp; TRUNCATE tp; SELECT count(*) FROM tp;
DISCARD TEMP; SELECT * FROM tp;
CREATE UNLOGGED TABLE ul (id serial PRIMARY KEY, v text); INSERT INTO ul (v) SELECT g FROM generate_series(1, 20000) g; SELECT count(*), sum(id), max(v) FROM ul; TRUNCATE ul RESTART IDENTITY; INSERT INTO ul (v) VALUES ('x') RETURNING *; DROP TABLE ul;

-- materialized views, foreign structure
CREATE TABLE base AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 20000) g;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM base; SELECT count(*), sum(id) FROM mv; INSERT INTO base VALUES (-1, -1); REFRESH MATERIALIZED VIEW mv; SELECT count(*), sum(id) FROM mv;
CREATE UNIQUE INDEX ON mv (id); REFRESH MATERIALIZED VIEW CONCURRENTLY mv; SELECT count(*), sum(id) FROM mv; REFRESH MATERIALIZED VIEW mv WITH NO DATA; SELECT count(*) FROM mv; DROP MATERIALIZED VIEW mv;
CREATE TABLE empty (LIKE base); SELECT count(*), sum(id) FROM empty; VACUUM empty; ANALYZE empty; TRUNCATE empty; VACUUM FULL empty; CREATE INDEX ON empty (id); SELECT * FROM empty WHERE id = 1; DROP TABLE empty;
CREATE TABLE many AS SELECT * FROM base; ALTER TABLE many SET TABLESPACE pg_default; COMMENT ON TABLE many IS 'x'; GRANT SELECT ON many TO PUBLIC; SECURITY LABEL ON TABLE many IS 'x'; LOCK TABLE many IN SHARE MODE; BEGIN; LOCK TABLE many; SELECT count(*) FROM many; COMMIT;
CREATE STATISTICS st ON id, k FROM many; ANALYZE many; SELECT count(*) FROM pg_statistic_ext_data; DROP TABLE many, base;
CREATE TABLE "Odd ""name" ("Col, 1" int, "select" text); INSERT INTO "Odd ""name" SELECT g, g FROM generate_series(1, 12000) g; SELECT "Col, 1", "select" FROM "Odd ""name" WHERE "Col, 1" = 11999; DROP TABLE "Odd ""name";
