"""A writer of a shop at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from replication.writer import ShopWriter

__all__ = ["writing"]

_Writer = TypeVar("_Writer", bound="ShopWriter")


@contextmanager
def writing(writer: _Writer) -> Iterator[_Writer]:
    """The writer, from its start until the context ends. It must not have failed."""
    writer.start()
    try:
        yield writer
    finally:
        writer.stop()
    assert writer.error is None
