-- same_answers(query): a query over {t}, asked of heap_t, in the server's own executor, and of column_t. Rows
-- are compared as text: in order where the query ends with an ORDER BY of its own, else sorted. `plan` is the
-- top node of the columnar plan.
\set ECHO none
CREATE FUNCTION same_answers(query text, OUT same bool, OUT heap text, OUT columns text, OUT plan text) LANGUAGE plpgsql AS $$
DECLARE
    ordered text := CASE WHEN query ~ 'ORDER BY [^()]*$' THEN 'ORDER BY number' ELSE 'ORDER BY row' END;
    asked text := format('SELECT md5(string_agg(row, E''\n'' %s)) || '' of '' || count(*)
                          FROM (SELECT x::text AS row, row_number() OVER () AS number FROM (%s) x) rows', ordered, query);
    top json;
BEGIN
    PERFORM set_config('colonnade.enable_vectorised', 'off', true);
    BEGIN EXECUTE replace(asked, '{t}', 'heap_t') INTO heap; EXCEPTION WHEN OTHERS THEN heap := SQLSTATE || ' ' || SQLERRM; END;
    PERFORM set_config('colonnade.enable_vectorised', 'on', true);
    BEGIN EXECUTE replace(asked, '{t}', 'column_t') INTO columns; EXCEPTION WHEN OTHERS THEN columns := SQLSTATE || ' ' || SQLERRM; END;
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || replace(query, '{t}', 'column_t') INTO top;
    plan := coalesce(top->0->'Plan'->>'Custom Plan Provider', top->0->'Plan'->>'Node Type');
    same := heap IS NOT DISTINCT FROM columns;
END $$;
\set ECHO all
