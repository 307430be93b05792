-- Rows of the own transaction, when the table is rewritten in the middle of a statement: they keep the
-- commands that inserted and deleted them, as CLUSTER keeps them of a heap table. All parts print the same;
-- tests/isolation/rewrite/old_snapshot.spec has the snapshots of others.
SET colonnade.stripe_threshold_rows = 1000;
\set method heap
SET test.statement = 'CLUSTER t USING t_id';
\i include/rewrite_own_rows.sql
\set method colcompress
\i include/rewrite_own_rows.sql
SET test.statement = 'SELECT engine.colcompress_merge(''t'')';
\i include/rewrite_own_rows.sql
SET test.statement = 'SELECT engine.unpack(''t'')';
\i include/rewrite_own_rows.sql
