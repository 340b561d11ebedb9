"""The task that touched each stream last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.newest import newest_value, values_of_each
from tidemark.model.statements import TransactionKey
from tidemark.streams.store.schema import offset_moves, streams, transactions

__all__ = ["stream_runs"]

_of, _move, _held = streams.c, offset_moves.c, transactions.c


def stream_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task whose window is open, else the one that moved the offset or found nothing new last. Two queries."""
    moved = newest_value(_move.run, _move.stream_uid == _of.uid, _move.run.is_not(None), of=_of.uid, order=_move.id)
    return {**values_of_each(connection, _of.uid, uids, moved), **_holding(connection, uids)}


def _holding(connection: sa.Connection, uids: Sequence[str]) -> dict[str, str]:
    key = (_held.dag_id, _held.run_id, _held.task_id, _held.map_index)
    query = sa.select(_of.uid, *key).join(transactions, _held.id == _of.held_by).where(_of.uid.in_(uids))
    return {uid: str(TransactionKey(*parts)) for uid, *parts in connection.execute(query)}
