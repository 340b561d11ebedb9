"""Deletion of unneeded history in small steps.

Rows that safety needs are kept at any age. They are streams with serials and offsets, the numbers given for each
target, and open transactions with all their parts. They are also jobs that may be alive, and the newest transaction of
each stream with its evidence. The newest entry of each history and every move by hand are kept, too. So are acts
on the page, and of acts by commands the newest of each name on an object.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tidemark.control.schema import stores

__all__ = [
    "DROPPED_BY",
    "KINDS",
    "LOOK",
    "Cursor",
    "Step",
    "claim",
    "cursor_of",
    "drop_by_number",
    "drop_step",
    "is_due",
    "next_of",
    "step_from_the_start",
]

LOOK = "look"
"""The run of an entry that a look at logs has left. Entries without a run are manual acts, which stay at any age."""

Cursor = tuple[datetime | int | str, ...]


@dataclass(frozen=True)
class Step:
    """The result of a step: it has deleted `dropped` rows before `cursor`; `cursor` None if no more exist."""

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
    "errors of replications": "replication.store.history:drop_errors",
    "runs of jobs": "acceleration.store.history:drop_runs",
    "cached results": "results.store.history:drop_answers",
    "refreshes of views": "materialized.store.refreshes:drop_refreshes",
    "reclusterings of tables": "clustering.store.reclusterings:drop_reclusterings",
    "upkeep of search paths": "search.store.history:drop_upkeeps",
    "samples of objects": "control.samples:drop_samples",
    "acts of commands": "control.command_acts:drop_acts",
}
"""Kind of history → the function below `tidemark` that deletes it. The store does not import its subjects."""


def _by_name(name: str) -> Drop:
    def drop(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
        module, _, function = name.partition(":")
        found: Drop = getattr(importlib.import_module(f"tidemark.{module}"), function)
        return found(connection, before, after, most)

    return drop


KINDS = {kind: _by_name(name) for kind, name in DROPPED_BY.items()}


def is_due(connection: sa.Connection, *, now: datetime, every: timedelta) -> bool:
    """Whether `claim` would succeed now: a question takes no turn of the writers."""
    last = connection.execute(sa.select(stores.c.pruned_at)).scalar_one_or_none()
    return last is None or last <= now - every


def claim(connection: sa.Connection, *, now: datetime, every: timedelta) -> bool:
    """Whether the caller may delete history now. If so, no other caller may for as long as `every`."""
    due = stores.c.pruned_at.is_(None) | (stores.c.pruned_at <= now - every)
    return connection.execute(stores.update().where(due).values(pruned_at=now)).rowcount == 1


def drop_step(connection: sa.Connection, kind: str, *, before: datetime, after: Cursor | None, most: int) -> Step:
    """The result of deleting unneeded rows among the next `most` of `kind` after `after` that ended before `before`.

    Idempotent: a second run does not find the rows that the first has deleted.
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
    """A step through a history, numbered in the order of its writes, up to the first step without an old row. A clock
    that was ahead for a while so stops nothing.
    """
    of, newer = table.c, table.alias("newer")
    found = next_of(connection, sa.select(of.id, of.moved_at), (of.id,), after, most)
    ids = [row.id for row in found if row.moved_at < before]
    followed = sa.exists().where(newer.c[owner.name] == owner, newer.c.id > of.id, newer.c.run.is_not(None))
    going = table.delete().where(of.id.in_(ids), of.run.is_not(None), followed)
    return Step(connection.execute(going).rowcount, (found[-1].id,) if ids and len(found) == most else None)


def step_from_the_start(dropped: int, most: int) -> Step:
    """A step that needs no cursor: it has deleted the oldest rows, so the next one finds those that follow."""
    return Step(dropped, ("",) if dropped == most else None)


def cursor_of(rows: Sequence[sa.Row[Any]], most: int) -> Cursor | None:
    """The cursor after the rows; None if no more rows exist."""
    return tuple(rows[-1]) if len(rows) == most else None


def next_of(
    connection: sa.Connection,
    query: sa.Select[tuple[object, ...]],
    order: tuple[sa.ColumnElement[object], ...],
    after: Cursor | None,
    most: int,
) -> list[sa.Row[Any]]:
    """The next `most` rows of `query` after the cursor `after`."""
    if after is not None:
        values = (sa.literal(value, column.type) for value, column in zip(after, order, strict=True))
        query = query.where(sa.tuple_(*order) > sa.tuple_(*values))
    return list(connection.execute(query.order_by(*order).limit(most)))
