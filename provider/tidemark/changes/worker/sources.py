"""Whether a stream can read a table, by its log when the stream is created."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.changes.planning.source_keys import require_keys
from tidemark.changes.planning.source_support import require_readable
from tidemark.errors import TrackingInterrupted
from tidemark.lake.delta_log import DeltaLog

__all__ = ["require_stream_source", "require_tracked_at"]


def require_stream_source(log: DeltaLog, table: str, keys: Sequence[str] = ()) -> None:
    """Nothing, if a stream can read the table as it is now, by `keys` if given. `table`: its name in the error.

    Raises UnsupportedTableFeature, RowTrackingDisabled unless keys are given, InvalidArgument for invalid keys.
    """
    state = log.state()
    require_readable(state, table, row_ids=not keys)
    require_keys(state.metadata, keys, table)


def require_tracked_at(log: DeltaLog, table: str, version: int, *, stream: str, keys: Sequence[str] = ()) -> None:
    """Nothing, if a stream can begin at `version`: it exists, and its rows have ids, or the columns of `keys`.

    Raises TrackingInterrupted (R8g), InvalidArgument if one of `keys` is missing, VersionNotFound, LogIncomplete.
    """
    state = log.state(version)
    require_keys(state.metadata, keys, table)
    if not keys and not state.row_tracking:
        problem = f"row tracking was not on yet at version {version}"
        raise TrackingInterrupted(table=table, stream=stream, problem=problem)
