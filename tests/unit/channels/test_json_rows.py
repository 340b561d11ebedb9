"""Rows in JSON lines: read as whole columns, they are what row by row reading gives."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.channels.specs import field, spec
from tidemark.channels.driver import json_rows
from tidemark.channels.driver.batches import Batch, batch_of
from tidemark.channels.driver.json_rows import JsonLines, rows_of_json
from tidemark.channels.model.rows import RowErrorKind
from tidemark.errors import BodyUnreadable

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TABLE = spec(
    field("id", "long", nullable=False),
    field("n", "decimal(38,10)"),
    field("f", "double"),
    field("r", "float"),
    field("b", "boolean"),
    field("s", "string"),
    field("at", "timestamp"),
    field("day", "date"),
    field("list", {"type": "array", "elementType": "long", "containsNull": True}),
    field("state", "string", CURRENT_DEFAULT="'new'"),
)
NULLABLE = spec(
    *(field(name, kind) for name, kind in (("id", "long"), ("n", "long"), ("f", "double"), ("s", "string")))
)
NAMES = st.sampled_from([column.name for column in TABLE.columns] + ["ID", "N", "other"])
TEXTS = st.sampled_from(["", "1", " 1.5", "2024-01-01", "2024-01-01T00:00:00Z", "true", "x", "é"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False),
    TEXTS,
    st.lists(st.integers(0, 3)),
)
ALIKE = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1), "n": st.integers(-9, 9)},
    optional={
        "f": st.floats(allow_nan=False),
        "r": st.floats(width=32, allow_nan=False),
        "b": st.booleans(),
        "s": TEXTS,
    },
)
NO_OBJECTS = st.sampled_from(
    [b"null", b" null ", b"1", b'"{}"', b"[1]", b"true", b'{"id": 1} {"id": 2}', b'{"id": 1', b'{"s": "\xff"}', b"\xff"]
)
ROWS = st.lists(st.one_of(ALIKE, st.dictionaries(NAMES, VALUES, max_size=4)), max_size=6)


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def batch(rows: Any) -> Batch:
    return batch_of(rows, TABLE, UTC, NOW)


@settings(max_examples=400, deadline=None)
@given(rows=ROWS)
def test_rows_are_what_row_by_row_reading_gives(rows: list[dict[str, Any]]) -> None:
    data = lines(rows)
    found, wanted = batch(rows_of_json(data, TABLE)), batch(json_rows._row_by_row(data))
    assert found.errors == wanted.errors
    assert repr(found.rows.to_pylist()) == repr(wanted.rows.to_pylist())


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.one_of(st.just(b'{"id": 1, "s": "x"}'), NO_OBJECTS.map(bytearray)), max_size=6))
def test_a_line_that_is_no_object_is_an_error_of_its_own_among_good_ones(rows: list[bytes | bytearray]) -> None:
    odd = [index for index, line in enumerate(rows) if isinstance(line, bytearray)]
    found = batch_of(JsonLines([bytes(line) + b"\n" for line in rows], "line {}".format), NULLABLE, UTC, NOW)
    assert [error.row_index for error in found.errors if error.kind is RowErrorKind.UNREADABLE] == odd
    assert found.rows.num_rows == len(rows) - len(odd)
    if odd:
        with pytest.raises(BodyUnreadable, match=f"line {odd[0] + 1} is not a JSON object"):
            rows_of_json(b"\n".join(rows), NULLABLE)


def test_plain_rows_are_read_as_whole_columns_with_each_digit() -> None:
    number = "1234567890123456789012345678.0123456789"
    data = f'{{"ID": 1, "n": {number}, "at": "2024-01-01T00:00:00Z", "state": "old"}}\n\n'.encode() * 3
    rows = rows_of_json(data, TABLE)
    assert isinstance(rows, pa.Table)
    assert batch(rows).rows.column("n").to_pylist() == [Decimal(number)] * 3


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"id": 1}\n{"id": 2', "line 2 is not a JSON object"),
        (b'{"id": 1}\n[1]', "line 2 is not a JSON object, but list"),
        (b'{"id": 1, "id": 2}', "a key twice"),
        (b"\xff\xfe", "line 1 is not a JSON object"),
        (b"[" * 100_000, "line 1 is not a JSON object: it is nested too deeply"),
        (b'{"s": 1e999999999}', "line 1 is not a JSON object: it has a number beyond all bounds"),
        (b'{"s": 0e-999999999}', "line 1 is not a JSON object: it has a number beyond all bounds"),
        (b'{"s": 1e99999999999999999999}', "line 1 is not a JSON object: it has a number beyond all bounds"),
    ],
)
def test_a_body_that_is_no_json_names_its_line(data: bytes, problem: str) -> None:
    with pytest.raises(BodyUnreadable, match=problem):
        rows_of_json(data, TABLE)


def test_an_empty_body_has_no_rows() -> None:
    assert rows_of_json(b" \n", TABLE) == []
