"""Streams on tables as tasks and commands make and move them: by names and points in words."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tidemark.changes.planning.source_keys import require_fitting_mode, require_keys
from tidemark.changes.worker.sources import require_stream_source
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, StreamExists, StreamOnStream, TableNotFound, VersionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import Addressing, BaseOffset, Stream, StreamMode, TableRef
from tidemark.streams.planning.names import require_name
from tidemark.streams.worker import streams
from tidemark.streams.worker.following import followed, was_on
from tidemark.streams.worker.sources import Tables

__all__ = ["MadeStream", "SourceTables", "StreamAsk", "advance_to", "make_stream"]


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SourceTables:
    """How what a stream reads is found: Delta tables and external tables by name, and the log of either."""

    table: Callable[[str], TableRef]
    external_table: Callable[[str], TableRef]
    open: Tables


@dataclass(frozen=True)
class StreamAsk:
    """A stream as it is asked for. `at`: a version or a time; None: the newest version. `keys`: columns that tell rows
    apart in place of row ids.
    """

    name: str
    on: str
    mode: StreamMode = StreamMode.STANDARD
    at: int | datetime | None = None
    keys: tuple[str, ...] = ()
    initial_rows: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class MadeStream:
    """The stream as it stands. `created`: it did not exist before, or was replaced."""

    stream: Stream
    created: bool


def make_stream(
    store: ControlStore,
    ask: StreamAsk,
    *,
    who: str,
    tables: SourceTables,
    turn_on_row_tracking: Callable[[TableRef], None] | None = None,
) -> MadeStream:
    """A stream on a Delta table or an external one; an existing stream on that table stays where it is.

    `turn_on_row_tracking` is called where that is off; None: such a table is refused. A second run changes nothing, but
    with `or_replace`. Raises StreamExists for one that reads another table, in another mode or by other keys. Also
    raises StreamOnStream, TableNotFound, NotADeltaTable, ExternalTableNotFound, RowTrackingDisabled,
    UnsupportedTableFeature, VersionNotFound, TransactionOpen, InvalidArgument.
    """
    require_name(ask.name)
    require_fitting_mode(ask.mode, ask.keys, on_view=False)
    known = {stream.name.casefold(): stream for stream in streams.list_streams(store)}
    if ask.on.casefold() in known:
        raise StreamOnStream(source=ask.on, table=known[ask.on.casefold()].source.name)
    find = tables.external_table if ask.mode is StreamMode.INSERT_ONLY else tables.table
    kept = known.get(ask.name.casefold())
    if kept is not None and not ask.or_replace:
        _require_same(kept, ask, _asked_again(store, kept, ask.on, find, tables.open))
        return MadeStream(kept, created=False)
    table = find(ask.on)
    if turn_on_row_tracking is not None and not tables.open(table).state().row_tracking:
        turn_on_row_tracking(table)
    log = tables.open(table)
    require_stream_source(log, f"delta.`{table.path}`", ask.keys)
    version = _version(log, ask.at)
    made = streams.create_stream(
        store,
        name=ask.name,
        source=table,
        mode=ask.mode,
        at_version=version,
        keys=require_keys(log.state(version).metadata, ask.keys, table.name),
        initial_rows=ask.initial_rows,
        or_replace=ask.or_replace,
        comment=ask.comment,
        who=who,
    )
    return MadeStream(made, created=True)


def advance_to(
    store: ControlStore, name: str, to: int | datetime | None, *, who: str, why: str, tables: Tables
) -> tuple[Stream, Stream]:
    """Pass over what is unread up to a version or a time, of a view a time; None: up to now. The stream before and
    after it. A second run to the same place moves nothing.

    Raises StreamNotFound, InvalidArgument for a version of a view and for a step back, VersionNotFound,
    TransactionOpen.
    """
    before = followed(store, name, tables)
    if before.view is not None and isinstance(to, int):
        problem = f"{before.name} reads a view, and each of its tables counts versions of its own: give a time"
        raise InvalidArgument(argument="to", value=to, problem=problem)
    offsets = tuple(BaseOffset(base.table, _version(tables(base.table), to)) for base in before.bases)
    version, bases = sum(base.version for base in offsets), offsets if before.view is not None else ()
    return before, streams.advance_stream(store, name, version, who=who, why=why, bases=bases)


def _asked_again(
    store: ControlStore, kept: Stream, on: str, find: Callable[[str], TableRef], open_log: Tables
) -> TableRef:
    """The table `on`, for an existing stream. It is the stream's own, without a job, if the stream knows it from a
    catalog under that name. It is also the stream's own if that table had the name before a rename. Raises what `find`
    and `followed` raise.
    """
    if kept.source.addressing is Addressing.CATALOG and kept.source.name == on.strip():
        return kept.source
    try:
        return find(on)
    except TableNotFound:
        if on.strip() != kept.source.name and not was_on(store, kept, on.strip()):
            raise
        log.warning("The table %s has another name now: %s. Stream %s continues.", on, kept.source.name, kept.name)
        return followed(store, kept.name, open_log).source


def _require_same(kept: Stream, ask: StreamAsk, table: TableRef) -> None:
    """Raises StreamExists."""
    same_keys = [key.lower() for key in ask.keys] == [key.lower() for key in kept.keys]
    if kept.source.table_id != table.table_id or kept.mode is not ask.mode or not same_keys:
        by_key = f", by {', '.join(kept.keys)}" if kept.keys else ""
        raise StreamExists(stream=kept.name, source=f"{kept.source.name} ({kept.mode.value}{by_key})")


def _version(log: DeltaLog, point: int | datetime | None) -> int:
    """The version that is meant. Raises VersionNotFound."""
    if point is None:
        return log.head()
    version = point if isinstance(point, int) else log.version_at(point)
    if not log.earliest() <= version <= log.head():
        raise VersionNotFound(table=log.uri, version=version, earliest=log.earliest(), latest=log.head())
    return version
