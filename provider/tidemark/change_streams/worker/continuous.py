"""Which partitions a reader should be woken for, if each has a run of its own."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.change_streams.store import change_streams, consumer_groups, partitions
from tidemark.change_streams.worker.waves import plan_wave
from tidemark.control.store import ControlStore
from tidemark.errors import PartitionTokenInvalid

__all__ = ["ready_after", "ready_now"]


def ready_now(store: ControlStore, stream: str, group: str, *, run: str, max_chunks: int, max_rows: int) -> list[str]:
    """Tokens that a chunk is written ahead for now, oldest watermark first: a reader of one of them gets that chunk. A
    second run names them again, as long as nobody has read them. Raises ChangeStreamNotFound, ConsumerGroupNotFound.
    """
    wave = plan_wave(store, stream, group, run=run, max_chunks=max_chunks, max_rows=max_rows)
    return list(dict.fromkeys(chunk.token for chunk in wave.chunks))


def ready_after(store: ControlStore, stream: str, group: str, token: str, *, run: str, max_rows: int) -> list[str]:
    """Tokens that can be read because `token` was: itself, if it continues, and its children whose parents are all
    finished. Of several parents the last one names the child. Raises as `ready_now`.
    """
    family = store.read(lambda connection: _family(connection, stream, group, token))
    return [one for one in family if _is_ready(store, stream, group, one, run=run, max_rows=max_rows)]


def _family(connection: sa.Connection, stream: str, group: str, token: str) -> list[str]:
    found = change_streams.find(connection, stream)
    consumer_groups.find(connection, found, group)
    known = partitions.lookup_all(connection, found.uid, [token])
    ends = [one.end for one in known.values() if one.end is not None]
    begun = partitions.started_at(connection, found.uid, ends)
    return [token, *(one.token for one in begun if token in one.parents)]


def _is_ready(store: ControlStore, stream: str, group: str, token: str, *, run: str, max_rows: int) -> bool:
    try:
        return bool(plan_wave(store, stream, group, run=run, max_chunks=1, max_rows=max_rows, token=token).chunks)
    except PartitionTokenInvalid:  # a child that the group has not come to: another parent is unfinished
        return False
