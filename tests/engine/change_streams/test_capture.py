"""What a capture batch puts into the log: the table of value capture types, watched columns, keys, exclusions, tags."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.change_streams.captured import Captured, on_one_table
from tests.engine.lakes import Lake
from tests.tiers import some
from tidemark.change_metadata import transaction_metadata
from tidemark.change_streams.model.change_streams import ChangeStreamOptions, ValueCaptureType
from tidemark.errors import KeyTwiceInTransaction
from tidemark.jobs.settings import USER_METADATA
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark

ALL = ("k", "v", "w")
OLD, NEW = {"v": "a", "w": "1"}, {"v": "b", "w": "1"}
CELLS: dict[ValueCaptureType, list[tuple[Any, ...]]] = {
    ValueCaptureType.OLD_AND_NEW_VALUES: [
        ("INSERT", OLD, {}, ALL),
        ("UPDATE", {"v": "b"}, {"v": "a"}, ("k", "v")),
        ("DELETE", {}, NEW, ALL),
    ],
    ValueCaptureType.NEW_VALUES: [
        ("INSERT", OLD, {}, ALL),
        ("UPDATE", {"v": "b"}, {}, ("k", "v")),
        ("DELETE", {}, {}, ALL),
    ],
    ValueCaptureType.NEW_ROW: [("INSERT", OLD, {}, ALL), ("UPDATE", NEW, {}, ALL), ("DELETE", {}, {}, ALL)],
    ValueCaptureType.NEW_ROW_AND_OLD_VALUES: [
        ("INSERT", OLD, {}, ALL),
        ("UPDATE", NEW, {"v": "a"}, ALL),
        ("DELETE", {}, NEW, ALL),
    ],
}


@contextmanager
def saying(spark: SparkSession, text: str) -> Iterator[None]:
    """Commits inside carry this userMetadata."""
    spark.conf.set(USER_METADATA, text)
    try:
        yield
    finally:
        spark.conf.unset(USER_METADATA)


@pytest.mark.parametrize("capture_type", list(ValueCaptureType))
def test_a_record_has_the_values_of_its_capture_type(
    lake: Lake, workspace: Workspace, capture_type: ValueCaptureType
) -> None:
    lake.create("k INT, v STRING, w INT")
    captured = on_one_table(lake, workspace, options=ChangeStreamOptions(value_capture_type=capture_type))
    lake.sql("INSERT INTO {t} VALUES (1, 'a', 1)", "UPDATE {t} SET v = 'b', w = 1", "DELETE FROM {t}")

    result = captured.capture(lake.version)

    found = [
        (
            row["mod_type"],
            *(json.loads(row[name]) for name in ("new_values", "old_values")),
            tuple(kind["name"] for kind in json.loads(row["column_types"])),
        )
        for row in captured.rows()
    ]
    assert found == CELLS[capture_type]
    assert {row["value_capture_type"] for row in captured.rows()} == {capture_type.value}
    assert (result.transactions, result.records, result.rows, result.found) == (3, 3, 3, False)


def test_a_record_says_what_its_columns_are_and_where_they_stand(lake: Lake, workspace: Workspace) -> None:
    lake.create("v STRING, `a.b` INT, k2 STRING, w DOUBLE, k1 INT")
    captured = on_one_table(lake, workspace, keys=("k2", "K1"), columns=("W", "a.b"))
    lake.sql("INSERT INTO {t} VALUES ('x', 2, 'key', NULL, 1)", "UPDATE {t} SET w = 1.5")

    captured.capture(lake.version)

    insert, update = captured.rows()
    whole = [
        {"name": "a.b", "type": {"code": "INT64"}, "is_primary_key": False, "ordinal_position": 2},
        {"name": "k2", "type": {"code": "STRING"}, "is_primary_key": True, "ordinal_position": 3},
        {"name": "w", "type": {"code": "FLOAT64"}, "is_primary_key": False, "ordinal_position": 4},
        {"name": "k1", "type": {"code": "INT64"}, "is_primary_key": True, "ordinal_position": 5},
    ]
    assert json.loads(insert["column_types"]) == whole
    assert json.loads(update["column_types"]) == whole[1:]
    assert (insert["keys"], insert["new_values"]) == ('{"k1":"1","k2":"key"}', '{"a.b":"2","w":null}')
    assert (update["new_values"], update["old_values"]) == ('{"w":1.5}', '{"w":null}')
    table_id = lake.log.state().table_id
    assert [(row["server_transaction_id"], row["table_name"]) for row in (insert, update)] == [
        (f"{table_id}:1", "db.t"),
        (f"{table_id}:2", "db.t"),
    ]


QUICK = pytest.param("some", marks=pytest.mark.quick)


@pytest.mark.parametrize("watched", [QUICK, *some(["some or all"], now=[])])
def test_only_watched_columns_make_updates(lake: Lake, workspace: Workspace, watched: str) -> None:
    lake.create("k INT, v STRING, w INT, g INT GENERATED ALWAYS AS (w + 1)")
    v_alone = on_one_table(lake, workspace, columns=("v",))
    none = replace(on_one_table(lake, workspace, columns=()), log_path=lake.path.parent / "log_of_keys")
    every = replace(on_one_table(lake, workspace), log_path=lake.path.parent / "log_of_all")
    lake.sql(
        "INSERT INTO {t} (k, v, w) VALUES (1, 'a', 1), (2, 'b', 2)",
        "UPDATE {t} SET w = w + 1",
        "UPDATE {t} SET v = 'c' WHERE k = 1",
        "UPDATE {t} SET k = 3 WHERE k = 2",
    )
    for captured in (v_alone, none, every) if watched == "some or all" else (v_alone, none):
        captured.capture(lake.version)

    assert v_alone.mods() == [
        (1, "INSERT", {"k": "1"}, {"v": "a"}, {}),
        (1, "INSERT", {"k": "2"}, {"v": "b"}, {}),
        (3, "UPDATE", {"k": "1"}, {"v": "c"}, {"v": "a"}),
        (4, "DELETE", {"k": "2"}, {}, {"v": "b"}),
        (4, "INSERT", {"k": "3"}, {"v": "b"}, {}),
    ]
    assert none.mods() == [
        (1, "INSERT", {"k": "1"}, {}, {}),
        (1, "INSERT", {"k": "2"}, {}, {}),
        (4, "DELETE", {"k": "2"}, {}, {}),
        (4, "INSERT", {"k": "3"}, {}, {}),
    ]
    if watched == "some":
        return
    assert every.mods()[0] == (1, "INSERT", {"k": "1"}, {"v": "a", "w": "1"}, {})  # none of what Delta generates
    assert every.mods()[2:4] == [
        (2, "UPDATE", {"k": "1"}, {"w": "2"}, {"w": "1"}),
        (2, "UPDATE", {"k": "2"}, {"w": "3"}, {"w": "2"}),
    ]


def test_swapped_and_replaced_keys_are_deletes_and_inserts_and_rewrites_are_nothing(
    lake: Lake, workspace: Workspace
) -> None:
    lake.create()
    lake.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    captured = on_one_table(lake, workspace)
    swapped = lake.sql("UPDATE {t} SET k = 3 - k")
    replaced = lake.sql("INSERT OVERWRITE {t} VALUES (1, 'n'), (4, 'o')")
    lake.sql("UPDATE {t} SET v = v", "OPTIMIZE {t}")

    result = captured.capture(lake.version)

    assert captured.mods() == [
        (swapped, "DELETE", {"k": "1"}, {}, {"v": "a"}),
        (swapped, "DELETE", {"k": "2"}, {}, {"v": "b"}),
        (swapped, "INSERT", {"k": "1"}, {"v": "b"}, {}),
        (swapped, "INSERT", {"k": "2"}, {"v": "a"}, {}),
        (replaced, "DELETE", {"k": "1"}, {}, {"v": "b"}),
        (replaced, "DELETE", {"k": "2"}, {}, {"v": "a"}),
        (replaced, "INSERT", {"k": "1"}, {"v": "n"}, {}),
        (replaced, "INSERT", {"k": "4"}, {"v": "o"}, {}),
    ]
    sequences = [(row["source_version"], row["mod_type"], row["record_sequence"]) for row in captured.rows()]
    assert [entry for entry in dict.fromkeys(sequences)] == [
        (version, mod_type, f"{number:012d}")
        for version in (swapped, replaced)
        for number, mod_type in enumerate(("DELETE", "INSERT"))
    ]
    assert (result.transactions, result.records, result.rows) == (2, 4, 8)


def test_a_version_that_changes_no_row_is_captured_as_nothing(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    lake.sql("INSERT INTO {t} VALUES (1, 'a')", "INSERT INTO {t} VALUES (2, 'a')")
    captured = on_one_table(lake, workspace)
    lake.sql("OPTIMIZE {t}")

    result = captured.capture(lake.version)

    assert (result.transactions, result.records, result.rows, result.load) == (0, 0, 0, ())
    assert (captured.rows(), len(captured.rows("window")), len(captured.rows("partition"))) == ([], 1, 1)


def test_a_batch_of_which_every_row_is_left_out_has_no_records(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured = on_one_table(lake, workspace, options=ChangeStreamOptions(exclude_insert=True))
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")

    result = captured.capture(lake.version)

    assert (result.transactions, result.records, result.rows, result.load) == (0, 0, 0, ())
    assert (captured.rows(), len(captured.rows("window"))) == ([], 1)


@pytest.mark.parametrize(
    ("statements", "mod_type"),
    [
        (["INSERT INTO {t} VALUES (1, 'x'), (1, 'y')"], "INSERT"),
        (["UPDATE {t} SET k = 1"], "INSERT"),  # of 2 rows of other keys: DELETE of each, INSERT of one key
        (["UPDATE {t} SET k = 2, v = concat(v, '!')"], "UPDATE"),  # one row keeps the key 2, another comes to it
    ],
    ids=["inserted twice", "updated to one key", "updated to a key that is there"],
)
def test_a_key_that_stands_twice_in_a_transaction_is_an_error_and_nothing_is_written(
    lake: Lake, workspace: Workspace, statements: list[str], mod_type: str
) -> None:
    lake.create()
    start = lake.sql("INSERT INTO {t} VALUES (2, 'a'), (3, 'b')")
    captured = on_one_table(lake, workspace)
    lake.sql("INSERT INTO {t} VALUES (9, 'fine')", "DELETE FROM {t} WHERE k = 9", *statements)

    with pytest.raises(KeyTwiceInTransaction) as raised:
        captured.capture(lake.version)

    facts = raised.value.facts
    assert (facts["version"], facts["table"], facts["columns"]) == (start + 3, "db.t", "k")
    assert facts["key"] == ('{"k":"2"}' if mod_type == "UPDATE" else '{"k":"1"}')
    assert captured.rows("window") == []
    assert captured.rows() == []


def test_mod_types_transactions_and_ttl_deletes_are_left_out_where_the_stream_says_so(
    lake: Lake, workspace: Workspace
) -> None:
    lake.create()
    options = ChangeStreamOptions(exclude_update=True, exclude_ttl_deletes=True, allow_txn_exclusion=True)
    strict = on_one_table(lake, workspace, options=options)
    loose = replace(on_one_table(lake, workspace), log_path=lake.path.parent / "loose")
    no_rows = ChangeStreamOptions(exclude_insert=True, exclude_delete=True)
    only_updates = replace(on_one_table(lake, workspace, options=no_rows), log_path=lake.path.parent / "updates")
    with saying(lake.spark, transaction_metadata(tag="nightly")):
        lake.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with saying(lake.spark, transaction_metadata(exclude=True)):
        lake.sql("INSERT INTO {t} VALUES (4, 'hidden')")
    with saying(lake.spark, transaction_metadata(ttl=True, system=True)):
        lake.sql("MERGE INTO {t} USING (SELECT 1 k UNION ALL SELECT 5) s ON {t}.k = s.k "
                 "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (5, 'n')")  # fmt: skip
    with saying(lake.spark, "somebody else's text"):
        lake.sql("UPDATE {t} SET v = 'u', k = if(k = 2, 20, k) WHERE k IN (2, 3)", "DELETE FROM {t} WHERE k = 5")
    for captured in (strict, loose, only_updates):
        captured.capture(lake.version)

    assert [(row[0], row[1], row[2]["k"]) for row in strict.mods()] == [
        (1, "INSERT", "1"),
        (1, "INSERT", "2"),
        (1, "INSERT", "3"),
        (3, "INSERT", "5"),
        (4, "DELETE", "2"),
        (4, "INSERT", "20"),
        (5, "DELETE", "5"),
    ]
    assert [(row[0], row[1], row[2]["k"]) for row in only_updates.mods()] == [(4, "UPDATE", "3")]
    assert len(loose.mods()) == 3 + 1 + 2 + 3 + 1
    found = {
        row["source_version"]: (
            row["transaction_tag"],
            row["is_system_transaction"],
            row["number_of_records_in_transaction"],
        )
        for row in strict.rows()
    }
    assert found == {1: ("nightly", False, 1), 3: ("", True, 1), 4: ("", False, 2), 5: ("", False, 1)}


def test_a_schema_change_shows_from_its_commit_on(lake: Lake, workspace: Workspace) -> None:
    lake.create("k INT, v STRING", delta__columnMapping__mode="name", delta__enableTypeWidening="true")
    captured = on_one_table(lake, workspace)
    lake.sql(
        "INSERT INTO {t} VALUES (1, 'a')",
        "ALTER TABLE {t} ADD COLUMN w INT FIRST",
        "INSERT INTO {t} VALUES (7, 2, 'b')",
        "ALTER TABLE {t} RENAME COLUMN v TO u",
        "UPDATE {t} SET w = 8 WHERE k = 1",
        "ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT",
        "ALTER TABLE {t} DROP COLUMN u",
        "DELETE FROM {t} WHERE k = 2",
    )
    captured.capture(lake.version)

    assert captured.mods() == [
        (1, "INSERT", {"k": "1"}, {"v": "a"}, {}),
        (3, "INSERT", {"k": "2"}, {"v": "b", "w": "7"}, {}),
        (5, "UPDATE", {"k": "1"}, {"w": "8"}, {"w": None}),
        (8, "DELETE", {"k": "2"}, {}, {"w": "7"}),
    ]
    ordinals = {
        row["source_version"]: {kind["name"]: kind["ordinal_position"] for kind in json.loads(row["column_types"])}
        for row in captured.rows()
    }
    assert ordinals == {1: {"k": 1, "v": 2}, 3: {"w": 1, "k": 2, "v": 3}, 5: {"w": 1, "k": 2}, 8: {"w": 1, "k": 2}}
    same_key = {row["bucket"] for row in captured.rows() if json.loads(row["keys"]) == {"k": "2"}}
    assert len(same_key) == 1  # though the key's column was widened between


def test_the_native_feed_gives_the_same_records(lake: Lake, workspace: Workspace) -> None:
    lake.create("k INT, v STRING", delta__enableChangeDataFeed="true")
    captured: Captured = on_one_table(lake, workspace)
    lake.sql(
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "MERGE INTO {t} USING (SELECT 1 k UNION ALL SELECT 2 UNION ALL SELECT 9) s ON {t}.k = s.k "
        "WHEN MATCHED AND s.k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
        "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (9, 'n')",
    )
    captured.capture(lake.version)
    assert captured.mods()[3:] == [
        (2, "DELETE", {"k": "1"}, {}, {"v": "a"}),
        (2, "INSERT", {"k": "9"}, {"v": "n"}, {}),
        (2, "UPDATE", {"k": "2"}, {"v": "m"}, {"v": "b"}),
    ]
