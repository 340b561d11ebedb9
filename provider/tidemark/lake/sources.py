"""Whether a stream can read a table, asked of its log when the stream is created."""

from __future__ import annotations

from tidemark.lake.delta_log import DeltaLog
from tidemark.planning.source_support import require_readable

__all__ = ["require_stream_source"]


def require_stream_source(log: DeltaLog, table: str) -> None:
    """Say nothing if a stream can read the table as it is now; `table` is how the error names it.

    Raises RowTrackingDisabled, UnsupportedTableFeature.
    """
    require_readable(log.state(), table)
