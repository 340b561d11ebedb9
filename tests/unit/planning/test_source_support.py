"""Which tables a stream can read, and how files of an earlier schema are read: by values, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tidemark.changes.planning.source_schema import first_difference, partition_columns, partition_values
from tidemark.changes.planning.source_support import READABLE_FEATURES, require_readable
from tidemark.errors import RowTrackingDisabled, UnsupportedTableFeature
from tidemark.model.table_log import Metadata, Protocol, TableState

NEEDED = ("rowTracking", "domainMetadata")


def state(*features: str, **configuration: str) -> TableState:
    given = {"delta.enableRowTracking": "true", **{name.replace("__", "."): v for name, v in configuration.items()}}
    metadata = Metadata("id", '{"type":"struct","fields":[]}', (), given)
    return TableState(1, metadata, Protocol(3, 7, (), (*NEEDED, *features)), None)


def test_a_table_with_every_readable_feature_is_readable() -> None:
    require_readable(state(*READABLE_FEATURES, delta__columnMapping__mode="id"), "delta.`/t`")


@pytest.mark.parametrize(
    "feature",
    ["collations-preview", "catalogManaged", "catalogOwned-preview", "adaptiveMetadata-preview", "of tomorrow"],
)
@pytest.mark.parametrize("side", ["reader", "writer"])
def test_any_other_feature_is_refused_by_its_name(feature: str, side: str) -> None:
    protocol = Protocol(3, 7, (feature,), NEEDED) if side == "reader" else Protocol(3, 7, (), (*NEEDED, feature))
    with pytest.raises(UnsupportedTableFeature) as raised:
        require_readable(TableState(1, state().metadata, protocol, None), "delta.`/t`")
    assert raised.value.facts["feature"] == feature


def test_a_table_without_row_tracking_says_how_to_turn_it_on() -> None:
    with pytest.raises(RowTrackingDisabled, match=r"ALTER TABLE delta\.`/t` SET TBLPROPERTIES"):
        require_readable(state(delta__enableRowTracking="false"), "delta.`/t`")


@pytest.mark.parametrize("kind", ["geometry(4326)", "geography(any)", "interval day to second", "time(6)"])
def test_a_column_of_a_type_that_delta_does_not_read_is_refused_at_any_depth(kind: str) -> None:
    metadata = schema(("k", "long"), ("a", {"type": "array", "elementType": struct(("x", kind))}))
    given = TableState(1, replace(metadata, configuration=state().metadata.configuration), state().protocol, None)
    with pytest.raises(UnsupportedTableFeature) as raised:
        require_readable(given, "delta.`/t`")
    assert raised.value.facts["feature"] == f"type {kind}"


def test_coordinated_commits_are_read_until_a_coordinator_is_named() -> None:
    """Without one every commit is a file in the log; with one the newest may be elsewhere."""
    require_readable(state("coordinatedCommits-preview"), "delta.`/t`")
    named = state("coordinatedCommits-preview", **{"delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"})
    with pytest.raises(UnsupportedTableFeature, match="'coordinatedCommits-preview'"):
        require_readable(named, "delta.`/t`")


def schema(*columns: tuple[str, Any], partitions: tuple[str, ...] = (), **physical: str) -> Metadata:
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": physical[name]} if name in physical else {},
        }
        for name, kind in columns
    ]
    return Metadata("id", json.dumps({"type": "struct", "fields": fields}), partitions, {})


def struct(*columns: tuple[str, Any]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(schema(*columns).schema_json)
    return parsed


def test_columns_may_come_go_and_be_renamed() -> None:
    old = schema(("a", "long"), ("b", "string"), a="c1", b="c2")
    assert first_difference(old, schema(("b", "long"), ("new", "date"), b="c1", new="c9")) is None
    nested = struct(("x", "integer")), struct(("x", "integer"), ("y", "integer"))
    assert first_difference(schema(("s", nested[0])), schema(("S", nested[1]))) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *(("byte", wide) for wide in ("short", "integer", "long", "double", "decimal(10,0)", "decimal(38,20)")),
        *(("integer", wide) for wide in ("long", "double", "decimal(12,2)")),
        ("long", "decimal(20,0)"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
        ("decimal(9,2)", "decimal(10,2)"),
        ("decimal(9,2)", "decimal(12, 5)"),
        (struct(("x", "integer")), struct(("x", "long"))),
        ({"type": "array", "elementType": "short"}, {"type": "array", "elementType": "long"}),
    ],
)
def test_a_wider_type_is_no_difference(before: Any, after: Any) -> None:
    assert first_difference(schema(("a", before)), schema(("a", after))) is None


def test_a_column_that_came_again_is_another_one_unless_its_type_says_that_it_was_overwritten() -> None:
    """Delta gives a column whose type an overwrite changes, even to a wider one, another physical name."""
    old = schema(("a", "integer"), ("b", struct(("x", "integer"))), a="c1", b="c2")
    assert first_difference(old, schema(("a", "integer"), ("b", struct(("x", "integer"))), a="c7", b="c8")) is None
    assert first_difference(old, schema(("a", "long"), a="c7")) is not None
    assert first_difference(old, schema(("b", struct(("x", "long"))), b="c8")) is not None
    renamed = schema(("was a", "integer"), ("a", "date"), **{"was a": "c1", "a": "c9"})
    assert first_difference(old, renamed) is None


def test_columns_may_change_places() -> None:
    assert first_difference(schema(("a", "long"), ("b", "date")), schema(("b", "date"), ("a", "long"))) is None


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("long", "integer", "column 'a' was of type long and is now of type integer"),
        ("long", "double", "of type long"),
        ("integer", "float", "of type integer"),
        ("date", "timestamp", "of type date"),
        ("integer", "decimal(10,1)", "of type integer"),
        ("long", "decimal(19,0)", "of type long"),
        ("decimal(9,2)", "decimal(10,4)", r"of type decimal(9,2)"),
        ("decimal(9,2)", "decimal(10,1)", "of type decimal"),
        ("float", "decimal(38,10)", "of type float"),
        ("string", "variant", "of type string"),
        (struct(("x", "integer")), struct(("x", "string")), "column 'a.x' was of type integer"),
        (
            {"type": "array", "elementType": "long"},
            {"type": "array", "elementType": "date"},
            "column 'a[]' was of type",
        ),
        (
            {"type": "map", "keyType": "long", "valueType": struct(("x", "long"))},
            {"type": "map", "keyType": "long", "valueType": struct(("x", "date"))},
            "column 'a.value.x' was of type",
        ),
    ],
)
def test_another_type_is_a_difference_at_any_depth(before: Any, after: Any, problem: str) -> None:
    found = first_difference(schema(("a", before)), schema(("a", after)))
    assert found is not None
    assert problem in found


def test_partitioning_is_that_of_the_file_under_the_names_of_now() -> None:
    old = schema(("p", "string"), ("q", "string"), partitions=("p", "q"), p="P1", q="Q1")
    new = schema(("renamed", "string"), ("k", "long"), renamed="p1", k="k1")
    assert partition_columns(old, new) == ("p1",)
    assert partition_values({"P1": "x", "Q1": None}, ("p1",)) == {"p1": "x"}
