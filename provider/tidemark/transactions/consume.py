"""Begin, submit and commit in one call: the autocommit form."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.control.store import ControlStore
from tidemark.model.transactions import PlannedWrite, TransactionKey
from tidemark.planning.bounds import UNBOUNDED, Bound
from tidemark.transactions.begin import begin
from tidemark.transactions.commit import commit
from tidemark.transactions.limits import DEFAULT_LIMITS, JobPlaces, Limits, RunJob
from tidemark.transactions.outcomes import Begun, Consumed, Delivered, Opened
from tidemark.transactions.pinned import tell_pinned
from tidemark.transactions.sources import Tables, open_table
from tidemark.transactions.submit import submit
from tidemark.transactions.unwritten import end_attempt

__all__ = ["consume", "deliver"]


def consume(
    store: ControlStore,
    *,
    key: TransactionKey,
    streams: Sequence[str],
    writes: Sequence[PlannedWrite],
    owner: str,
    run: RunJob,
    places: JobPlaces,
    tables: Tables = open_table,
    bound: Bound = UNBOUNDED,
    limits: Limits = DEFAULT_LIMITS,
) -> Consumed:
    """Take what the streams have, write it once, move the offsets.

    On failure the transaction is rolled back: the same call with the same key finishes it, or begins anew if the error
    was a permanent one and nothing was written. After a commit it delivers nothing and returns the stored result.
    Raises what begin, submit and commit raise.
    """
    begun = begin(
        store,
        key=key,
        streams=streams,
        writes=writes,
        owner=owner,
        tables=tables,
        bound=bound,
        limits=limits,
        run=run,
        places=places,
    )
    if isinstance(begun, Opened):
        tell_pinned(begun.transaction, tables)
    return deliver(store, begun, run=run, places=places, tables=tables, limits=limits)


def deliver(
    store: ControlStore, begun: Begun, *, run: RunJob, places: JobPlaces, tables: Tables, limits: Limits
) -> Consumed:
    """Submit and commit what was begun, or `end_attempt`; nothing where it is delivered already."""
    if isinstance(begun, Delivered):
        return Consumed(begun.result, delivered_before=not begun.fresh, finished=begun.finished)
    try:
        submit(store, begun.transaction, run=run, places=places, limits=limits)
        result = commit(store, begun.transaction.key, tables=tables)
    except BaseException as error:
        end_attempt(store, begun.transaction.key, error, tables=tables)
        raise
    return Consumed(result, delivered_before=False, finished=begun.finished)
