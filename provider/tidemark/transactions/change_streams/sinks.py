"""What a user asks of a chunk's records, by the tables that a change stream watches or has watched."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import sqlalchemy as sa

from tidemark.control import capture_batches, change_streams
from tidemark.control.store import ControlStore
from tidemark.model.change_streams import ChangeStream, WatchedTable
from tidemark.planning.change_streams.sinks import SinkRequest, named_table, parse_sink

__all__ = ["request_sink"]


def request_sink(
    store: ControlStore,
    change_stream: str,
    *,
    write_as: str,
    target: str | None = None,
    table: str | None = None,
    keys: str | Sequence[str] = (),
) -> SinkRequest:
    """As `parse_sink`, for the change stream of that name. A `table` that it does not watch any more may be named as
    long as a batch of its time is kept. Raises ChangeStreamNotFound, InvalidArgument, MissingMergeKey.
    """
    stream, before = store.read(lambda connection: _known(connection, change_stream, table))
    return parse_sink(stream, write_as=write_as, target=target, table=table, keys=keys, before=before)


def _known(
    connection: sa.Connection, change_stream: str, table: str | None
) -> tuple[ChangeStream, tuple[WatchedTable, ...]]:
    stream = change_streams.find(connection, change_stream)
    if not table or named_table(stream.tables, table) is not None:
        return stream, ()
    found = named_table(chain.from_iterable(capture_batches.watch_lists(connection, stream.uid)), table)
    return stream, () if found is None else (found,)
