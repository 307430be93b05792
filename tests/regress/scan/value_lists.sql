-- Long lists of values, IN and NOT IN: rows are looked up in the list, not compared with each of its values.
SET max_parallel_workers_per_gather = 0;
CREATE TABLE list_h (id int, big bigint, d date, ts timestamp, w text, long text, n numeric(12, 2), f float8, b boolean, u uuid) USING heap;
INSERT INTO list_h SELECT g, g * 10000000000, date '2000-01-01' + g % 3000, timestamp '2020-01-01' + g * interval '1 minute', CASE WHEN g % 11 > 0 THEN 'word ' || g % 700 END, md5(g::text) || g,
    CASE WHEN g % 13 > 0 THEN g % 5000 / 4.0 END, CASE g % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN -0.0 ELSE g / 7.0 END, CASE WHEN g % 5 > 0 THEN g % 2 = 0 END, md5(g::text)::uuid FROM generate_series(1, 60000) g;
CREATE TABLE list_c (LIKE list_h) USING colcompress;
INSERT INTO list_c SELECT * FROM list_h;
INSERT INTO list_h SELECT * FROM list_h WHERE id < 20;
INSERT INTO list_c SELECT * FROM list_c WHERE id < 20;
ANALYZE list_h, list_c;
CREATE FUNCTION differs(kind text, many int, form text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE list text; condition text; ours text; heaps text;
BEGIN
    EXECUTE format('SELECT string_agg(quote_nullable(%1$s) || ''::'' || pg_typeof(%1$s), '', '') FROM (SELECT %1$s FROM list_h WHERE %1$s IS NOT NULL AND id %% 7 = 3 ORDER BY id LIMIT %2$s) x', kind, many) INTO list;
    condition := format(form, kind, list);
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM list_c WHERE %s', condition) INTO ours;
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM list_h WHERE %s', condition) INTO heaps;
    RETURN CASE WHEN ours = heaps THEN 'same' ELSE format('%s %s: %s, heap %s', kind, form, ours, heaps) END;
END $$;
SELECT differs(kind, many, form), count(*)
FROM unnest(ARRAY['id', 'big', 'd', 'ts', 'w', 'long', 'n', 'f', 'b', 'u']) kind, unnest(ARRAY[1, 4, 5, 9, 300]) many,
    unnest(ARRAY['%s NOT IN (%s)', '%s IN (%s)', '%1$s <> ALL (ARRAY[%2$s])', '%1$s NOT IN (%2$s, NULL)', 'NOT (%1$s IN (%2$s)) AND id > 77', '%1$s NOT IN (%2$s) AND %1$s IS NOT NULL AND id BETWEEN 10 AND 50000', '%1$s NOT IN (%2$s) OR id = 3'])
    form GROUP BY 1 ORDER BY 1;
-- As fast as heap, about: comparing each of 60,000 rows with each of 20,000 values takes many times as long.
SET statement_timeout = '10s';
DO $$
DECLARE kind text; found bigint;
BEGIN
    FOREACH kind IN ARRAY ARRAY['id', 'd', 'w', 'long', 'n', 'f', 'u'] LOOP
        EXECUTE format('SELECT count(*) FROM list_c WHERE %1$s <> ALL ((SELECT array_agg(%1$s) FROM list_h WHERE id %% 3 = 0 AND %1$s IS NOT NULL)::%2$s[])', kind, (SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'list_h'::regclass AND attname = kind)) INTO found;
        RAISE NOTICE '% %', kind, found;
        EXECUTE format('SELECT count(*) FROM list_c WHERE %1$s = ANY ((SELECT array_agg(%1$s) FROM list_h WHERE id %% 3 = 0 AND %1$s IS NOT NULL)::%2$s[])', kind, (SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'list_h'::regclass AND attname = kind)) INTO found;
        RAISE NOTICE '% %', kind, found;
    END LOOP;
END $$;
