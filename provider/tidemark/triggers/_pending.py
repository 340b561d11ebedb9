"""Looks at the files of pipes, for all triggers of a triggerer on one connection."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.pipes.worker.pending import PendingFiles, PendingLooks, PipeSource, source_of
from tidemark.streams.worker.threads import READS_OF_ONE_TABLE, OwnThreads

if TYPE_CHECKING:
    from tidemark.control.store import ControlStore
    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["PendingPoller"]

_THREADS = 4
_AS_NEW = 2.0  # seconds: listings of one location that fall together are one


class PendingPoller:
    """Answers how many files wait for a pipe. One listing of a location serves all pipes that ask together.

    A location that hangs holds two threads.
    """

    def __init__(self, opened: Callable[[], tuple[ControlStore, TidemarkSettings]], of_store: OwnThreads) -> None:
        self._opened = opened
        self._of_store = of_store
        self._of_files = OwnThreads("tidemark-trigger-files", most=_THREADS, each=READS_OF_ONE_TABLE)
        self._looks = PendingLooks(clock=lambda: datetime.now(UTC))

    def ask(self, pipe: str, *, list_files: bool | None, as_new: float = _AS_NEW) -> Future[PendingFiles]:
        """The files that wait for the pipe. `as_new`: seconds, the age that a listing may have, two at most."""
        answer: Future[PendingFiles] = Future()

        def read() -> tuple[TidemarkSettings, PipeSource]:
            store, settings = self._opened()
            return settings, source_of(store, pipe, list_files=list_files)

        def look(done: Future[tuple[TidemarkSettings, PipeSource]]) -> None:
            if _has_failed(done, answer):
                return
            settings, source = done.result()
            ages = {"max_age": min(as_new, _AS_NEW), "full_after": settings.full_listing_seconds}
            act = partial(self._looks.look, source, settings.storage_options, **ages)
            found = self._of_files.submit(act, about=[source.location])
            found.add_done_callback(pass_on)

        def pass_on(done: Future[PendingFiles]) -> None:
            if not _has_failed(done, answer):
                answer.set_result(done.result())

        self._of_store.submit(read).add_done_callback(look)
        return answer

    def close(self) -> None:
        """Withdraws what has not begun."""
        self._of_files.close()


def _has_failed(done: Future[Any], answer: Future[PendingFiles]) -> bool:
    """Whether there is no result; the answer then has the error."""
    if done.cancelled():
        answer.cancel()
        return True
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
    return error is not None
