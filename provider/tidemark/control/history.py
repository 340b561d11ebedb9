"""History that nothing needs any more, dropped in small steps.

What safety needs stays whatever its age: streams with their serials and places, the numbers ordered for each target,
open transactions with all that belongs to them, jobs that may be alive, the newest transaction of each stream with its
evidence, the newest entry of each history, and every act by hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tidemark.control.schema import stores

__all__ = ["DROPPED_BY", "KINDS", "Cursor", "Step", "claim", "cursor_of", "drop_by_number", "drop_step", "next_of"]

Cursor = tuple[datetime | int | str, ...]


@dataclass(frozen=True)
class Step:
    """What one step did: `dropped` things of its kind, all before `cursor`; `cursor` None: there are no more."""

    dropped: int
    cursor: Cursor | None


Drop = Callable[[sa.Connection, datetime, Cursor | None, int], Step]

DROPPED_BY = {
    "transactions": "streams.store.history:drop_transactions",
    "offset moves": "streams.store.history:drop_offset_moves",
    "chunks of groups": "change_streams.store.history:drop_chunks",
    "batches of change streams": "change_streams.store.history:drop_batches",
    "writes of replications": "replication.store.history:drop_object_writes",
    "moves of replications": "replication.store.history:drop_moves",
}
"""Kind of history to the function that drops it, below `tidemark`: the store does not import its subjects."""


def _by_name(name: str) -> Drop:
    def drop(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
        module, _, function = name.partition(":")
        found: Drop = getattr(importlib.import_module(f"tidemark.{module}"), function)
        return found(connection, before, after, most)

    return drop


KINDS = {kind: _by_name(name) for kind, name in DROPPED_BY.items()}


def claim(connection: sa.Connection, *, now: datetime, every: timedelta) -> bool:
    """Whether the caller is the one to drop history now; then no other is for as long as `every`."""
    due = stores.c.pruned_at.is_(None) | (stores.c.pruned_at <= now - every)
    return connection.execute(stores.update().where(due).values(pruned_at=now)).rowcount == 1


def drop_step(connection: sa.Connection, kind: str, *, before: datetime, after: Cursor | None, most: int) -> Step:
    """Look at the `most` next things of `kind` that ended before that time, from `after` on, and drop what may go.

    A second run finds nothing of what the first has dropped.
    """
    return KINDS[kind](connection, before, after, most)


def drop_by_number(
    connection: sa.Connection,
    table: sa.Table,
    owner: sa.Column[str],
    before: datetime,
    after: Cursor | None,
    most: int,
) -> Step:
    """Histories numbered as they were written: looked through from the oldest on, as far as that is old enough."""
    of, newer = table.c, table.alias("newer")
    found = next_of(connection, sa.select(of.id, of.moved_at), (of.id,), after, most)
    ids = [row.id for row in found if row.moved_at < before]
    followed = sa.exists().where(newer.c[owner.name] == owner, newer.c.id > of.id, newer.c.run.is_not(None))
    going = table.delete().where(of.id.in_(ids), of.run.is_not(None), followed)
    return Step(connection.execute(going).rowcount, (ids[-1],) if len(ids) == most else None)


def cursor_of(rows: Sequence[sa.Row[Any]], most: int) -> Cursor | None:
    """The cursor behind the rows; None if there are no more."""
    return tuple(rows[-1]) if len(rows) == most else None


def next_of(
    connection: sa.Connection,
    query: sa.Select[tuple[object, ...]],
    order: tuple[sa.ColumnElement[object], ...],
    after: Cursor | None,
    most: int,
) -> list[sa.Row[Any]]:
    """The `most` next rows of `query` behind the cursor `after`."""
    if after is not None:
        values = (sa.literal(value, column.type) for value, column in zip(after, order, strict=True))
        query = query.where(sa.tuple_(*order) > sa.tuple_(*values))
    return list(connection.execute(query.order_by(*order).limit(most)))
