"""The pipes that the service knows: those of a file, which is read again when it changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from tidemark.errors import PipeNotFound
from tidemark.model.codec import from_json
from tidemark.pipes.model.served import ServedPipe, ServedPipes
from tidemark.pipes.planning.names import key_of, known_names

__all__ = ["KnownPipes"]


class KnownPipes:
    """The pipes in a file. A file that is missing or cannot be read has none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._mark: tuple[int, int, int] | None = None
        self._pipes: dict[str, ServedPipe] = {}

    def find(self, name: str, may_see: Callable[[str], bool]) -> ServedPipe:
        """The pipe of that name. Raises PipeNotFound, which names those that `may_see` accepts, and InvalidArgument."""
        known = self._known()
        found = known.get(key_of(name))
        if found is None:
            seen = [pipe.name for pipe in known.values() if may_see(pipe.name)]
            raise PipeNotFound(pipe=name, known=known_names(name, seen))
        return found

    def _known(self) -> dict[str, ServedPipe]:
        with self._lock:
            try:
                state = self._file.stat()
                mark = (state.st_ino, state.st_size, state.st_mtime_ns)
                if mark != self._mark:
                    read = from_json(ServedPipes, self._file.read_text(encoding="utf-8"))
                    self._pipes, self._mark = {key_of(pipe.name): pipe for pipe in read.pipes}, mark
            except (OSError, ValueError):
                self._pipes, self._mark = {}, None
            return self._pipes
