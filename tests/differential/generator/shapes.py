"""The tables that generated changes are made to: keys, indexes, constraints, triggers, a child, partitions.

Who calls it: `changes` asks what a shape has, generated_changes.py makes it on both sides. The statements
name no schema and no access method: the session of each side chooses. Every shape has the table `t` that is
changed and `u`, which it is joined with; `log` is what triggers write to.
"""

COLUMNS = ("id", "k", "v", "n", "d", "big")

TRIGGERS = ("""CREATE FUNCTION row_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_WHEN = 'AFTER' THEN
        INSERT INTO log VALUES (TG_OP || ' ' || coalesce(OLD.id::text, '-') || ' ' || coalesce(NEW.id::text, '-') || ' ' || coalesce(NEW.v, OLD.v, '-'));
        RETURN NULL;
    END IF;
    IF TG_OP = 'DELETE' THEN
        IF OLD.v = 'keep' THEN RETURN NULL; END IF;
        RETURN OLD;
    END IF;
    IF NEW.v = 'skip' THEN RETURN NULL; END IF;
    IF NEW.v = 'mark' THEN NEW.n := coalesce(NEW.n, 0) + 1; END IF;
    RETURN NEW;
END $$""", """CREATE FUNCTION set_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN INSERT INTO log SELECT 'new ' || count(*) || ' ' || coalesce(sum(id), 0) FROM new_rows;
    ELSIF TG_OP = 'DELETE' THEN INSERT INTO log SELECT 'old ' || count(*) || ' ' || coalesce(sum(id), 0) FROM old_rows;
    ELSE INSERT INTO log SELECT 'both ' || (SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM old_rows) || ' ' || count(*) || ' ' || coalesce(sum(n), 0) FROM new_rows; END IF;
    RETURN NULL;
END $$""",
            "CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION row_change()",
            "CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION row_change()",
            "CREATE TRIGGER after_insert AFTER INSERT ON t REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION set_change()",
            "CREATE TRIGGER after_update AFTER UPDATE ON t REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION set_change()",
            "CREATE TRIGGER after_delete AFTER DELETE ON t REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION set_change()")

# Functions that lock or change other rows in the middle of a statement.
FUNCTIONS = ("CREATE FUNCTION look(x bigint) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM t WHERE id = x + 1 FOR SHARE; RETURN 'looked'; END $$",
             "CREATE FUNCTION touch(x bigint) RETURNS text LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET d = d + 1 WHERE id = x + 1; RETURN 'touched'; END $$")


class Shape:
    """What a round's tables have, and the statements that make them."""

    def __init__(self, rng):
        self.partitioned = rng.random() < 0.15
        self.key = rng.random() < 0.85
        # A second unique column, checked at once, at the end of the statement or at the end of the
        # transaction.
        self.unique = None if self.partitioned else rng.choice((None, None, "UNIQUE (w)", "UNIQUE (w) DEFERRABLE", "UNIQUE (w) DEFERRABLE INITIALLY DEFERRED", "UNIQUE (v, w) DEFERRABLE INITIALLY DEFERRED", "UNIQUE (n, w, v) DEFERRABLE",
                                                                "EXCLUDE USING btree (w WITH =)"))
        self.check = rng.random() < 0.4
        self.triggers = not self.partitioned and rng.random() < 0.3
        self.generated = rng.random() < 0.3
        # What a child does when its row goes; a child needs the key.
        self.child = rng.choice(("CASCADE", "SET NULL", "NO ACTION", "RESTRICT")) if self.key and not self.partitioned and rng.random() < 0.3 else None
        # A lock FOR KEY SHARE of a row in a stripe and an UPDATE of it wait for each other, which heap's do
        # not (docs/limitations.md): where there are such locks, nobody else is at work.
        self.crowded = not self.child
        self.indexes = [text for text in ("CREATE INDEX t_k ON t (k)", "CREATE INDEX t_v ON t USING hash (v)", "CREATE INDEX t_expr ON t ((k % 7), id)",
                                          "CREATE INDEX t_part ON t (n) WHERE k < 50", "CREATE INDEX t_incl ON t (d) INCLUDE (n)",
                                          "CREATE INDEX t_gin ON t USING gin ((ARRAY[k, k % 3]))") if rng.random() < 0.2]

    def columns(self):
        return COLUMNS + (("w",) if self.unique else ())

    def statements(self):
        """What makes the tables, one statement after another."""
        columns = ["id bigint NOT NULL", "k int", "v text", "n numeric(14,2)", "d date DEFAULT '2024-02-29'", "big text"]
        if self.unique:
            columns += ["w bigint", self.unique]
        if self.generated:
            columns.append("g bigint GENERATED ALWAYS AS (id * 2 + k) STORED")
        if self.check:
            columns.append("CHECK (n < 4900)")
        if self.key:
            columns.append("PRIMARY KEY (id, k)" if self.partitioned else "PRIMARY KEY (id)")
        yield f"CREATE TABLE t ({', '.join(columns)}){' PARTITION BY RANGE (k)' if self.partitioned else ''}"
        if self.partitioned:
            yield "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (30)"
            yield "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (30) TO (70)"
            yield "CREATE TABLE t3 PARTITION OF t DEFAULT"
        yield "CREATE TABLE u (id bigint PRIMARY KEY, k int, v text, n numeric(14,2))"
        yield "CREATE TABLE log (what text)"
        if self.child:
            yield f"CREATE TABLE child (cid bigint PRIMARY KEY, t_id bigint REFERENCES t ON DELETE {self.child} ON UPDATE CASCADE, v text)"
        yield from self.indexes
        yield from FUNCTIONS
        if self.triggers:
            yield from TRIGGERS

    def leaves(self):
        """The tables that hold rows of `t`."""
        return ("t1", "t2", "t3") if self.partitioned else ("t",)

    def tables(self):
        """The tables that hold rows."""
        return (*self.leaves(), "u", *(("child",) if self.child else ()))
