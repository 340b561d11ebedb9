"""Runs of a replication at the same time: what another one is at, which this one leaves to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.model.statements import TransactionKey
from tidemark.replication.store import object_writes, replications
from tidemark.replication.store.object_writes import ObjectWrite, WriteKind, WriteState

__all__ = ["ConcurrentRuns", "find_concurrent_runs", "is_captured_now"]


@dataclass(frozen=True)
class ConcurrentRuns:
    """The work of other runs. `backfilled`, `applied`: object uid → run. `runs`: of the same DAG that do backfills, or
    did until a lease ago. So a run that is between two backfills counts, too. `mine`: uids of the objects that the run
    that asks backfills now.
    """

    backfilled: Mapping[str, str]
    applied: Mapping[str, str]
    runs: int
    mine: frozenset[str] = frozenset()


def find_concurrent_runs(store: ControlStore, name: str, *, key: TransactionKey) -> ConcurrentRuns:
    """As the store knows it, by its clock; `key` is a task of the run that asks. Raises ReplicationNotFound."""

    def read(connection: sa.Connection) -> ConcurrentRuns:
        uid = replications.find(connection, name).replication.uid
        heard = object_writes.heard_of(connection, uid, now=store.clock())
        writes = [(one, *_dag_and_run(one)) for one in heard]
        others = [one for one in writes if one[1:] != (key.dag_id, key.run_id)]
        own = [one for one, *run in writes if run == [key.dag_id, key.run_id] and _is_held(one)]
        held = [(write, f"{dag}/{run}") for write, dag, run in others if _is_held(write)]
        return ConcurrentRuns(
            backfilled={one.object_uid: run for one, run in held if one.kind is WriteKind.BACKFILL},
            applied={one.object_uid: run for one, run in held if one.kind is WriteKind.APPLY},
            mine=frozenset(one.object_uid for one in own if one.kind is WriteKind.BACKFILL),
            runs=len({run for one, dag, run in others if dag == key.dag_id and one.kind is WriteKind.BACKFILL}),
        )

    return store.read(read)


def is_captured_now(store: ControlStore, name: str) -> bool:
    """Whether a capture has begun that has not answered, and may run. Raises ReplicationNotFound."""
    found = store.read(lambda connection: replications.find(connection, name))
    return found.attempt is not None and found.attempt_until is not None and found.attempt_until > store.clock()


def _is_held(write: ObjectWrite) -> bool:
    return write.state is WriteState.OPEN and write.ended_at is None


def _dag_and_run(write: ObjectWrite) -> tuple[str, str]:
    """A run is kept as a task's key, `<dag>/<run>/<task>/<map index>`."""
    dag, _, rest = (write.run or "").partition("/")
    return dag, rest.partition("/")[0]
