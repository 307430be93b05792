-- Runs :stmt on the heap table h and the columnar table c, {t} standing for either, and tells what the server
-- counts of c, and in what that differs from h.
SELECT replace(:'stmt', '{t}', t) FROM unnest(ARRAY['h', 'c']) t \gexec
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT * FROM counts;
