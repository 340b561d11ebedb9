"""Parts of a source's log that cannot be read, as errors of our tree."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import TypeVar

from tidemark.errors import SourceRefused

__all__ = ["readable"]

_T = TypeVar("_T")


def readable(chunks: Iterator[_T], *, source: str, what: str, which: str, remedy: str) -> Iterator[_T]:
    """The chunks. `what` must be readable, and `which` is where it was not. Raises SourceRefused, without the values of
    the row that it was about.
    """
    try:
        yield from chunks
    except (ValueError, LookupError, struct.error, zlib.error) as error:
        problem = f"{which}: {_without_values(error)}"
        raise SourceRefused(source=source, what=what, problem=problem, remedy=remedy) from error


def _without_values(error: Exception) -> str:
    kind = type(error).__name__
    return f"{kind}: {error.reason} at {error.start}" if isinstance(error, UnicodeDecodeError) else kind
