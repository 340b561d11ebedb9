"""The files that requests name, on their way into the queues of pipes: many requests in one commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.errors import FilesNotQueued, PipeBusy, TidemarkError
from tidemark.jobs.failures import named_failure
from tidemark.jobs.run import utc_now
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import FOUND_SCHEMA
from tidemark.pipes.driver.planning_batches import new_files
from tidemark.pipes.model.events import KEPT, Event
from tidemark.pipes.model.files import FileSource
from tidemark.pipes.model.served import ServedPipe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FilesDesk"]

_AT_ONCE = 4  # pipes whose files are committed at the same time
_SECONDS_TO_WAIT = 2


@dataclass
class _Line:
    """The requests of one pipe that wait. `begun`: the time of its last commit. `is_served`: a thread stores them."""

    waiting: list[tuple[Mapping[str, int], Future[None]]] = field(default_factory=list)
    begun: float = float("-inf")
    is_served: bool = False


class FilesDesk:
    """Takes files for pipes from several threads. `most_waiting`: names that may wait for a commit. `seconds_between`:
    two commits of one pipe; requests that come within them share the second one.
    """

    def __init__(
        self,
        session: SparkSession,
        options: Mapping[str, str],
        *,
        most_waiting: int = 100_000,
        seconds_between: float = 1.0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._session, self._options, self._clock = session, options, clock
        self._most, self._between = most_waiting, seconds_between
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._lines: dict[str, _Line] = {}
        self._waiting = 0
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="files for pipes")

    def put(self, pipe: ServedPipe, files: Mapping[str, int]) -> Future[None]:
        """Files by name with their sizes. The result comes once they are in the queue's table.

        Raises PipeBusy if too many wait. The result may be FilesNotQueued.
        """
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # a client that goes away takes nothing back
        with self._lock:
            if self._closed.is_set():
                raise PipeBusy(pipe=pipe.name, problem="it is about to end", seconds=_SECONDS_TO_WAIT)
            if self._waiting and self._waiting + len(files) > self._most:
                problem = f"{self._waiting:,} names of files wait to be stored"
                raise PipeBusy(pipe=pipe.name, problem=problem, seconds=_SECONDS_TO_WAIT)
            line = self._lines.setdefault(pipe.queue, _Line())
            line.waiting.append((files, done))
            self._waiting += len(files)
            if not line.is_served:
                line.is_served = True
                self._pool.submit(self._serve, pipe, line)
        return done

    def close(self) -> None:
        """Store the files that wait, and take no more. A second run does nothing."""
        self._closed.set()
        self._pool.shutdown(wait=True)

    def _serve(self, pipe: ServedPipe, line: _Line) -> None:
        while True:
            self._closed.wait(max(0.0, line.begun + self._between - time.monotonic()))
            with self._lock:
                taken, line.waiting = line.waiting, []
                if not taken:
                    line.is_served = False
                    return
                self._waiting -= sum(len(files) for files, _ in taken)
            line.begun = time.monotonic()
            self._store(pipe, taken)

    def _store(self, pipe: ServedPipe, taken: list[tuple[Mapping[str, int], Future[None]]]) -> None:
        try:
            self._append(pipe, {name: size for files, _ in taken for name, size in files.items()})
        except Exception as error:  # noqa: BLE001 - the edge of the thread: whatever a Spark action raises
            named = error if isinstance(error, TidemarkError) else named_failure(error)
            for _, done in taken:
                done.set_exception(FilesNotQueued(pipe=pipe.name, problem=str(named)))
            return
        for _, done in taken:
            done.set_result(None)

    def _append(self, pipe: ServedPipe, files: Mapping[str, int]) -> None:
        """One commit of those that are neither in the queue nor in a batch."""
        now = self._clock()
        table = FilesTable.open(self._session, pipe.queue, self._options, kept=KEPT)
        named = pa.table([list(files), *([None] * len(files) for _ in FOUND_SCHEMA.names[1:])], schema=FOUND_SCHEMA)
        found = new_files(table, self._session.createDataFrame(named), now, pipe.location)
        new = [row.file for row in found.select("file").collect()]
        queued = {"event": Event.QUEUED.value, "source": FileSource.INSERT_FILES.value}
        if new:
            table.append(({**queued, "file": name, "size": files[name]} for name in new), now)
