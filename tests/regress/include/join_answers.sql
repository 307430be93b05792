-- For queries over {table, which stands for heap_table and column_table: joins(query) gives the lines of the columnar plan that match plan_lines, answer(query, of) how
-- many rows there are and what they hash to; heap's is that of the server's own executor.
CREATE FUNCTION joins(query text, wanted text DEFAULT :'plan_lines') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, '{', 'column_') LOOP
        IF line ~ wanted THEN RETURN NEXT trim(replace(line, 'Operators:', '')); END IF;
    END LOOP;
END $$;
CREATE FUNCTION answer(query text, of text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
    vectors text := current_setting('colonnade.enable_vectorised');
BEGIN
    IF of = 'heap_' THEN PERFORM set_config('colonnade.enable_vectorised', 'off', true); END IF;
    EXECUTE format('SELECT count(*) || '' rows, '' || coalesce(sum(hashtextextended(r::text, 0)), 0) FROM (%s) r', replace(query, '{', of)) INTO found;
    PERFORM set_config('colonnade.enable_vectorised', vectors, true);
    RETURN found;
END $$;
