"""A wire to PostgreSQL that can be cut at a chosen commit: before the server hears of it, or before it can answer."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from enum import Enum

__all__ = ["Cut", "CuttingProxy"]

UNTYPED = 80_000_000  # requests for encryption have numbers beyond the protocol's and no type


class Cut(Enum):
    """Where the wire breaks."""

    BEFORE_COMMIT = "before commit"  # the server rolls back
    AFTER_COMMIT = "after commit"  # it is stored, and nobody is told


class CuttingProxy:
    """Forwards to a server on this machine; counts the commits of writing transactions and breaks at one of them."""

    def __init__(self, server_port: int) -> None:
        self.writes = 0
        self.happened = False
        self._server_port = server_port
        self._at = 0
        self._how = Cut.BEFORE_COMMIT
        self._lasting = False
        self._broken = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, at: int, how: Cut, *, lasting: bool) -> None:
        """Break at the `at`-th write from now on; a lasting break refuses every connection until `mend`."""
        self.writes, self._at, self._how, self._lasting, self.happened = 0, at, how, lasting, False

    def mend(self) -> None:
        self._broken = False

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._broken:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages are not held back
            threading.Thread(target=_Wire(self, client, server).carry, daemon=True).start()

    def _breaks_at_this_write(self) -> Cut | None:
        self.writes += 1
        if self.writes != self._at:
            return None
        self._at = 0
        self._broken = self._lasting
        self.happened = True
        return self._how


class _Wire:
    """One connection: what the client says is read message by message, what the server says goes back as it is."""

    def __init__(self, proxy: CuttingProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._mute = False
        self._writing = False
        self._answered = threading.Event()

    def carry(self) -> None:
        threading.Thread(target=self._back, daemon=True).start()
        try:
            while self._forward(self._opening()):
                pass
            while self._forward(self._message()):
                pass
        except OSError:
            pass
        self._hang_up()

    def _opening(self) -> bytes | None:
        """Messages without a type, up to the one that starts the session, after which None comes once."""
        if self._answered.is_set():
            self._answered.clear()
            return None
        size = self._take(4)
        body = self._take(struct.unpack("!i", size)[0] - 4)
        if struct.unpack("!i", body[:4])[0] < UNTYPED:
            self._answered.set()
        return size + body

    def _message(self) -> bytes | None:
        head = self._take(5)
        body = self._take(struct.unpack("!i", head[1:])[0] - 4)
        if head[:1] == b"Q" and body.startswith(b"BEGIN"):
            self._writing = b"SERIALIZABLE" in body
        if head[:1] == b"Q" and body == b"COMMIT\0" and self._writing:
            how = self._proxy._breaks_at_this_write()
            if how is Cut.AFTER_COMMIT:
                self._mute = True
                self._server.sendall(head + body)
                self._answered.wait(10)
            if how is not None:
                return None
        return head + body

    def _forward(self, message: bytes | None) -> bool:
        if message is not None:
            self._server.sendall(message)
        return message is not None

    def _back(self) -> None:
        try:
            while data := self._server.recv(65536):
                if self._mute:
                    self._answered.set()
                    return
                self._client.sendall(data)
        except OSError:
            pass
        self._hang_up()

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._client.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    def _hang_up(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
