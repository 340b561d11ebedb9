"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

from tidemark.testing.postgresql import free_port

__all__ = ["free_port", "lasting_port"]


def lasting_port() -> int:
    """A free port that no other process gets by chance before its server starts: it is below the ephemeral ones."""
    while True:
        port = random.randrange(20_000, 30_000)
        with suppress(OSError), socket.socket() as tried:
            tried.bind(("", port))
            return port
