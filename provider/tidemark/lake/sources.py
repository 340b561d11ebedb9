"""Whether a stream can read a table, asked of its log when the stream is created."""

from __future__ import annotations

from tidemark.lake.delta_log import DeltaLog
from tidemark.planning.source_support import require_own_files, require_readable

__all__ = ["require_stream_source"]


def require_stream_source(log: DeltaLog, table: str) -> None:
    """Say nothing if a stream can read the table as it is now; `table` is how the error names it.

    A shallow clone is known by the files that it was born with, as long as its first commit is there; later, and for
    tables that name others' files in another way, the first read of a window refuses it. Raises RowTrackingDisabled,
    UnsupportedTableFeature.
    """
    require_readable(log.state(), table)
    if log.earliest() == 0:
        (birth,) = log.commits(-1, 0)
        require_own_files((file.path for file in birth.adds), table)
