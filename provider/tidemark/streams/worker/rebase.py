"""A stream whose table was recreated continues under its name and with its history. A stream whose table was moved
continues as it was (R82, R90, R91).

A re-based stream is another stream for the protocol: it gets a uid of its own, as a replaced one does (V5). So offsets
under one uid never go back (I4), though the new table may count from 0 again. No number or mark of a Delta transaction
in a target can be taken for an earlier one (steps 7 and 10). A relocated stream keeps its uid: the same versions of the
same table are stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from tidemark.changes.planning.source_keys import require_fitting_mode
from tidemark.changes.worker.sources import require_tracked_at
from tidemark.control.store import ControlStore
from tidemark.errors import (
    InvalidArgument,
    LogIncomplete,
    RebaseRefused,
    SourceError,
    VersionNotFound,
)
from tidemark.model.streams import BaseOffset, OffsetMove, Stream, StreamOffset, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.planning.names import require_own
from tidemark.streams.store import health, streams
from tidemark.streams.worker.following import relocate
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import require_free

__all__ = ["Ground", "Loss", "Rebased", "loss_of", "rebase_stream", "relocate_stream"]

REBASED = "re-based from"
LOST_TO_READERS = ("TrackingInterrupted", "VersionVacuumed")
"""What no log tells: a consumption has met it last, and every further one would."""


@dataclass(frozen=True)
class Ground:
    """The table or view that a stream is put on, and the stream's offset in each table that it reads."""

    source: TableRef
    bases: tuple[BaseOffset, ...]
    view: ViewQuery | None = None


@dataclass(frozen=True)
class Rebased:
    """The stream before and after; the same where there was nothing to do."""

    before: Stream
    after: Stream


@dataclass(frozen=True)
class Loss:
    """The losses of re-basing a stream. `problem`: why it cannot be read any more, None where it can. `lost`: which
    versions it will never deliver, in words.
    """

    stream: str
    table: str
    table_id: str
    version: int
    problem: str | None
    lost: str


def loss_of(store: ControlStore, name: str, *, tables: Tables) -> Loss:
    """The problem of the stream, and what it loses when it is re-based. Raises StreamNotFound, LakeError."""
    stream = store.read(lambda connection: streams.find(connection, name))
    return Loss(
        stream=stream.name,
        table=stream.source.name,
        table_id=stream.source.table_id,
        version=stream.offset.version,
        problem=_problem(store, stream, tables),
        lost="; ".join(_lost_from(base, tables) for base in stream.bases),
    )


def rebase_stream(
    store: ControlStore,
    name: str,
    ground: Ground,
    *,
    who: str,
    why: str,
    keys: Sequence[str] = (),
    show_initial_rows: bool = False,
    force: bool = False,
    repeatable: bool = False,
    tables: Tables,
) -> Rebased:
    """The stream is on `ground` from now on, with its name, mode, comment, counts and history, and a new uid.

    `keys`: it compares by them from now on. Its next window is the difference between the last state that it knew and
    the new one. The log of the new table, or those of the view's tables, must have that state. A stream on a view
    without `keys` follows row ids again. `show_initial_rows`: its next window has the rows of the new table or view.
    Otherwise it begins with what comes next. With `force` also a stream that can be read is re-based, and what it has
    not read is given up. With `repeatable` a second run by the same `who` changes nothing, also after
    consumptions.

    Raises RebaseRefused, TransactionOpen, StreamNotFound, InvalidArgument, LakeError.
    """
    require_own([name])
    if not why.strip():
        raise InvalidArgument(argument="why", value=why, problem="say why the stream may leave its table")
    if keys and show_initial_rows:
        problem = "with keys the next window is the difference, not all rows"
        raise InvalidArgument(argument="show_initial_rows", value=True, problem=problem)
    old, acts = store.read(lambda connection: _with_history(connection, name))
    if repeatable and any(act.who == who and act.why.startswith(REBASED) for act in acts):
        return Rebased(old, old)
    if not force:
        _require_reason(old, ground, _problem(store, old, tables))
    require_fitting_mode(old.mode, (), on_view=ground.view is not None)
    require_fitting_mode(old.mode, keys, on_view=False)
    bases = _last_known(old, ground, keys, tables) if keys else ground.bases
    new = replace(
        old,
        uid=store.new_id(),
        source=ground.source,
        offset=StreamOffset(ground.source.table_id, sum(base.version for base in bases)),
        initial_rows_pending=show_initial_rows or (old.initial_rows_pending and not keys),
        serial=0,
        anchor=store.clock(),
        view=ground.view,
        view_bases=() if ground.view is None else tuple(bases),
        keys=tuple(keys) or (old.keys if ground.view is None else ()),
    )
    if keys and ground.view is not None:
        _require_readable_start(new, tables, store.clock())
    store.write(lambda connection: _rebase(connection, store, old, new, who, why))
    return Rebased(old, new)


