-- An ERROR raised below a node or a callback of ours keeps every field: names, detail, hint, context. Heap
-- says what is right.
CREATE FUNCTION fields(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text; sch text; tab text; col text; dat text; con text; lines text;
BEGIN
    EXECUTE query;
    RETURN NEXT 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT,
        sch = SCHEMA_NAME, tab = TABLE_NAME, col = COLUMN_NAME, dat = PG_DATATYPE_NAME, con = CONSTRAINT_NAME, lines = PG_EXCEPTION_CONTEXT;
    RETURN NEXT concat_ws(' | ', state, message, detail, hint, sch, tab, col, dat, con);
    -- 18 says whose expression it is.
    RETURN QUERY SELECT '  ' || replace(line, 'PL/pgSQL expression', 'SQL expression') FROM regexp_split_to_table(lines, '\n') AS line;
END $$;

CREATE DOMAIN positive AS int CONSTRAINT is_positive CHECK (VALUE > 0);
CREATE FUNCTION refuse(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF n = 7 THEN
        RAISE 'no %', n USING ERRCODE = 'ZZ007', DETAIL = 'why', HINT = 'how', SCHEMA = 'sch', TABLE = 'tab', COLUMN = 'col', DATATYPE = 'dat',
            CONSTRAINT = 'con';
    END IF;
    RETURN n;
END $$;
-- From 17 on CREATE INDEX finds no function of the user's without its schema.
CREATE FUNCTION around(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN public.refuse(n); END $$;
CREATE FUNCTION forgiving(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN refuse(n);
EXCEPTION WHEN OTHERS THEN RETURN 1 / (n - 7);
END $$;

CREATE TABLE t (id int, n int) USING colcompress;
SET colonnade.stripe_threshold_rows = 0;
INSERT INTO t SELECT g, g FROM generate_series(1, 1000) g;
RESET colonnade.stripe_threshold_rows;
CREATE TABLE h (id int, n int);
INSERT INTO h SELECT * FROM t;
ANALYZE t, h;
SET colonnade.vectorised_min_rows = 0;

EXPLAIN (COSTS OFF) SELECT id % 2, sum(around(n)) FROM t GROUP BY 1;
SELECT fields('SELECT id % 2, sum(around(n)) FROM t GROUP BY 1');
SELECT fields('SELECT id % 2, sum(around(n)) FROM h GROUP BY 1');
SELECT fields('SELECT id % 2, sum((n - 5)::positive) FROM t GROUP BY 1');
SELECT fields('SELECT id % 2, sum((n - 5)::positive) FROM h GROUP BY 1');
-- rows of the server's executor below a vectorised join
EXPLAIN (COSTS OFF) SELECT count(*) FROM t JOIN (SELECT around(n) AS a FROM h OFFSET 0) x ON t.n = a;
SELECT fields('SELECT count(*) FROM t JOIN (SELECT around(n) AS a FROM h OFFSET 0) x ON t.n = a');
SELECT fields('SELECT count(*) FROM h t JOIN (SELECT around(n) AS a FROM h OFFSET 0) x ON t.n = a');
SELECT fields('SELECT count(*) FROM t JOIN (SELECT (n - 5)::positive AS a FROM h OFFSET 0) x ON t.n = a');
-- one error caught inside, and another after it
SELECT fields('SELECT id % 2, sum(forgiving(n)) FROM t GROUP BY 1');
SELECT fields('SELECT id % 2, sum(forgiving(n)) FROM h GROUP BY 1');
-- rows from the scan node itself, and a condition
SELECT fields('SELECT around(n) FROM t');
SELECT fields('SELECT count(*) FROM t WHERE around(n) > 0');
SELECT fields('SELECT count(*) FROM h WHERE around(n) > 0');
-- one vectorised query inside a function that another calls
CREATE FUNCTION inner_query(n int) RETURNS bigint LANGUAGE plpgsql STABLE
AS $$ BEGIN RETURN (SELECT sum(around(t.n)) FROM t WHERE t.n <= inner_query.n); END $$;
SELECT fields('SELECT id % 2, sum(inner_query(n)) FROM t WHERE n < 20 GROUP BY 1');
SELECT fields('SELECT id % 2, sum(inner_query(n)) FROM h WHERE n < 20 GROUP BY 1');
-- while planning, building an index, rewriting
SELECT fields('SELECT count(*) FROM t WHERE n > around(7)');
SELECT fields('SELECT count(*) FROM h WHERE n > around(7)');
SELECT fields('CREATE INDEX ON t (around(n))');
SELECT fields('CREATE INDEX ON h (around(n))');
SELECT fields('CREATE INDEX ON t (n) WHERE around(n) > 0');
SELECT fields('SELECT sum(n) FROM t');
