"""When a stream is announced, decided on times that are given."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidemark.model.streams import Stream, StreamMode, StreamOffset, TableRef
from tidemark.streams.worker.observation import Observation
from tidemark.triggers._announcing import Announced, Intervals, Reason, due, payload_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY = Intervals(renew_after=10 * MINUTE, keep_fresh_after=timedelta(hours=12))
STREAM = Stream(
    uid="uid",
    name="s",
    source=TableRef("shop.orders", "file:///t", "id"),
    mode=StreamMode.STANDARD,
    offset=StreamOffset("id", 5),
    initial_rows_pending=False,
    serial=0,
    created_at=NOW - timedelta(days=1),
    anchor=NOW - timedelta(hours=1),
)
DATA = Observation(STREAM, head=7, has_data=True, waiting_since=NOW - 3 * MINUTE)
QUIET = replace(DATA, has_data=False, waiting_since=None)
LAST = Announced.of(DATA, at=NOW, watch="1")


def moved(observation: Observation, offset: int) -> Observation:
    return replace(observation, stream=replace(observation.stream, offset=StreamOffset("id", offset)))


def why(
    observation: Observation, last: Announced | None, after: timedelta = timedelta(), watch: str = "1"
) -> Reason | None:
    return due(observation, last, now=NOW + after, watch=watch, every=EVERY)


def test_data_is_announced_once_for_each_offset() -> None:
    assert why(DATA, None) is Reason.DATA
    assert why(DATA, LAST, after=9 * MINUTE) is None
    assert why(replace(DATA, head=9), LAST, after=9 * MINUTE) is None  # the run that was woken reads it, or leaves it
    assert why(moved(replace(DATA, head=9), 7), LAST) is Reason.DATA  # it has left it


def test_what_nobody_consumes_is_announced_again_at_an_interval() -> None:
    assert why(DATA, LAST, after=10 * MINUTE) is Reason.AGAIN


@pytest.mark.parametrize("other", [{"uid": "another"}, {"initial_rows_pending": True}])
def test_another_stream_of_the_name_and_other_rows_are_announced(other: dict[str, object]) -> None:
    assert why(replace(DATA, stream=replace(STREAM, **other)), LAST) is Reason.DATA  # type: ignore[arg-type]


def test_a_resumed_dag_is_told_what_is_there_once_in_a_minute() -> None:
    assert why(DATA, LAST, after=59 * timedelta(seconds=1), watch="2") is None
    assert why(DATA, LAST, after=MINUTE, watch="2") is Reason.DATA


def test_a_quiet_stream_is_kept_from_becoming_stale() -> None:
    assert why(QUIET, None) is None
    later = timedelta(hours=11)  # the offset moved an hour ago
    assert why(QUIET, None, after=later) is Reason.KEEP_FRESH
    told = Announced.of(QUIET, at=NOW + later, watch="1")
    assert why(QUIET, told, after=later + timedelta(hours=11)) is None
    assert why(QUIET, told, after=later + timedelta(hours=12)) is Reason.KEEP_FRESH
    assert why(DATA, told, after=later) is Reason.DATA  # data that comes meanwhile waits for nothing


def test_what_is_kept_comes_back_and_what_is_garbled_does_not() -> None:
    assert Announced.from_plain(LAST.to_plain()) == LAST
    for garbled in (None, "x", {}, {**LAST.to_plain(), "more": 1}, {**LAST.to_plain(), "at": "2026-01-01T00:00:00"}):
        assert Announced.from_plain(garbled) is None


def test_the_event_says_where_the_stream_stood() -> None:
    assert payload_of(DATA, Reason.DATA, now=NOW) == {
        "stream": "s",
        "source": "shop.orders",
        "offset": 5,
        "head": 7,
        "behind": 2,
        "lag": 180.0,
        "initial_rows": False,
        "reason": "data",
    }
