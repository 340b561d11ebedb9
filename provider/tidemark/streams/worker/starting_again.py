"""Streams on a table that start again by a person's word: re-based where they are, recreated, or from an earlier window
on. None of it needs Spark. A stream on a view is left to a task, since Spark alone resolves a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from tidemark.control.object_histories import Portion
from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import InvalidArgument, RebaseRefused
from tidemark.model.streams import BaseOffset, Stream, StreamMode, WindowKind
from tidemark.streams.model.sources import Source, table_source
from tidemark.streams.planning.points import Point
from tidemark.streams.store.consumptions import Consumption, consumptions
from tidemark.streams.store.streams import by_uid
from tidemark.streams.worker.defining import CreatedStream, IfExists, Sources, StreamRequest, create_stream, prepared
from tidemark.streams.worker.opening import Tables
from tidemark.streams.worker.points import offsets_now
from tidemark.streams.worker.rebase import Ground, Rebased, rebase_stream
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import get_stream

__all__ = ["MOST_WINDOWS", "past_windows", "rebase_in_place", "recreate_in_place", "replay_from"]

MOST_WINDOWS = 200  # of its newest transactions


def rebase_in_place(
    store: ControlStore,
    name: str,
    *,
    who: str,
    why: str,
    tables: Tables,
    keys: Sequence[str] = (),
    show_initial_rows: bool = False,
    force: bool = False,
    writes: ControlStore | None = None,
) -> Rebased:
    """`rebase_stream` onto the table that is at the place of the stream's own now. `writes`: the store of its write.

    Raises what `rebase_stream` raises, RebaseRefused for a stream on a view, RowTrackingDisabled,
    UnsupportedTableFeature.
    """
    old = _on_a_table(store, name)
    source = prepared(_source_now(old, tables), tables, keys=keys or old.keys)
    return rebase_stream(
        writes or store,
        old.name,
        Ground(source.ref, offsets_now(source, tables)),
        who=who,
        why=why,
        keys=source.keys if keys else (),
        show_initial_rows=show_initial_rows,
        force=force,
        tables=tables,
    )


def recreate_in_place(
    store: ControlStore,
    name: str,
    *,
    who: str,
    tables: Tables,
    at: Point | None = None,
    initial_rows: bool = False,
    writes: ControlStore | None = None,
) -> CreatedStream:
    """Another stream with the name, mode, keys and comment of this one, on the table that is at its place now. `at`:
    where it starts; None: at the newest version. Each run recreates it. Raises what `create_stream` raises, and
    RebaseRefused for a stream on a view.
    """
    old = _on_a_table(store, name)
    source = _source_now(old, tables)
    request = StreamRequest(
        name=old.name,
        on=old.source.name,
        mode=old.mode,
        at=at,
        keys=old.keys,
        initial_rows=initial_rows,
        if_exists=IfExists.REPLACE,
        comment=old.comment,
    )
    return create_stream(writes or store, request, who=who, sources=Sources(lambda _: source, tables))


def replay_from(
    store: ControlStore,
    name: str,
    version: int,
    *,
    who: str,
    why: str,
    tables: Tables,
    writes: ControlStore | None = None,
) -> Rebased:
    """The stream continues from the start of an earlier window: it delivers again all that it has delivered since.

    `version`: where a committed window of its history began. The stream is re-based, so it is another one for its
    targets, and its history stays. Raises InvalidArgument for a version at which no window began. Raises RebaseRefused
    for one that cannot be read any more, and for a stream on a view. Raises TransactionOpen, StreamNotFound.
    """
    old = _on_a_table(store, name)
    if version not in {one.window.start for one in store.read(lambda c: _taken(c, old))}:
        words = "no window of its history that can be taken again began there"
        raise InvalidArgument(argument="window", value=version, problem=words)
    there = replace(old, offset=replace(old.offset, version=version), initial_rows_pending=False)
    problem = status_of(there, tables, now=store.clock()).problem
    if problem is not None:
        raise RebaseRefused(stream=old.name, problem=f"that window can no longer be read ({problem}); take a later one")
    ground = Ground(old.source, (BaseOffset(old.source, version),))
    return rebase_stream(writes or store, old.name, ground, who=who, why=why, force=True, tables=tables)


def past_windows(connection: sa.Connection, uid: str) -> tuple[Consumption, ...]:
    """The consumptions of a stream whose windows `replay_from` takes, newest first. They are among its newest
    transactions, also from before it was re-based on the same table.
    """
    return _taken(connection, by_uid(connection, uid))


def _taken(connection: sa.Connection, stream: Stream) -> tuple[Consumption, ...]:
    """Each window once, by its start."""
    found: dict[int, Consumption] = {}
    for one in consumptions(connection, stream.uid, Portion(None, MOST_WINDOWS)):
        window = one.window
        fits = one.state is TransactionState.COMMITTED and window.kind is WindowKind.CHANGES and not window.replayed
        same = window.source.table_id == stream.source.table_id and window.start < stream.offset.version
        if fits and same and not window.empty:
            found.setdefault(window.start, one)
    return tuple(found.values())


def _on_a_table(store: ControlStore, name: str) -> Stream:
    """Raises StreamNotFound, RebaseRefused."""
    stream = get_stream(store, name)
    if stream.view is not None:
        problem = "it reads a view, which Spark resolves; use RebaseStreamOperator or CreateStreamOperator in a task"
        raise RebaseRefused(stream=stream.name, problem=problem)
    return stream


def _source_now(old: Stream, tables: Tables) -> Source:
    """The table at the place of the stream's own."""
    if old.mode is StreamMode.INSERT_ONLY:
        return table_source(old.source)
    return table_source(replace(old.source, table_id=tables(old.source).state().table_id))
