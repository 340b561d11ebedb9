"""Rows that the Python client sends to the ingest service arrive as the values that they are."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.unit.channels.specs import field, spec
from tidemark.channels.driver.batches import batch_of
from tidemark.channels.driver.service.bodies import rows_of_body
from tidemark.client.ingest_service import body_of
from tidemark.errors import InvalidArgument

LONGS = {"type": "array", "elementType": "long", "containsNull": True}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("timestamp", pd.NaT),
        ("string", pd.NA),
        ("long", np.int64(5)),
        ("boolean", np.True_),
        ("double", np.float32(0.5)),
        (LONGS, np.array([1, 2])),
        ("timestamp", pd.Timestamp("2026-01-01T00:00:00.000000001Z")),
        ("date", date(2026, 1, 1)),
        ("binary", b"\0\xff"),
        ("string", "\u2028\n"),
    ],
)
def test_a_value_of_python_arrives_as_it_is_written_without_the_service(kind: Any, value: Any) -> None:
    table = spec(field("v", kind))
    sent, media_type = body_of([{"v": value}])
    assert batch_of(rows_of_body(sent, media_type, table, 1 << 20), table, UTC, NOW).rows == (
        batch_of([{"v": value}], table, UTC, NOW).rows
    )


@pytest.mark.parametrize("value", [10**5_000, {1}, object(), {(1, 2): 3}], ids=["digits", "set", "object", "keys"])
def test_a_value_that_json_cannot_have_is_refused_with_the_way_out(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="send an Arrow table"):
        body_of([{"v": value}])
