"""A look that is taken again and again beside work that takes long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tidemark.errors import TidemarkError

__all__ = ["Repeating"]

log = logging.getLogger(__name__)


class Repeating:
    """Takes `look` every `seconds` in a thread, until it answers False or the block ends.

    If a look fails with an error of our tree, a warning says that `what` could not be done. The look is taken again.
    """

    def __init__(self, look: Callable[[], bool], *, seconds: float, what: str) -> None:
        self._look = look
        self._seconds = seconds
        self._what = what
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name=f"tidemark {what}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                if not self._look():
                    return
            except TidemarkError as error:
                log.warning("The %s could not be stored, trying again: %s", self._what, error)
