-- Comparing a colcompress table with its heap twin. Both have a column id that identifies a row.
\set ECHO none
-- Rows that are missing on one side or differ by a byte.
CREATE FUNCTION differences(heap regclass, col regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT heap_row, heap_row.id FROM %s heap_row) x FULL JOIN (SELECT col_row, col_row.id FROM %s col_row) y USING (id)
                    WHERE (heap_row *= col_row) IS NOT TRUE OR heap_row::text IS DISTINCT FROM col_row::text', heap, col) INTO n;
    RETURN n;
END $$;

-- Does the table have cold rows at all? A test of them is worth nothing otherwise.
CREATE FUNCTION cold_rows(col regclass) RETURNS numeric LANGUAGE sql AS
$$ SELECT coalesce(sum(row_count), 0) FROM engine.colcompress_stripes WHERE table_name = col $$;

-- Queries over each single column whose answer is not the twin's.
CREATE FUNCTION other_answers(heap regclass, col regclass) RETURNS TABLE (attribute name, query text) LANGUAGE plpgsql AS $$
DECLARE
    c record; q text; template text; sortable bool; templates text[]; x text; y text; value text; i int;
BEGIN
    FOR c IN SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.atttypid, a.attcollation
             FROM pg_attribute a WHERE a.attrelid = heap AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
    LOOP
        templates := ARRAY['SELECT count(*), count(%1$I) FROM %2$s',
                           'SELECT count(*) FROM %2$s WHERE %1$I IS NULL',
                           'SELECT sum(id) FROM %2$s WHERE %1$I IS NOT NULL'];
        BEGIN
            EXECUTE format('SELECT 1 FROM %s WHERE %I < %I AND %I = %I ORDER BY %I LIMIT 0', heap, c.attname, c.attname, c.attname, c.attname, c.attname);
            sortable := true;
        EXCEPTION WHEN undefined_function OR ambiguous_function THEN
            sortable := false;
        END;
        IF sortable THEN
            templates := templates || ARRAY[
                'SELECT md5(string_agg(v::text, ''|'')) FROM (SELECT %1$I AS v FROM %2$s ORDER BY %1$I, id) v',
                'SELECT md5(string_agg(v || ''x'' || n, ''|'')) FROM (SELECT min(id) || '''' AS v, count(*) AS n FROM %2$s GROUP BY %1$I ORDER BY 1, 2) v'];
            FOR i IN 1..3 LOOP
                EXECUTE format('SELECT quote_literal(%1$I::text) FROM %2$s WHERE %1$I IS NOT NULL ORDER BY md5(id::text || $1) LIMIT 1', c.attname, heap)
                INTO value USING i::text;
                CONTINUE WHEN value IS NULL;
                value := format('%s::%s', value, c.type);
                FOREACH template IN ARRAY ARRAY['=', '<', '<=', '>', '>=', '<>'] LOOP
                    templates := templates || replace(format('SELECT count(*), sum(id) FROM %%2$s WHERE %%1$I %s %s', template,
                        replace(value, '%', '%%')), '%%%', '%%');
                END LOOP;
                templates := templates || format('SELECT count(*), sum(id) FROM %%2$s WHERE %%1$I IN (%1$s, %1$s) OR %%1$I IS NULL', replace(value, '%', '%%'));
            END LOOP;
        END IF;
        FOREACH template IN ARRAY templates LOOP
            q := format('SELECT r::text FROM (' || template || ') r', c.attname, heap);
            EXECUTE q INTO x;
            EXECUTE format('SELECT r::text FROM (' || template || ') r', c.attname, col) INTO y;
            IF x IS DISTINCT FROM y THEN
                attribute := c.attname; query := q || ' gives ' || coalesce(x, 'NULL') || ', not ' || coalesce(y, 'NULL');
                RETURN NEXT;
            END IF;
        END LOOP;
    END LOOP;
END $$;
\set ECHO all
