"""The open connections of an engine. Cutting them frees callers that wait for a server which never answers."""

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
    """The connections that an engine has opened. SQLite's file has no socket, and is ignored.

    A server that has stopped does not apply its own timeouts, and its kernel still answers TCP. Only a cut ends the
    wait.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._lock = Lock()
        self._ends: WeakKeyDictionary[Any, _Ends] = WeakKeyDictionary()
        if engine.dialect.name == "postgresql":
            event.listen(engine, "connect", self._note, insert=True)  # before the dialect's first query

    def cut(self) -> None:
        """Cuts all connections, so that their waiting callers get an error at once. Closed ones are skipped."""
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
    """Cuts the connection if its socket still has these ends. The number of a closed socket may be another's by now."""
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            if _ends_of(line) == ends:
                line.shutdown(socket.SHUT_RDWR)
    except (OSError, connection.Error):  # it is closed
        return


def _ends_of(line: socket.socket) -> _Ends:
    return line.getsockname(), line.getpeername()
