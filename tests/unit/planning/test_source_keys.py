"""Which columns can be keys, with what they go together, and when a window cannot be read by them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.changes.planning.source_keys import require_fitting_mode, require_keys, require_same_keys
from tidemark.errors import InvalidArgument, KeyColumnChanged, NotYetSupported
from tidemark.model.streams import StreamMode
from tidemark.model.table_log import Metadata


def table(*columns: tuple[str, Any], physical: dict[str, str] | None = None) -> Metadata:
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": physical[name]} if physical else {},
        }
        for name, kind in columns
    ]
    return Metadata("id", json.dumps({"type": "struct", "fields": fields}), (), {})


@pytest.mark.parametrize(
    "kind",
    ["boolean", "byte", "short", "integer", "long", "decimal(38,4)", "string", "date", "timestamp", "timestamp_ntz"],
)
def test_types_that_compare_exactly_are_keys_in_the_tables_spelling(kind: str) -> None:
    assert require_keys(table(("Id", kind), ("v", "double")), ["iD"], "t") == ("Id",)


@pytest.mark.parametrize(
    "kind",
    [
        *("float", "double", "binary", "variant", "void"),
        {"type": "struct", "fields": []},
        {"type": "array", "elementType": "integer", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
    ],
)
def test_other_types_are_refused_by_column_and_type(kind: Any) -> None:
    name = kind if isinstance(kind, str) else kind["type"]
    with pytest.raises(InvalidArgument, match=f"column 'x' of t is of type {name}"):
        require_keys(table(("k", "long"), ("x", kind)), ["k", "x"], "t")


@pytest.mark.parametrize("keys", ["k", ["nothing"], ["k", "K"], ["s.x"]])
def test_what_names_no_column_once_is_refused(keys: Any) -> None:
    with pytest.raises(InvalidArgument):
        require_keys(table(("k", "long")), keys, "t")


def test_keys_go_with_the_standard_mode_of_tables_and_every_change_with_tables() -> None:
    require_fitting_mode(StreamMode.STANDARD, ["k"], on_view=False)
    require_fitting_mode(StreamMode.EVERY_CHANGE, [], on_view=False)
    for mode in (StreamMode.APPEND_ONLY, StreamMode.EVERY_CHANGE, StreamMode.INSERT_ONLY):
        with pytest.raises(InvalidArgument, match=mode.value):
            require_fitting_mode(mode, ["k"], on_view=False)
    with pytest.raises(InvalidArgument, match="view"):
        require_fitting_mode(StreamMode.STANDARD, ["k"], on_view=True)
    with pytest.raises(NotYetSupported):
        require_fitting_mode(StreamMode.EVERY_CHANGE, [], on_view=True)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (table(("k", "long")), table(("j", "long")), "renamed or dropped"),
        (table(("j", "long")), table(("k", "long")), "missing in version 3"),
        (table(("k", "integer")), table(("k", "double")), "of type double in version 7"),
        (table(("k", "long"), physical={"k": "k"}), table(("k", "long"), physical={"k": "col-2"}), "another column"),
    ],
)
def test_a_window_over_another_key_column_is_refused(before: Metadata, after: Metadata, problem: str) -> None:
    with pytest.raises(KeyColumnChanged, match=problem):
        require_same_keys(before, after, ["k"], stream="s", table="t", start=3, end=7)


def test_a_wider_type_and_another_case_are_the_same_key() -> None:
    after = table(("v", "string"), ("K", "long"))
    require_same_keys(table(("k", "integer")), after, ["k"], stream="s", table="t", start=3, end=7)
