"""The version that a chunk's target had before anything of the chunk was written. It is kept with the chunk, so that
every attempt looks for its mark from there on.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import Chunk, ChunkState
from tidemark.change_streams.store.schema import chunks
from tidemark.model.codec import from_json, to_json
from tidemark.model.streams import TableRef

__all__ = ["pin", "pinned_base"]

_of = chunks.c
BASE, PATH, TABLE_ID = "sink_base", "sink_path", "sink_table_id"


def pin(connection: sa.Connection, chunk: Chunk, target: TableRef, head: int) -> int:
    """The target's version before the first attempt: `head` if this is it. A chunk may have been pinned for another
    table, or for an earlier one at the same path. It is then pinned again: it goes to this one.
    """
    row = _row(chunk)
    found = connection.execute(sa.select(_of.facts).where(*row)).scalar_one_or_none()
    facts: Mapping[str, str] = from_json(dict, found) if found else {}
    known = pinned_base(facts, target)
    if known is not None:
        return known
    more = {**facts, BASE: str(head), PATH: target.path, TABLE_ID: target.table_id}
    standing = (*row, _of.state == ChunkState.OPEN.value)
    connection.execute(chunks.update().where(*standing).values(facts=to_json(more)))
    return head


def pinned_base(facts: Mapping[str, str], target: TableRef) -> int | None:
    """The version that the facts of a chunk pin for this target, if they do."""
    same = (facts.get(PATH), facts.get(TABLE_ID)) == (target.path, target.table_id)
    return int(facts[BASE]) if same else None


def _row(chunk: Chunk) -> tuple[sa.ColumnElement[bool], ...]:
    return (_of.group_uid == chunk.group_uid, _of.token == chunk.token, _of.number == chunk.number)
