"""The partitions of a change stream as a table that prints itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["PartitionStatus", "PartitionTable", "short_token", "short_tokens"]

_SHOWN = 6  # characters of a token, which ends with a checksum
_HEADER = (
    "partition_token", "keys", "parents", "children", "state", "start_timestamp", "end_timestamp", "watermark",
)  # fmt: skip


@dataclass(frozen=True)
class PartitionStatus:
    """A partition of a change stream: the keys whose hash is in [lo, hi), over [start_timestamp, end_timestamp).

    `state`: `active` or `ended`. Of a consumer group it is `waiting` (a parent is not finished), `created`,
    `scheduled`, `running`, `ready` or `finished`. `watermark`: records before it are captured, or delivered to the
    group; None if it waits. `error`: why the group's last attempt failed.
    """

    partition_token: str
    lo: int
    hi: int
    parent_tokens: tuple[str, ...]
    child_tokens: tuple[str, ...]
    state: str
    start_timestamp: datetime
    end_timestamp: datetime | None
    watermark: datetime | None
    error: str | None = None

    def __str__(self) -> str:
        return "  ".join(_cells(self))


class PartitionTable(tuple[PartitionStatus, ...]):
    """Partitions in the order of their start and their keys. It prints as a table, with the ends of tokens."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [_HEADER, *(_cells(one) for one in self)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    __repr__ = __str__

    def tokens(self, state: str | None = None) -> tuple[str, ...]:
        """The tokens of all, or of those in this state."""
        return tuple(one.partition_token for one in self if state in (None, one.state))


def short_token(token: str) -> str:
    """The end of a token, by which one knows it again."""
    return token if len(token) <= _SHOWN else f"…{token[-_SHOWN:]}"


def short_tokens(tokens: Iterable[str]) -> str:
    """The ends of tokens, with commas between them."""
    return ", ".join(map(short_token, tokens))


def _cells(one: PartitionStatus) -> Sequence[str]:
    return (
        short_token(one.partition_token),
        f"[{one.lo}, {one.hi})",
        short_tokens(one.parent_tokens) or "-",
        short_tokens(one.child_tokens) or "-",
        one.state if one.error is None else f"{one.state} (failed)",
        _time(one.start_timestamp),
        _time(one.end_timestamp),
        _time(one.watermark),
    )


def _time(time: datetime | None) -> str:
    return "-" if time is None else time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
