"""Channels that have committed nothing for a while, by the tables' logs alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.listing import age_of

__all__ = ["IdleChannel", "idle_channels"]


@dataclass(frozen=True)
class IdleChannel:
    """A silent channel. `idle_hours`: since its last commit of rows or tokens. `problem`: why its writer ended, if
    known.
    """

    table: str
    channel: str
    offset_token: str | None
    idle_hours: float
    opened_by: str
    problem: str | None

    def __str__(self) -> str:
        known = f"Its offset token is {self.offset_token!r}, and its last writer {self.opened_by}."
        idle = f"Channel {self.channel} of {self.table} has committed nothing for {self.idle_hours:.1f} hours."
        return " ".join([idle, known, *([self.problem] if self.problem else [])])


def idle_channels(
    tables: Mapping[str, Mapping[str, ChannelRecord]], *, longer_than: timedelta, now: datetime
) -> tuple[IdleChannel, ...]:
    """Those of the tables' channels that are idle for longer, the longest first."""
    found = [
        IdleChannel(
            table=table,
            channel=key,
            offset_token=record.offset_token,
            idle_hours=age_of(record, now) / timedelta(hours=1),
            opened_by=record.opened_by,
            problem=record.problem,
        )
        for table, channels in tables.items()
        for key, record in channels.items()
        if age_of(record, now) > longer_than
    ]
    return tuple(sorted(found, key=lambda one: -one.idle_hours))
