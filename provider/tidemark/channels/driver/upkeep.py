"""Work that keeps a table's log short, off the way of the acknowledgement."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from tidemark.errors import TidemarkError

__all__ = ["Upkeep"]

_SECONDS_TO_END = 10.0

_log = logging.getLogger(__name__)


class Upkeep:
    """One thread, which ends with the process even if its work hangs. Work that fails is logged, and harms nobody."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="channels upkeep", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], None]) -> None:
        """Do it soon, after all earlier work."""
        self._work.put(work)

    def stop(self) -> None:
        """End after all given work, or after some seconds."""
        self._work.put(None)
        self._thread.join(_SECONDS_TO_END)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except TidemarkError as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001 - the edge of the thread: its next work is not lost
                _log.exception("Upkeep of channels failed, and continues with its next work")
