"""R80, R81: how long a stream may wait, from a table's properties."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tidemark.streams.planning.staleness import (
    EXTENSION,
    FILE_RETENTION,
    LOG_RETENTION,
    OWN_RETENTION,
    interval,
    retention_of,
    stretched_from,
)

DAY = timedelta(days=1)
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(("own", "extension", "extended"), [(14, 0, 14), (1, 14, 14), (0, 90, 90)])
def test_R80_the_longer_of_retention_and_extension_counts(own: int, extension: int, extended: int) -> None:
    said = {FILE_RETENTION: f"interval {own} days", EXTENSION: f"interval {extension} days"}
    assert retention_of(said).extended == extended * DAY
    assert retention_of(said).stale_after(NOW) == NOW + extended * DAY


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({}, 7 * DAY),
        ({FILE_RETENTION: "interval 2 weeks"}, 14 * DAY),
        ({FILE_RETENTION: "interval 90 days"}, 30 * DAY),  # the log goes first
        ({FILE_RETENTION: "interval 90 days", LOG_RETENTION: "interval 100 days"}, 90 * DAY),
        ({FILE_RETENTION: "whatever"}, 7 * DAY),
    ],
)
def test_R80_without_an_extension_a_stream_has_what_delta_keeps(said: dict[str, str], kept: timedelta) -> None:
    assert retention_of(said).extended == kept


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("interval 1 week", 7 * DAY),
        ("INTERVAL 1 day 12 hours", 1.5 * DAY),
        ("interval 0 days", timedelta()),
        ("interval 5 milliseconds 3 microseconds", timedelta(milliseconds=5, microseconds=3)),
        ("interval 99999999999999 weeks", 365_000 * DAY),
        ("", 3 * DAY),
        (None, 3 * DAY),
    ],
)
def test_durations_are_read_as_delta_writes_them(text: str | None, time: timedelta) -> None:
    assert interval(text, 3 * DAY) == time


def test_R80_a_stretched_property_counts_as_what_it_was() -> None:
    note = json.dumps({FILE_RETENTION: {"own": None, "now": "interval 14 days"}})
    said = {FILE_RETENTION: "interval 14 days", OWN_RETENTION: note}
    assert retention_of(said).files == 7 * DAY
    changed = {**said, FILE_RETENTION: "interval 20 days"}  # somebody has set it since: it is theirs
    assert retention_of(changed).files == 20 * DAY


@pytest.mark.parametrize("note", ["", "no json", "[]", "3", '{"delta.logRetentionDuration": 3}', '{"x": {}}'])
def test_a_note_that_is_not_ours_says_nothing(note: str) -> None:
    assert stretched_from({OWN_RETENTION: note}) == {}
