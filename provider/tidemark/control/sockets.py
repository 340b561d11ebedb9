"""The open connections of an engine: where a server never answers, who waits for it is freed by cutting them."""

from __future__ import annotations

import os
import socket
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import event

__all__ = ["OpenSockets"]

_Ends = tuple[Any, Any]


class OpenSockets:
    """The connections that an engine has made since. A file, as SQLite's, has no socket and is left alone.

    A timeout of the server's own does not end a wait for a server that has stopped, and the kernel answers for it to
    everything that TCP asks.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._lock = Lock()
        self._ends: WeakKeyDictionary[Any, _Ends] = WeakKeyDictionary()
        if engine.dialect.name == "postgresql":
            event.listen(engine, "connect", self._note, insert=True)  # before the dialect asks it anything

    def cut(self) -> None:
        """Whoever waits on one of them gets an error at once. Those that were closed meanwhile are passed over."""
        with self._lock:
            found = list(self._ends.items())
        for connection, ends in found:
            _cut(connection, ends)

    def _note(self, connection: Any, _record: object) -> None:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            ends = _ends_of(line)
        with self._lock:
            self._ends[connection] = ends


def _cut(connection: Any, ends: _Ends) -> None:
    """The number of a socket that was closed may be another's by now: only the one with these ends is cut."""
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            if _ends_of(line) == ends:
                line.shutdown(socket.SHUT_RDWR)
    except (OSError, connection.Error):  # it is closed
        return


def _ends_of(line: socket.socket) -> _Ends:
    return line.getsockname(), line.getpeername()
