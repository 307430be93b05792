-- leak(value): tells every value that it is given. Who sees a NOTICE has seen a row that was to be hidden.
\set ECHO none
CREATE FUNCTION leak(anyelement) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$;
\set ECHO all
