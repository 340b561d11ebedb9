"""Ports for servers that tests start."""

from __future__ import annotations

from tidemark.testing.postgresql import free_port

__all__ = ["free_port"]
