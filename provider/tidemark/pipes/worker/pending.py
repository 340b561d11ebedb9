"""Files that wait for a pipe: those in its queue, and those of its location that it has not taken."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any

from tidemark.control.store import ControlStore
from tidemark.errors import TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.file_names import FileFilter
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.worker.definitions import get_pipe
from tidemark.pipes.worker.listings import FULL_AFTER, Listings
from tidemark.pipes.worker.needs import copy_of
from tidemark.pipes.worker.queue_names import QueueNames, read_queue
from tidemark.pipes.worker.resolve import place_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PendingFiles", "PendingLooks", "PipeSource", "source_of"]

_SHOWN = 5
_MARGIN = timedelta(hours=1)  # before the last run, where the names of its files cannot be read
_MOST_QUEUES = 256


@dataclass(frozen=True)
class PipeSource:
    """A pipe and its location. `pattern`: of whole names below it. `lists`: whether runs look for new files."""

    pipe: Pipe
    location: str
    prefix: str
    pattern: str | None
    lists: bool


@dataclass(frozen=True)
class PendingFiles:
    """`names`: of the files, in order. `unfinished`: a run has planned a batch and not loaded it yet."""

    pipe: str
    location: str
    paused: bool
    unfinished: bool
    names: pa.Array = field(repr=False)
    oldest_at: datetime | None = None

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self.names)

    @property
    def fingerprint(self) -> str:
        """One text for the same names; empty without any."""
        if not self.count:
            return ""
        whole = hashlib.sha256()
        for name in self.names:
            whole.update(f"{name}\n".encode())
        return whole.hexdigest()

    def has_others_than(self, earlier: PendingFiles) -> bool:
        """Whether a file is among these that was not among the earlier ones."""
        import pyarrow.compute as pc

        return not pc.all(pc.is_in(self.names, earlier.names), min_count=0).as_py()

    def to_plain(self) -> dict[str, Any]:
        """{pipe, location, files, first, oldest_at, unfinished}; `first` has at most five names."""
        return {
            "pipe": self.pipe,
            "location": self.location,
            "files": self.count,
            "first": self.names[:_SHOWN].to_pylist(),
            "oldest_at": None if self.oldest_at is None else self.oldest_at.isoformat(),
            "unfinished": self.unfinished,
        }


def source_of(store: ControlStore, name: str, *, list_files: bool | None = None) -> PipeSource:
    """The pipe and its location. `list_files`: None looks for new files if its runs do.

    Raises PipeNotFound, StageNotFound, and what `copy_of` raises.
    """
    pipe = get_pipe(store, name)
    copy = copy_of(pipe)
    place = place_of(copy.source, store)
    lists = pipe.auto_ingest if list_files is None else list_files
    return PipeSource(pipe, place.location, place.prefix + copy.prefix, copy.pattern, lists)


class PendingLooks:
    """Looks at queues and locations for all pipes of a process. A queue is read again when it has changed."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._queues: dict[str, tuple[tuple[int, date, str], QueueNames]] = {}
        self.listings = Listings()

    def look(
        self,
        source: PipeSource,
        options: Mapping[str, Any] | None,
        *,
        max_age: float = 0.0,
        full_after: float = FULL_AFTER,
    ) -> PendingFiles:
        """The files that a run would take now. A paused pipe has none. `max_age`: of a listing, in seconds, and
        `full_after`: of one of all names.

        Never a false no. A file whose removal a listing has not seen yet may be among them. Raises
        StageLocationMissing, CorruptLog, StorageUnreachable, StorageRefused.
        """
        import pyarrow as pa

        paused = source.pipe.paused_at is not None
        if paused:
            return PendingFiles(
                source.pipe.name, source.location, paused, unfinished=False, names=pa.array([], "string")
            )
        files = None
        if source.lists:
            place = (source.location, source.prefix)
            files = self.listings.files(*place, options, max_age=max_age, full_after=full_after)
        # read after the listing: a file that a run took since counts as taken
        queue = self._queue(source.pipe, source.location, options)
        return _pending(source, files, queue)

    def _queue(self, pipe: Pipe, location: str, options: Mapping[str, Any] | None) -> QueueNames:
        now = self._clock()
        try:
            log = DeltaLog.open(pipe.queue, options)
        except TableNotFound:
            return read_queue(None, now, location)
        at = (log.head(), now.date(), location)
        with self._lock:
            known = self._queues.get(pipe.queue)
        if known is not None and known[0] == at:
            return known[1]
        found = read_queue(log, now, location)
        with self._lock:
            self._queues.pop(pipe.queue, None)
            self._queues[pipe.queue] = (at, found)
            while len(self._queues) > _MOST_QUEUES:
                del self._queues[next(iter(self._queues))]
        return found


def _pending(source: PipeSource, files: pa.Table | None, queue: QueueNames) -> PendingFiles:
    import pyarrow as pa
    import pyarrow.compute as pc

    names, oldest = queue.waiting, None
    if files is not None:
        new = _new(source, files, queue)
        oldest = pc.min(new["modified_at"]).as_py()
        names = pc.unique(pa.chunked_array([names, *new["file"].chunks], pa.string()))
    names = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    names = names.take(pc.array_sort_indices(names))
    return PendingFiles(source.pipe.name, source.location, False, queue.unfinished, names, oldest)


def _new(source: PipeSource, files: pa.Table, queue: QueueNames) -> pa.Table:
    """The files that match and belong to no batch; by their time, if the names of batches cannot be read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if queue.whole:
        new = files.filter(pc.invert(pc.is_in(files["file"], queue.planned)))
    elif source.pipe.last_run_at is not None:
        new = files.filter(pc.greater(files["modified_at"], pa.scalar(source.pipe.last_run_at - _MARGIN)))
    else:
        new = files
    if queue.forgotten_before is not None:
        new = new.filter(pc.greater_equal(new["modified_at"], pa.scalar(queue.forgotten_before)))
    if source.pattern is None:
        return new
    only = FileFilter(regex=source.pattern)
    return new.filter(pa.array([only.accepts(name) for name in new["file"].to_pylist()], pa.bool_()))
