-- plan(query, options): what EXPLAIN says, line by line, as PostgreSQL 15 would write it. Later versions name
-- what comes of an InitPlan or SubPlan, write rows with decimals, and say of each node whether it is disabled.
\set ECHO none
CREATE FUNCTION plan(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE part text; line text;
BEGIN
    FOR part IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
        FOREACH line IN ARRAY string_to_array(part, E'\n') LOOP
            CONTINUE WHEN line ~ '\mDisabled"?(: |>)(true|false)';
            line := regexp_replace(line, '((Rows|rows)\W+\d+)\.00\M', '\1', 'g');
            line := regexp_replace(line, 'InitPlan (\d+) \(returns \$\d+\)', 'InitPlan \1');
            FOR n IN 1..9 LOOP
                line := replace(line, format('(InitPlan %s).col1', n), '$' || n - 1);
            END LOOP;
            RETURN NEXT regexp_replace(line, '\(ANY \(\w+ = (\(hashed SubPlan \d+\))\.col1\)\)', '\1');
        END LOOP;
    END LOOP;
END $$;
\set ECHO all
