-- Answers of queries over {t}, which stands for a table or the beginning of its name: :heap (heap_t where it
-- is not set) or :columns (column_t). Heap's answers are those of the server's own executor.
-- answer(query, t): how many rows there are and what they hash to, in whatever order.
-- outcome(query, t): the same, or the error. same(query): both outcomes beside each other.
\set ECHO none
\if :{?heap}
\else
\set heap heap_t
\set columns column_t
\endif
CREATE FUNCTION answer(query text, t text, heap text DEFAULT :'heap') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    vectors text := current_setting('colonnade.enable_vectorised');
    found text;
BEGIN
    IF t = heap THEN PERFORM set_config('colonnade.enable_vectorised', 'off', true); END IF;
    EXECUTE format('SELECT count(*) || '' rows, '' || coalesce(sum(hashtextextended(r::text, 0)), 0) FROM (%s) r',
                   replace(query, '{t}', t)) INTO found;
    PERFORM set_config('colonnade.enable_vectorised', vectors, true);
    RETURN found;
END $$;
CREATE FUNCTION outcome(query text, t text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN answer(query, t);
EXCEPTION WHEN OTHERS THEN
    RETURN 'ERROR ' || SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE FUNCTION same(query text, heap text DEFAULT :'heap', columns text DEFAULT :'columns') RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN h IS DISTINCT FROM c THEN 'DIFFERENT: heap ' || h || ', columns ' || c
                WHEN h LIKE 'ERROR%' THEN 'same: ' || h
                ELSE 'same: ' || split_part(h, ',', 1) END
    FROM (SELECT outcome(query, heap) AS h, outcome(query, columns) AS c) o
$$;
\set ECHO all
