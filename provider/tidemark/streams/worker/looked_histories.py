"""The history of an object for a caller who waits: from the control store, or from the lake."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.object_histories import ShownPart, history_of, looked_history
from tidemark.control.object_list import ShownObject, find
from tidemark.control.store import ControlStore
from tidemark.streams.worker.questions import LogQuestion
from tidemark.streams.worker.sources import Tables

__all__ = ["read_history"]


def read_history(
    store: ControlStore, tables: Tables, kind: str, name: str, *, part: str | None, cursor: str | None, limit: int
) -> tuple[ShownObject, tuple[ShownPart, ...]]:
    """The object of that name or uid with the newest points of each part.

    Raises InvalidArgument as `find` and `history_of`, and what reading the history in the lake raises.
    """

    def read(connection: sa.Connection) -> tuple[ShownObject, tuple[ShownPart, ...], LogQuestion | None]:
        one = find(connection, kind, name, now=store.clock())
        kept = history_of(connection, kind, one.uid, part=part, cursor=cursor, limit=limit)
        return one, kept, None if looked is None else looked.question(connection, one.uid)

    looked = looked_history(kind)
    one, kept, question = store.read(read)
    if looked is None or question is None:
        return one, kept
    return one, looked.parts(question.ask(tables), limit)
