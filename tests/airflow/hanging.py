"""What hangs: a server that takes connections and never answers, and a PostgreSQL whose processes stand still."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.postgresql import PostgresServer

__all__ = ["silent_server", "stopped"]


@contextmanager
def silent_server() -> Iterator[int]:
    """The port of a server that takes every connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as server:
        yield int(server.getsockname()[1])


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """Every process of the server stands still meanwhile; its connections stay."""
    postmaster = psutil.Process(int((server.data / "postmaster.pid").read_text().splitlines()[0]))
    still = [process.pid for process in (postmaster, *postmaster.children(recursive=True))]
    try:
        for pid in still:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in still:
            os.kill(pid, signal.SIGCONT)
