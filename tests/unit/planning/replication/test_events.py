"""What a change becomes, whatever the values are."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import Column, TableSchema, TypeKind, UnifiedType
from tidemark.replication.planning.events import (
    READ_METHODS,
    TOASTED_KEY,
    UNCHANGED,
    Change,
    EventForm,
    Half,
    schema_key,
)

TEXTS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
NAMES = ("id", 'q"uote', "per % cent", "ü")


def form(keys: tuple[int, ...] = (0,), names: tuple[str | None, ...] = NAMES) -> EventForm:
    return EventForm(names, [None] * len(names), keys)


def test_events_of_every_kind_of_source_say_how_they_were_read() -> None:
    assert set(READ_METHODS) == set(SourceKind)
    assert len(set(READ_METHODS.values())) == len(READ_METHODS)


@given(st.lists(TEXTS, min_size=4, max_size=4))
def test_a_payload_gives_the_values_back(values: list[str | None]) -> None:
    change, half, payload, key, old_key, unchanged, problem = form((0, 2)).inserted([*values])
    assert (change, half, old_key, unchanged, problem) == (Change.INSERT, Half.WHOLE, None, None, None)
    assert json.loads(payload) == dict(zip(NAMES, values, strict=True))
    assert json.loads(str(key)) == [values[0], values[2]]


@given(st.lists(TEXTS, min_size=4, max_size=4), st.lists(TEXTS, min_size=4, max_size=4))
def test_a_key_that_moves_is_a_delete_and_an_insert_and_no_other_update_is(
    old: list[str | None], new: list[str | None]
) -> None:
    events = form().updated([old[0], None, None, None], False, [*new], False)
    if old[0] == new[0]:
        assert [event[0] for event in events] == [Change.UPDATE]
    else:
        gone, come = events
        assert (gone[0], gone[1], json.loads(gone[2])) == (Change.DELETE, Half.DELETED, {"id": old[0]})
        assert (come[0], come[1], come[4]) == (Change.INSERT, Half.INSERTED, gone[3])
    assert json.loads(events[-1][2]) == dict(zip(NAMES, new, strict=True))


@given(st.lists(TEXTS, min_size=4, max_size=4), st.sets(st.integers(1, 3), min_size=1), st.booleans())
def test_what_stayed_is_taken_from_the_whole_old_row_or_named(
    values: list[str | None], places: set[int], whole: bool
) -> None:
    new = [UNCHANGED if place in places else value for place, value in enumerate(values)]
    (event,) = form().updated([*values] if whole else None, whole, new, True)
    told = json.loads(event[2])
    if whole:
        assert (told, event[5]) == (dict(zip(NAMES, values, strict=True)), None)
    else:
        assert event[5] == tuple(NAMES[place] for place in sorted(places))
        assert told == {NAMES[place]: values[place] for place in range(4) if place not in places}


def test_a_key_that_is_not_in_the_log_is_a_problem_unless_the_old_row_has_it() -> None:
    (event,) = form().updated(None, False, [UNCHANGED, "a", "b", "c"], True)
    assert (event[3], event[6]) == (None, TOASTED_KEY)
    (event,) = form().updated(["k", None, None, None], False, [UNCHANGED, "a", "b", "c"], True)
    assert (event[3], event[5], event[6]) == ('["k"]', None, None)
    assert json.loads(event[2])["id"] == "k"


def test_conversions_reach_old_and_new_values_and_leave_nulls() -> None:
    converted = EventForm(["id", "v"], [str.upper, str.upper], [0])
    (gone, come) = converted.updated(["a", None], False, ["b", None], False)
    assert (gone[3], come[3], come[2]) == ('["A"]', '["B"]', '{"id":"B","v":null}')


def test_a_column_without_a_name_is_left_out() -> None:
    hidden = form((1,), (None, "id", "v", None))
    assert hidden.inserted(["s", "1", "v", "t"])[2] == '{"id":"1","v":"v"}'
    assert hidden.deleted([None, "1", None, None], False)[2] == '{"id":"1"}'
    (event,) = hidden.updated(None, False, [UNCHANGED, "1", "v", UNCHANGED], True)
    assert (event[2], event[5]) == ('{"id":"1","v":"v"}', None)


def test_events_without_a_key_have_none() -> None:
    assert form(()).inserted(["1", "2", "3", "4"])[3] is None
    for whole, changes in ((True, [Change.UPDATE_DELETE, Change.UPDATE_INSERT]), (False, [Change.UPDATE])):
        events = form(()).updated(["0", "2", "3", "4"], whole, ["1", "2", "3", "4"], False)
        assert [(event[0], event[3]) for event in events] == [(change, None) for change in changes]


def test_a_schemas_key_changes_with_names_types_order_and_key_and_with_nothing_else() -> None:
    text, number = UnifiedType(TypeKind.STRING), UnifiedType(TypeKind.LONG)
    schemas = [
        (Column("a", text, "text"), Column("b", text, "text")),
        (Column("b", text, "text"), Column("a", text, "text")),
        (Column("a", number, "text"), Column("b", text, "text")),
        (Column("a", text, "text", key=True), Column("b", text, "text")),
        (Column("c", text, "text"), Column("b", text, "text")),
    ]
    keys = [schema_key(TableSchema(columns)) for columns in schemas]
    assert len(set(keys)) == len(schemas)
    assert all(len(key) == 40 for key in keys)
    assert schema_key(TableSchema((Column("a", text, "varchar", filled="x"), Column("b", text, "text")))) == keys[0]
