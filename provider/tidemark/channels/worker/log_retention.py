"""The time that commits stay in the log of a landing table: as wanted, and longer if a stream needs them."""

from __future__ import annotations

import math
from datetime import timedelta

from tidemark.control.store import ControlStore
from tidemark.errors import LogIncomplete, VersionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.planning.staleness import retention_of
from tidemark.streams.store import streams as stored_streams

__all__ = ["log_hours_for"]

_AHEAD = timedelta(hours=24)  # until the next run


def log_hours_for(store: ControlStore, log: DeltaLog, wanted_hours: float) -> int | None:
    """Whole hours, not less than the table keeps removed files.

    None leaves the setting alone: the log lacks the commit that a stream needs first, or its time.
    Raises NotADeltaTable, CorruptLog, StoreError.
    """
    state = log.state()
    table_id = state.table_id
    found = store.read(stored_streams.live)
    needed = [base.version for stream in found for base in stream.bases if base.table.table_id == table_id]
    files = retention_of(state.metadata.configuration).files / timedelta(hours=1)  # Delta wants no shorter log
    hours = math.ceil(max(wanted_hours, files))
    if not needed:
        return hours
    try:
        since = log.timestamp(min(needed))
    except (LogIncomplete, VersionNotFound, FileNotFoundError):
        return None
    days = math.ceil((store.clock() - since + _AHEAD) / timedelta(days=1))  # the setting changes once a day at most
    return max(hours, 24 * days)
