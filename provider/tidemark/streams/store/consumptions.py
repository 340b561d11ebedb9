"""Consumptions of a stream as its history shows them: many transactions in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_histories import Portion, newest_rows
from tidemark.control.objects import portions
from tidemark.delivery.model.transactions import CommitResult, TransactionState
from tidemark.model.codec import from_json
from tidemark.model.statements import Evidence, Statement, TransactionKey
from tidemark.model.streams import StreamWindow
from tidemark.streams.store.schema import statements, transactions, windows
from tidemark.streams.store.streams import lineage
from tidemark.streams.store.transactions import planned_statement

__all__ = ["Consumption", "consumptions"]

_of = transactions.c


@dataclass(frozen=True)
class Consumption:
    """A transaction's part of one stream. `lag_seconds`: the age of the last version that it took when it ended."""

    id: str
    key: TransactionKey
    state: TransactionState
    opened_at: datetime
    closed_at: datetime | None
    window: StreamWindow
    statements: tuple[Statement, ...]
    evidence: tuple[Evidence, ...]
    lag_seconds: float | None


def consumptions(connection: sa.Connection, stream_uid: str, portion: Portion) -> list[Consumption]:
    """The newest, newest first, also from before the stream was re-based. Three queries, and two more for every
    further 500 transactions.
    """
    keys = (
        sa.select(_of.opened_at, _of.id, windows.c.position)
        .join(windows, windows.c.transaction_id == _of.id)
        .where(windows.c.stream_uid.in_(lineage(connection, stream_uid)))
    )
    found = {row["id"]: row["position"] for row in newest_rows(connection, keys, (_of.opened_at, _of.id), portion)}
    rows = _transactions(connection, found)
    planned = _statements(connection, list(found))
    return [_consumption(rows[one], planned.get(one, ())) for one in found]


def _transactions(connection: sa.Connection, positions: Mapping[str, int]) -> Mapping[str, sa.RowMapping]:
    """Transaction → its row with the window at that position. Long columns are read of these alone."""
    query = sa.select(transactions, windows.c.pinned, windows.c.position)
    query = query.join(windows, windows.c.transaction_id == _of.id)
    found: dict[str, sa.RowMapping] = {}
    for some in portions(list(positions)):
        for row in connection.execute(query.where(_of.id.in_(some))).mappings():
            if row["position"] == positions[row["id"]]:
                found[row["id"]] = row
    return found


def _statements(connection: sa.Connection, ids: Sequence[str]) -> Mapping[str, Sequence[sa.RowMapping]]:
    found: dict[str, list[sa.RowMapping]] = {}
    for some in portions(ids):
        own = statements.c.transaction_id.in_(some)
        query = sa.select(statements).where(own).order_by(statements.c.transaction_id, statements.c.number)
        for row in connection.execute(query).mappings():
            found.setdefault(row["transaction_id"], []).append(row)
    return found


def _consumption(row: sa.RowMapping, planned: Sequence[sa.RowMapping]) -> Consumption:
    window = from_json(StreamWindow, row["pinned"])
    result = None if row["result"] is None else from_json(CommitResult, row["result"])
    so_far = (from_json(Evidence, one["evidence"]) for one in planned if one["evidence"] is not None)
    delivered = () if result is None else result.windows
    return Consumption(
        id=row["id"],
        key=TransactionKey(row["dag_id"], row["run_id"], row["task_id"], row["map_index"]),
        state=TransactionState(row["state"]),
        opened_at=row["opened_at"],
        closed_at=row["closed_at"],
        window=window,
        statements=tuple(planned_statement(one) for one in planned),
        evidence=tuple(so_far) if result is None else result.evidence,
        lag_seconds=next((one.lag_seconds for one in delivered if one.stream == window.stream_name), None),
    )
