"""The data that a route needs from store and lake, read in one go each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from tidemark.control.cursors import Part
from tidemark.control.object_histories import Portion, ShownPart, history_of
from tidemark.control.object_list import owner_dags
from tidemark.control.object_needs import Key
from tidemark.errors import StreamNotFound
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Stream
from tidemark.plugins.monitor.answers import (
    StreamDetails,
    StreamsAnswer,
    move_answer,
    stream_answer,
    transaction_answer,
)
from tidemark.plugins.monitor.connections import MonitoredConnection, connection_ids
from tidemark.plugins.monitor.gate import Gate
from tidemark.plugins.monitor.history_answers import part_answer
from tidemark.plugins.monitor.status_cache import Looks
from tidemark.replication.store import replications
from tidemark.streams.store import overview, streams, transactions
from tidemark.streams.store.overview import NumberedMove, OverviewRow, SortBy, StreamsPage
from tidemark.streams.store.transactions import StoredTransaction

__all__ = ["MOVES", "PageWish", "details", "looked_at", "streams_page"]

MOVES = 200
TRANSACTIONS = 10
_KIND = "stream"


@dataclass(frozen=True)
class PageWish:
    """The part of the streams that is asked for, and its order."""

    search: str
    only_held: bool
    sort: SortBy
    descending: bool
    part: Part


@dataclass(frozen=True)
class _Kept:
    """All that the store has for a stream's details, as it was at one moment. `owner`: the DAG that owns it."""

    row: OverviewRow
    owner: str | None
    transactions: tuple[StoredTransaction, ...]
    moves: tuple[NumberedMove, ...]
    versions: ShownPart
    replications: int


async def streams_page(
    gate: Gate, wish: PageWish, *, patience: float, now: datetime, readable: Collection[str]
) -> StreamsAnswer:
    """One look at the store, with what the looks at the logs have found. `patience`: how long these are waited for.
    Raises StoreError.
    """
    monitored, found, owners, beside = await gate.ask(lambda monitored: (monitored, *_kept_page(monitored, wish)))
    looks = await gate.status_cache.statuses([row.stream for row in found.rows], monitored.tables, patience=patience)
    statuses = looks.answers
    return StreamsAnswer(
        connection=monitored.conn_id,
        connections=connection_ids(),
        store="absent" if monitored.store is None else "ready",
        now=now,
        total=found.total,
        limit=wish.part.limit,
        offset=wish.part.offset,
        cursor=found.cursor,
        streams=tuple(
            stream_answer(row, statuses[uid], now=now, readable=readable, owner=owners.get((_KIND, uid)))
            for row in found.rows
            for uid in (row.stream.uid,)
        ),
        replications=beside,
        looked_at=looked_at(looks, now),
        not_looked_at=looks.missing,
    )


async def details(
    gate: Gate,
    name: str,
    *,
    patience: float,
    now: datetime,
    readable: Collection[str],
    asked_for: TransactionKey | None,
) -> StreamDetails:
    """The stream of that name, in any case; without one, the first that the transaction took from.

    Raises StreamNotFound, StoreError.
    """
    monitored, kept = await gate.ask(lambda monitored: (monitored, _kept_stream(monitored, name, asked_for)))
    stream = kept.row.stream
    looks = await gate.status_cache.statuses([stream], monitored.tables, patience=patience)
    return StreamDetails(
        connection=monitored.conn_id,
        now=now,
        stream=stream_answer(kept.row, looks.answers[stream.uid], now=now, readable=readable, owner=kept.owner),
        table_id=stream.source.table_id,
        transactions=tuple(transaction_answer(one, readable, asked_for=asked_for) for one in kept.transactions),
        moves=tuple(move_answer(one, readable, kept.owner) for one in kept.moves[:MOVES]),
        older_moves=len(kept.moves) > MOVES,
        versions=part_answer(kept.versions, kept.owner, {}, readable),
        replications=kept.replications,
        looked_at=looked_at(looks, now),
    )


def looked_at(looks: Looks, now: datetime) -> datetime | None:
    """When the log was looked at whose look is the oldest of these; None: no look has ended yet."""
    return None if looks.ago is None else now - timedelta(seconds=looks.ago)


def _kept_page(monitored: MonitoredConnection, wish: PageWish) -> tuple[StreamsPage, Mapping[Key, str | None], int]:
    """The streams with the DAGs that own them, and how many replications there are."""
    if monitored.store is None:
        return StreamsPage(0, ()), {}, 0

    def read(connection: sa.Connection) -> tuple[StreamsPage, Mapping[Key, str | None], int]:
        found = overview.page(connection, **vars(wish))
        owners = owner_dags(connection, [(_KIND, row.stream.uid) for row in found.rows])
        return found, owners, replications.count(connection)

    return monitored.store.read(read)


def _kept_stream(monitored: MonitoredConnection, name: str, asked_for: TransactionKey | None) -> _Kept:
    if monitored.store is None:
        raise StreamNotFound(stream=name)
    return monitored.store.read(lambda connection: _kept(connection, name, asked_for))


def _kept(connection: sa.Connection, name: str, asked_for: TransactionKey | None) -> _Kept:
    stream = _named(connection, name, asked_for)
    row = overview.find_row(connection, stream.uid)
    newest = transactions.of_stream(connection, stream.uid, TRANSACTIONS)
    moves = overview.moves_in(connection, stream.uid, Portion(None, MOVES + 1))
    shown = (*_older(connection, stream.uid, newest, asked_for), *newest)
    owner = owner_dags(connection, [(_KIND, stream.uid)]).get((_KIND, stream.uid))
    (versions,) = history_of(connection, _KIND, stream.uid, part="versions", cursor=None, limit=MOVES)
    return _Kept(row, owner, shown, moves, versions, replications.count(connection))


def _named(connection: sa.Connection, name: str, asked_for: TransactionKey | None) -> Stream:
    found = None if name or asked_for is None else transactions.current(connection, asked_for)
    return streams.find(connection, name) if found is None else streams.by_uid(connection, found.lead)


def _older(
    connection: sa.Connection, uid: str, newest: tuple[StoredTransaction, ...], asked_for: TransactionKey | None
) -> tuple[StoredTransaction, ...]:
    """The transaction that was asked for, if it took from this stream and is not among the newest."""
    if asked_for is None or any(one.transaction.key == asked_for for one in newest):
        return ()
    found = transactions.current(connection, asked_for)
    if found is None or uid not in {window.stream_uid for window in found.transaction.windows}:
        return ()
    return (found,)
