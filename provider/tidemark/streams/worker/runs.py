"""The work of tasks as it is shown beside them: their transactions, and the objects that they touched or own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_list import ShownObject
from tidemark.control.object_needs import Key
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.run_parts import owned_by, touched_by
from tidemark.control.store import ControlStore
from tidemark.streams.store.run_transactions import transactions_of_runs
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.next_windows import NextWindow, next_windows, why_taken
from tidemark.streams.worker.object_lineage import known_objects
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Known, look_at
from tidemark.streams.worker.sources import Tables

__all__ = ["RunShown", "read_run", "shown_run"]

MOST = 200  # objects
TRANSACTIONS = 50


@dataclass(frozen=True)
class RunShown:
    """`transactions`: the newest, newest first; `older`: there are more. `touched`: the live objects that the tasks
    touched, with what they did and why; none for a whole DAG. `more_touched`: how many are left out. `owned`: those of
    the DAG, the worst first, of `total`. `unseen`: the keys of those whose lag no look has found. `next`: the next
    window of each stream among them, as it is planned now.
    """

    transactions: tuple[StoredTransaction, ...] = ()
    older: bool = False
    touched: tuple[tuple[ShownObject, Touch], ...] = ()
    more_touched: int = 0
    owned: tuple[ShownObject, ...] = ()
    total: int = 0
    unseen: frozenset[Key] = frozenset()
    next: tuple[NextWindow, ...] = ()


def shown_run(connection: sa.Connection, part: RunPart, known: Known, *, now: datetime) -> RunShown:
    """The work of these tasks, from the store and from earlier looks. The number of queries depends on the kinds of
    objects alone.
    """
    found = transactions_of_runs(connection, part, most=TRANSACTIONS + 1)
    every = _touched(connection, part)
    touched = dict(list(every.items())[:MOST])
    owned = owned_by(connection, part.dag_id, most=MOST)
    keys = list(dict.fromkeys((*touched, *owned.keys)))
    told, unseen = known_objects(connection, keys, known, now=now)
    reasons = why_taken(found[:TRANSACTIONS])
    return RunShown(
        transactions=found[:TRANSACTIONS],
        older=len(found) > TRANSACTIONS,
        touched=tuple((told[key], _explained(key, touch, reasons)) for key, touch in touched.items() if key in told),
        more_touched=len(every) - len(touched),
        owned=tuple(told[key] for key in owned.keys if key in told),
        total=owned.total,
        unseen=unseen,
        next=next_windows(connection, [uid for kind, uid in keys if kind == "stream"], known, found[:TRANSACTIONS]),
    )


def read_run(store: ControlStore, tables: Tables, part: RunPart) -> RunShown:
    """The same for a caller who waits: logs are looked at first, for 30 seconds at most."""

    def keys(connection: sa.Connection) -> list[Key]:
        owned = owned_by(connection, part.dag_id, most=MOST).keys
        return list(dict.fromkeys((*list(_touched(connection, part))[:MOST], *owned)))

    known = look_at(store, tables, NOTHING_KNOWN, store.read(keys))
    return store.read(lambda connection: shown_run(connection, part, known, now=store.clock()))


def _explained(key: Key, touch: Touch, reasons: Mapping[str, str]) -> Touch:
    kind, uid = key
    return replace(touch, why=reasons.get(uid)) if kind == "stream" else touch


def _touched(connection: sa.Connection, part: RunPart) -> Mapping[Key, Touch]:
    return {} if part.run_id is None else touched_by(connection, part)
