"""What a change stream may watch, and every definition that is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tidemark.change_streams.model.change_streams import ChangeStream, ChangeStreamOptions, WatchedTable
from tidemark.change_streams.planning.definition import (
    FoundTable,
    TableRequest,
    WatchRequest,
    decide_watch,
    keys_by_name,
    parse_keys,
    parse_watch,
    require_name,
    require_room,
)
from tidemark.errors import ChangeStreamRefused, InvalidArgument
from tidemark.model.streams import Addressing, TableRef
from tidemark.model.table_log import Metadata

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = ("Id", "First", "Last", "Age")


def ref(name: str) -> TableRef:
    return TableRef(name=name, path=f"file:///lake/{name}", table_id=f"id-of-{name}")


def found(name: str, *, since: int = 5, key: str | None = "id", generated: str | None = None) -> FoundTable:
    fields = [
        {
            "name": column,
            "type": "long" if column in ("Id", "Age") else "string",
            "nullable": True,
            "metadata": {"delta.generationExpression": "upper(First)"} if column == generated else {},
        }
        for column in COLUMNS
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    properties: Mapping[str, str] = {} if key is None else {"tidemark.primaryKey": key}
    return FoundTable(ref(name), Metadata(f"id-of-{name}", schema, (), properties), since)


def decide(watch: Any, *tables: FoundTable, keys: Any = None, known: tuple[WatchedTable, ...] = ()) -> Any:
    asks = parse_watch(watch).tables
    pairs = list(zip(asks, tables or [found(request.name) for request in asks], strict=True))
    return decide_watch("s", pairs, parse_keys(keys, asks), known)


def stream(name: str, *tables: WatchedTable, everything: bool = False) -> ChangeStream:
    return ChangeStream(name, name, everything, tables, ChangeStreamOptions(), NOW, "file:///log", NOW, 0)


def watched(name: str, *columns: str, whole: bool = True) -> WatchedTable:
    return WatchedTable(ref(name), ("Id",), None if whole and not columns else columns, 0)


@pytest.mark.parametrize(
    ("watch", "wanted"),
    [
        (None, WatchRequest()),
        ([], WatchRequest()),
        ("ALL", WatchRequest(everything=True)),
        ("all", WatchRequest(everything=True)),
        (["ALL"], WatchRequest(tables=(TableRequest("ALL"),))),
        ("db.t", WatchRequest(tables=(TableRequest("db.t"),))),
        (["a", "b"], WatchRequest(tables=(TableRequest("a"), TableRequest("b")))),
        ({"a": None, "b": []}, WatchRequest(tables=(TableRequest("a"), TableRequest("b", ())))),
        ({"c": ["x", "y"]}, WatchRequest(tables=(TableRequest("c", ("x", "y")),))),
        ({"c": "x, y"}, WatchRequest(tables=(TableRequest("c", ("x", "y")),))),
    ],
)  # fmt: skip
def test_a_watch_list_is_all_a_table_a_list_or_a_mapping(watch: Any, wanted: WatchRequest) -> None:
    assert parse_watch(watch) == wanted
    assert parse_watch(wanted) is wanted


@pytest.mark.parametrize("watch", [7, {"t": 7}, {"t": [1]}, [""], [None], {7: None}, {"t": [""]}])
def test_what_is_no_watch_list_is_an_invalid_argument(watch: Any) -> None:
    with pytest.raises(InvalidArgument):
        parse_watch(watch)


def test_a_table_is_watched_whole_by_its_key_alone_or_by_columns_in_its_own_order() -> None:
    whole, key_only, some = decide({"a": None, "b": [], "c": ["LAST", "first"]})
    assert (whole.columns, key_only.columns, some.columns) == (None, (), ("First", "Last"))
    assert {table.captured for table in (whole, key_only, some)} == {5}
    assert whole.keys == ("Id",)


def test_a_table_that_is_watched_already_keeps_its_place_and_its_keys() -> None:
    known = WatchedTable(ref("a"), ("First", "Last"), None, 3)
    goes_on, new = decide({"a": ["age"], "b": None}, found("a", key=None), found("b"), known=(known,))
    assert (goes_on.captured, goes_on.keys, goes_on.columns) == (3, ("First", "Last"), ("Age",))
    assert new.captured == 5


def test_a_table_that_is_watched_already_keeps_its_name_unless_it_lies_elsewhere_now() -> None:
    known, there = WatchedTable(ref("a"), ("Id",), None, 3), found("a")
    by_path = replace(there, ref=replace(there.ref, name="/lake/a", addressing=Addressing.PATH))
    (goes_on,) = decide("/lake/a", by_path, known=(known,))
    assert (goes_on.table, goes_on.captured) == (ref("a"), 3)
    moved = replace(by_path, ref=replace(by_path.ref, path="file:///lake/b"))
    assert decide("/lake/b", moved, known=(known,))[0].table == moved.ref


@pytest.mark.parametrize(
    ("watch", "problem"),
    [
        ({"t": ["id"]}, "FOR should not list Id, which is in the primary key of table t"),
        ({"t": ["first", "FIRST"]}, "column First of table t is listed in FOR more than once"),
        ({"t": ["middle"]}, "table t has no column middle; it has Id, First, Last, Age"),
    ],
)
def test_columns_that_cannot_be_watched_are_refused(watch: Any, problem: str) -> None:
    with pytest.raises(ChangeStreamRefused, match=problem):
        decide(watch)


def test_a_generated_column_is_refused_by_name_and_may_be_in_a_whole_table() -> None:
    with pytest.raises(ChangeStreamRefused, match="column Last of table t is generated"):
        decide({"t": ["last"]}, found("t", generated="Last"))
    assert decide("t", found("t", generated="Last"))[0].columns is None


def test_a_table_that_stands_twice_is_refused_also_under_two_names() -> None:
    with pytest.raises(ChangeStreamRefused, match=r"table delta\.`/lake/t` is listed in FOR more than once"):
        decide(["t", "delta.`/lake/t`"], found("t"), found("t"))


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (None, ("Id",)),
        ({"T": ["first", "id"]}, ("First", "Id")),
        (["first"], ("First",)),
        ("last, first", ("Last", "First")),
    ],
)  # fmt: skip
def test_keys_come_from_the_argument_else_from_the_tables_property(keys: Any, wanted: tuple[str, ...]) -> None:
    assert decide("t", keys=keys)[0].keys == wanted


def test_a_table_without_key_is_refused_with_what_to_do() -> None:
    with pytest.raises(ChangeStreamRefused) as refused:
        decide("db.t", found("db.t", key=None))
    assert "table db.t has no primary key" in str(refused.value)
    assert "ALTER TABLE db.t SET TBLPROPERTIES ('tidemark.primaryKey' = 'id')" in str(refused.value)
    assert "keys={'db.t': [columns]}" in str(refused.value)


@pytest.mark.parametrize("key", ["nothing", "id, id", "id, nothing"])
def test_a_property_that_is_no_key_is_refused_by_its_name(key: str) -> None:
    with pytest.raises(ChangeStreamRefused, match=r"table property tidemark.primaryKey of t: "):
        decide("t", found("t", key=key))


def test_a_key_of_several_columns_may_have_backticks_and_blanks() -> None:
    assert decide("t", found("t", key=" `First` ,last"))[0].keys == ("First", "Last")


@pytest.mark.parametrize("keys", [{"other": ["id"]}, {"t": ["nothing"]}, {"t": ["id", "ID"]}, {"t": 7}, {"t": [7]}])
def test_keys_that_fit_no_table_or_column_are_an_invalid_argument(keys: Any) -> None:
    with pytest.raises(InvalidArgument):
        decide("t", keys=keys)


def test_keys_are_those_of_the_table_of_exactly_that_name_else_of_the_only_one_in_another_case() -> None:
    columns = ("a",)
    assert keys_by_name({"T": columns, "t": ("b",)}, ["t"]) == {"t": ("b",)}
    assert keys_by_name({"t": columns}, ["t", "T"]) == {"t": columns}
    assert keys_by_name({"DB.T": columns}, ["db.t", "db.u"]) == {"db.t": columns}
    with pytest.raises(InvalidArgument, match=r"it may be DB\.t or db\.T"):
        keys_by_name({"db.t": columns}, ["db.T", "DB.t"])


def test_a_plain_list_of_keys_is_for_one_table_only() -> None:
    with pytest.raises(InvalidArgument, match="more than one table"):
        decide(["a", "b"], keys=["id"])


def test_ten_change_streams_are_the_most() -> None:
    others = [stream(f"s{number}") for number in range(10)]
    require_room("s", (), others[:9], everything=False, new=True)
    require_room("s0", (), others[1:], everything=False, new=False)
    with pytest.raises(ChangeStreamRefused, match="there are 10 change streams, and 10 is the most"):
        require_room("s", (), others, everything=False, new=True)


@pytest.mark.parametrize(("name", "other"), [("json_x", "X"), ("x", "JSON_x"), ("json_json_x", "json_x")])
def test_two_change_streams_have_no_function_of_one_name(name: str, other: str) -> None:
    with pytest.raises(ChangeStreamRefused, match=f"would be a function of change stream {other}, too"):
        require_room(name, (), [stream(other)], everything=False, new=True)
    require_room(name, (), [stream(other)], everything=False, new=False)
    require_room(name, (), [stream(f"{other}_2")], everything=False, new=True)


KEY_ONLY = watched("t", whole=False)


@pytest.mark.parametrize(
    ("asked", "others", "crowded"),
    [
        (watched("t"), [watched("t"), watched("t")], None),
        (watched("t"), [watched("t"), watched("t"), watched("t")], "table t is"),
        (watched("t"), [watched("t"), watched("t"), watched("u")], None),
        (watched("t", "Age"), [watched("t", "First")] * 3, None),
        (watched("t", "Age"), [watched("t", "First"), watched("t", "Age", "First"), watched("t")], None),
        (
            watched("t", "Age"),
            [watched("t", "Age"), watched("t", "Age", "First"), watched("t")],
            "column Age of table t",
        ),
        (watched("t"), [watched("t", "First"), watched("t", "Age"), watched("t", "Last")], None),
        (watched("t"), [watched("t", "First"), watched("t", "First"), watched("t")], "column First of table t"),
        (watched("t", "Age"), [watched("t")] * 3, "table t is"),
        (watched("t", "Age"), [KEY_ONLY] * 3, None),
        (KEY_ONLY, [KEY_ONLY] * 3, "table t is"),
        (KEY_ONLY, [watched("t", "Age")] * 3, None),
    ],
)
def test_three_streams_on_a_table_or_column_are_the_most(asked: WatchedTable, others: Any, crowded: str | None) -> None:
    streams = [stream(f"s{number}", other) for number, other in enumerate(others)]
    if crowded is None:
        require_room("s", (asked,), streams, everything=False, new=True)
        return
    with pytest.raises(ChangeStreamRefused, match=f"{crowded}.* watched by 3 change streams, which is the most"):
        require_room("s", (asked,), streams, everything=False, new=True)


def test_a_stream_for_all_counts_for_each_table_also_one_that_it_has_not_met_and_there_are_three_at_most() -> None:
    others = [stream("s0", watched("t"), everything=True), *(stream(f"s{n}", everything=True) for n in (1, 2))]
    for name in ("t", "u"):
        with pytest.raises(ChangeStreamRefused, match=f"table {name} is watched by 3 change streams"):
            require_room("s", (watched(name),), others, everything=False, new=True)
    with pytest.raises(ChangeStreamRefused, match="3 change streams watch ALL"):
        require_room("s", (), others, everything=True, new=True)
    require_room("s", (watched("t"),), others[:2], everything=True, new=True)


def test_a_table_twice_is_refused_where_the_store_is_asked_too() -> None:
    with pytest.raises(ChangeStreamRefused, match="table t is listed in FOR more than once"):
        require_room("s", (watched("t"), watched("t")), (), everything=False, new=True)


@pytest.mark.parametrize("name", ["s", "SingersNameStream", "a_1", "x" * 128])
def test_a_name_is_what_a_function_can_be_called(name: str) -> None:
    require_name(name)


@pytest.mark.parametrize("name", ["", "1s", "_s", "a-b", "a.b", "a b", "x" * 129, "sé", None, 7])
def test_any_other_name_is_an_invalid_argument(name: Any) -> None:
    with pytest.raises(InvalidArgument, match="READ_ and the name"):
        require_name(name)
