"""PostgreSQL's own suites with a columnstore index of up to 32 columns on every heap table that they make.

An event trigger makes the indexes; the background copies blocks while the suites run. Each suite runs three
times: on plain heap tables, with the indexes while no query uses them, and with queries that use them. Called
by scripts/core_suite.py for the suites `indexed-regress` and `indexed-isolation`.

The last two are compared as other runs are: only answers can differ, as catalogs are the same. What the
indexes do to changes of their tables shows beside plain heap: no statement may fail that does not fail there.
"""

import re

SUITES = {"indexed-regress": "regress", "indexed-isolation": "isolation"}
# Tables that have an index of ours already: partitions have that of their table. What fails is in the log.
EVERYWHERE = """
CREATE EXTENSION colonnade;
CREATE SCHEMA everywhere;
GRANT USAGE ON SCHEMA everywhere TO public;
CREATE FUNCTION everywhere.index() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made record;
BEGIN
    FOR made IN
        SELECT (SELECT format('CREATE INDEX IF NOT EXISTS everywhere_%s ON %s USING columnstore (%s)', c.oid, c.oid::regclass, string_agg(quote_ident(attname), ', ' ORDER BY attnum))
                FROM (SELECT attname, attnum FROM pg_attribute
                      WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated <> 'v' ORDER BY attnum LIMIT 32) a HAVING count(*) > 0) AS statement
        FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON c.oid = d.objid AND d.classid = 'pg_class'::regclass
        WHERE (c.relkind IN ('r', 'm') AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap') OR c.relkind = 'p')
          AND NOT EXISTS (SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
                          WHERE i.indrelid = c.oid AND x.relam = (SELECT oid FROM pg_am WHERE amname = 'columnstore'))
    LOOP
        CONTINUE WHEN made.statement IS NULL;
        BEGIN
            EXECUTE made.statement;
        EXCEPTION WHEN others THEN
            RAISE LOG 'no columnstore index: % (%)', SQLERRM, made.statement;
        END;
    END LOOP;
END $$;
CREATE EVENT TRIGGER everywhere ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'CREATE MATERIALIZED VIEW')
EXECUTE FUNCTION everywhere.index();
"""
# Small tables count, and scans of heap do not compete; the background goes round each second.
SETTINGS = {"colonnade.vectorised_min_rows": "0", "enable_seqscan": "off", "colonnade.packing_naptime": "1",
            "max_worker_processes": "30"}
ERROR = re.compile(r"^(?:psql:\S+ )?ERROR:.*", re.M)
# What differs from run to run: numbers that the server gives, and a transaction's other statements.
NUMBER = re.compile(r"\d{5,}")
FOLLOWS = "current transaction is aborted"


def prepare(server, database):
    server.sql(EVERYWHERE, database)


def run(run_suite, stage, source, suite):
    """(folder without queries that use the indexes, folder with them, lines of crashes, tables without an
    index as the log names them)."""
    off, _, crashes = run_suite(stage, source, suite, "heap", name="index-off", more_settings={**SETTINGS, "colonnade.enable_columnstore_index": "off"}, prepare=prepare)
    on, _, more = run_suite(stage, source, suite, "heap", name="index-on", more_settings=SETTINGS, prepare=prepare)
    log = (on.parent / "server.log").read_text(errors="replace")
    return off, on, crashes + more, sorted(set(re.findall(r"LOG:  no columnstore index: (.*)", log)))


def new_errors(plain, indexed):
    """Errors in a file's output that its output on plain heap has not."""
    known = [numberless(error) for error in ERROR.findall(plain)]
    found = []
    for error in ERROR.findall(indexed):
        if numberless(error) in known:
            known.remove(numberless(error))
        elif FOLLOWS not in error:
            found.append(error)
    return found


def numberless(text):
    return NUMBER.sub("N", text)
