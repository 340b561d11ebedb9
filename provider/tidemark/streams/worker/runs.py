"""The work of tasks as it is shown beside them: their transactions, and the objects that they touched or own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from tidemark.control.cursors import Listed, Part, list_of
from tidemark.control.object_kinds import KINDS
from tidemark.control.object_list import ShownObject
from tidemark.control.object_needs import Key
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.run_parts import OWNED, Owned, owned_by, touched_by
from tidemark.control.store import ControlStore
from tidemark.errors import CursorInvalid, InvalidArgument
from tidemark.streams.store.run_transactions import TRANSACTIONS, transactions_of_runs
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.next_windows import NextWindow, next_windows, why_taken
from tidemark.streams.worker.object_lineage import known_objects
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Known, look_at
from tidemark.streams.worker.sources import Tables

__all__ = ["LISTS", "RunShown", "RunWish", "read_run", "shown_run"]

MOST = 200  # of each list
TOUCHED = "objects that tasks touched"
ListName = Literal["transactions", "touched", "owned"]
LISTS: Mapping[ListName, str] = {"transactions": TRANSACTIONS, "touched": TOUCHED, "owned": OWNED}
"""The lists of an answer, each with its name in cursors."""

_LIMITS: Mapping[ListName, int] = {"transactions": 50, "touched": MOST, "owned": MOST}
_PLACES = {kind: place for place, kind in enumerate(KINDS)}
_BY_KIND: Listed[tuple[Key, Touch]] = Listed(TOUCHED, (int, str), lambda item: (_PLACES[item[0][0]], item[0][1]))


@dataclass(frozen=True)
class RunWish:
    """The tasks that are asked about. `limit`: of each list; None: 50 transactions and 200 objects. `cursor`: of one of
    the lists, which alone then continues. Raises InvalidArgument for another limit than 1 to 200.
    """

    tasks: RunPart
    limit: int | None = None
    cursor: str | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and not 1 <= self.limit <= MOST:
            raise InvalidArgument(argument="limit", value=self.limit, problem=f"1 to {MOST} are read at once")

    @property
    def continues(self) -> ListName | None:
        """The list that continues; None: all of them begin. Raises CursorInvalid for a cursor of none of them."""
        if self.cursor is None:
            return None
        of = list_of(self.cursor)
        found = next((name for name, known in LISTS.items() if known == of), None)
        if found is None:
            raise CursorInvalid(cursor=self.cursor)
        return found

    def part(self, name: ListName) -> Part | None:
        """The part of that list; None: another one continues. Raises CursorInvalid."""
        asked = self.continues in (None, name)
        return Part(self.limit or _LIMITS[name], cursor=self.cursor) if asked else None


@dataclass(frozen=True)
class RunShown:
    """`transactions`: the newest, newest first. `touched`: the live objects that the tasks touched, with what they did
    and why; none for a whole DAG. `more_touched`: how many follow. `owned`: those of the DAG, the worst first, of
    `total`. `cursors`: by the names in LISTS, for what follows; a list that ends has none. `unseen`: the keys of those
    whose lag no look has found. `next`: the next window of each stream among them, as it is planned now.
    """

    transactions: tuple[StoredTransaction, ...] = ()
    touched: tuple[tuple[ShownObject, Touch], ...] = ()
    more_touched: int = 0
    owned: tuple[ShownObject, ...] = ()
    total: int = 0
    cursors: Mapping[str, str] = field(default_factory=dict)
    unseen: frozenset[Key] = frozenset()
    next: tuple[NextWindow, ...] = ()


@dataclass(frozen=True)
class _Objects:
    """The objects of an answer, before their states are read."""

    touched: Mapping[Key, Touch]
    more_touched: int
    touched_cursor: str | None
    owned: Owned

    @property
    def keys(self) -> list[Key]:
        """Each once."""
        return list(dict.fromkeys((*self.touched, *self.owned.keys)))


def shown_run(connection: sa.Connection, wish: RunWish, known: Known, *, now: datetime) -> RunShown:
    """The work of these tasks, from the store and from earlier looks. The number of queries depends on the kinds of
    objects alone. Raises CursorInvalid.
    """
    part = wish.part("transactions")
    taken, older = transactions_of_runs(connection, wish.tasks, part or Part(_LIMITS["transactions"]))
    found = _objects(connection, wish)
    told, unseen = known_objects(connection, found.keys, known, now=now)
    reasons = why_taken(taken)
    cursors = {
        "transactions": None if part is None else older,
        "touched": found.touched_cursor,
        "owned": found.owned.cursor,
    }
    return RunShown(
        transactions=() if part is None else taken,
        touched=tuple(
            (told[key], _explained(key, touch, reasons)) for key, touch in found.touched.items() if key in told
        ),
        more_touched=found.more_touched,
        owned=tuple(told[key] for key in found.owned.keys if key in told),
        total=found.owned.total,
        cursors={name: cursor for name, cursor in cursors.items() if cursor is not None},
        unseen=unseen,
        next=next_windows(connection, [uid for kind, uid in found.keys if kind == "stream"], known, taken),
    )


def read_run(store: ControlStore, tables: Tables, wish: RunWish) -> RunShown:
    """The same for a caller who waits: logs are looked at first, for 30 seconds at most."""
    known = look_at(store, tables, NOTHING_KNOWN, store.read(lambda connection: _objects(connection, wish).keys))
    return store.read(lambda connection: shown_run(connection, wish, known, now=store.clock()))


def _objects(connection: sa.Connection, wish: RunWish) -> _Objects:
    part, of_dag = wish.part("touched"), wish.part("owned")
    every = {} if part is None or wish.tasks.run_id is None else touched_by(connection, wish.tasks)
    touched, cursor = _BY_KIND.taken(every.items(), part or Part())
    more = sum(_BY_KIND.place(one) > _BY_KIND.place(touched[-1]) for one in every.items()) if touched else 0
    owned = Owned() if of_dag is None else owned_by(connection, wish.tasks.dag_id, of_dag)
    return _Objects(dict(touched), more, cursor, owned)


def _explained(key: Key, touch: Touch, reasons: Mapping[str, str]) -> Touch:
    kind, uid = key
    return replace(touch, why=reasons.get(uid)) if kind == "stream" else touch
