"""Every row of the table of errors of partitions.md 1.5, and which part of a partition a question is answered by."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidemark.change_streams.model.change_streams import ChangeStream, ChangeStreamOptions, Partition
from tidemark.change_streams.planning.reading import (
    ReadRange,
    ReadRequest,
    ask_to_read,
    below_watermark,
    plan_read,
    require_captured,
)
from tidemark.change_streams.planning.tokens import make_token
from tidemark.errors import InvalidArgument, OutOfRange, PartitionExpired, PartitionTokenInvalid, Unimplemented

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
NOW = BEGIN + timedelta(days=3)
HOUR, US = timedelta(hours=1), timedelta(microseconds=1)
STREAM = ChangeStream(
    "s1", "s", False, (), ChangeStreamOptions(retention=timedelta(days=1)), BEGIN, "/log", NOW - HOUR, 9
)
TOKEN, LEFT, RIGHT = make_token("s1", 0, 65_536, 0), make_token("s1", 0, 9, 4), make_token("s1", 9, 65_536, 4)


def request(**given: Any) -> ReadRequest:
    usual = {"start_timestamp": NOW - 2 * HOUR, "end_timestamp": None, "partition_token": None}
    return ask_to_read(STREAM, **{"now": NOW, **usual, "heartbeat_milliseconds": 10_000, "read_options": None, **given})


@pytest.mark.parametrize(
    ("error", "text", "given"),
    [
        (InvalidArgument, "start_timestamp must not be null", {"start_timestamp": None}),
        (OutOfRange, "too far in the past", {"start_timestamp": NOW - 24 * HOUR - US}),
        (OutOfRange, "too far in the past", {"start_timestamp": BEGIN - US, "now": BEGIN + HOUR}),
        (OutOfRange, "too far in the future", {"start_timestamp": NOW + timedelta(minutes=10) + US}),
        (InvalidArgument, "start_timestamp must be <= end_timestamp", {"end_timestamp": NOW - 2 * HOUR - US}),
        (InvalidArgument, "heartbeat_milliseconds must not be null", {"heartbeat_milliseconds": None}),
        (OutOfRange, "heartbeat_milliseconds must be within", {"heartbeat_milliseconds": 999}),
        (OutOfRange, "heartbeat_milliseconds must be within", {"heartbeat_milliseconds": 300_001}),
        (Unimplemented, "read_options must be null", {"read_options": ["x"]}),
        (InvalidArgument, "not a literal or parameter", {"start_timestamp": "2026-05-01"}),
        (InvalidArgument, "not a literal or parameter", {"end_timestamp": NOW.date()}),
        (InvalidArgument, "not a literal or parameter", {"heartbeat_milliseconds": True}),
        (InvalidArgument, "not a literal or parameter", {"heartbeat_milliseconds": 1e4}),
        (InvalidArgument, "not a literal or parameter", {"partition_token": b"x"}),
        (InvalidArgument, "without a zone", {"start_timestamp": NOW.replace(tzinfo=None)}),
        (PartitionTokenInvalid, "partition_token is invalid", {"partition_token": ""}),
        (PartitionTokenInvalid, "partition_token is invalid", {"partition_token": TOKEN[:-1] + "A"}),
        (PartitionTokenInvalid, "partition_token is invalid", {"partition_token": make_token("s2", 0, 65_536, 0)}),
    ],
)
def test_each_bad_argument_has_its_error_before_anything_is_read(
    error: type[Exception], text: str, given: dict[str, Any]
) -> None:
    with pytest.raises(error) as raised:
        request(**given)
    assert type(raised.value) is error
    assert text in str(raised.value)


@pytest.mark.parametrize(
    "given",
    [
        {"start_timestamp": NOW - 24 * HOUR},
        {"start_timestamp": NOW + timedelta(minutes=10)},
        {"end_timestamp": NOW - 2 * HOUR},
        {"heartbeat_milliseconds": 1_000},
        {"heartbeat_milliseconds": 300_000},
        {"partition_token": TOKEN},
        {"start_timestamp": BEGIN, "now": BEGIN + HOUR},
    ],
)
def test_the_limits_themselves_are_legal(given: dict[str, Any]) -> None:
    request(**given)


def test_who_follows_heartbeats_is_not_ahead_whatever_his_clock_says() -> None:
    request(start_timestamp=NOW - HOUR, now=NOW - 2 * HOUR)
    with pytest.raises(OutOfRange, match="too far in the future"):
        request(start_timestamp=NOW - HOUR + timedelta(minutes=10) + US, now=NOW - 2 * HOUR)


def test_partitions_are_known_up_to_what_is_captured() -> None:
    require_captured(NOW, NOW)
    with pytest.raises(OutOfRange, match="is known after a capture later than that"):
        require_captured(NOW + US, NOW)


FIRST = Partition(TOKEN, 0, 65_536, (), BEGIN)
SPLIT = NOW - HOUR - 5 * US
CHILDREN = (Partition(RIGHT, 9, 65_536, (TOKEN,), SPLIT), Partition(LEFT, 0, 9, (TOKEN,), SPLIT))
CAPTURED = NOW - HOUR


def planned(*rows: Partition, expired: datetime | None = None, token: str = TOKEN, **given: Any) -> ReadRange:
    return plan_read(request(partition_token=token, **given), rows, CAPTURED, expired)


def test_without_an_end_all_that_is_captured_is_read_and_the_heartbeat_is_there() -> None:
    found = planned(FIRST)
    assert (found.until, found.last, found.ended, found.children) == (CAPTURED, CAPTURED - US, None, ())


def test_an_end_is_inclusive_and_so_is_its_heartbeat() -> None:
    end = NOW - 90 * HOUR / 60
    assert (planned(FIRST, end_timestamp=end).until, planned(FIRST, end_timestamp=end).last) == (end + US, end)
    same = planned(FIRST, start_timestamp=end, end_timestamp=end)
    assert (same.until, same.last) == (end + US, end)


def test_nothing_is_promised_of_what_is_not_captured() -> None:
    assert planned(FIRST, end_timestamp=NOW).last == CAPTURED - US
    later = planned(FIRST, start_timestamp=CAPTURED)
    assert (later.until, later.last) == (later.start, None)


@pytest.mark.parametrize("end", [None, SPLIT, SPLIT + US], ids=["open", "at its end", "past its end"])
def test_a_partition_that_ends_within_the_question_ends_with_its_children(end: datetime | None) -> None:
    found = planned(FIRST, *CHILDREN, end_timestamp=end)
    assert (found.until, found.last, found.ended) == (SPLIT, None, SPLIT)
    assert {child.token for child in found.children} == {LEFT, RIGHT}


def test_a_partition_that_ends_later_tells_of_no_children() -> None:
    found = planned(FIRST, *CHILDREN, end_timestamp=SPLIT - US)
    assert (found.until, found.last, found.ended, found.children) == (SPLIT, SPLIT - US, None, ())


def test_at_its_very_end_a_partition_has_its_children_and_nothing_else() -> None:
    found = planned(FIRST, *CHILDREN, start_timestamp=SPLIT)
    assert (found.until, found.last, found.ended) == (SPLIT, None, SPLIT)


@pytest.mark.parametrize(
    ("start", "token"), [(SPLIT + US, TOKEN), (SPLIT - US, LEFT)], ids=["after its end", "before its start"]
)
def test_a_start_outside_the_partition_is_out_of_range(start: datetime, token: str) -> None:
    with pytest.raises(OutOfRange, match="invalid for the partition"):
        planned(FIRST, *CHILDREN, start_timestamp=start, token=token)


def test_a_token_that_the_log_has_not_is_invalid() -> None:
    with pytest.raises(PartitionTokenInvalid, match="partition_token is invalid"):
        planned(FIRST, token=LEFT)


def test_a_partition_whose_records_are_all_too_old_is_no_longer_valid() -> None:
    old = [replace(child, start=NOW - 25 * HOUR) for child in CHILDREN]
    with pytest.raises(PartitionExpired, match="This partition is no longer valid"):
        planned(FIRST, *old)
    just = [replace(child, start=NOW - 24 * HOUR) for child in CHILDREN]
    assert planned(FIRST, *just, start_timestamp=NOW - 24 * HOUR).ended


def test_what_has_expired_is_refused_also_where_the_retention_was_lengthened_since() -> None:
    with pytest.raises(OutOfRange, match="too far in the past"):
        planned(FIRST, expired=NOW - 2 * HOUR + US)
    assert planned(FIRST, expired=NOW - 2 * HOUR).start == NOW - 2 * HOUR
    with pytest.raises(PartitionExpired, match="no longer valid"):
        planned(FIRST, *CHILDREN, start_timestamp=SPLIT, expired=SPLIT + US)


@pytest.mark.parametrize(
    ("end", "low", "until"),
    [
        (None, None, NOW),
        (None, NOW, NOW),
        (None, NOW - HOUR, NOW - HOUR),
        (NOW - HOUR, None, NOW - HOUR + US),
        (NOW - HOUR, NOW - HOUR, NOW - HOUR),
    ],
)
def test_whole_transactions_are_below_the_watermark_and_not_after_the_end(
    end: datetime | None, low: datetime | None, until: datetime
) -> None:
    assert below_watermark(request(end_timestamp=end), NOW, low) == until


def test_a_watermark_is_a_time_up_to_which_all_is_published() -> None:
    with pytest.raises(OutOfRange, match="transactions after it may lack records"):
        below_watermark(request(), NOW, NOW + US)
    with pytest.raises(InvalidArgument, match="without a zone"):
        below_watermark(request(), NOW, NOW.replace(tzinfo=None))
