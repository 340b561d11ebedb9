"""The backfills of one run, for a task beside them that is to capture as long as they last."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from tidemark.control.store import ControlStore
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.replication import ObjectState
from tidemark.replication.worker.objects import objects_of
from tidemark.replication.worker.run_work import backfilled_by, waits_for_backfill

__all__ = ["BETWEEN_ATTEMPTS", "BETWEEN_BACKFILLS", "RunBackfills"]

BETWEEN_BACKFILLS = timedelta(minutes=1)
"""The longest time from one backfill of a run to its next."""

BETWEEN_ATTEMPTS = timedelta(minutes=10)
"""The same if one is known to be left: Airflow retries a failed task after five minutes."""

_UNFINISHED = (ObjectState.FAILED, ObjectState.ACTIVE)


class RunBackfills:
    """Asked again and again by a task of the run. `expected`: names of objects for which the run has backfill tasks.

    A name counts as expected until its object is not PENDING: a later request is for the next run.
    """

    def __init__(self, store: ControlStore, name: str, *, key: TransactionKey, expected: Collection[str]) -> None:
        self._store, self._name, self._key = store, name, key
        self._expected, self._begun = set(expected), set[str]()
        self._heard_at: datetime | None = None

    def go_on(self) -> bool:
        """Whether the run does a backfill now, or is between two. A failed one waits for its retry ten minutes at most.
        Raises ReplicationNotFound.
        """
        states = {one.name.text: one.state for one in objects_of(self._store, self._name)}
        self._begun |= {one for one in self._expected if states.get(one) is not ObjectState.PENDING}
        self._expected -= self._begun
        now = self._store.clock()
        if backfilled_by(self._store, self._name, key=self._key):
            self._heard_at = now
            return True
        if self._heard_at is None:
            return False
        is_left = bool(self._expected) or any(states.get(one) in _UNFINISHED for one in self._begun)
        return now - self._heard_at < (BETWEEN_ATTEMPTS if is_left else BETWEEN_BACKFILLS)

    def of_the_next_run(self) -> list[str]:
        """Names of objects whose backfill only the next run begins. Raises ReplicationNotFound."""
        waiting = waits_for_backfill(self._store, self._name, key=self._key)
        return [one for one in waiting if one not in self._expected]
