"""Whether a stream can read a table, asked of its log when the stream is created."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.changes.planning.source_keys import require_keys
from tidemark.changes.planning.source_support import require_readable
from tidemark.errors import TrackingInterrupted
from tidemark.lake.delta_log import DeltaLog

__all__ = ["require_stream_source", "require_tracked_at"]


def require_stream_source(log: DeltaLog, table: str, keys: Sequence[str] = ()) -> None:
    """Say nothing if a stream, maybe one that compares by `keys`, can read the table as it is now; `table` is how the
    error names it.

    Raises UnsupportedTableFeature, RowTrackingDisabled unless there are keys, InvalidArgument for what cannot be one.
    """
    state = log.state()
    require_readable(state, table, row_ids=not keys)
    require_keys(state.metadata, keys, table)


def require_tracked_at(log: DeltaLog, table: str, version: int, *, stream: str, keys: Sequence[str] = ()) -> None:
    """Say nothing if a stream can begin at `version`: it is there, and its rows have ids, or the columns of `keys`.

    Raises TrackingInterrupted (R8g), InvalidArgument where one of `keys` was not there, VersionNotFound, LogIncomplete.
    """
    state = log.state(version)
    require_keys(state.metadata, keys, table)
    if not keys and not state.row_tracking:
        problem = f"row tracking was not on yet at version {version}"
        raise TrackingInterrupted(table=table, stream=stream, problem=problem)
