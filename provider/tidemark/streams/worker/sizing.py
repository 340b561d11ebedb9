"""The bytes that a transaction is planned to read, for the executors of its job: from logs alone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemark.changes.worker.snapshots import snapshot_bytes
from tidemark.errors import LakeError, SourceError
from tidemark.lake.changed_bytes import changed_bytes
from tidemark.model.streams import BaseWindow, StreamWindow, WindowKind
from tidemark.streams.planning.executors import ExecutorBounds, PlannedExecutors, executors_for
from tidemark.streams.worker.opening import Tables

__all__ = ["Sizing"]

log = logging.getLogger(__name__)


@dataclass
class Sizing:
    """The bounds of a connection, and what was counted: begin and submit of one attempt read the commits once."""

    bounds: ExecutorBounds
    _counted: dict[tuple[tuple[str, str, int, int], ...], int | None] = field(default_factory=dict)

    def planned(self, windows: Sequence[StreamWindow], tables: Tables) -> PlannedExecutors:
        """The executors of a job that reads the windows; of unknown bytes if a log does not tell them."""
        key = tuple((window.stream_uid, window.kind.value, window.start, window.end) for window in windows)
        if key not in self._counted:
            try:
                self._counted[key] = _bytes_of(windows, tables)
            except (SourceError, LakeError, OSError) as error:  # the job says it, if it meets it, too
                log.debug("The bytes of the windows were not counted: %s", error)
                self._counted[key] = None
        return executors_for(self.bounds, self._counted[key])

    def tell(self, windows: Sequence[StreamWindow], tables: Tables) -> PlannedExecutors:
        """As `planned`, with a line in the log."""
        found = self.planned(windows, tables)
        log.info("Planned: %s.", found)
        return found


def _bytes_of(windows: Sequence[StreamWindow], tables: Tables) -> int | None:
    """The bytes of all windows; None if one of them is unknown. A table that two streams read counts twice."""
    total = 0
    for window in windows:
        for base in window.bases:
            found = _of_base(window, base, tables)
            if found is None:
                return None
            total += found
    return total


def _of_base(window: StreamWindow, base: BaseWindow, tables: Tables) -> int | None:
    """Files that the commits add and remove, as `max_bytes` counts them; with initial rows the files at the start. The
    tables of a view that joins several are read whole, too.
    """
    opened, changed = tables(base.table), 0
    if window.kind is WindowKind.CHANGES:
        changed = changed_bytes(opened, base.start, base.end)
        if len(window.bases) == 1:
            return changed
    whole = snapshot_bytes(opened, base.start)
    return None if whole is None else whole + changed
