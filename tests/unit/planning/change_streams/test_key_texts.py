"""Types of a key column that may follow each other without a key changing its partition."""

from __future__ import annotations

import json

import pytest

from tidemark.change_streams.planning.key_texts import rewritten_key
from tidemark.model.table_log import Metadata


def of_type(kind: str) -> Metadata:
    fields = [{"name": "Id", "type": kind, "nullable": True, "metadata": {}}]
    return Metadata("t", json.dumps({"type": "struct", "fields": fields}), (), {})


@pytest.mark.parametrize(
    ("before", "after"),
    [("byte", "long"), ("integer", "decimal(20,2)"), ("decimal(4,1)", "decimal(9,3)"), ("string", "string")],
)
def test_whole_numbers_and_decimals_keep_their_text(before: str, after: str) -> None:
    assert rewritten_key(("id",), of_type(before), of_type(after)) is None


@pytest.mark.parametrize(
    ("before", "after"), [("integer", "double"), ("float", "double"), ("date", "timestamp_ntz"), ("long", "string")]
)
def test_a_key_that_would_be_written_otherwise_is_named(before: str, after: str) -> None:
    said = rewritten_key(("id",), of_type(before), of_type(after))
    assert said == f"its key column id has become {after}, and was {before}"
    assert rewritten_key(("other",), of_type(before), of_type(after)) is None
