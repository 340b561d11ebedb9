"""Transactions that were submitted and left, from a notebook."""

from __future__ import annotations

from tidemark.client.context import ClientContext
from tidemark.client.shown_objects import ShownObjects
from tidemark.delivery.model.transactions import CommitResult
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.finish import finish

__all__ = ["OpenTransactions"]


class OpenTransactions(ShownObjects):
    """The part of `Lake` that finishes them on request; the next transaction on their streams does so by itself."""

    _context: ClientContext

    def finish(self, stream: str) -> CommitResult | None:
        """Finish the transaction that was submitted on the stream and left, with its stored plan. Returns its result.

        None: no transaction is open on the stream, or it was never submitted and is given back. Raises StreamNotFound,
        StreamLocked while its holder may be alive, and the error that prevents its end.
        """
        context = self._context
        ended = finish(
            context.runtime,
            stream,
            by=TransactionKey("client", context.store.new_id(), "finish"),
            owner=context.who,
        )
        return None if ended is None else ended.result
