-- For queries over {t}_name, which stands for heap_name and column_name: joins(query) gives the lines of the
-- columnar plan that match plan_lines, answer(query, 'heap') and answer(query, 'column') those of
-- answers.sql.
\set heap heap
\set columns column
\ir answers.sql
\set ECHO none
CREATE FUNCTION joins(query text, wanted text DEFAULT :'plan_lines') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, '{t}', 'column') LOOP
        IF line ~ wanted THEN RETURN NEXT trim(replace(line, 'Operators:', '')); END IF;
    END LOOP;
END $$;
\set ECHO all
