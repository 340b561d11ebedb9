"""The ties of replications to their tables, and of these to their targets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidemark.control.ties import Flow, TableAt, Tie
from tidemark.replication.store.schema import replicated_objects, replications

__all__ = ["replication_ties", "table_ties"]

_of, _table = replications.c, replicated_objects.c


def replication_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The tables of each replication, which are objects. One query."""
    rows = connection.execute(_live(_table.replication_uid, _table.uid))
    return tuple(Tie(uid, Flow.WRITES, ("replicated_table", table)) for uid, table in rows)


def table_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The target of each table. One query."""
    targets = ((uid, json.loads(target)) for uid, target in connection.execute(_live(_table.uid, _table.target)))
    return tuple(Tie(uid, Flow.WRITES, TableAt(target["name"], target["path"])) for uid, target in targets)


def _live(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return sa.select(*columns).join(replications, _of.uid == _table.replication_uid).where(_of.dropped_at.is_(None))
