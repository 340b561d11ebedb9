"""Batches of rows: errors in their order, and whole columns at once that equal the rules value by value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.channels.specs import field, spec
from tidemark.channels.driver.arrow_types import buffer_type
from tidemark.channels.driver.batches import batch_of
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.convert import convert
from tidemark.channels.planning.values.problem import ValueProblem
from tidemark.errors import InvalidArgument

MIB = 1 << 20
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ORDERS = spec(field("id", "long", nullable=False), field("price", "decimal(10,2)"), field("Note", "string"))

TYPES = {
    **{name: name for name in ("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary")},
    **{name: name for name in ("date", "timestamp", "timestamp_ntz", "variant", "decimal(10,2)", "decimal(38,0)")},
    "longs": {"type": "array", "elementType": "long", "containsNull": True},
}
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001
AWARE = st.builds(lambda at, hours: at.replace(tzinfo=timezone(timedelta(hours=hours))), MOMENTS, st.integers(-12, 12))
TEXTS = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.dates(date(1900, 1, 1), date(2200, 1, 1)).map(str),
    MOMENTS.map(lambda at: at.isoformat()),
    AWARE.map(lambda at: at.isoformat(sep=" ")),
    MOMENTS.map(lambda at: at.isoformat(timespec="seconds") + "Z"),
    st.sampled_from(
        ["", " 1", "true", "NO", "nan", "inf", "00ff", "[1]", "null", '{"a":1}', "x", "1_0", "٣", "\ud800"]
    ),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.integers(-200, 200),
    st.floats(width=64),
    st.decimals(-(10**12), 10**12, places=4),
    st.binary(max_size=4),
    st.dates(),
    MOMENTS,
    AWARE,
    TEXTS,
    st.lists(st.integers(0, 9), max_size=3),
)
COLUMNS = st.one_of(*(st.lists(values, min_size=1, max_size=8) for values in (*VALUES.branches, TEXTS, VALUES)))
ZONES = st.sampled_from([UTC, BERLIN])


def one_column(kind: Any) -> TableSpec:
    return spec(field("v", kind))


def by_rules(values: list[Any], table: TableSpec, zone: tzinfo) -> tuple[list[Any], set[int]]:
    """Values that fit, and the places of those that do not."""
    kind, good, bad = table.columns[0].type, [], set()
    for place, value in enumerate(values):
        try:
            good.append(convert(value, kind, zone))
        except ValueProblem:
            bad.add(place)
    return pa.array(good, buffer_type(kind)).to_pylist(), bad


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    assert [repr(one) for one in found] == [repr(one) for one in wanted]  # NaN equals NaN, and 1 is not 1.0


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=150, deadline=None)
@given(values=COLUMNS, zone=ZONES)
def test_a_column_of_python_values_equals_the_rules_value_by_value(name: str, values: list[Any], zone: tzinfo) -> None:
    table = one_column(TYPES[name])
    wanted, bad = by_rules(values, table, zone)
    batch = batch_of([{"v": value} for value in values], table, zone, NOW)
    assert {error.row_index for error in batch.errors} == bad
    assert_same(batch.rows.column("v").to_pylist(), wanted)


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=150, deadline=None)
@given(values=COLUMNS, zone=ZONES)
def test_a_column_of_arrow_equals_the_rules_value_by_value(name: str, values: list[Any], zone: tzinfo) -> None:
    try:
        column = pa.array(values)
        as_python = column.to_pylist()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return  # no column of Arrow has such values, or Python has none of its
    table = one_column(TYPES[name])
    wanted, bad = by_rules(as_python, table, zone)
    batch = batch_of(pa.table({"v": column}), table, zone, NOW)
    assert {error.row_index for error in batch.errors} == bad
    assert_same(batch.rows.column("v").to_pylist(), wanted)


@pytest.mark.parametrize("name", sorted(set(TYPES) - {"date", "timestamp", "timestamp_ntz"}))
@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("s", "UTC")], ids=str)
def test_a_moment_of_arrow_that_python_cannot_have_is_an_error_of_its_row(name: str, kind: pa.DataType) -> None:
    table = one_column(TYPES[name])
    column = pa.array([None, 10**8 if kind == pa.date32() else 2**60], kind)
    batch = batch_of(pa.table({"v": column}), table, UTC, NOW)
    assert [error.row_index for error in batch.errors] == [1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, None], pa.int8()),
        pa.array([1, 2, None], pa.uint64()),
        pa.array([1.5, None], pa.float32()),
        pa.array(["a", None], pa.large_string()),
        pa.array(["a", "a", None]).dictionary_encode(),
        pa.array([b"a", None], pa.large_binary()),
        pa.array([Decimal("1.25"), None], pa.decimal256(50, 3)),
        pa.array([1, None], pa.timestamp("s", "Europe/Berlin")),
        pa.array([1, None], pa.date64()),
        pa.array([None, None], pa.null()),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("name", TYPES)
def test_arrows_own_types_equal_the_rules_value_by_value(name: str, column: pa.Array) -> None:
    table = one_column(TYPES[name])
    wanted, bad = by_rules(column.to_pylist(), table, UTC)
    batch = batch_of(pa.table({"v": column}), table, UTC, NOW)
    assert {error.row_index for error in batch.errors} == bad
    assert_same(batch.rows.column("v").to_pylist(), wanted)


@pytest.mark.parametrize(("name", "zone"), [("timestamp", "UTC"), ("timestamp_ntz", None)])
def test_nanoseconds_are_cut_to_the_microsecond_before(name: str, zone: str | None) -> None:
    column = pa.array([-1, 1, 1_999, None], pa.timestamp("ns", zone))
    batch = batch_of(pa.table({"v": column}), one_column(name), UTC, NOW)
    assert batch.rows.column("v").cast(pa.int64()).to_pylist() == [-1, 0, 1, None]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_a_text_of_arrow_that_is_not_utf8_is_an_error_of_its_row(kind: pa.DataType) -> None:
    text = pa.array(["good", "bad!"]).buffers()
    broken = pa.Array.from_buffers(pa.string(), 2, [None, text[1], pa.py_buffer(b"good\xff\xfe!!")])
    column = broken.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else broken.cast(kind)
    found = batch_of(pa.table({"id": [1, 2], "note": column}), ORDERS, UTC, NOW)
    assert [(error.row_index, error.column, error.kind) for error in found.errors] == [
        (1, "Note", RowErrorKind.WRONG_TYPE)
    ]
    assert found.rows.column("Note").to_pylist() == ["good"]


def test_the_first_error_of_a_row_is_reported_in_the_order_of_the_source_system() -> None:
    batch = batch_of(
        [
            {"id": 1},
            {"id": "x", "other": 1, "more": 2},
            {"price": "x"},
            {"id": None, "price": "x"},
            {"id": 2, "price": "x", "note": b""},
            {"ID": 3, "NOTE": "n"},
        ],
        ORDERS,
        UTC,
        NOW,
    )
    assert [(error.row_index, error.column, error.kind) for error in batch.errors] == [
        (1, "other,more", RowErrorKind.EXTRA_COLUMN),
        (2, "id", RowErrorKind.MISSING_COLUMN),
        (3, "id", RowErrorKind.NULL_VALUE),
        (4, "price", RowErrorKind.INVALID_VALUE),
    ]
    assert batch.parsed == 6
    assert batch.rows.to_pylist() == [
        {"id": 1, "price": None, "Note": None},
        {"id": 3, "price": None, "Note": "n"},
    ]


def test_an_arrow_table_with_an_unknown_column_has_no_good_row() -> None:
    batch = batch_of(pa.table({"id": [1, 2], "other": [1, 2]}), ORDERS, UTC, NOW)
    assert [(error.row_index, error.column) for error in batch.errors] == [(0, "other"), (1, "other")]


def test_a_quoted_name_is_exact() -> None:
    assert not batch_of([{"id": 1, '"Note"': "n", '"price"': 1}], ORDERS, UTC, NOW).errors
    (error,) = batch_of([{"id": 1, '"NOTE"': "n"}], ORDERS, UTC, NOW).errors
    assert error.kind is RowErrorKind.EXTRA_COLUMN


def test_rows_may_spell_a_column_in_different_ways() -> None:
    batch = batch_of([{"id": 1}, {"Id": 2}, {"ID": None}, {}], ORDERS, UTC, NOW)
    assert batch.rows.column("id").to_pylist() == [1, 2]
    assert [error.kind for error in batch.errors] == [RowErrorKind.NULL_VALUE, RowErrorKind.MISSING_COLUMN]


def test_defaults_fill_columns_that_a_row_lacks_and_no_others() -> None:
    table = spec(
        field("id", "long"),
        field("state", "string", nullable=False, CURRENT_DEFAULT="'new'"),
        field("at", "timestamp", CURRENT_DEFAULT="current_timestamp()"),
        field("size", "decimal(10,2)", CURRENT_DEFAULT="-1.5"),
    )
    batch = batch_of([{"id": 1}, {"id": 2, "state": "old", "at": None, "size": None}, {"state": None}], table, UTC, NOW)
    assert batch.rows.to_pylist() == [
        {"id": 1, "state": "new", "at": NOW, "size": Decimal("-1.50")},
        {"id": 2, "state": "old", "at": None, "size": None},
    ]
    assert [(error.row_index, error.kind) for error in batch.errors] == [(2, RowErrorKind.NULL_VALUE)]
    whole = batch_of(pa.table({"id": [1, 2]}), table, UTC, NOW)
    assert whole.rows.column("state").to_pylist() == ["new", "new"]


def test_pandas_frames_and_batches_are_rows_too() -> None:
    frame = pd.DataFrame({"id": [1, 2], "price": [1.5, None]})
    assert batch_of(frame, ORDERS, UTC, NOW).rows.column("price").to_pylist() == [Decimal("1.50"), None]
    batch = pa.record_batch({"id": pa.array([7])})
    assert batch_of(batch, ORDERS, UTC, NOW).rows.column("id").to_pylist() == [7]
    assert batch_of([], ORDERS, UTC, NOW).rows.num_rows == 0


@pytest.mark.parametrize("rows", ["text", {"id": 1}, [1, 2], 5, None])
def test_anything_else_is_refused(rows: Any) -> None:
    with pytest.raises(InvalidArgument, match="list of dictionaries"):
        batch_of(rows, ORDERS, UTC, NOW)


def test_a_row_over_the_limit_is_an_error_though_each_of_its_values_fits() -> None:
    wide = spec(*(field(f"c{number}", "string") for number in range(5)))
    large, small = "x" * (13 * MIB), "x" * MIB
    rows = [dict.fromkeys(("c0", "c1", "c2", "c3"), large), dict.fromkeys(("c0", "c1", "c2", "c3", "c4"), large)]
    batch = batch_of([*rows, {"c0": small}], wide, UTC, NOW)
    assert [(error.row_index, error.kind) for error in batch.errors] == [(1, RowErrorKind.TOO_LARGE)]
    assert batch.rows.num_rows == 2
