"""The ties of streams: their base tables, and the targets that transactions have filled from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tidemark.control.ties import Flow, TableAt, Tie
from tidemark.delivery.model.transactions import TransactionState
from tidemark.model.statements import CLIENT_DAG
from tidemark.streams.store.schema import statements, streams, transactions, windows

__all__ = ["base_tables", "stream_ties"]

NEWEST = 20_000  # transactions whose targets are read: the number of all does not matter
_of, _transaction, _window, _statement = streams.c, transactions.c, windows.c, statements.c


def stream_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The bases of each stream, and the targets of the newest transactions. A stream that these have not taken from is
    asked for its own. Four queries.
    """
    columns = (_of.uid, _of.folded_name, _of.source_name, _of.source_path, _of.view_bases)
    rows = connection.execute(sa.select(*columns).where(_of.dropped_at.is_(None))).mappings().all()
    reads = [Tie(row["uid"], Flow.READS, table) for row in rows for table in base_tables(row)]
    return (*reads, *_writes(connection, {row["uid"]: row["folded_name"] for row in rows}))


def base_tables(row: Mapping[Any, Any]) -> tuple[TableAt, ...]:
    """The tables below a stream's row: those of its view, or its source."""
    if row["view_bases"] is None:
        return (TableAt(row["source_name"], row["source_path"]),)
    tables = (base["table"] for base in json.loads(row["view_bases"]))
    return tuple(TableAt(table["name"], table["path"]) for table in tables)


def _writes(connection: sa.Connection, names: Mapping[str, str]) -> Iterator[Tie]:
    """`names`: folded name by uid, of live streams. A re-based stream has the targets of those before it."""
    rebased = sa.select(_of.uid, _of.rebased_from).where(_of.rebased_from.is_not(None))
    earlier = {uid: before for uid, before in connection.execute(rebased)}
    live = dict(_with_earlier(names, earlier))
    for wanted in (_newest(), _of_others()):
        for row in connection.execute(_targets(wanted)).mappings():
            uid = live.get(row["stream_uid"])
            if uid is not None and _reads(row["planned_write"], names[uid]):
                dag = None if row["dag_id"] == CLIENT_DAG else row["dag_id"]
                yield Tie(uid, Flow.WRITES, TableAt(row["target_name"], row["target_path"]), dag)


def _with_earlier(names: Mapping[str, str], earlier: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each uid that a live stream has or had, and the one that it has."""
    for uid in names:
        own: str | None = uid
        while own is not None:
            yield own, uid
            own = earlier.get(own)


def _newest() -> sa.ColumnElement[bool]:
    return _window.transaction_id.in_(_newest_ids())


def _newest_ids() -> sa.Select[tuple[str]]:
    ended = sa.select(_transaction.id).where(_transaction.closed_at.is_not(None))
    newest = ended.order_by(_transaction.closed_at.desc()).limit(NEWEST).subquery("newest")
    held = sa.select(_of.held_by.label("id")).where(_of.held_by.is_not(None))
    every = sa.union_all(sa.select(newest.c.id), held).subquery("every")
    return sa.select(every.c.id)


def _of_others() -> sa.ColumnElement[bool]:
    """The windows of live streams that are in none of the newest transactions. Such streams have few windows."""
    taken = sa.select(_window.stream_uid).where(_newest())
    others = sa.select(_of.uid).where(_of.dropped_at.is_(None), _of.uid.not_in(taken.scalar_subquery()))
    return _window.stream_uid.in_(others)


def _targets(wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """One row for each stream, task, statement and target, with the plan of one of the transactions that had it."""
    task = (_window.stream_uid, _transaction.dag_id, _transaction.task_id, _statement.number, _statement.target_path)
    found = (
        sa.select(*task, sa.func.min(_statement.transaction_id).label("one"))
        .select_from(windows)
        .join(transactions, _transaction.id == _window.transaction_id)
        .join(statements, _statement.transaction_id == _window.transaction_id)
        .where(wanted, _transaction.state != TransactionState.RELEASED.value)
        .group_by(*task)
        .subquery("found")
    )
    same = (_statement.transaction_id == found.c.one) & (_statement.number == found.c.number)
    columns = (found.c.stream_uid, found.c.dag_id, found.c.target_path)
    return sa.select(*columns, _statement.target_name, _statement.planned_write).join(statements, same)


def _reads(planned_write: str, stream: str) -> bool:
    """Whether the statement names the stream, or no stream at all: then it may read each of its transaction."""
    source = json.loads(planned_write).get("source")
    return source is None or source.casefold() == stream
