"""A control store that is older than the lake, as one put back from a backup: noticed before it writes anything again.

Delta's entries and our marks in the targets' logs are the only truth that survives such a restore. The store keeps for
each table the highest number of each stream that it ever ordered a job with. A table that holds a higher one has seen
windows that this store does not know. It does not matter under which order of targets or lead stream they were written.
A table that the store does not know is judged by its windows: none ends past its stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.marks import Mark, parse_ends, parse_mark
from tidemark.delivery.model.transactions import Transaction
from tidemark.delivery.planning.stream_numbers import (
    InspectedTarget,
    Known,
    Unordered,
    inspect_target,
    is_lost,
    unordered,
    writer_of,
)
from tidemark.errors import StoreOlderThanLake, TargetNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import Statement
from tidemark.model.streams import TableRef
from tidemark.streams.store import streams, target_numbers
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.targets import open_target

__all__ = [
    "LakeAhead",
    "LostMarks",
    "keep_ordered",
    "lost_marks",
    "require_known",
    "require_knows",
    "require_numbers",
    "settle",
]


class LakeAhead(Exception):
    """Tables hold numbers that the store has not ordered, or forget theirs: their marks have to be read."""

    def __init__(self, tables: tuple[InspectedTarget, ...]) -> None:
        super().__init__()
        self.tables = tables


@dataclass(frozen=True)
class LostMarks:
    """A table and the marks in its log of writes that the store never ordered. `ends`: of each mark, as
    `ends_of_views`.
    """

    table: TableRef
    marks: tuple[Mark, ...]
    ends: tuple[Mapping[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class _Marked:
    """A table and the marks in its log since it was last known."""

    inspected: InspectedTarget
    marks: tuple[Mark, ...]
    ends: tuple[Mapping[str, tuple[int, ...]], ...]


def require_numbers(
    connection: sa.Connection, inspected: Sequence[InspectedTarget], settled: Collection[str] = frozenset()
) -> None:
    """Check that the store knows every number in these tables. Tables with an id in `settled` were looked through
    already.

    One small query for each table; no log is read. Raises LakeAhead where the logs have to tell more.
    """
    once = {one.table.table_id: one for one in inspected}
    ahead = [one for uid, one in once.items() if not _is_known(connection, one, uid in settled)]
    if ahead:
        raise LakeAhead(tuple(ahead))


def settle(
    store: ControlStore, inspected: Sequence[InspectedTarget], tables: Tables, *, own: Mapping[str, int] | None = None
) -> None:
    """Read these tables' marks from the last known version, and keep their numbers if they harm no stream of this
    store. Numbers of another store, or of streams that are gone, harm none.

    `own`: numbers, by lead stream, of the transaction that is to be continued. Raises StoreOlderThanLake where a stream
    that lives here was delivered under numbers that were never ordered here. A second run reads less.
    """
    found = _marked(store, inspected, tables)
    store.write(lambda connection: _settle(connection, store, found, own or {}))


def lost_marks(
    store: ControlStore, targets: Sequence[TableRef], tables: Tables, *, missing_ok: Collection[str] = ()
) -> tuple[LostMarks, ...]:
    """The marks of writes that the store never ordered, for each table. A table whose id is in `missing_ok` is left out
    if it no longer exists. Changes nothing. Raises TargetNotFound, TargetNotDelta.
    """
    inspected: list[InspectedTarget] = []
    for target in targets:
        try:
            inspected.append(inspect_target(target, open_target(target, tables).state()))
        except TargetNotFound:
            if target.table_id not in missing_ok:
                raise
    found = _marked(store, inspected, tables)

    def sort_out(connection: sa.Connection) -> tuple[LostMarks, ...]:
        known = [(one, _known(connection, one, {})) for one in found]
        return tuple(_lost(one, may_hold) for one, may_hold in known)

    return store.read(sort_out)


def _lost(target: _Marked, may_hold: Known) -> LostMarks:
    pairs = [pair for pair in zip(target.marks, target.ends, strict=True) if is_lost(pair[0], may_hold)]
    return LostMarks(target.inspected.table, tuple(mark for mark, _ in pairs), tuple(ends for _, ends in pairs))


def require_known(
    store: ControlStore, inspected: Sequence[InspectedTarget], tables: Tables, **more: Mapping[str, int]
) -> None:
    """`require_numbers` and, where that is not enough, `settle`. Raises StoreOlderThanLake."""
    try:
        store.read(lambda connection: require_numbers(connection, inspected))
    except LakeAhead as ahead:
        settle(store, ahead.tables, tables, **more)


def require_knows(store: ControlStore, transaction: Transaction, tables: Tables) -> None:
    """Check that no target of a transaction that is continued holds more than it and what the store ordered.

    A target may hold its own numbers: then its job finds its mark. Raises StoreOlderThanLake, TargetNotFound,
    TargetNotDelta.
    """
    own: dict[str, int] = {}
    for statement in transaction.plan.statements:
        uid = writer_of(statement.app_id)
        if uid is not None:
            own[uid] = max(statement.txn_version, own.get(uid, 0))
    targets = {s.target.path: s.target for s in transaction.plan.statements}
    inspected = [inspect_target(target, open_target(target, tables).state()) for target in targets.values()]
    require_known(store, inspected, tables, own=own)


def keep_ordered(connection: sa.Connection, statements: Sequence[Statement]) -> None:
    """A job is ordered for these statements: from now on their targets may hold their numbers."""
    for statement in statements:
        uid = writer_of(statement.app_id)
        if uid is not None:
            version = statement.base_version
            target_numbers.keep(connection, statement.target, uid, statement.txn_version, version=version)


def _is_known(connection: sa.Connection, inspected: InspectedTarget, settled: bool) -> bool:
    known = target_numbers.known_table(connection, inspected.table)
    if inspected.forgets and not settled and (known.version is None or known.version < inspected.version):
        return False
    higher = {uid: number for uid, number in inspected.numbers.items() if number > known.numbers.get(uid, 0)}
    if not higher:
        return True
    came = target_numbers.came_with(connection, higher.keys())
    return all(number <= came.get(uid, 0) for uid, number in higher.items())


def _marked(store: ControlStore, inspected: Sequence[InspectedTarget], tables: Tables) -> list[_Marked]:
    since = store.read(lambda c: [target_numbers.known_table(c, one.table).version for one in inspected])
    found = [(one, tuple(_marks(one, last, tables))) for one, last in zip(inspected, since, strict=True)]
    return [_Marked(one, tuple(mark for mark, _ in marks), tuple(ends for _, ends in marks)) for one, marks in found]


def _marks(
    inspected: InspectedTarget, last: int | None, tables: Tables
) -> Iterator[tuple[Mark, dict[str, tuple[int, ...]]]]:
    log: DeltaLog = open_target(inspected.table, tables)
    start = max(log.earliest() - 1, -1 if last is None else last)
    for text in log.user_metadata(start, inspected.version):
        mark = parse_mark(text)
        if mark is not None:
            yield mark, parse_ends(text)


def _settle(connection: sa.Connection, store: ControlStore, targets: Sequence[_Marked], own: Mapping[str, int]) -> None:
    for target in targets:
        inspected = target.inspected
        ahead = _ahead(connection, target, own)
        live = streams.names_of(connection, ahead.ends.keys())
        if live:
            raise StoreOlderThanLake(url=store.url, target=inspected.table.name, streams=_in_words(live, ahead))
        if not _has_its_own(connection, target, own):
            _keep(connection, inspected)


def _ahead(connection: sa.Connection, target: _Marked, own: Mapping[str, int]) -> Unordered:
    return unordered(target.marks, target.inspected.numbers, _known(connection, target, own))


def _has_its_own(connection: sa.Connection, target: _Marked, own: Mapping[str, int]) -> bool:
    """Whether the table has numbers that only the transaction in hand may find there: to others they are unknown."""
    return bool(own) and bool(streams.names_of(connection, _ahead(connection, target, {}).ends.keys()))


def _keep(connection: sa.Connection, inspected: InspectedTarget) -> None:
    for uid, number in inspected.numbers.items() or [("", 0)]:
        target_numbers.keep(connection, inspected.table, uid, number, version=inspected.version)


def _known(connection: sa.Connection, target: _Marked, own: Mapping[str, int]) -> Known:
    """The numbers that the table may hold: they were ordered for it, came with their streams, or are `own`.

    For a table that the store does not know, the numbers that were ordered for any table count. It may have been known
    under another id and path. Those numbers are no proof, so its windows have to be behind the streams.
    """
    leads = {uid for mark in target.marks if (uid := writer_of(mark.app_id)) is not None}
    uids = {*target.inspected.numbers, *leads}
    table = target_numbers.known_table(connection, target.inspected.table)
    sources = [own, table.numbers, target_numbers.came_with(connection, uids)]
    offsets: Mapping[str, int] = {}
    if not table.numbers:
        sources.append(target_numbers.ordered_anywhere(connection, uids))
        marked = {window.stream_uid for mark in target.marks for window in mark.windows}
        offsets = streams.offsets_of(connection, marked)
    return Known({uid: max(source.get(uid, 0) for source in sources) for uid in uids}, offsets, own)


def _in_words(live: Mapping[str, str], ahead: Unordered) -> str:
    ends = {name: ahead.ends[uid] for uid, name in live.items()}
    return ", ".join(f"{name} (to version {'?' if end is None else end})" for name, end in sorted(ends.items()))
