"""Streams as a monitor shows them, read only: a page of them in one query, and the newest moves of an offset."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa

from tidemark.control.cursors import FIRST_PART, Kind, ListOrder, Ordered, Part
from tidemark.control.object_histories import Portion, newest_rows
from tidemark.errors import StreamNotFound
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import OffsetMove, Stream
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.planning.names import OF_A_VIEW
from tidemark.streams.store.health import HEALTH_COLUMNS
from tidemark.streams.store.schema import offset_moves, stream_health, streams, transactions
from tidemark.streams.store.streams import PROVEN_EMPTY, lineage, move_of, stream_of

__all__ = [
    "HeldWindow",
    "NumberedMove",
    "OverviewRow",
    "SortBy",
    "StreamsPage",
    "find_row",
    "moves_in",
    "page",
]


_OF_A_MOVE = ("id", "from_version", "to_version", "moved_at", "who", "why", "run")


class SortBy(StrEnum):
    """The orders of a page of streams; the name decides between equals."""

    NAME = "name"
    SOURCE = "source"
    MODE = "mode"
    OFFSET = "offset"
    CREATED = "created"
    ADVANCED = "advanced"  # the time of the last offset advance, creation included (R81)
    HELD = "held"  # since when a transaction holds the stream
    STATE = "state"  # as far as the store knows: those that fail, most failures first, then those that never delivered


@dataclass(frozen=True)
class HeldWindow:
    """The open transaction that holds a stream: whose it is, since when, and what may still run for it."""

    key: TransactionKey
    owner: str
    since: datetime
    lease_until: datetime
    submitted: bool
    job_deadline: datetime | None


@dataclass(frozen=True)
class OverviewRow:
    """One stream; `commit` is the last move of its offset that a transaction made, None where there was none."""

    stream: Stream
    held: HeldWindow | None
    commit: OffsetMove | None
    health: StreamHealth


@dataclass(frozen=True)
class StreamsPage:
    """`total`: how many live streams the search fits, on all pages. `cursor`: for the page that follows; None on the
    last one.
    """

    total: int
    rows: tuple[OverviewRow, ...]
    cursor: str | None = None


@dataclass(frozen=True)
class NumberedMove:
    """A move of an offset and its number in the store: older moves have lower ones."""

    number: int
    move: OffsetMove


_ORDER: dict[SortBy, tuple[sa.ColumnElement[object], Kind]] = {
    SortBy.NAME: (streams.c.folded_name, str),
    SortBy.SOURCE: (sa.func.lower(streams.c.source_name), str),
    SortBy.MODE: (streams.c.mode, str),
    SortBy.OFFSET: (streams.c.offset_version, int),
    SortBy.CREATED: (streams.c.created_at, datetime),
    SortBy.ADVANCED: (streams.c.anchor, datetime),
    SortBy.HELD: (transactions.c.opened_at, datetime | None),
    SortBy.STATE: (
        sa.case(
            (stream_health.c.failures_in_row > 0, -stream_health.c.failures_in_row),
            (sa.func.coalesce(stream_health.c.consumptions, 0) == 0, 0),
            else_=1,
        ),
        int,
    ),
}


def page(
    connection: sa.Connection,
    *,
    search: str = "",
    only_held: bool = False,
    sort: SortBy = SortBy.NAME,
    descending: bool = False,
    part: Part = FIRST_PART,
) -> StreamsPage:
    """That part of the live streams whose name, source or path holds `search` in any case.

    One query, for any number of streams. A page past the end has no rows, and the total. Raises CursorInvalid.
    """
    wanted, order = _wanted(search, only_held), _order(sort, descending)
    uids = _uids(wanted, sort, order, part)
    total = sa.select(sa.func.count().label("total")).select_from(streams).where(*wanted).subquery("counted")
    beside = total.outerjoin(uids, sa.true()).outerjoin(streams, streams.c.uid == uids.c.uid)
    query = _with_what_belongs(sa.select(total.c.total, *order.key), beside).order_by(*order.ordering)
    found = connection.execute(query).mappings().all()
    rows = tuple(_row(row) for row in found[: part.limit] if row["uid"] is not None)
    return StreamsPage(int(found[0]["total"]), rows, order.cursor(found, part.limit))


def find_row(connection: sa.Connection, uid: str) -> OverviewRow:
    """The stream with that uid, dropped or not. Raises StreamNotFound."""
    query = _with_what_belongs(sa.select(), streams).where(streams.c.uid == uid)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise StreamNotFound(stream=uid)
    return _row(row)


def moves_in(connection: sa.Connection, uid: str, portion: Portion) -> tuple[NumberedMove, ...]:
    """The acts on the stream's offset in that portion, newest first, also from before it was re-based."""
    own = offset_moves.c.stream_uid.in_(lineage(connection, uid))
    rows = newest_rows(connection, sa.select(offset_moves).where(own), (offset_moves.c.id,), portion)
    return tuple(NumberedMove(row["id"], move_of(row)) for row in rows)


