"""Refusals of the ingest service are the errors that a client without it raises."""

from __future__ import annotations

import json

import pytest

from tidemark.channels.planning.refusals import facts_to_send, refusal_of
from tidemark.errors import (
    ChannelError,
    ChannelHasUncommittedRows,
    ChannelInvalid,
    ChannelNotFound,
    ChannelTokenLost,
    RowsRefused,
    TableNotSupported,
    TokenOutOfOrder,
)

REFUSALS: list[ChannelError] = [
    RowsRefused(row_index=3, row="row 3", table="a.b", problem="column id: it is NULL."),
    ChannelInvalid(channel="C", table="a.b", code=20, problem="somebody opened it.", offset_token=None),
    ChannelTokenLost(channel="C", table="a.b", problem="it was restored.", offset_token="7"),
    ChannelHasUncommittedRows(channel="C", table="a.b", rows=2),
    TableNotSupported(table="a.b", problem="column v has a collation"),
    TokenOutOfOrder(channel="C", table="a.b", problem="7 does not follow 8."),
]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_a_refusal_is_the_same_error_behind_the_service(error: ChannelError) -> None:
    found = refusal_of(type(error).__name__, json.loads(json.dumps(facts_to_send(error))))
    assert (type(found), str(found), found.facts if found else None) == (type(error), str(error), error.facts)


def test_an_answer_without_the_values_of_the_error_is_none() -> None:
    """So is one of another release, or of something that is no ingest service."""
    assert refusal_of("RowsRefused", {"table": "a.b"}) is None
    assert refusal_of("RowsRefused", None) is None
    assert refusal_of("KeyboardInterrupt", {}) is None
    assert facts_to_send(ChannelNotFound(channel="C", table="a.b", known="none")) == {}
