"""A lease kept alive while a job runs, so that nobody takes over from a living holder (V13)."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from tidemark.control import transactions as stored_transactions
from tidemark.control.store import ControlStore
from tidemark.errors import StoreError
from tidemark.model.transactions import TransactionKey
from tidemark.transactions.limits import Limits

__all__ = ["LeaseKept"]

log = logging.getLogger(__name__)


class LeaseKept:
    """Renews the lease of an open transaction in the background, every third of its length, until the block ends.

    A store that cannot be reached meanwhile is tried again. Losing the lease harms nothing: submit and commit compare.
    """

    def __init__(self, store: ControlStore, transaction_id: str, holder: TransactionKey | None, limits: Limits) -> None:
        self._store = store
        self._transaction_id = transaction_id
        self._holder = holder
        self._limits = limits
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="tidemark-lease", daemon=True)

    def __enter__(self) -> LeaseKept:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._ended.wait(self._limits.lease.total_seconds() / 3):
            try:
                if not self._renew():
                    log.warning("The lease is lost: another consumer finishes this transaction.")
                    return
            except StoreError as error:
                log.warning("The lease could not be renewed, trying again: %s", error)

    def _renew(self) -> bool:
        until = self._store.clock() + self._limits.lease
        return self._store.write(
            lambda connection: stored_transactions.renew_lease(
                connection, self._transaction_id, holder=self._holder, until=until
            )
        )
