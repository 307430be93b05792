"""`CALL harness.settle()`: waits until every snapshot of this database sees all that was committed before.

Tests call it before a mover or VACUUM, which leave alone what some snapshot does not see. Such a snapshot can
come from a transaction with an id, in any database. It can be held by a session of this database, by
autovacuum while it analyses a table, by a process without a database, or by one that starts. The procedure
must not be called in a transaction block.
"""

SETTLE = """
CREATE SCHEMA harness;
GRANT USAGE ON SCHEMA harness TO public;
CREATE PROCEDURE harness.settle() LANGUAGE plpgsql AS $$
DECLARE last int8 := pg_snapshot_xmax(pg_current_snapshot())::text::int8;
BEGIN
  LOOP
    -- At the higher levels a transaction keeps its snapshot.
    COMMIT;
    EXIT WHEN pg_snapshot_xmin(pg_current_snapshot())::text::int8 >= last AND NOT EXISTS (
      SELECT FROM pg_stat_activity
      -- The snapshots of processes without a database count in all of them.
      WHERE coalesce(datname, current_database()) = current_database() AND pid <> pg_backend_pid() AND backend_xmin::text::int8 < last
    ) AND NOT EXISTS (
      -- So does that of a process that is starting, which no view shows yet.
      SELECT FROM pg_locks WHERE locktype = 'virtualxid' AND pid <> pg_backend_pid() AND pid NOT IN (SELECT pid FROM pg_stat_activity));
    PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
  END LOOP;
END $$;
"""
