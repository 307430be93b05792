-- The tables that tests/long/sqlsmith.py asks about: many types, rows in stripes and in heap pages, partitions,
-- inheritance, views, a materialized view, row security. `col` is ours; `heap` gets the same tables in heap.
SELECT format('CREATE SCHEMA %I; SET search_path = %1$I; SET default_table_access_method = %I',
              :'schema', :'method') \gexec
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (left_half int, right_half text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);

CREATE TABLE numbers (id int PRIMARY KEY, small smallint, whole int NOT NULL, large bigint, exact numeric,
                      money numeric(12, 2), single real, double double precision, flag boolean, checked positive,
                      sum_up int GENERATED ALWAYS AS (whole + 1) STORED);
CREATE TABLE texts (id int PRIMARY KEY, body text, short varchar(20), padded char(8), code "char", who name,
                    ident uuid, bytes bytea, bits bit(5), varbits varbit, feeling mood, sorted text COLLATE "C");
CREATE TABLE times (id int PRIMARY KEY, day date, moment timestamp, zoned timestamptz, clock time, zclock timetz,
                    span interval);
CREATE TABLE documents (id int PRIMARY KEY, doc jsonb, plain json, ints int[], words text[], range int4range,
                        days daterange, address inet, net cidr, mac macaddr, place point, area box, mixed pair,
                        vector tsvector, markup xml);
CREATE TABLE events (id bigint, day date NOT NULL, kind int, amount numeric(10, 3), tag text, doc jsonb)
    PARTITION BY RANGE (day);
CREATE TABLE events_old PARTITION OF events FOR VALUES FROM ('2020-01-01') TO ('2020-07-01');
CREATE TABLE events_new PARTITION OF events FOR VALUES FROM ('2020-07-01') TO ('2021-01-01');
CREATE TABLE events_heap PARTITION OF events DEFAULT USING heap;
CREATE TABLE parent (id int, v text);
CREATE TABLE child (extra float8) INHERITS (parent);
CREATE TABLE small (id int PRIMARY KEY, name text, v float8);
CREATE TABLE nothing (id int, t text, n numeric, d date);
CREATE TABLE guarded (id int, owner text, v bigint);

-- Cold rows, then hot ones.
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO numbers (id, small, whole, large, exact, money, single, double, flag, checked)
SELECT g, g % 300 - 150, g % 17, CASE WHEN g % 11 > 0 THEN g::bigint * 1000003 END, CASE WHEN g % 500 = 7 THEN 'NaN' ELSE g / 7.0 END,
       g % 1000 / 100.0, g % 13 / 4.0, CASE WHEN g % 400 = 3 THEN 'Infinity' ELSE g * 0.25 END, g % 3 = 0, g
FROM generate_series(1, 3000) g;
INSERT INTO texts
SELECT g, CASE WHEN g % 9 > 0 THEN 'text ' || md5((g % 200)::text) END, 'short' || g % 30, 'p' || g % 50, chr(97 + g % 26)::"char",
       ('who' || g % 40)::name, md5(g::text)::uuid, decode(md5(g::text), 'hex'), (g % 32)::bit(5), (g % 7)::bit(3)::varbit,
       (ARRAY['sad', 'ok', 'happy'])[g % 3 + 1]::mood, repeat(chr(65 + g % 26), g % 5)
FROM generate_series(1, 2000) g;
INSERT INTO times
SELECT g, date '2020-01-01' + g % 900, timestamp '2020-01-01' + g * interval '1 hour', timestamptz '2020-01-01' + g * interval '7 min',
       time '00:00' + g * interval '1 min', timetz '00:00+01', g * interval '90 min'
FROM generate_series(1, 2000) g;
INSERT INTO documents
SELECT g, jsonb_build_object('a', g, 'b', 'x' || g % 10, 'c', jsonb_build_array(g, g + 1), 'd', CASE WHEN g % 4 = 0 THEN jsonb_build_object('e', g % 5) END),
       json_build_object('k', g % 20), ARRAY[g, g + 1, NULL], ARRAY['w' || g % 6, 'v'], int4range(g, g + 10), daterange(date '2020-01-01', date '2020-01-01' + g % 60),
       ('10.0.' || g % 200 || '.1')::inet, '10.0.0.0/8', '08:00:2b:01:02:03', point(g, -g), box(point(0, 0), point(g, g)), ROW(g, 'r' || g)::pair,
       to_tsvector('simple', 'word' || g % 9), xmlelement(name x, g)
FROM generate_series(1, 1000) g;
INSERT INTO events
SELECT g, date '2020-01-01' + g % 500, g % 12, g % 1000 / 8.0, 'tag' || g % 25, jsonb_build_object('user', 'u' || g % 50)
FROM generate_series(1, 4000) g;
INSERT INTO parent SELECT g, 'p' || g FROM generate_series(1, 500) g;
INSERT INTO child SELECT g, 'c' || g, g / 3.0 FROM generate_series(1, 500) g;
INSERT INTO guarded SELECT g, CASE WHEN g % 2 = 0 THEN 'smith' ELSE 'other' END, g FROM generate_series(1, 400) g;
RESET colonnade.stripe_threshold_rows;
INSERT INTO numbers (id, whole, checked) VALUES (100001, 1, 1), (100002, 2, 2);
INSERT INTO texts (id, body) VALUES (100001, 'hot'), (100002, NULL), (100003, '');
INSERT INTO times (id, day, moment) VALUES (100001, 'infinity', '-infinity'), (100002, NULL, NULL);
INSERT INTO documents (id, doc) VALUES (100001, '{"a": null}'), (100002, '[]'), (100003, NULL);
INSERT INTO events VALUES (100001, '2020-02-02', 3, 0.5, 'hot', NULL), (100002, '2020-08-08', NULL, NULL, NULL, '{}');
INSERT INTO small VALUES (1, 'one', 1), (2, 'two', 'NaN'), (3, NULL, NULL);
INSERT INTO child VALUES (100001, 'hot', 0);

CREATE INDEX ON texts (body);
CREATE INDEX ON times (day);
CREATE INDEX ON events (kind);
CREATE INDEX ON documents USING gin (doc);
CREATE VIEW by_kind AS SELECT kind, count(*) AS n, sum(amount) AS total, min(day) AS first, max(tag) AS last FROM events GROUP BY kind;
CREATE VIEW joined AS SELECT n.id, n.whole, n.exact, t.body, t.feeling, m.moment FROM numbers n LEFT JOIN texts t USING (id) LEFT JOIN times m ON m.id = n.whole;
CREATE VIEW everything AS SELECT id, body AS t FROM texts UNION ALL SELECT id, v FROM parent UNION ALL SELECT id::int, tag FROM events;
CREATE VIEW ranked AS SELECT id, whole, row_number() OVER (PARTITION BY whole ORDER BY id) AS r, avg(double) OVER (PARTITION BY flag) AS a FROM numbers;
CREATE VIEW few AS SELECT DISTINCT whole, flag FROM numbers ORDER BY whole LIMIT 20;
CREATE MATERIALIZED VIEW kept AS SELECT n.id, n.money, t.short FROM numbers n JOIN texts t USING (id);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON guarded USING (owner = current_user);
ANALYZE;
