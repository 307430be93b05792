"""Who may maintain a table of somebody else's: from 17 on who has MAINTAIN, as with the server's own VACUUM,
before that nobody. Functions of the owner's that maintenance calls run as the owner.
"""


from harness.checks import Checks
from harness.server import major
from harness.session import SqlError

MAKE = """
CREATE ROLE owner; CREATE ROLE stranger; CREATE ROLE keeper;
GRANT CREATE ON SCHEMA public TO owner;
SET SESSION AUTHORIZATION owner;
CREATE FUNCTION noted(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN IF current_user <> 'owner' THEN RAISE 'called as %', current_user; END IF; RETURN $1; END $$;
SET colonnade.stripe_threshold_rows = 0;
CREATE TABLE t (id int PRIMARY KEY, g int) USING colcompress;
CREATE INDEX t_noted ON t (public.noted(g));
INSERT INTO t SELECT i, i % 50 FROM generate_series(1, 1000) i;
INSERT INTO t SELECT i, i % 50 FROM generate_series(1001, 2000) i;
DELETE FROM t WHERE id <= 1000;
CREATE TABLE p (id int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) USING colcompress;
"""
FUNCTIONS = {
    "repack": "CALL engine.colcompress_repack('{0}')",
    "verify": "SELECT count(*) FROM engine.verify('{0}')",
    "merge": "SELECT engine.colcompress_merge('{0}')",
    "unpack": "SELECT engine.unpack('{0}')",
}
OPTION = "SELECT engine.alter_colcompress_table_set('t', stripe_row_limit => 20000)"


def outcome(server, role, statement):
    """What becomes of a statement of this role's: '' if it is done."""
    with server.session("db") as session:
        session.run(f"SET SESSION AUTHORIZATION {role}")
        try:
            session.run(statement)
            return ""
        except SqlError as problem:
            return str(problem)


def main():
    settings = {"autovacuum": "off", "colonnade.packing": "off"}
    checks = Checks("maintain_privilege")
    with checks.server(settings) as server:
        server.create_database("db")
        server.sql(MAKE, "db")
        has_privilege = major() >= 17
        if has_privilege:
            server.sql("GRANT MAINTAIN ON t, p TO keeper", "db")
        for name, call in FUNCTIONS.items():
            said = outcome(server, "stranger", call.format("t"))
            checks.say(f"a stranger may not {name}", "42501" in said, said)
            said = outcome(server, "keeper", call.format("t"))
            checks.say(f"who has MAINTAIN may {name}", not said if has_privilege else "42501" in said, said)
            # As of VACUUM, the right on a partitioned table is none on its partitions.
            said = outcome(server, "keeper", call.format("p"))
            checks.say(f"not partitions with {name}", "42501" in said, said)
            said = outcome(server, "owner", call.format("t"))
            checks.say(f"the owner may {name}", not said, said)
        checks.say("MAINTAIN is no right to change options", "42501" in outcome(server, "keeper", OPTION))
        rows = server.sql("SELECT count(*) || ' ' || sum(g) FROM t", "db")
        checks.say("all rows are there", rows == "1000 24500", rows)
        stripes = "SELECT count(*) FROM engine.colcompress_stripes WHERE table_name = 't'::regclass"
        server.sql("SELECT engine.colcompress_merge('t'); DELETE FROM t", "db")
        before = server.sql(stripes, "db")
        outcome(server, "stranger", "VACUUM t")
        checks.say("a stranger's VACUUM does nothing", before == "1" and server.sql(stripes, "db") == "1", before)
        outcome(server, "keeper", "VACUUM t")
        left = server.sql(stripes, "db")
        checks.say("VACUUM of who has MAINTAIN takes dead stripes out", left == ("0" if has_privilege else "1"), left)
    return checks.status()


if __name__ == "__main__":
    raise SystemExit(main())
