-- An inner join keeps the outer side where it takes far less memory than the inner one, which the server
-- keeps because its keys are unique.
SET max_parallel_workers_per_gather = 0;
SET colonnade.stripe_threshold_rows = 0;
\set plan_lines 'Hash Cond'
\i include/join_answers.sql
CREATE TABLE heap_dim (id int, t text, u text) USING heap;
INSERT INTO heap_dim SELECT CASE WHEN g % 1000 > 0 THEN g END, 'a longer text of ' || g, repeat(md5(g::text), 3) FROM generate_series(1, 30000) g;
CREATE TABLE heap_fact (d int, n int) USING heap;
INSERT INTO heap_fact SELECT CASE WHEN g % 77 > 0 THEN g % 300 * 90 + 1 END, g FROM generate_series(1, 12000) g;
CREATE TABLE column_dim (LIKE heap_dim) USING colcompress;
INSERT INTO column_dim SELECT * FROM heap_dim;
CREATE TABLE column_fact (LIKE heap_fact) USING colcompress;
INSERT INTO column_fact SELECT * FROM heap_fact;
ANALYZE heap_dim, heap_fact, column_dim, column_fact;
CREATE TABLE asked (name text, query text) USING heap;
INSERT INTO asked VALUES
    ('groups', 'SELECT t, u, sum(n), count(*) FROM {t}_fact JOIN {t}_dim ON id = d GROUP BY t, u'),
    ('rows', 'SELECT n, t, length(u) FROM {t}_fact JOIN {t}_dim ON id = d'),
    ('condition', 'SELECT n, t, u FROM {t}_fact JOIN {t}_dim ON id = d AND length(t) > n % 30'),
    ('condition above', 'SELECT n, t, u FROM {t}_fact JOIN {t}_dim ON id = d WHERE n + id < 9000 OR t IS NULL'),
    ('distinct side', 'SELECT t, u FROM (SELECT DISTINCT d FROM {t}_fact) f JOIN {t}_dim ON id = d'),
    ('keys only', 'SELECT count(*), sum(n), sum(id) FROM {t}_fact JOIN {t}_dim ON id = d');
SELECT name, joins(query) FROM asked;
SELECT name, answer(query, 'heap'), answer(query, 'column') FROM asked WHERE answer(query, 'heap') <> answer(query, 'column');
SET max_parallel_workers_per_gather = 1;
SET work_mem = '64kB';
SELECT name, answer(query, 'heap'), answer(query, 'column') FROM asked WHERE answer(query, 'heap') <> answer(query, 'column');
SELECT answer(query, 'column') FROM asked WHERE name = 'groups';