def _with_what_belongs(query: sa.Select[tuple[object, ...]], beside: sa.FromClause) -> sa.Select[tuple[object, ...]]:
    """The streams in `beside`, each with the transaction that holds it, its last commit and its counts."""
    return query.add_columns(streams, *_held_columns(), *_commit_columns(), *_health_columns()).select_from(
        beside.outerjoin(transactions, transactions.c.id == streams.c.held_by)
        .outerjoin(offset_moves, offset_moves.c.id == _last_commit())
        .outerjoin(stream_health, stream_health.c.stream_uid == streams.c.uid)
    )


def _wanted(search: str, only_held: bool) -> list[sa.ColumnElement[bool]]:
    own = ~streams.c.folded_name.startswith(OF_A_VIEW, autoescape=True)
    wanted: list[sa.ColumnElement[bool]] = [streams.c.dropped_at.is_(None), own]
    if search:
        places = (streams.c.source_name, streams.c.source_path)
        found = [_holds(place, search) for place in places]
        wanted.append(sa.or_(streams.c.folded_name.contains(search.casefold(), autoescape=True), *found))
    if only_held:
        wanted.append(streams.c.held_by.is_not(None))
    return wanted


def _holds(place: sa.ColumnElement[str], search: str) -> sa.ColumnElement[bool]:
    """A database folds other letters than Python, and SQLite those of ASCII alone. So a text is found as typed, too."""
    lower, found = sa.func.lower(place), [place.contains(search, autoescape=True)]
    return sa.or_(*found, *(lower.contains(said, autoescape=True) for said in (search.casefold(), search.lower())))


def _uids(wanted: list[sa.ColumnElement[bool]], sort: SortBy, order: ListOrder, part: Part) -> sa.Subquery:
    """The page's streams alone: what belongs to them is joined to these few."""
    query = order.taken(sa.select(streams.c.uid).where(*wanted), part)
    if sort is SortBy.HELD:
        query = query.select_from(streams.outerjoin(transactions, transactions.c.id == streams.c.held_by))
    if sort is SortBy.STATE:
        query = query.select_from(streams.outerjoin(stream_health, stream_health.c.stream_uid == streams.c.uid))
    return query.subquery("wanted")


def _order(sort: SortBy, descending: bool) -> ListOrder:
    by, kind = _ORDER[sort]
    columns = (Ordered(by, kind, descending), Ordered(streams.c.folded_name, str))
    return ListOrder(f"streams {sort} {descending}", columns)


def _held_columns() -> list[sa.Label[object]]:
    names = (
        "dag_id",
        "run_id",
        "task_id",
        "map_index",
        "owner",
        "opened_at",
        "lease_until",
        "submitted",
        "job_deadline",
    )
    return [transactions.c[name].label(f"held_{name}") for name in names]


def _commit_columns() -> list[sa.Label[object]]:
    return [offset_moves.c[name].label(f"move_{name}") for name in _OF_A_MOVE]


def _health_columns() -> list[sa.Label[object]]:
    return [stream_health.c[name].label(f"health_{name}") for name in HEALTH_COLUMNS]


def _last_commit() -> sa.ScalarSelect[int]:
    """A move that has a run is a transaction's, or has passed an empty window. One without is somebody's own (created,
    advanced by hand).
    """
    earlier = offset_moves.alias("earlier")
    of_stream = sa.select(sa.func.max(earlier.c.id)).where(
        earlier.c.stream_uid == streams.c.uid, earlier.c.run.is_not(None), earlier.c.why != PROVEN_EMPTY
    )
    return of_stream.correlate(streams).scalar_subquery()


def _row(row: sa.RowMapping) -> OverviewRow:
    return OverviewRow(stream=stream_of(row), held=_held(row), commit=_commit(row), health=_health(row))


def _health(row: sa.RowMapping) -> StreamHealth:
    if row["health_consumptions"] is None:
        return StreamHealth()
    return StreamHealth(**{name: row[f"health_{name}"] for name in HEALTH_COLUMNS})


def _held(row: sa.RowMapping) -> HeldWindow | None:
    if row["held_dag_id"] is None:
        return None
    return HeldWindow(
        key=TransactionKey(row["held_dag_id"], row["held_run_id"], row["held_task_id"], row["held_map_index"]),
        owner=row["held_owner"],
        since=row["held_opened_at"],
        lease_until=row["held_lease_until"],
        submitted=row["held_submitted"],
        job_deadline=row["held_job_deadline"],
    )


def _commit(row: sa.RowMapping) -> OffsetMove | None:
    if row["move_id"] is None:
        return None
    return move_of({"stream_uid": row["uid"], **{name: row[f"move_{name}"] for name in _OF_A_MOVE}})
