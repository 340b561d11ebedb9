"""A question to the log of an object's tables, which a list or a page asks by threads of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidemark.model.streams import Stream
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import status_of

__all__ = ["LogQuestion", "stream_question"]


@dataclass(frozen=True)
class LogQuestion:
    """`uid`: of the object. `holds_for`: the state of the object for which an answer is good. `about`: the paths of the
    tables that are read.
    """

    uid: str
    holds_for: tuple[Hashable, ...]
    about: frozenset[str]
    ask: Callable[[Tables], Any]


def stream_question(stream: Stream) -> LogQuestion:
    """The question for a stream's status. An answer holds for one offset."""
    paths = frozenset(base.table.path for base in stream.bases)
    return LogQuestion(
        stream.uid, (stream.offset.version, stream.anchor.timestamp()), paths, partial(status_of, stream)
    )
