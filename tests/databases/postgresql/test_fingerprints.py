"""What two looks at the catalog of a real server tell: what changed rows without an event is seen, and little else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tests.postgresql import PostgresServer
from tidemark.model.codec import from_json, to_json
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.planning.seen_tables import (
    REWRITTEN_BY_ALTER,
    carried,
    hidden,
    parts_notices,
    unlogged_notices,
    why_unlike,
)
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.fingerprints import seen_tables

TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, b text); CREATE DOMAIN moods AS mood[];"
    " CREATE TYPE held AS (p pair, m moods)"
)
TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, n int, v varchar(9), m mood, ms moods, p pair, h held, d int DEFAULT 5)",
    "INSERT INTO t VALUES (1, 10, 'x', 'sad', '{ok}', '(1,x)', '(\"(1,x)\",{sad})')",
    "ALTER TABLE t ADD f int DEFAULT 9",
)


@dataclass
class Looks:
    """Table t of a database, looked at again and again."""

    server: PostgresServer
    database: str

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.server.sql(text, self.database)

    def look(self, before: SeenTable | None = None) -> SeenTable:
        with connect(self.server.address(self.database)) as connection:
            (oid,) = self.server.sql("SELECT 't'::regclass::oid::bigint", self.database)[0]
            (seen,) = seen_tables(connection, [int(str(oid))]).values()
        assert from_json(SeenTable, to_json(seen)) == seen
        return carried(before, seen)

    def why(self, *texts: str) -> str | None:
        before = self.look()
        self.sql(*texts)
        return why_unlike(before, self.look(before), lambda _: True)


@pytest.fixture
def looks(source_server: PostgresServer) -> Looks:
    looks = Looks(source_server, source_server.new_database())
    looks.sql(*TYPES.split("; "), *TABLE)
    return looks


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("ALTER TABLE t ADD c int DEFAULT 7", "ALTER TABLE t ALTER c DROP DEFAULT", "VACUUM FULL t"), "c was added"),
        (("ALTER TABLE t ADD c int DEFAULT 7", "ALTER TABLE t ALTER c DROP DEFAULT", "CLUSTER t USING t_pkey"),
         "column c was added"),
        (("ALTER TABLE t ADD c timestamptz DEFAULT clock_timestamp()",), "column c was added"),
        (("ALTER TABLE t ALTER n TYPE bigint USING n * 100",), "column n changed its type from integer to bigint, and"),
        (("ALTER TABLE t ALTER n TYPE int USING n * 100",), "column n was altered and its rows were rewritten"),
        (("ALTER TABLE t ALTER d TYPE int USING d * 100",), "column d was altered"),
        (("ALTER TABLE t ALTER f TYPE int USING f * 100",), "column f was altered"),
        (("ALTER TABLE t ALTER v TYPE text USING v || '!'",), "column v changed its type"),
        (("CREATE TYPE mood_2 AS ENUM ('low', 'ok')",
          "ALTER TABLE t ALTER m TYPE mood_2 USING CASE m WHEN 'sad' THEN 'low' ELSE 'ok' END::mood_2"),
         "column m changed its type"),
        (("CREATE TYPE mood_2 AS ENUM ('low', 'ok')", "ALTER TABLE t ALTER m TYPE mood_2 USING 'low'::mood_2",
          "ALTER TYPE mood RENAME TO mood_1", "ALTER TYPE mood_2 RENAME TO mood"), "column m changed its type"),
        (("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'",), "type public.mood of column m has another label"),
        (("ALTER TYPE pair ADD ATTRIBUTE c int",), "type public.pair of column p has a new attribute c"),
        (("ALTER TYPE pair DROP ATTRIBUTE a",), "of column p has another label or attribute: a is gone"),
        (("ALTER TABLE t DROP m, DROP ms, DROP p", "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'"),
         "type public.held of column h has another"),
        (("ALTER TABLE t ALTER v TYPE char(9)",), "column v changed its type"),
    ],
)  # fmt: skip
def test_what_changes_rows_without_an_event_is_seen(looks: Looks, texts: tuple[str, ...], told: str) -> None:
    why = looks.why(*texts)
    assert why is not None
    assert told in why


@pytest.mark.parametrize(
    "texts",
    [
        ("VACUUM FULL t",),
        ("TRUNCATE t",),
        ("ALTER TABLE t ALTER d SET NOT NULL", "VACUUM FULL t"),
        ("ALTER TABLE t ADD c int", "UPDATE t SET c = 1", "ALTER TABLE t ALTER c SET NOT NULL"),
        ("ALTER TABLE t ADD c int", "ALTER TABLE t ALTER c SET DEFAULT 3"),
        ("ALTER TABLE t ADD c int DEFAULT 7", "ALTER TABLE t ALTER c DROP DEFAULT"),
        ("ALTER TABLE t ADD c int NOT NULL DEFAULT 7",),
        ("ALTER TABLE t ALTER v TYPE varchar(20)",),
        ("ALTER TABLE t ALTER v TYPE text",),
        ("ALTER TYPE mood ADD VALUE 'high'",),
        ("ALTER TYPE mood RENAME TO feeling",),
        ("ALTER TYPE pair RENAME ATTRIBUTE a TO z",),
        ("ALTER TABLE t RENAME n TO m2", "ALTER TABLE t RENAME TO t2", "ALTER TABLE t2 RENAME TO t"),
        ("ALTER TABLE t DROP n",),
        ("UPDATE t SET n = 3", "ANALYZE t", "ALTER TABLE t ALTER n SET STATISTICS 3", "REINDEX TABLE t"),
    ],
)  # fmt: skip
def test_what_changes_no_row_is_no_reason(looks: Looks, texts: tuple[str, ...]) -> None:
    assert looks.why(*texts) is None


def test_what_older_rows_have_is_remembered_over_a_rewrite(looks: Looks) -> None:
    before = looks.look()
    looks.sql("ALTER TABLE t ADD c int DEFAULT 7", "ALTER TABLE t ADD x int")
    between = looks.look(before)
    looks.sql("VACUUM FULL t")
    rewritten = looks.look(between)
    assert why_unlike(between, rewritten, lambda _: True) is None
    looks.sql("ALTER TABLE t ALTER c DROP DEFAULT")
    after = looks.look(rewritten)
    assert why_unlike(rewritten, after, lambda _: True) is None
    told = {one.name: (one.fills, one.known) for one in after.columns}
    assert (told["c"], told["x"]) == ((("7",), True), ((), True))
    (c,) = [one for one in hidden(after, lambda one: one.name != "c").columns if one.name == "c"]
    assert (c.fills, c.known) == ((), False)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("box", "(1,1),(0,0)"), ("box[]", "{(1,1),(0,0);(3,3),(2,2)}"), ("text", ' a,"b\\ {;} '), ("text", "NULL"),
     ("text[]", '{"a,b",NULL}'), ("numeric", "1.50"), ("bool", "t"), ("date", "2024-02-29")],
)  # fmt: skip
def test_what_older_rows_have_is_the_text_of_their_type(looks: Looks, kind: str, value: str) -> None:
    before = looks.look()
    looks.sql(f"ALTER TABLE t ADD c {kind} DEFAULT '{value}'")
    column = looks.look(before).columns[-1]
    assert (column.name, column.fills, column.known) == ("c", (value,), True)


def test_a_partition_that_is_made_later_is_no_rewrite(looks: Looks) -> None:
    looks.sql(
        "DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
        "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (10)", "INSERT INTO t VALUES (1, 1)",
    )  # fmt: skip
    daily = "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (10) TO (20)"
    assert looks.why("ALTER TABLE t ADD c int DEFAULT 7", daily, "INSERT INTO t VALUES (11, 1, 1)") is None
    assert looks.why("ALTER TABLE t ALTER n TYPE bigint USING n * 2") is not None
    added = ("ALTER TABLE t ADD z int DEFAULT 7", "ALTER TABLE t ALTER z DROP DEFAULT", "VACUUM FULL t_1")
    assert looks.why(*added) is None  # the other part still tells


PARTITIONED = (
    "DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 1) PARTITION BY RANGE (id)",
    "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id)",
    "CREATE TABLE t_21 PARTITION OF t_2 FOR VALUES FROM (10) TO (15)",
    "CREATE TABLE t_22 PARTITION OF t_2 FOR VALUES FROM (15) TO (20)", "INSERT INTO t VALUES (1), (11), (16)",
)  # fmt: skip
OTHER = "CREATE TABLE x (LIKE t INCLUDING ALL)"
ATTACH = "ALTER TABLE t ATTACH PARTITION x FOR VALUES FROM (20) TO (30)"
FILLED = "INSERT INTO x VALUES (21)"


@pytest.mark.parametrize(
    ("texts", "needs_backfill", "told"),
    [
        (("DROP TABLE t_1",), None, "dropped or detached since its last backfill (public.t_1)"),
        (("ALTER TABLE t DETACH PARTITION t_2",), None, "dropped or detached since its last backfill (public.t_21, "),
        (("TRUNCATE t_1",), None, "rewritten since its last backfill (public.t_1)"),
        (("TRUNCATE t_2",), None, "rewritten since its last backfill (public.t_21, public.t_22)"),
        (("VACUUM FULL t_22",), None, "rewritten since its last backfill (public.t_22)"),
        ((OTHER, FILLED, ATTACH), "partition public.x was attached with rows", ""),
        ((f"BEGIN; {OTHER}; {FILLED}; {ATTACH}; COMMIT",), "partition public.x was attached with rows", ""),
        (("ALTER TABLE t DETACH PARTITION t_1", "ALTER TABLE t ATTACH PARTITION t_1 FOR VALUES FROM (0) TO (10)"),
         "partition public.t_1 was attached with rows", ""),
        (("CREATE TABLE x (LIKE t INCLUDING ALL) PARTITION BY RANGE (id)",
          "CREATE TABLE x_1 PARTITION OF x FOR VALUES FROM (20) TO (30)", FILLED, ATTACH),
         "partition public.x_1 was attached with rows", ""),
        ((OTHER, ATTACH), None, ""),
        (("CREATE TABLE x PARTITION OF t FOR VALUES FROM (20) TO (30)", FILLED, "ANALYZE t",
          "GRANT SELECT ON x TO PUBLIC", "ALTER TABLE t ALTER n SET NOT NULL", "ALTER TABLE t ADD z int DEFAULT 7",
          "CREATE INDEX ON t (n)"), None, ""),
        (("CREATE TABLE x PARTITION OF t DEFAULT", FILLED, "VACUUM FULL pg_attribute", "VACUUM FREEZE pg_attribute"),
         None, ""),
        (("TRUNCATE t",), None, ""),
        (("ANALYZE t", "REINDEX TABLE t_1", "ALTER TABLE t_1 RENAME TO t_0", "UPDATE t SET n = 2"), None, ""),
    ],
)  # fmt: skip
def test_what_becomes_of_a_single_partition_is_seen(
    looks: Looks, texts: tuple[str, ...], needs_backfill: str | None, told: str
) -> None:
    looks.sql(*PARTITIONED)
    before = looks.look()
    looks.sql(*texts)
    after = looks.look(before)
    assert str(why_unlike(before, after, lambda _: True)).startswith(str(needs_backfill))
    assert [told in notice for notice in parts_notices(after)] == ([True] if told else [])
    again = looks.look(after)
    assert why_unlike(after, again, lambda _: True) is None
    assert list(parts_notices(again)) == list(parts_notices(after))  # until a copy takes the place of the rows


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("ALTER TABLE t SET UNLOGGED", "INSERT INTO t (id) VALUES (2)", "ALTER TABLE t SET LOGGED"), True),
        (("TRUNCATE t",), False),
        (("VACUUM FULL t",), False),
        (("CLUSTER t USING t_pkey",), False),
        (("ALTER TABLE t ALTER n TYPE bigint",), False),
        (("ALTER TABLE t ADD c timestamptz DEFAULT clock_timestamp()",), False),
        (("ALTER TABLE t ADD c text DEFAULT 'x'", "UPDATE t SET n = 3", "ANALYZE t", "REINDEX TABLE t"), False),
    ],
)
def test_a_table_that_may_have_been_unlogged_is_told_apart_from_other_rewrites(
    looks: Looks, texts: tuple[str, ...], told: bool
) -> None:
    before = replace(looks.look(), entry="of a publication of others")
    looks.sql(*texts)
    after = replace(looks.look(before), entry=before.entry)
    assert list(unlogged_notices(after)) == ([REWRITTEN_BY_ALTER] if told else [])
    assert list(unlogged_notices(replace(after, entry=None))) == []
    again = replace(looks.look(after), entry=before.entry)
    assert list(unlogged_notices(again)) == list(unlogged_notices(after))  # until a copy takes the place of the rows


def test_a_partition_that_is_locked_may_have_rows_and_is_not_waited_for(looks: Looks) -> None:
    import psycopg

    looks.sql(*PARTITIONED, OTHER)
    before = looks.look()
    looks.sql(ATTACH)
    with psycopg.connect(
        host="127.0.0.1", port=looks.server.port, user="postgres", password=looks.server.password, dbname=looks.database
    ) as locking:
        locking.execute("LOCK TABLE x IN ACCESS EXCLUSIVE MODE")
        assert "attached with rows" in str(why_unlike(before, looks.look(before), lambda _: True))


def test_nothing_waits_for_a_table_that_is_locked(looks: Looks) -> None:
    import psycopg

    with psycopg.connect(
        host="127.0.0.1", port=looks.server.port, user="postgres", password=looks.server.password, dbname=looks.database
    ) as locking:
        locking.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with connect(looks.server.address(looks.database)) as connection:
            connection.cursor().execute("SET lock_timeout = '500ms'")
            (oid,) = locking.execute("SELECT 't'::regclass::oid::bigint").fetchone() or (0,)
            assert seen_tables(connection, [int(oid)])
