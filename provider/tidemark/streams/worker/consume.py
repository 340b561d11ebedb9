"""Begin, submit and commit in one call: the autocommit form."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.model.statements import PlannedWrite, TransactionKey
from tidemark.streams.planning.bounds import UNBOUNDED, Bound
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.clusters import DriverGoesOn
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.outcomes import Begun, Consumed, Delivered, Opened
from tidemark.streams.worker.pinned import tell_pinned
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.submit import submit
from tidemark.streams.worker.unwritten import end_attempt

__all__ = ["consume", "deliver", "tell_opened"]


def consume(
    runtime: Runtime,
    *,
    key: TransactionKey,
    streams: Sequence[str],
    writes: Sequence[PlannedWrite],
    owner: str,
    bound: Bound = UNBOUNDED,
) -> Consumed:
    """Take what the streams have, write it once, move the offsets.

    On failure the transaction is rolled back, and the same call with the same key finishes it. It begins again if the
    error was a permanent one and nothing was written. After a commit it delivers nothing and returns the stored result.
    Raises what begin, submit and commit raise.
    """
    begun = begin(runtime, key=key, streams=streams, writes=writes, owner=owner, bound=bound)
    if isinstance(begun, Opened):
        tell_opened(runtime, begun)
    return deliver(runtime, begun)


def tell_opened(runtime: Runtime, begun: Opened) -> None:
    """The log's lines of what is pinned, and of the executors that it is to have."""
    tell_pinned(begun.transaction, runtime.tables)
    if runtime.sizing is not None:
        runtime.sizing.tell(begun.transaction.windows, runtime.tables)


def deliver(runtime: Runtime, begun: Begun) -> Consumed:
    """Submit and commit what was begun, or `end_attempt`; nothing where it is delivered already."""
    if isinstance(begun, Delivered):
        return Consumed(begun.result, delivered_before=not begun.fresh, finished=begun.finished)
    try:
        submit(runtime, begun.transaction)
        result = commit(runtime.store, begun.transaction.key, tables=runtime.tables)
    except DriverGoesOn:
        raise
    except BaseException as error:
        end_attempt(runtime.store, begun.transaction.key, error, tables=runtime.tables)
        raise
    return Consumed(result, delivered_before=False, finished=begun.finished)
