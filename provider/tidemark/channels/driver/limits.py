"""How long rows wait, and how many of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """`lag`: the longest time that a row waits in a buffer. `channel_bytes`: a larger buffer is flushed at once.
    `all_bytes`: inserts wait while the client's buffers of a table have more. `patience`: how long a flush or an order
    waits for the table. `insert_patience`: how long an insert waits for room in the buffers.
    """

    lag: timedelta = timedelta(seconds=1)
    channel_bytes: int = 64 << 20
    all_bytes: int = 256 << 20
    patience: timedelta = timedelta(minutes=2)
    insert_patience: timedelta = timedelta(minutes=2)
