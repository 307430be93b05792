-- node(query): whether the plan of a query has a vectorised node, and why it fell back when it runs; {t} is
-- column_t. fell_back(query): why it fell back, or its error; NULL where it did not.
\set ECHO none
CREATE FUNCTION node(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; found text := 'not vectorised';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || replace(query, '{t}', 'column_t') LOOP
        IF line ~ 'Colonnade Vectorised' THEN found := 'vectorised'; END IF;
        IF line ~ 'Fell Back' THEN found := found || ',' || regexp_replace(line, '^ *', ' '); END IF;
    END LOOP;
    RETURN found;
END $$;
CREATE FUNCTION fell_back(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN substring(node(query) FROM 'Fell Back.*');
EXCEPTION WHEN OTHERS THEN
    RETURN 'ERROR ' || SQLSTATE || ' ' || SQLERRM;
END $$;
\set ECHO all
