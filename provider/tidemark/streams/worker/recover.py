"""A stream of a store that is older than the lake continues from where its targets are, as their logs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.planning.stream_numbers import delivered_to, view_ends
from tidemark.errors import InvalidArgument, RecoveryRefused
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import BaseOffset, Stream, StreamOffset, TableRef
from tidemark.streams.planning.names import require_own
from tidemark.streams.store import health, streams, target_numbers, transactions
from tidemark.streams.worker.older_store import LostMarks, lost_marks
from tidemark.streams.worker.opening import wherever
from tidemark.streams.worker.rollback import release
from tidemark.streams.worker.sources import Tables, checked_head
from tidemark.streams.worker.versions import require_jobs_ended

__all__ = ["Recovered", "recover_stream"]

RECENT = 20  # transactions whose targets are looked at


@dataclass(frozen=True)
class Recovered:
    """The stream before and after. `ends`: target → up to which version it has the stream by writes that the store had
    lost. `released`: the open transaction that held the stream, which had been finished in the time that was lost.
    """

    before: Stream
    after: Stream
    ends: Mapping[str, int]
    released: TransactionKey | None


def recover_stream(
    store: ControlStore,
    name: str,
    *,
    who: str,
    tables: Tables,
    targets: Sequence[str] = (),
    to_version: int | None = None,
    dry_run: bool = False,
) -> Recovered:
    """Put the stream where its targets are, under a new uid, as the numbers of the old one are used up.

    Looked at are the targets that the store knows and `targets`. If they say different versions, `to_version` has to.
    A stream on a view gets the version of each base table from the marks; `to_version` is their sum.
    An open transaction that holds the stream is released, once no job of it can be alive. `dry_run` stores nothing. A
    second run finds nothing to recover.

    Raises RecoveryRefused, JobsMayBeAlive, InvalidArgument for a step back or past the source's end, StreamNotFound,
    TargetNotFound, TargetNotDelta. Raises of the source SourceRecreated, TrackingInterrupted, StreamStale.
    """
    require_own([name])
    old, known = store.read(lambda connection: _known_targets(connection, name))
    given = [_ref(target, tables) for target in targets]
    every = {one.table_id: one for one in (*known, *given)}
    found = lost_marks(store, list(every.values()), tables, missing_ok={one.table_id for one in known})
    ends = _ends(old, found)
    if ends is None:
        problem = f"of {len(found)} targets none holds more of it than the store knows; name others with --target"
        raise RecoveryRefused(stream=old.name, problem=problem)
    to = _offset_after(old, ends, to_version)
    bases = _bases_at(old, found, to)
    _require_ahead(old, bases, to, tables)
    new = replace(
        old,
        uid=store.new_id(),
        offset=StreamOffset(old.offset.table_id, to),
        view_bases=() if old.view is None else bases,
        initial_rows_pending=False,
        serial=0,
        anchor=store.clock(),
    )
    released = None if dry_run else store.write(lambda connection: _move(connection, store, old, new, who))
    return Recovered(old, new, ends, released)


def _known_targets(connection: sa.Connection, name: str) -> tuple[Stream, tuple[TableRef, ...]]:
    stream = streams.find(connection, name)
    recent = transactions.of_stream(connection, stream.uid, RECENT)
    planned = [s.target for stored in recent for s in stored.transaction.plan.statements]
    return stream, (*planned, *target_numbers.tables_of(connection, stream.uid))


def _ref(name: str, tables: Tables) -> TableRef:
    from tidemark.streams.worker.targets import open_target

    log = open_target(name, tables)
    return TableRef(name, log.uri, log.state().table_id)


def _ends(stream: Stream, lost: Sequence[LostMarks]) -> dict[str, int] | None:
    """Target → where it has the stream; None where no target holds a write of it that the store lost."""
    ends: dict[str, int] = {}
    any_lost = False
    for target in lost:
        touched, end = delivered_to(target.marks, stream.uid)
        any_lost |= touched
        if end is not None:
            ends[target.table.name] = end
    return ends if any_lost else None


def _offset_after(stream: Stream, ends: Mapping[str, int], wanted: int | None) -> int:
    if wanted is not None:
        return wanted
    if len(set(ends.values())) > 1:
        told = ", ".join(f"{target} to {end}" for target, end in sorted(ends.items()))
        problem = (
            f"its targets have it to different versions ({told}), so one of them lacks a window. Choose one with --to. "
            "The lower one delivers that window to the other targets again; the higher one never delivers it to the "
            "first"
        )
        raise RecoveryRefused(stream=stream.name, problem=problem)
    return max(ends.values(), default=stream.offset.version)


def _bases_at(stream: Stream, lost: Sequence[LostMarks], to: int) -> tuple[BaseOffset, ...]:
    """The stream's offset in each of its tables at `to`. Raises RecoveryRefused if no mark tells it for a view."""
    if stream.view is None:
        return (BaseOffset(stream.source, to),)
    if to == stream.offset.version:
        return stream.view_bases
    tables = [base.table for base in stream.view_bases]
    told = {one for target in lost for one in view_ends(target.marks, target.ends, stream.uid) if sum(one) == to}
    fitting = [versions for versions in told if len(versions) == len(tables)]
    if len(fitting) != 1:
        said = "tell different versions of" if fitting else "do not tell"
        problem = (
            f"it is on a view, and the marks in its targets {said} its tables at {to}, the sum of their versions. "
            "Replace it with the rows of the view first, or re-base it"
        )
        raise RecoveryRefused(stream=stream.name, problem=problem)
    return tuple(BaseOffset(table, version) for table, version in zip(tables, fitting[0], strict=True))


def _require_ahead(stream: Stream, bases: Sequence[BaseOffset], to: int, tables: Tables) -> None:
    """No table goes back or past its end. Raises InvalidArgument, and of the sources as `checked_head`."""
    opened = wherever(tables) if stream.view is None else tables
    for before, after in zip(stream.bases, bases, strict=True):
        head = checked_head(stream, before, opened(before.table))
        if not before.version <= after.version <= head:
            name = "its table" if stream.view is None else before.table.name
            problem = f"its offset in {name} is {before.version} and never moves back, and {name} ends with {head}"
            raise InvalidArgument(argument="to_version", value=to, problem=problem)


def _move(connection: sa.Connection, store: ControlStore, old: Stream, new: Stream, who: str) -> TransactionKey | None:
    found = streams.find(connection, old.name)
    if (found.uid, found.offset) != (old.uid, old.offset):
        raise RecoveryRefused(stream=old.name, problem="it was moved at the same time; look at it again")
    held_by = streams.holder(connection, old.uid)
    released: TransactionKey | None = None
    if held_by is not None:
        held = transactions.by_id(connection, held_by)
        require_jobs_ended(connection, held, store.clock())
        released = release(connection, store, held).transaction.key
    why = f"recovered from {old.offset.version}: the control store was older than the lake"
    streams.rebase(connection, old, new, at=new.anchor, who=who, why=why)
    health.carry_over(connection, uid=old.uid, to=new.uid)
    return released
