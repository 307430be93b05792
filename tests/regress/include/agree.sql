-- agree(a, b): whether two tables have the same rows.
\set ECHO none
CREATE FUNCTION agree(a regclass, b regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE same bool; n bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM %s', a) INTO n;
  EXECUTE format('SELECT NOT EXISTS ((TABLE %1$s EXCEPT ALL TABLE %2$s) UNION ALL (TABLE %2$s EXCEPT ALL TABLE %1$s))', a, b)
    INTO same;
  RETURN format('%s rows, %s', n, CASE WHEN same THEN 'equal' ELSE 'DIFFERENT' END);
END $$;
\set ECHO all
