"""What a commit of capture says of itself is read back, and nothing else is taken for it."""

from __future__ import annotations

import pytest

from tidemark.lake.event_logs import EventBatch, capture_app_id, parse_batch

BATCH = EventBatch("uid", 3, "0000000000000001", "00000000000000FF", "attempt", 2)


def test_a_batch_is_read_back() -> None:
    assert parse_batch(BATCH.to_text()) == BATCH


@pytest.mark.parametrize("text", [None, "", "somebody's words", "[]", "{}", '{"tidemark_events": {"number": 3}}', "3"])
def test_what_others_write_is_no_batch(text: str | None) -> None:
    assert parse_batch(text) is None


def test_the_application_is_of_one_replication_of_one_store() -> None:
    assert capture_app_id("s", "r") == "tidemark/s/r/capture"
