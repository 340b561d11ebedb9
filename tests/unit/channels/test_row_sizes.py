"""A row over 64 MiB is found, in columns of every type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tidemark.channels.driver.row_sizes import MOST_BYTES, too_large

LARGE, MORE = "x" * (40 << 20), b"y" * (30 << 20)  # over the limit together
TEXT, BYTES = pa.string(), pa.binary()
ROWS: dict[str, tuple[pa.DataType, Any, Any, int]] = {  # type, a large value, others, bytes of the large one
    "elements": (pa.list_(BYTES), [MORE, MORE, None, MORE], [None, [], [b"z"]], 90 << 20),
    "fields": (
        pa.struct([("a", TEXT), ("b", pa.struct([("c", BYTES)]))]),
        {"a": LARGE, "b": {"c": MORE}},
        [None, {"a": None, "b": None}],
        70 << 20,
    ),
    "keys and values": (pa.map_(TEXT, BYTES), [(LARGE, MORE), ("k", None)], [None, [], [("k", b"v")]], (70 << 20) + 1),
    "elements of values": (pa.map_(TEXT, pa.list_(BYTES)), [("k", [MORE] * 3)], [[("k", None)]], (90 << 20) + 1),
    "numbers": (pa.list_(pa.int64()), [7] * (9 << 20), [[7], None], 72 << 20),
}


@pytest.mark.parametrize("case", ROWS)
def test_nested_values_count(case: str) -> None:
    kind, large, others, size = ROWS[case]
    table = pa.table({"id": [0] * (len(others) + 2), "v": pa.array([*others, large, *others[:1]], kind)})
    assert list(too_large(table)) == [(len(others), size)]
    assert list(too_large(table.slice(len(others)))) == [(0, size)]


def test_all_columns_of_a_row_count_together_and_a_row_at_the_limit_is_taken() -> None:
    rest = b"z" * (MOST_BYTES - len(LARGE))
    table = pa.table({"a": [LARGE, LARGE, LARGE], "b": [[MORE], [rest], []], "n": [1, 2, 3]})
    assert list(too_large(table)) == [(0, 70 << 20)]


def test_a_batch_of_many_small_rows_over_the_limit_is_taken() -> None:
    table = pa.table({"a": ["x" * (1 << 20)] * 70, "b": [["y"]] * 70})
    assert table.nbytes > MOST_BYTES
    assert list(too_large(table)) == []
