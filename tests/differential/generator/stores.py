"""What the tables of generated changes are beside heap's: colcompress tables, or heap tables with columnstore
indexes of all columns.

Who calls it: generated_changes.py. A store says in its own words what `merge`, `unpack` and `method` stand
for among the statements, how its side is asked, and how what it keeps is checked.
"""

# How either is asked, in turns.
PLANS = ({"enable_indexscan": "off", "enable_bitmapscan": "off"}, {"enable_hashjoin": "off", "enable_mergejoin": "off"}, {"enable_nestloop": "off"}, {"plan_cache_mode": "force_generic_plan"})
VECTORISED = {"colonnade.vectorised_min_rows": "0"}
# Scans of heap do not compete.
FORCED = {**VECTORISED, "enable_seqscan": "off"}


class Colcompress:
    name = "colcompress"
    method = "colcompress"
    settings = ({}, {}, VECTORISED, {"enable_seqscan": "off", "colonnade.enable_scan": "off"}, {"enable_seqscan": "off", "colonnade.enable_scan": "off", "enable_indexscan": "off"}, *PLANS)

    def words(self, kind, table, _inside):
        return {"merge": f"SELECT engine.colcompress_merge('{table}')", "unpack": f"SELECT engine.unpack('{table}')",
                "method": f"ALTER TABLE {table} SET ACCESS METHOD heap; ALTER TABLE {table} SET ACCESS METHOD colcompress"}[kind]

    def shaped(self, _shape):
        """What follows the tables' making on its side."""
        return ()

    def compared(self, table, _columns):
        """The question by which two tables' rows are compared."""
        return f"SELECT count(*), sum(hashtextextended(x::text, 0)) FROM {table} x"

    def faults(self, session, table):
        return session.run(f"SELECT * FROM engine.verify('{table}')").rows

    def count(self, session, counts):
        """At the end of a round: what its tables have seen."""
        counts["rows of stripes changed or locked"] += int(session.value("SELECT count(*) FROM engine.row_proxy"))
        counts["in bulk"] += int(session.value("SELECT coalesce(sum(bit_count(bits)), 0) FROM engine.delete_bitmap"))

    def count_compared(self, _session, _question, _counts):
        pass

    def premises(self, counts):
        yield "rows of stripes were changed or locked", counts["rows of stripes changed or locked"] > counts["statements"] // 20
        yield "and many of one stripe by one statement", counts["in bulk"] > counts["statements"] // 20


class Columnstore:
    """Blocks are copied where colcompress would merge rows. Small tables are asked with vectors, and not by
    the server's own scans of heap."""

    name = "columnstore"
    method = "heap"
    settings = (FORCED, FORCED, FORCED, {}, {"colonnade.enable_columnstore_index": "off"}, {**FORCED, "colonnade.enable_vectorised": "off"}, *({**FORCED, **plan} for plan in PLANS))
    PROCEDURE = """CREATE OR REPLACE PROCEDURE public.refresh_copies(refreshed regclass) LANGUAGE plpgsql AS $$
DECLARE
    index regclass;
    copied bigint;
BEGIN
    FOR index IN SELECT index_name FROM engine.columnstore_indexes WHERE table_name = refreshed LOOP
        CALL engine.columnstore_refresh(index, copied);
    END LOOP;
END $$"""
    INDEXES = "(SELECT string_agg(format('DROP INDEX %s', index_name), ';') FROM engine.columnstore_indexes WHERE table_name = '{}'::regclass)"

    def words(self, kind, table, inside):
        if inside:
            return f"CALL public.refresh_copies('{table}')"
        if kind == "merge":
            return f"VACUUM (INDEX_CLEANUP ON) {table}; CALL public.refresh_copies('{table}')"
        if kind == "unpack":
            return f"REINDEX TABLE {table}"
        return f"DO $do$ BEGIN EXECUTE coalesce({self.INDEXES.format(table)}, 'SELECT 1'); PERFORM engine.columnstore_create('{table}'); END $do$"

    def shaped(self, shape):
        yield self.PROCEDURE
        split = shape.generated or shape.check
        for table in (*shape.tables(), "log"):
            if split and table in shape.leaves():
                # Two indexes side by side.
                columns = (*shape.columns(), *(("g",) if shape.generated else ()))
                yield f"CREATE INDEX ON {table} USING columnstore ({', '.join(columns[:3])})"
                yield f"CREATE INDEX ON {table} USING columnstore ({', '.join(columns[2:])})"
            else:
                yield f"SELECT engine.columnstore_create('{table}')"

    def compared(self, table, columns):
        """Whole rows are read from the heap: each column is named."""
        return f"SELECT count(*), sum(hashtextextended(ROW({columns})::text, 0)) FROM {table}"

    def faults(self, session, table):
        return session.run(f"SELECT 'copy', index_name, v.* FROM engine.columnstore_indexes, engine.columnstore_verify(index_name) v WHERE table_name = '{table}'::regclass").rows

    def count(self, _session, _counts):
        pass

    def count_compared(self, session, question, counts):
        """After a comparison: where its blocks were."""
        plan = session.run(f"EXPLAIN (COSTS OFF) {question}").rows
        counts["comparisons"] += 1
        counts["plans with copies"] += any("Columnstore: " in row[0] for row in plan)
        counts["blocks read from copies"] += int(session.value("SELECT coalesce(sum(clean_blocks), 0) FROM engine.columnstore_indexes"))
        counts["blocks checked"] += int(session.value("SELECT coalesce(sum(checked_blocks), 0) FROM engine.columnstore_indexes"))
        counts["blocks read from the heap"] += int(session.value("SELECT coalesce(sum(not_visible_blocks + not_copied_blocks), 0) FROM engine.columnstore_indexes"))

    def premises(self, counts):
        yield "blocks were read from copies", counts["blocks read from copies"] > 2 * counts["comparisons"]
        yield "and some from the heap", counts["blocks read from the heap"] > counts["comparisons"]
        yield "and some after a look at their pages", counts["blocks checked"] * 2 > counts["comparisons"]
        yield "plans used the indexes", counts["plans with copies"] * 2 > counts["comparisons"] > 0


STORES = {store.name: store for store in (Colcompress(), Columnstore())}