def relocate_stream(store: ControlStore, name: str, to: TableRef, *, who: str, why: str = "") -> Stream:
    """The stream reads its table at another name or path; uid, offset and all else stay. A window that is open is read
    there, too. A second run changes nothing.

    Raises RelocationRefused if another table is stored there or the stream is on a view, StreamNotFound.
    """
    require_own([name])
    return store.write(
        lambda connection: relocate(connection, store, streams.find(connection, name), to, who=who, why=why)
    )


def _rebase(connection: sa.Connection, store: ControlStore, old: Stream, new: Stream, who: str, why: str) -> None:
    found = streams.find(connection, old.name)
    require_free(connection, store, found, "re-based")
    if replace(found, serial=old.serial, comment=old.comment, anchor=old.anchor) != old:
        raise RebaseRefused(stream=old.name, problem="it was moved at the same time; look at it again")
    came = f"table {old.source.table_id} at version {old.offset.version}"
    went = f"table {new.source.table_id} at version {new.offset.version}"
    streams.rebase(
        connection,
        old,
        replace(new, comment=found.comment),
        at=new.anchor,
        who=who,
        why=f"{REBASED} {came} to {went}: {why}",
    )
    health.carry_over(connection, uid=old.uid, to=new.uid)


def _with_history(connection: sa.Connection, name: str) -> tuple[Stream, tuple[OffsetMove, ...]]:
    stream = streams.find(connection, name)
    return stream, streams.history(connection, stream.uid)


def _problem(store: ControlStore, stream: Stream, tables: Tables) -> str | None:
    """Why the stream cannot be read any more, by its tables' logs or by what its last consumption met."""
    try:
        problem = status_of(stream, tables, now=store.clock()).problem
    except SourceError as error:
        return str(error)
    if problem is not None:
        return str(problem)
    counted = store.read(lambda connection: health.health_of(connection, stream.uid))
    met = counted.failures_in_row > 0 and counted.last_error_type in LOST_TO_READERS
    return counted.last_error if met else None


def _require_reason(old: Stream, ground: Ground, problem: str | None) -> None:
    """Check that the stream cannot continue where it is, and can on `ground`. Raises RebaseRefused."""
    same = old.source.table_id == ground.source.table_id
    if same and old.view is None and ground.source.path != old.source.path:
        words = f"its table was only moved, to {ground.source.path}; relocate the stream, and it keeps its offset"
        raise RebaseRefused(stream=old.name, problem=words)
    if problem is None and old.view is not None and not same:
        return  # the view says something else now (R83), which no log tells
    if problem is None:
        words = "it can still be read, and what it has not read would be lost; consume it first, or force it"
        raise RebaseRefused(stream=old.name, problem=words)


def _last_known(old: Stream, ground: Ground, keys: Sequence[str], tables: Tables) -> tuple[BaseOffset, ...]:
    """The versions at which the new tables' logs have the last state that the stream knew. Raises RebaseRefused."""
    if (old.view and old.view.digest) != (ground.view and ground.view.digest):
        problem = "it was on another view, or on a table, so rows cannot be compared; use show_initial_rows"
        raise RebaseRefused(stream=old.name, problem=problem)
    pairs = zip(old.bases, ground.bases, strict=True)
    found = tuple(_last_known_of(old.name, before, now.table, tables) for before, now in pairs)
    if ground.view is None:
        (base,) = found
        require_tracked_at(tables(base.table), base.table.name, base.version, stream=old.name, keys=keys)
    return found


def _last_known_of(stream: str, before: BaseOffset, table: TableRef, tables: Tables) -> BaseOffset:
    log, version = tables(table), before.version
    try:
        known = log.state(version).table_id if log.earliest() <= version + 1 else None
    except (LogIncomplete, VersionNotFound):
        known = None
    if known != before.table.table_id:
        problem = (
            f"the log at {log.uri} does not have version {version} of its old table, so keys have no state to compare."
            " Use show_initial_rows"
        )
        raise RebaseRefused(stream=stream, problem=problem)
    return BaseOffset(table, version)


def _require_readable_start(new: Stream, tables: Tables, now: datetime) -> None:
    """All files of a view's tables as they were are needed, and VACUUM may have taken some. Raises RebaseRefused."""
    problem = status_of(new, tables, now=now).problem
    if problem is not None:
        words = f"the rows of the view as it was cannot be read ({problem}); use show_initial_rows"
        raise RebaseRefused(stream=new.name, problem=words)


def _lost_from(base: BaseOffset, tables: Tables) -> str:
    try:
        log = tables(base.table)
        head, same = log.head(), log.state().table_id == base.table.table_id
    except SourceError:
        same = False
    if not same:
        return f"every change behind version {base.version} of {base.table.name} as it was ({base.table.table_id})"
    return f"changes in ({base.version}, {head}] of {base.table.name}" if head > base.version else "nothing unread"
