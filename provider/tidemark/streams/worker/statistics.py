"""Statistics of a stream's consumptions: deliveries together with the offset's move, failures as well as can be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import QUARANTINED
from tidemark.errors import JobCancelled, JobsMayBeAlive, StoreError, StreamLocked, TidemarkError
from tidemark.model.statements import Evidence, Statement, TransactionKey, WriteAs
from tidemark.model.streams import StreamWindow
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.store import health, streams, transactions

__all__ = ["NO_FAILURES", "changes_of", "count_deliveries", "count_failure", "stream_health", "stream_healths"]

NO_FAILURES = (StreamLocked, JobsMayBeAlive, JobCancelled, StoreError)
"""Another one is at work, somebody stopped it, or the store is away: nothing is wrong with the stream."""

LONGEST_MESSAGE = 2_000

log = logging.getLogger(__name__)


def count_deliveries(
    connection: sa.Connection,
    windows: Sequence[StreamWindow],
    statements: Sequence[Statement] = (),
    evidence: Sequence[Evidence] = (),
) -> None:
    """Call it where the offsets of `windows` move, in the same transaction. A replay is no consumption.

    Rows are those of the change set, however many targets took them.
    """
    for window in windows:
        if not window.replayed:
            rows, quarantined = _rows(window, statements, evidence)
            empty = window.empty or not statements
            health.count_delivery(connection, window.stream_uid, rows=rows, quarantined=quarantined, empty=empty)


def count_failure(
    store: ControlStore,
    names: Sequence[str],
    error: BaseException,
    *,
    run: TransactionKey,
    transaction: TransactionKey | None = None,
    hide: Callable[[str], str] = str,
) -> Mapping[str, int]:
    """An attempt to consume these streams, or those of `transaction`, failed: the failures in a row of each.

    Never raises for the store: what cannot be counted is said in the log, and the error itself is what matters. Errors
    that pass by themselves do not count, nor do streams that do not exist. `hide` takes secrets out of the message; of
    an error that is not ours only the type is kept. A second run counts a second time.
    """
    if isinstance(error, NO_FAILURES):
        return {}
    message = hide(str(error))[:LONGEST_MESSAGE] if isinstance(error, TidemarkError) else ""

    def count(connection: sa.Connection) -> dict[str, int]:
        found = _uids(connection, names, transaction)
        return {
            name: health.count_failure(
                connection, uid, at=store.clock(), error_type=type(error).__name__, error=message, run=str(run)
            )
            for name, uid in found.items()
        }

    try:
        return store.write(count)
    except StoreError as away:
        log.warning("The failed attempts on the streams %s were not counted: %s", ", ".join(names), away)
        return {}


def stream_health(store: ControlStore, name: str) -> StreamHealth:
    """How the stream's consumptions went. Raises StreamNotFound."""
    return store.read(lambda connection: health.health_of(connection, streams.find(connection, name).uid))


def stream_healths(store: ControlStore, uids: Sequence[str] | None = None) -> dict[str, StreamHealth]:
    """The same of these streams, of all by default, by uid; streams without counts are left out."""
    return store.read(lambda connection: health.healths(connection, uids))


def changes_of(window: StreamWindow, statements: Sequence[Statement], evidence: Sequence[Evidence]) -> int | None:
    """How many rows the window's change set has, as the first append or merge of the stream has read it. Rows that it
    put into a quarantine are included. None where only SQL or functions read it: what these leave out nobody counts.
    """
    if window.empty:
        return 0
    found = {one.number: one for one in evidence}
    reads = (_read(one, found) for one in _reading(window, statements) if one.write.source is not None)
    return next((read for read in reads if read is not None), None)


def _read(statement: Statement, evidence: Mapping[int, Evidence]) -> int | None:
    own, write = evidence.get(statement.number), statement.write
    if own is None or write.write_as not in (WriteAs.APPEND, WriteAs.MERGE):
        return None
    read = own.rows.get("inserted") if write.write_as is WriteAs.APPEND else own.changes
    aside = evidence.get(statement.number + 1) if write.quarantine is not None else None
    return read if read is None or aside is None else read + aside.rows.get(QUARANTINED, 0)


def _reading(window: StreamWindow, statements: Sequence[Statement]) -> list[Statement]:
    """The statements that name the stream, or name none at all."""
    folded = window.stream_name.casefold()
    return [one for one in statements if one.write.source is None or one.write.source.casefold() == folded]


def _rows(window: StreamWindow, statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[int, int]:
    """Of the change set, and those in quarantines. If nobody counted it, those of the target that got most."""
    numbers = {one.number for one in _reading(window, statements)}
    found = [one.rows for one in evidence if one.number in numbers]
    aside = [rows[QUARANTINED] for rows in found if QUARANTINED in rows]
    quarantined = sum(aside)
    changes = changes_of(window, statements, evidence)
    if changes is None:
        return max((sum(rows.values()) for rows in found if QUARANTINED not in rows), default=0), quarantined
    return changes - max(aside, default=0), quarantined


def _uids(connection: sa.Connection, names: Sequence[str], transaction: TransactionKey | None) -> dict[str, str]:
    if names:
        return {stream.name: stream.uid for stream in streams.lookup_all(connection, names).values()}
    stored = None if transaction is None else transactions.current(connection, transaction)
    windows = () if stored is None else stored.transaction.windows
    return {window.stream_name: window.stream_uid for window in windows}
