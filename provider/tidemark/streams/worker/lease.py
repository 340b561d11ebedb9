"""A lease kept alive while a job runs, so that nobody takes over from a living holder (V13)."""

from __future__ import annotations

import logging
from datetime import datetime
from types import TracebackType

from tidemark.control.store import ControlStore
from tidemark.errors import TidemarkError
from tidemark.model.statements import TransactionKey
from tidemark.streams.store import transactions as stored_transactions
from tidemark.streams.worker.clusters import DriverGoesOn
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.repeating import Repeating

__all__ = ["LeaseKept"]

log = logging.getLogger(__name__)


class LeaseKept(Repeating):
    """Renews the lease of an open transaction in the background, every third of its length, until the block ends. If a
    driver continues after that, nobody renews, and the lease lasts longer than the driver.

    A store that cannot be reached for a while is tried again. Losing the lease harms nothing: submit and commit
    compare.
    """

    def __init__(self, store: ControlStore, transaction_id: str, holder: TransactionKey | None, limits: Limits) -> None:
        super().__init__(self._renew, seconds=limits.lease.total_seconds() / 3, what="lease")
        self._store = store
        self._transaction_id = transaction_id
        self._holder = holder
        self._limits = limits

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if isinstance(error, DriverGoesOn):
            try:
                self._renew_until(error.deadline + self._limits.lease)
            except TidemarkError as problem:
                log.warning("The lease for the wait could not be stored: %s", problem)

    def _renew(self) -> bool:
        return self._renew_until(self._store.clock() + self._limits.lease)

    def _renew_until(self, until: datetime) -> bool:
        held = self._store.write(
            lambda connection: stored_transactions.renew_lease(
                connection, self._transaction_id, holder=self._holder, until=until
            )
        )
        if not held:
            log.warning("The lease is lost: another consumer finishes this transaction.")
        return held
