"""How far a slot lags behind its source, in bytes of log and in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tidemark.replication.model.replication import LogPosition
from tidemark.replication.sources.postgresql.slots import (
    OldestChange,
    SlotStatus,
    current_position,
    oldest_change,
    slot_status,
)

if TYPE_CHECKING:
    import psycopg2

__all__ = ["SlotLag", "lag_of"]


@dataclass(frozen=True)
class SlotLag:
    """`behind`: age of the oldest published change that is not captured, by the source's clock; zero where there is
    none. `slot`: with the log's bytes that are not captured, that are kept, and that may be written yet.
    """

    slot: SlotStatus
    oldest: OldestChange | None
    behind: timedelta


def lag_of(
    connection: psycopg2.extensions.connection, slot: str, publication: str, *, captured: LogPosition
) -> SlotLag:
    """As of now. Raises SlotLost, SlotForeign, SlotBusy while a capture reads the slot."""
    oldest = oldest_change(connection, slot, publication, current_position(connection), after=captured)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    behind = max(now - oldest.at, timedelta()) if oldest is not None else timedelta()
    return SlotLag(slot_status(connection, slot), oldest, behind)
