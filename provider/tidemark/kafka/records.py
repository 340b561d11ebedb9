"""Records of a topic, as a read gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

__all__ = ["Batch", "Record"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a partition. `value` is None for a deletion of the key in a compacted topic. A header may occur
    several times, and its value may be None.
    """

    partition: int
    offset: int
    timestamp_ms: int | None  # since 1970; as the producer or the broker set it
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def timestamp(self) -> datetime | None:
        """The time in UTC; None if the record has none, or one that is outside of the years 1 to 9999."""
        try:
            return None if self.timestamp_ms is None else _EPOCH + timedelta(milliseconds=self.timestamp_ms)
        except OverflowError:
            return None

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        parts = [self.key, self.value, *(value for _, value in self.headers)]
        return sum(len(part) for part in parts if part) + sum(len(name) for name, _ in self.headers)


@dataclass(frozen=True)
class Batch:
    """Records that were read at once, those of a partition in the order of their offsets.

    `positions` holds the offset of each partition at which the read continues after this batch. It also passes offsets
    without a record: ends of transactions, what was rolled back, and what was compacted.
    """

    records: tuple[Record, ...]
    positions: Mapping[int, int]
