"""The log tells a table's columns as they were, and when another table took its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tests.databases.mysql.captured import BinlogWorld
from tests.databases.mysql.conftest import with_setting
from tidemark.errors import SourceRefused
from tidemark.model.codec import from_json
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.replication import Column, ReplicationOptions, Selection, Shown, TableSchema
from tidemark.replication.planning.hiding import hasher
from tidemark.replication.planning.showing import rules_of
from tidemark.replication.planning.types import change_of

REPLACED = "a statement gave it other rows, which its log does not have"


def _schemas(events: list[dict[str, Any]]) -> list[TableSchema]:
    return [from_json(TableSchema, event["payload"]) for event in events if event["change"] == "SCHEMA"]


def _column(world: BinlogWorld, name: str, table: str = "t") -> Column:
    return world.schemas[f"{world.database}.{table}"].column(name)


def _needed(world: BinlogWorld, schemas: Sequence[TableSchema], table: str = "t") -> str | None:
    """The first reason for a backfill on the way from what was registered."""
    before = world.captured[f"{world.database}.{table}"].registered
    assert before is not None
    steps = pairwise((before, *schemas))
    return next((why for old, new in steps if (why := change_of(old, new).needs_backfill) is not None), None)


def test_the_columns_of_an_event_are_those_of_its_time(world: BinlogWorld) -> None:
    """Although the catalog is newer when the log is read."""
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    world.replicate("t")
    world.sql(
        "INSERT INTO t VALUES (1, 2)",
        "ALTER TABLE t ADD COLUMN b VARCHAR(5) DEFAULT 'x', MODIFY a BIGINT",
        "INSERT INTO t VALUES (2, 3, 'y')",
        "ALTER TABLE t DROP COLUMN a, ADD COLUMN c INT FIRST",
        "INSERT INTO t VALUES (7, 3, 'z')",
    )
    events = world.batch()
    assert [[(one.name, one.native) for one in schema.columns] for schema in _schemas(events)] == [
        [("id", "int"), ("a", "int")],
        [("id", "int"), ("a", "int"), ("b", "varchar(5)")],
        [("id", "int"), ("a", "bigint"), ("b", "varchar(5)")],
        [("id", "int"), ("b", "varchar(5)")],
        [("c", "int"), ("id", "int"), ("b", "varchar(5)")],
    ]
    rows = [json.loads(event["payload"]) for event in events if event["change"] != "SCHEMA"]
    assert rows == [{"id": "1", "a": "2"}, {"id": "2", "a": "3", "b": "y"}, {"c": "7", "id": "3", "b": "z"}]
    assert world.batch() == []
    world.sql("INSERT INTO t VALUES (8, 4, 'z')")
    assert [str(event["change"]) for event in world.batch()] == ["INSERT"], "the schema is known"


def test_a_column_is_hidden_in_whatever_case_it_or_its_pattern_is(world: BinlogWorld) -> None:
    """Names of columns are the same in any case there, and a name may change its case at any time."""
    world.hash_secret = "a secret of sixteen"
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(9), gone INT)")
    rules = rules_of(
        Selection(exclude=(f"{world.database}.t.GONE",)),
        ReplicationOptions("lake", hash_columns=(f"{world.database}.t.Email",)),
        (),
        by_name=world.server.kind.folds_columns,
    )
    world.replicate("t", rules=rules)
    world.sql(
        "INSERT INTO t VALUES (1, 'a@b', 7)", "ALTER TABLE t CHANGE email EMAIL VARCHAR(9)",
        "INSERT INTO t VALUES (2, 'a@b', 7)",
    )  # fmt: skip
    rows = [json.loads(event["payload"]) for event in world.events()]
    hashed = hasher(world.hash_secret)("a@b")
    assert rows == [{"id": "1", "email": hashed}, {"id": "2", "EMAIL": hashed}]


def test_a_hidden_column_that_is_renamed_stays_out_until_a_look_and_hidden_then(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(9), city VARCHAR(9))")
    options = ReplicationOptions("lake", mask_columns=(f"{world.database}.t.email",))
    rules = rules_of(Selection(), options, (HeldColumn(0, ("email",), Shown.MASKED, column="email"),), by_name=True)
    world.replicate("t", rules=rules)
    world.sql("INSERT INTO t VALUES (1, 'a@b', 'x')", "ALTER TABLE t RENAME COLUMN email TO contact")
    for number in (2, 3):
        world.sql(f"INSERT INTO t VALUES ({number}, 'a@b', 'x')")
        rows = [json.loads(event["payload"]) for event in world.events()]
        assert rows[-1] == {"id": str(number), "city": "x"}
    held = (HeldColumn(0, ("email",), Shown.MASKED, column="contact"),)
    captured = world.captured[f"{world.database}.t"]
    world.captured[f"{world.database}.t"] = replace(captured, rules=replace(rules, held=held))
    world.sql("INSERT INTO t VALUES (4, 'a@b', 'x')")
    assert [json.loads(event["payload"]) for event in world.events()] == [{"id": "4", "contact": "****", "city": "x"}]
    assert _column(world, "contact").unknown_fill, "events of the time between have no value of it"


def test_old_rows_have_the_default_of_a_new_column(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    world.replicate("t")
    world.sql(
        "INSERT INTO t VALUES (1)",
        "ALTER TABLE t ADD a INT DEFAULT 7, ADD b VARCHAR(9) NOT NULL, ADD c INT, ADD d DECIMAL(5,2) DEFAULT 1.5,"
        " ADD e DATETIME DEFAULT CURRENT_TIMESTAMP",
        "INSERT INTO t (id, b) VALUES (2, 'x')",
    )
    world.batch()
    fills = {name: (_column(world, name).filled, _column(world, name).unknown_fill) for name in "abcde"}
    assert fills == {"a": ("7", False), "b": ("", False), "c": (None, False), "d": ("1.50", False), "e": (None, True)}
    ((a, b, d),) = world.sql("SELECT CAST(a AS CHAR), b, CAST(d AS CHAR) FROM t WHERE id = 1")
    assert (a, b, d) == ("7", "", "1.50"), "the server has filled the same in"


@pytest.mark.parametrize(
    "declared",
    ["VARCHAR(9) DEFAULT 'NULL'", "VARCHAR(9) DEFAULT '''x'''", "DOUBLE DEFAULT 1.50",
     r"VARCHAR(9) DEFAULT 'a\nb\\\\c\0'", "VARCHAR(20) DEFAULT (CONCAT('a', 'b'))"],
)  # fmt: skip
def test_the_default_of_old_rows_is_exact_or_unknown(world: BinlogWorld, declared: str) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    world.replicate("t")
    world.sql(f"ALTER TABLE t ADD COLUMN a {declared}", "INSERT INTO t VALUES (2, NULL)")
    world.batch()
    ((value,),) = world.sql("SELECT a FROM t WHERE id = 1")
    column = _column(world, "a")
    assert column.unknown_fill == ("(" in declared.partition("DEFAULT")[2])
    assert column.unknown_fill or column.filled == str(value)


def test_a_column_whose_type_changed_since_may_have_had_any_default(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    world.replicate("t")
    world.sql(
        "ALTER TABLE t ADD a INT DEFAULT 7", "INSERT INTO t (id) VALUES (1)", "ALTER TABLE t MODIFY a BIGINT DEFAULT 8"
    )
    assert _needed(world, _schemas(world.batch())) == "column a changed its type from bigint to int"


def test_a_key_that_changed_is_another_schema(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL)")
    world.replicate("t")
    world.sql(
        "INSERT INTO t VALUES (1, 2)",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, id)",
        "UPDATE t SET a = 3",
    )
    events = world.batch()
    assert [schema.keys for schema in _schemas(events)] == [("id",), ("id", "a")]
    assert [event["key"] for event in events if event["change"] != "SCHEMA"] == ['["1"]', '["1","2"]', '["1","3"]']


@pytest.mark.parametrize(
    ("statements", "replaced"),
    [
        (["DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, a INT)"], True),
        (["DROP TABLE t", "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, a INT)"], True),
        (["CREATE TABLE t2 LIKE t", "INSERT INTO t2 VALUES (9, 9)", "RENAME TABLE t TO t3, t2 TO t"], True),
        (["RENAME TABLE t TO t4", "RENAME TABLE t4 TO t"], True),
        (["ALTER TABLE t DROP COLUMN a, ADD COLUMN a INT DEFAULT 5"], True),
        (["ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ADD COLUMN a INT DEFAULT 5"], True),
        (["ALTER TABLE t CHANGE a b INT", "ALTER TABLE t CHANGE b a INT"], True),
        (["ALTER TABLE t ENGINE = InnoDB"], False),
        (["ALTER TABLE t ADD INDEX (a)"], False),
    ],
)
def test_another_table_under_the_name_is_told(world: BinlogWorld, statements: list[str], replaced: bool) -> None:
    """Its rows came without an event, so only a backfill continues."""
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    world.replicate("t")
    before = world.captured[f"{world.database}.t"].registered
    assert before is not None
    world.sql("INSERT INTO t VALUES (1, 1)", *statements, "INSERT INTO t VALUES (2, 2)")
    events = world.batch()
    assert any(schema.replaced for schema in _schemas(events)) == replaced
    assert len([event for event in events if event["change"] == "INSERT"]) == 2
    assert _needed(world, _schemas(events)) == (REPLACED if replaced else None)
    assert change_of(before, _schemas(events)[-1], keyed=False).needs_backfill is None


@pytest.mark.parametrize("again", ["ADD COLUMN a INT DEFAULT 5", "ADD COLUMN IF NOT EXISTS a INT DEFAULT 5"])
@pytest.mark.parametrize("apart", [False, True])
def test_another_column_under_the_name_is_told_without_a_row(world: BinlogWorld, again: str, apart: bool) -> None:
    """`apart`: the two statements are in two batches."""
    if "IF NOT" in again and world.server.kind is not SourceKind.MARIADB:
        pytest.skip("a MySQL has no such statement")
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)")
    world.replicate("t")
    world.sql("ALTER TABLE t DROP COLUMN a")
    schemas = _schemas(world.batch()) if apart else []
    world.sql(f"ALTER TABLE t {again}")
    schemas += _schemas(world.batch())
    assert next([one.name for one in schema.columns] for schema in schemas if not schema.replaced) == ["id"]
    if not apart:
        assert _needed(world, schemas) == REPLACED
    else:
        assert (_needed(world, schemas), schemas[-1].column("a").filled) == (None, "5")


def test_a_column_that_is_there_is_not_another_by_a_statement_that_would_add_it(own_server: BinlogServer) -> None:
    if own_server.kind is not SourceKind.MARIADB:
        pytest.skip("a MySQL has no such statement")
    world = BinlogWorld(own_server)
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    world.replicate("t")
    world.sql("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT DEFAULT 5")
    assert world.batch() == []


@pytest.mark.parametrize(
    ("after", "filled"),
    [
        ("ALTER COLUMN a DROP DEFAULT", "5"),
        ("ALTER COLUMN a SET DEFAULT 9", "5"),
        ("MODIFY a INT NOT NULL", "5"),
    ],
)
@pytest.mark.parametrize("declared", ["INT DEFAULT 5 NOT NULL", "INT DEFAULT 5"])
@pytest.mark.parametrize("apart", [False, True])
def test_a_default_that_changed_since_is_not_that_of_old_rows(
    world: BinlogWorld, declared: str, after: str, filled: str, apart: bool
) -> None:
    """As a migration of a framework drops it at once. `apart`: the first row comes in a later batch."""
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    world.replicate("t")
    world.sql(f"ALTER TABLE t ADD COLUMN a {declared}", f"ALTER TABLE t {after}")
    schemas = _schemas(world.batch()) if apart else []
    world.sql("INSERT INTO t VALUES (2, 3)")
    schemas += _schemas(world.batch())
    assert _needed(world, schemas) is None
    ((value,),) = world.sql("SELECT a FROM t WHERE id = 1")
    assert schemas[0].column("a").filled == filled == str(value)


@pytest.mark.parametrize(
    "statements",
    [
        ["ADD COLUMN a INT NULL", "ALTER COLUMN a SET DEFAULT 9"],
        ["ADD COLUMN b INT DEFAULT 5 NOT NULL", "RENAME COLUMN b TO a", "ALTER COLUMN a SET DEFAULT 9"],
    ],
)
def test_a_new_column_whose_default_the_log_does_not_tell_needs_a_backfill(
    world: BinlogWorld, statements: list[str]
) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    world.replicate("t")
    world.sql(*(f"ALTER TABLE t {one}" for one in statements), "INSERT INTO t VALUES (2, 3)")
    why = "column a was added with a default that its log does not have"
    assert _needed(world, _schemas(world.batch())) == why


def test_a_truncated_table_without_a_row_event_has_its_schema_first(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    world.replicate("t")
    world.sql("TRUNCATE TABLE t", "TRUNCATE TABLE t")
    assert [str(event["change"]) for event in world.batch()] == ["SCHEMA", "TRUNCATE", "TRUNCATE"]


def test_a_table_that_is_there_is_not_replaced_by_a_statement_that_would_make_it(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "DO SLEEP(2)")
    world.replicate("t")
    world.sql("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    assert [schema.replaced for schema in _schemas(world.batch())] == [False]


def test_columns_that_exchange_their_names_are_told(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1, 1, 2)", "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    assert [schema.replaced for schema in _schemas(world.batch())] == [False, True]


def test_a_table_whose_rows_a_partition_takes_or_gives_is_told(world: BinlogWorld) -> None:
    engine = "Aria" if world.server.kind is SourceKind.MARIADB else "InnoDB"  # InnoDB of a MariaDB waits for itself
    world.sql(
        f"CREATE TABLE parts (id INT PRIMARY KEY) ENGINE = {engine}"
        " PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10))",
        f"CREATE TABLE t (id INT PRIMARY KEY) ENGINE = {engine}",
    )
    world.replicate("t", "parts")
    world.sql("INSERT INTO t VALUES (1)", "INSERT INTO parts VALUES (2)")
    world.batch()
    world.sql("ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE t")
    told = [(event["change"], _schemas([event])[0].replaced) for event in world.batch()]
    assert told == [("SCHEMA", True), ("SCHEMA", True)]


def test_what_only_a_mariadb_writes_is_told(own_server: BinlogServer) -> None:
    if own_server.kind is not SourceKind.MARIADB:
        pytest.skip("a MySQL has neither statement")
    world = BinlogWorld(own_server)
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1, 1), (2, 1)")
    world.batch()
    world.sql("ALTER IGNORE TABLE t ADD UNIQUE (a)")
    assert [schema.replaced for schema in _schemas(world.batch())] == [True]
    world.sql("SET STATEMENT lock_wait_timeout = 10 FOR TRUNCATE TABLE t")
    assert [str(event["change"]) for event in world.batch()] == ["TRUNCATE"]


def test_rows_that_go_with_a_partition_are_told(world: BinlogWorld) -> None:
    world.sql(
        "CREATE TABLE t (id INT PRIMARY KEY) PARTITION BY RANGE (id)"
        " (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN (20))"
    )
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1), (11)")
    world.batch()
    world.sql("ALTER TABLE t DROP PARTITION p")
    assert [schema.replaced for schema in _schemas(world.batch())] == [True]


@pytest.mark.parametrize("name", ["binlog_row_metadata", "binlog_row_image"])
def test_events_without_names_or_columns_are_refused_with_the_remedy(own_server: BinlogServer, name: str) -> None:
    world = BinlogWorld(own_server)
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)")
    world.replicate("t")
    with with_setting(own_server, name, "'MINIMAL'"):
        world.sql("UPDATE t SET a = 2")
    with pytest.raises(SourceRefused, match=f"{name} = FULL"):
        world.batch()


@pytest.mark.parametrize("compressed", ["log_bin_compress", "binlog_transaction_compression"])
def test_compressed_events_are_read_or_refused(own_server: BinlogServer, compressed: str) -> None:
    """Compressed events of a MariaDB are read, those of a MySQL are refused with the remedy."""
    world = BinlogWorld(own_server)
    if not own_server.sql(f"SHOW GLOBAL VARIABLES LIKE '{compressed}'"):
        pytest.skip("the other database has it")
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a TEXT)")
    world.replicate("t")
    with with_setting(own_server, compressed, "1"):
        world.sql("INSERT INTO t VALUES (1, REPEAT('x', 5000))", "UPDATE t SET a = REPEAT('y', 5000)", "DELETE FROM t")
        world.sql("TRUNCATE t /* " + "x" * 500 + " */")
    if compressed == "log_bin_compress":
        changes = [(str(event["change"]), len(event["payload"])) for event in world.events()]
        assert [change for change, _ in changes] == ["INSERT", "UPDATE", "DELETE", "TRUNCATE"]
        assert min(size for _, size in changes[:3]) > 5000
    else:
        with pytest.raises(SourceRefused, match="compressed"):
            world.batch()


def test_statements_name_tables_in_any_case_where_the_server_does() -> None:
    with mariadb_or_skip(("--lower-case-table-names=1",)) as server:
        world = BinlogWorld(server)
        world.sql("CREATE TABLE Orders (id INT PRIMARY KEY)")
        world.replicate("orders")
        world.sql("INSERT INTO orders VALUES (1)", "TRUNCATE TABLE ORDERS")
        assert [str(event["change"]) for event in world.events()] == ["INSERT", "TRUNCATE"]
