"""Properties of a table that its channels read, as any writer may have set them."""

from __future__ import annotations

import pytest

from tests.unit.channels.specs import PROTOCOL, field, metadata
from tidemark.channels.driver.table_spec import spec_of

INDEXED = "delta.dataSkippingNumIndexedCols"
ODD = ("", "-", "--5", "²", "٣", "5.0", "all", "9" * 20, "-" + "9" * 5_000, "1_0")


@pytest.mark.parametrize("said", ODD)
def test_a_number_of_indexed_columns_that_is_none_counts_as_not_set(said: str) -> None:
    spec = spec_of("db.t", metadata(field("id", "long"), **{INDEXED: said}), PROTOCOL)
    assert spec.indexed_columns == 32


@pytest.mark.parametrize(("said", "number"), [("0", 0), ("7", 7), ("-1", -1)])
def test_a_number_of_indexed_columns_is_taken(said: str, number: int) -> None:
    spec = spec_of("db.t", metadata(field("id", "long"), **{INDEXED: said}), PROTOCOL)
    assert spec.indexed_columns == number
