"""The transactions of tasks: the newest of a DAG, of a run, or of one task, in a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.cursors import ListOrder, Ordered, Part
from tidemark.control.objects import portions
from tidemark.control.run_keys import RunPart, Touch
from tidemark.delivery.model.transactions import TransactionState
from tidemark.model.codec import from_json
from tidemark.model.streams import StreamWindow
from tidemark.streams.store.schema import statements, streams, transactions, windows
from tidemark.streams.store.transactions import StoredTransaction, stored_of

__all__ = ["TRANSACTIONS", "open_windows", "streams_of_runs", "transactions_of_runs"]

TRANSACTIONS = "transactions of tasks"
"""The name of the list of transactions in its cursors."""

_of = transactions.c
_NEWEST = ListOrder(TRANSACTIONS, (Ordered(_of.opened_at, datetime, descending=True), Ordered(_of.id, str)))


def transactions_of_runs(
    connection: sa.Connection, tasks: RunPart, part: Part
) -> tuple[tuple[StoredTransaction, ...], str | None]:
    """That part of the transactions of these tasks that were not released, newest first, and the cursor for the part
    that follows. Three queries. Raises CursorInvalid.
    """
    query = _NEWEST.taken(sa.select(transactions, *_NEWEST.key).where(*_mine(tasks)), part)
    found = connection.execute(query).mappings().all()
    rows = found[: part.limit]
    ids = [row["id"] for row in rows]
    pinned: dict[str, list[str]] = defaultdict(list)
    of_window = (windows.c.transaction_id, windows.c.pinned)
    theirs = sa.select(*of_window).where(windows.c.transaction_id.in_(ids)).order_by(windows.c.position)
    for row in connection.execute(theirs):
        pinned[row.transaction_id].append(row.pinned)
    planned: dict[str, list[sa.RowMapping]] = defaultdict(list)
    plans = sa.select(statements).where(statements.c.transaction_id.in_(ids)).order_by(statements.c.number)
    for one in connection.execute(plans).mappings():
        planned[one["transaction_id"]].append(one)
    told = tuple(stored_of(row, pinned[row["id"]], planned[row["id"]]) for row in rows)
    return told, _NEWEST.cursor(found, part.limit)


def streams_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The streams from which these tasks took, by uid, with words. One query."""
    taken = sa.func.count(windows.c.transaction_id)
    query = (
        sa.select(windows.c.stream_uid, taken)
        .join(transactions, _of.id == windows.c.transaction_id)
        .where(*_mine(part))
        .group_by(windows.c.stream_uid)
    )
    return {uid: Touch(f"{count} window{'s' if count != 1 else ''} taken") for uid, count in connection.execute(query)}


def open_windows(connection: sa.Connection, stream_uids: Sequence[str]) -> Mapping[str, StreamWindow]:
    """The open window of each of these streams that has one, by uid. One query for every 500 streams."""
    query = sa.select(windows.c.stream_uid, windows.c.pinned).join(
        streams, (streams.c.uid == windows.c.stream_uid) & (streams.c.held_by == windows.c.transaction_id)
    )
    found: dict[str, StreamWindow] = {}
    for some in portions(stream_uids):
        for row in connection.execute(query.where(streams.c.uid.in_(some))):
            found[row.stream_uid] = from_json(StreamWindow, row.pinned)
    return found


def _mine(part: RunPart) -> list[sa.ColumnElement[bool]]:
    """The conditions for which the index of keys is."""
    wanted = [_of.state != TransactionState.RELEASED.value, _of.dag_id == part.dag_id]
    for column, value in ((_of.run_id, part.run_id), (_of.task_id, part.task_id), (_of.map_index, part.map_index)):
        if value is not None:
            wanted.append(column == value)
    return wanted
