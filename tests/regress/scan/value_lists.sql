-- Long lists of values, IN and NOT IN: rows are looked up in the list, not compared with each of its values.
SET max_parallel_workers_per_gather = 0;
CREATE TABLE list_h (id int, big bigint, d date, ts timestamp, w text, long text, n numeric(12, 2), f float8, b boolean, u uuid) USING heap;
INSERT INTO list_h SELECT g, g * 10000000000, date '2000-01-01' + g % 3000, timestamp '2020-01-01' + g * interval '1 minute', CASE WHEN g % 11 > 0
    THEN 'word ' || g % 700 END, md5(g::text) || g,
    CASE WHEN g % 13 > 0 THEN g % 5000 / 4.0 END, CASE g % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN -0.0 ELSE g / 7.0 END, CASE WHEN g % 5 > 0 THEN g % 2 = 0
        END, md5(g::text)::uuid FROM generate_series(1, 60000) g;
CREATE TABLE list_c (LIKE list_h) USING colcompress;
INSERT INTO list_c SELECT * FROM list_h;
INSERT INTO list_h SELECT * FROM list_h WHERE id < 20;
INSERT INTO list_c SELECT * FROM list_c WHERE id < 20;
ANALYZE list_h, list_c;
CREATE FUNCTION differs(kind text, many int, form text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE list text; condition text; ours text; heaps text;
BEGIN
    EXECUTE
        format('SELECT string_agg(quote_nullable(%1$s) || ''::'' || pg_typeof(%1$s), '', '') FROM (SELECT %1$s FROM list_h WHERE %1$s IS NOT NULL '
        'AND id %% 7 = 3 ORDER BY id LIMIT %2$s) x', kind, many) INTO list;
    condition := format(form, kind, list);
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM list_c WHERE %s', condition) INTO ours;
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM list_h WHERE %s', condition) INTO heaps;
    RETURN CASE WHEN ours = heaps THEN 'same' ELSE format('%s %s: %s, heap %s', kind, form, ours, heaps) END;
END $$;
SELECT differs(kind, many, form), count(*)
FROM unnest(ARRAY['id', 'big', 'd', 'ts', 'w', 'long', 'n', 'f', 'b', 'u']) kind, unnest(ARRAY[1, 4, 5, 9, 300]) many,
    unnest(ARRAY['%s NOT IN (%s)', '%s IN (%s)', '%1$s <> ALL (ARRAY[%2$s])', '%1$s NOT IN (%2$s, NULL)', 'NOT (%1$s IN (%2$s)) AND id > 77',
        '%1$s NOT IN (%2$s) AND %1$s IS NOT NULL AND id BETWEEN 10 AND 50000', '%1$s NOT IN (%2$s) OR id = 3'])
    form GROUP BY 1 ORDER BY 1;
-- Comparing each row with each value would be 16 times the work with 16 times the values; looking a row up is
-- not. Work is the processor's: that the machine has other work, too, does not count.
CREATE FUNCTION processor_ticks() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT fields[12]::bigint + fields[13]::bigint
    FROM regexp_split_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '^.*\) ', ''), ' ') fields
$$;
CREATE FUNCTION work(many int, OUT ticks bigint, OUT counts text, OUT heaps text) LANGUAGE plpgsql AS $$
DECLARE before bigint; kind text; list text; type text; n bigint;
BEGIN
    ticks := 0;
    FOREACH kind IN ARRAY ARRAY['id', 'd', 'w', 'long', 'n', 'f', 'u'] LOOP
        SELECT format_type(atttypid, NULL) INTO type FROM pg_attribute WHERE attrelid = 'list_h'::regclass AND attname = kind;
        list := format('FROM list_h WHERE id %% 3 = 0 AND id <= 3 * %s AND %s IS NOT NULL', many, kind);
        before := processor_ticks();
        EXECUTE format('SELECT count(*) FROM list_c WHERE %1$s <> ALL ((SELECT array_agg(%1$s) %2$s)::%3$s[])', kind, list, type) INTO n;
        counts := concat_ws(' ', counts, n);
        EXECUTE format('SELECT count(*) FROM list_c WHERE %1$s = ANY ((SELECT array_agg(%1$s) %2$s)::%3$s[])', kind, list, type) INTO n;
        counts := concat_ws(' ', counts, n);
        ticks := ticks + processor_ticks() - before;
        -- Of a list that is not known to the planner heap compares every value, of a subquery it makes a hash
        -- table.
        EXECUTE
            format('SELECT concat_ws('' '', count(*) FILTER (WHERE %1$s NOT IN (SELECT %1$s %2$s)), '
            'count(*) FILTER (WHERE %1$s IN (SELECT %1$s %2$s))) FROM list_h', kind, list) INTO type;
        heaps := concat_ws(' ', heaps, type);
    END LOOP;
END $$;
CREATE TABLE worked AS SELECT many, w.* FROM unnest(ARRAY[1000, 16000]) many, work(many) w;
SELECT many, counts, counts = heaps AS same FROM worked ORDER BY many;
SELECT CASE WHEN high.ticks < 4 * greatest(low.ticks, 5) THEN 'looked up' ELSE format('%s ticks for 1000 values, %s for 16000', low.ticks, high.ticks)
    END AS lists
FROM worked low, worked high WHERE low.many = 1000 AND high.many = 16000;
