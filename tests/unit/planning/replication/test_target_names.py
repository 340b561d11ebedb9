"""Columns that a target has for itself are not the object's."""

from __future__ import annotations

import pytest

from tidemark.errors import InvalidArgument
from tidemark.replication.driver.columns import OF_EVENTS
from tidemark.replication.model.replication import Column, ObjectName, TableSchema, TypeKind, UnifiedType, WriteMode
from tidemark.replication.planning.target_names import EVENT_COLUMNS, columns_in_the_way, require_target_table, table_of

TEXT = UnifiedType(TypeKind.STRING)
NAMES = ("id", "Is_Deleted", "change_type", "change_sequence_number", "sort_keys", "note")


def schema(*names: str, key: bool) -> TableSchema:
    return TableSchema(tuple(Column(one, TEXT, "text", key=key and one == "id") for one in names))


def test_what_rows_of_events_say_is_in_the_way_of_a_column_only_there() -> None:
    taken = NAMES[1:5]
    assert columns_in_the_way(schema(*NAMES, key=True), WriteMode.MERGE) == ()
    assert columns_in_the_way(schema(*NAMES, key=True), WriteMode.APPEND_ONLY) == taken
    assert columns_in_the_way(schema(*NAMES, key=False), WriteMode.MERGE) == taken


@pytest.mark.parametrize("mode", list(WriteMode))
def test_the_metadata_is_in_every_target(mode: WriteMode) -> None:
    assert columns_in_the_way(schema("id", "DataStream_metadata", key=True), mode) == ("DataStream_metadata",)


def test_these_are_the_columns_that_targets_have() -> None:
    assert [one.name for one in OF_EVENTS] == list(EVENT_COLUMNS)


def test_a_slash_is_no_place_of_its_own() -> None:
    assert table_of(ObjectName("s", "a/b")) == table_of(ObjectName("s", "a_b")) == "s_a_b"


@pytest.mark.parametrize(
    ("target_table", "name", "table"),
    [
        ("{table}", ObjectName("s", "t"), "t"),
        ("raw_{schema}__{table}_v1", ObjectName("s", "t"), "raw_s__t_v1"),
        ("{schema}_{table}", ObjectName("{table}", "t"), "{table}_t"),
        ("{table}_{table}", ObjectName("s", "a/b"), "a_b_a_b"),
    ],
)
def test_a_table_has_the_name_that_the_options_give_it(target_table: str, name: ObjectName, table: str) -> None:
    require_target_table(target_table)
    assert table_of(name, target_table) == table


@pytest.mark.parametrize(
    "wrong", ["", "t", "{schema}", "{table}.x", "{table} x", "a/{table}", "{Table}", "{table}{x}", "{{table}}"]
)
def test_a_name_of_targets_that_cannot_be_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidArgument, match="target_table"):
        require_target_table(wrong)
