"""Reads of whole files in Python, which end if their job must stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["WholeReads"]

_BLOCK = 1 << 20
_STEP = 16 << 20


@dataclass
class WholeReads:
    """Reads of several files by several threads. `stop_if_due`: called once for each 16 MB that they read together.

    It may ask an object store, which has a price for each request.
    """

    stop_if_due: Callable[[], None]
    _since: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def blocks(self, content: Any) -> Iterator[bytes]:
        """The rest of a file in blocks of 1 MB. Raises what `stop_if_due` raises, and what a read raises."""
        while block := content.read(_BLOCK):
            if self._is_step(len(block)):
                self.stop_if_due()
            yield block

    def _is_step(self, size: int) -> bool:
        with self._lock:
            self._since += size
            is_step = self._since >= _STEP
            if is_step:
                self._since = 0
        return is_step
