"""The questions that a reader may ask of a change stream, and their answers: decided before rows
are read.

Start and end of a question are inclusive, a partition owns [start, end). Its children are reported iff its end is in
the question. The order of the checks is that of the table in 1.5, and READ_<stream> in SQL uses the same words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tidemark.change_streams.model.change_streams import MICROSECOND, ChangeStream, Partition
from tidemark.change_streams.planning.tokens import parse_token
from tidemark.errors import InvalidArgument, OutOfRange, PartitionExpired, PartitionTokenInvalid, Unimplemented

__all__ = [
    "ALL",
    "EXPIRED",
    "FUTURE_ALLOWED",
    "HEARTBEATS",
    "HEARTBEAT_NULL",
    "HEARTBEAT_RANGE",
    "NOT_CAPTURED",
    "OPTIONS_NULL",
    "OUTSIDE",
    "START_AFTER_END",
    "START_NULL",
    "TOO_EARLY",
    "TOO_LATE",
    "UNKNOWN_TOKEN",
    "ReadRange",
    "ReadRequest",
    "ask_to_read",
    "below_watermark",
    "oldest_readable",
    "plan_read",
    "plan_read_of_all",
    "require_captured",
    "require_kept",
    "with_end",
]

FUTURE_ALLOWED = timedelta(minutes=10)
HEARTBEATS = (1_000, 300_000)  # milliseconds, both allowed
ALL = "ALL"  # in place of a token, which it is never; in any case of letters

START_NULL = "start_timestamp must not be null"
HEARTBEAT_NULL = "heartbeat_milliseconds must not be null"
OPTIONS_NULL = "read_options must be null"
START_AFTER_END = "start_timestamp must be <= end_timestamp"
HEARTBEAT_RANGE = f"heartbeat_milliseconds must be within {HEARTBEATS[0]} and {HEARTBEATS[1]}"
TOO_EARLY = "start_timestamp is too far in the past: records are kept from"
TOO_LATE = "start_timestamp is too far in the future: it must not be later than"
NOT_CAPTURED = "which partitions there are at start_timestamp is known after a capture later than that; now, up to"
UNKNOWN_TOKEN = "the change stream has no such partition"
OUTSIDE = "start_timestamp is invalid for the partition, whose time is"
EXPIRED = "its records ended before"


@dataclass(frozen=True)
class ReadRequest:
    """A question that passed all checks which need no table. `end` None: up to what is captured. `token` None: which
    partitions exist at `start`, and with `of_all` their records, and those of their descendants.
    """

    stream: str
    start: datetime
    end: datetime | None
    token: str | None
    heartbeat: timedelta
    oldest: datetime
    of_all: bool = False


@dataclass(frozen=True)
class ReadRange:
    """The range that is read of a partition: its records in [start, until), and heartbeats not more often than every
    `heartbeat`. Another heartbeat is at `last`, unless that is None. If the partition's end is reached, its children at
    that time follow. `token` None: of all.
    """

    token: str | None
    start: datetime
    until: datetime
    heartbeat: timedelta
    last: datetime | None
    ended: datetime | None
    children: tuple[Partition, ...] = ()


def oldest_readable(stream: ChangeStream, now: datetime) -> datetime:
    """Records before it are not to be read: older than the retention, or than the stream."""
    return max(now - stream.options.retention, stream.created_at)


def ask_to_read(
    stream: ChangeStream,
    *,
    now: datetime,
    start_timestamp: datetime | None,
    end_timestamp: datetime | None,
    partition_token: str | None,
    heartbeat_milliseconds: int | None,
    read_options: object,
) -> ReadRequest:
    """The question, checked. Times are aware. Raises InvalidArgument, OutOfRange, Unimplemented, PartitionTokenInvalid
    (damaged, or of another stream), in the order of 1.5.
    """
    start = _instant("start_timestamp", start_timestamp)
    end = _instant("end_timestamp", end_timestamp)
    if start is None:
        raise InvalidArgument(argument="start_timestamp", value=None, problem=START_NULL)
    heartbeat = _heartbeat(heartbeat_milliseconds)
    if read_options is not None:
        raise Unimplemented(argument="read_options", value=read_options, problem=OPTIONS_NULL)
    if end is not None and start > end:
        raise InvalidArgument(argument="start_timestamp", value=start, problem=f"{START_AFTER_END}, which is {end}")
    if not HEARTBEATS[0] <= heartbeat <= HEARTBEATS[1]:
        raise OutOfRange(argument="heartbeat_milliseconds", value=heartbeat, problem=HEARTBEAT_RANGE)
    oldest = oldest_readable(stream, now)
    _require_in_reach(start, oldest, max(now, stream.published_until))  # who follows heartbeats is never ahead
    of_all = partition_token is not None and _text("partition_token", partition_token).upper() == ALL
    token = None if of_all else partition_token
    if token is not None:
        parse_token(token, stream_uid=stream.uid)
    return ReadRequest(stream.name, start, end, token, timedelta(milliseconds=heartbeat), oldest, of_all)


def plan_read(
    request: ReadRequest, rows: Iterable[Partition], captured_until: datetime, expired: datetime | None
) -> ReadRange:
    """The range that the log has for a question with a token. `rows`: the partition with the token, if the log has it,
    and those that name it as a parent. `captured_until`: exclusive. `expired`: data before it may have been removed.

    Raises PartitionTokenInvalid, PartitionExpired, OutOfRange.
    """
    assert request.token is not None
    partition, children = with_end(request.token, tuple(rows))
    if partition is None:
        raise PartitionTokenInvalid(argument="partition_token", value=request.token, problem=UNKNOWN_TOKEN)
    oldest = request.oldest if expired is None else max(request.oldest, expired)
    begin, end = partition.start, partition.end
    if end is not None and end < oldest:
        raise PartitionExpired(argument="partition_token", value=request.token, problem=f"{EXPIRED} {oldest}")
    require_kept(request.start, expired)
    if request.start < begin or (end is not None and request.start > end):
        problem = f"{OUTSIDE} [{begin}, {end or 'open'}]"
        raise OutOfRange(argument="start_timestamp", value=request.start, problem=problem)
    ended = end if end is not None and (request.end is None or end <= request.end) else None
    bounds = (captured_until, end, None if request.end is None else request.end + MICROSECOND)
    until = max(request.start, min(bound for bound in bounds if bound is not None))
    last = until - MICROSECOND if until > request.start and ended is None else None
    return ReadRange(request.token, request.start, until, request.heartbeat, last, ended, children if ended else ())


def plan_read_of_all(request: ReadRequest, captured_until: datetime) -> ReadRange:
    """The range that the log has of all partitions, up to the end of capture. `captured_until`: exclusive. Raises
    OutOfRange as `require_captured`.
    """
    require_captured(request.start, captured_until)
    until = captured_until if request.end is None else min(captured_until, request.end + MICROSECOND)
    last = until - MICROSECOND if until > request.start else None
    return ReadRange(None, request.start, max(request.start, until), request.heartbeat, last, None)


def below_watermark(request: ReadRequest, published_until: datetime, low_watermark: datetime | None) -> datetime:
    """The exclusive end of whole transactions that are read: the low watermark, or the end of everything published. It
    is not beyond the end that was asked for. Raises InvalidArgument, OutOfRange for a watermark that is not published
    yet.
    """
    low = _instant("low_watermark", low_watermark)
    if low is not None and low > published_until:
        problem = f"only what is before {published_until} is published, and transactions after it may lack records"
        raise OutOfRange(argument="low_watermark", value=low, problem=problem)
    until = published_until if low is None else low
    return until if request.end is None else min(until, request.end + MICROSECOND)


def require_kept(start: datetime, expired: datetime | None) -> None:
    """Raises OutOfRange if records from `start` on may have been removed."""
    if expired is not None and start < expired:
        raise OutOfRange(argument="start_timestamp", value=start, problem=f"{TOO_EARLY} {expired}")


def require_captured(start: datetime, captured_until: datetime) -> None:
    """For a question without a token. Raises OutOfRange for a time that capture has not reached. Capture may still end
    any partition before that time, so the partitions of that time are not known yet.
    """
    if start > captured_until:
        problem = f"{NOT_CAPTURED} {captured_until}"
        raise OutOfRange(argument="start_timestamp", value=start, problem=problem)


def with_end(token: str, rows: tuple[Partition, ...]) -> tuple[Partition | None, tuple[Partition, ...]]:
    """The partition of that token with its end, the start of its children, and the children, by token."""
    children = tuple(sorted((row for row in rows if token in row.parents), key=lambda row: row.token))
    found = next((row for row in rows if row.token == token), None)
    if found is None or not children:
        return found, ()
    return replace(found, end=children[0].start), children


def _require_in_reach(start: datetime, oldest: datetime, reached: datetime) -> None:
    if start < oldest:
        raise OutOfRange(argument="start_timestamp", value=start, problem=f"{TOO_EARLY} {oldest}")
    if start > reached + FUTURE_ALLOWED:
        raise OutOfRange(argument="start_timestamp", value=start, problem=f"{TOO_LATE} {reached + FUTURE_ALLOWED}")


def _instant(argument: str, value: datetime | None) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidArgument(argument=argument, value=value, problem=_not_a_literal("an aware datetime"))
    if value.tzinfo is None:
        raise InvalidArgument(argument=argument, value=value, problem="a time without a zone: give an aware one")
    return value


def _heartbeat(value: int | None) -> int:
    if value is None:
        raise InvalidArgument(argument="heartbeat_milliseconds", value=None, problem=HEARTBEAT_NULL)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument(argument="heartbeat_milliseconds", value=value, problem=_not_a_literal("a whole number"))
    return value


def _text(argument: str, value: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(argument=argument, value=value, problem=_not_a_literal("a text"))
    return value


def _not_a_literal(kind: str) -> str:
    return f"it is not a literal or parameter: give {kind}"
