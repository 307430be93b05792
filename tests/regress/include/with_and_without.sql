-- compared(query): the answer with columnstore indexes beside the heap's own in the same snapshot, and the
-- blocks that were read from where.
\set ECHO none
CREATE FUNCTION compared(query text, OUT same text, OUT blocks text) LANGUAGE plpgsql AS $$
DECLARE
    asked text := format('SELECT count(*) || '' rows, '' || coalesce(sum(hashtextextended(r::text, 0)), 0) FROM (%s) r', query);
    heap text;
    copies text;
    line text;
BEGIN
    PERFORM set_config('colonnade.enable_columnstore_index', 'off', true);
    EXECUTE asked INTO heap;
    PERFORM set_config('colonnade.enable_columnstore_index', 'on', true);
    EXECUTE asked INTO copies;
    same := CASE WHEN heap = copies THEN 'same: ' || split_part(heap, ',', 1) ELSE 'DIFFERENT: heap ' || heap || ', copies ' || copies END;
    FOR line IN EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) %s', query) LOOP
        IF line ~ 'Blocks:' THEN blocks := coalesce(blocks || '; ', '') || btrim(split_part(line, 'Blocks:', 2)); END IF;
    END LOOP;
END $$;
\set ECHO all
