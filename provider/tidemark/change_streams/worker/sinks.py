"""The user's request for a chunk's records, by the tables that a change stream watches or has watched. Also the tables
that a change stream must not watch, as its own groups write them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import chain

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import ChangeStream, WatchedTable
from tidemark.change_streams.planning import own_tables as own
from tidemark.change_streams.planning.own_tables import OwnTables
from tidemark.change_streams.planning.sinks import SinkRequest, named_table, parse_sink
from tidemark.change_streams.store import capture_batches, change_streams, group_sinks
from tidemark.control.kept_tables import partial_tables
from tidemark.control.store import ControlStore
from tidemark.errors import NotADeltaTable, TableNotFound, TargetNotDelta, TargetNotFound
from tidemark.model.streams import TableRef

__all__ = ["keep_sink", "own_tables", "request_sink", "require_target", "target_of"]

log = logging.getLogger(__name__)


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


def target_of(find: Callable[[str], TableRef], name: str) -> TableRef:
    """The table that is written, as `find` finds it. Raises TargetNotFound, TargetNotDelta."""
    try:
        return find(name)
    except TableNotFound as error:
        raise TargetNotFound(target=name, hint=error.hint) from error
    except NotADeltaTable as error:
        raise TargetNotDelta(target=name, problem=error.facts.get("problem", str(error))) from error


def require_target(
    store: ControlStore, change_stream: str, target: TableRef | None, *, of_table: str | None = None
) -> None:
    """Say nothing if a group of the change stream can write this table, or a function (None). `of_table`: the id of the
    table whose records it gets. Raises InvalidArgument, ChangeStreamNotFound.
    """
    if target is None:
        return

    def look(connection: sa.Connection) -> None:
        stream = change_streams.find(connection, change_stream)
        own.require_target(stream, own_tables(connection), target, of_table=of_table)

    store.read(look)


def keep_sink(
    connection: sa.Connection, store: ControlStore, stream_uid: str, group_uid: str, target: TableRef
) -> None:
    """Store that the group writes this table, in the caller's transaction and before anything is written. FOR ALL
    watches it from now on no longer. A second run changes nothing. Raises InvalidArgument as `require_target`,
    ChangeStreamNotFound.
    """
    stream = change_streams.by_uid(connection, stream_uid)
    own.require_target(stream, own_tables(connection), target)
    group_sinks.keep(connection, group_uid, target, at=store.clock())
    others = [one for one in stream.tables if not one.table.is_table(target.path, target.table_id)]
    if len(others) < len(stream.tables):
        log.warning("Change stream %s watches %s no longer: a group of its own writes it.", stream.name, target.name)
        change_streams.watch(connection, stream_uid, others, everything=stream.everything)


def own_tables(connection: sa.Connection, stream_uid: str | None = None) -> OwnTables:
    """The logs of all change streams, what the groups of this one write, and the partial aggregates of views."""
    logs = {one.log_path: one.name for one in change_streams.live(connection)}
    sinks = () if stream_uid is None else group_sinks.of_stream(connection, stream_uid)
    return OwnTables(logs, sinks, partial_tables(connection))


def _known(
    connection: sa.Connection, change_stream: str, table: str | None
) -> tuple[ChangeStream, tuple[WatchedTable, ...]]:
    stream = change_streams.find(connection, change_stream)
    if not table or named_table(stream.tables, table) is not None:
        return stream, ()
    found = named_table(chain.from_iterable(capture_batches.watch_lists(connection, stream.uid)), table)
    return stream, () if found is None else (found,)
