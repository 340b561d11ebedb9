"""Streams in the store: each state move by name, with its condition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import touch
from tidemark.errors import StreamNotFound
from tidemark.model.codec import from_json, from_plain, to_json
from tidemark.model.streams import Addressing, BaseOffset, OffsetMove, Stream, StreamMode, StreamOffset, TableRef
from tidemark.model.views import ViewQuery
from tidemark.sql.alike import alike
from tidemark.streams.store.schema import offset_moves, streams, transactions

__all__ = [
    "PROVEN_EMPTY",
    "UsedUid",
    "advance_offset",
    "by_uid",
    "draw_serial",
    "drop",
    "find",
    "free",
    "held_until",
    "history",
    "hold",
    "holder",
    "insert",
    "keep_offset",
    "lineage",
    "live",
    "lookup",
    "lookup_all",
    "move_of",
    "names_of",
    "offsets_of",
    "rebase",
    "relocate",
    "renew_anchor",
    "set_comment",
    "settle_initial_rows",
    "stream_of",
    "with_uid",
    "with_uids",
]

PROVEN_EMPTY = "proven empty"  # why a run moved the offset that delivered nothing
NAMES_AT_ONCE = 500  # in one statement: every database allows as many
_COMPARED = 10_000  # with a name that is not there


@dataclass(frozen=True)
class UsedUid:
    """The stream of a uid, and whether it has ended."""

    stream: Stream
    dropped: bool


def lookup(connection: sa.Connection, name: str) -> Stream | None:
    """The live stream of that name, without regard to case (R12), or None: a question, not a failure."""
    row = connection.execute(_live().where(streams.c.folded_name == name.casefold())).mappings().first()
    return None if row is None else stream_of(row)


def lookup_all(connection: sa.Connection, names: Iterable[str]) -> dict[str, Stream]:
    """The live streams of these names, by their folded names; those that are not there are left out."""
    folded = sorted({name.casefold() for name in names})
    found: dict[str, Stream] = {}
    for start in range(0, len(folded), NAMES_AT_ONCE):
        query = _live().where(streams.c.folded_name.in_(folded[start : start + NAMES_AT_ONCE]))
        found.update((row["folded_name"], stream_of(row)) for row in connection.execute(query).mappings())
    return found


def find(connection: sa.Connection, name: str) -> Stream:
    """The live stream of that name. Raises StreamNotFound."""
    stream = lookup(connection, name)
    if stream is None:
        raise StreamNotFound(stream=name, hint=_meant(connection, name))
    return stream


def _meant(connection: sa.Connection, name: str) -> str:
    """Up to three live streams with names like it."""
    names = connection.execute(sa.select(streams.c.name).where(streams.c.dropped_at.is_(None)).limit(_COMPARED))
    found = [repr(one) for one in alike(name, names.scalars())]
    return f"Did you mean {' or '.join(found)}? " if found else ""


def by_uid(connection: sa.Connection, uid: str) -> Stream:
    """The stream with that uid, dropped or not. Raises StreamNotFound."""
    row = connection.execute(sa.select(streams).where(streams.c.uid == uid)).mappings().first()
    if row is None:
        raise StreamNotFound(stream=uid)
    return stream_of(row)


def with_uid(connection: sa.Connection, uid: str) -> UsedUid | None:
    """The stream that has or had the uid, or None: a question, not a failure."""
    row = connection.execute(sa.select(streams).where(streams.c.uid == uid)).mappings().first()
    return None if row is None else UsedUid(stream_of(row), dropped=row["dropped_at"] is not None)


def names_of(connection: sa.Connection, uids: Iterable[str]) -> dict[str, str]:
    """Uid → name of those of the uids whose stream lives."""
    return {row["uid"]: row["name"] for row in _living(connection, uids)}


def offsets_of(connection: sa.Connection, uids: Iterable[str]) -> dict[str, int]:
    """Uid → the version of the stream's offset, for those of the uids whose stream lives."""
    return {row["uid"]: stream_of(row).offset.version for row in _living(connection, uids)}


def with_uids(connection: sa.Connection, uids: Iterable[str]) -> tuple[Stream, ...]:
    """Those of the uids whose stream lives."""
    return tuple(stream_of(row) for row in _living(connection, uids))


def _living(connection: sa.Connection, uids: Iterable[str]) -> Iterator[sa.RowMapping]:
    asked = sorted(uids)
    for start in range(0, len(asked), NAMES_AT_ONCE):
        query = _live().where(streams.c.uid.in_(asked[start : start + NAMES_AT_ONCE]))
        yield from connection.execute(query).mappings()


def live(connection: sa.Connection) -> tuple[Stream, ...]:
    """All streams that are not dropped, by name; sorted here, since databases differ in how they sort."""
    found = (stream_of(row) for row in connection.execute(_live()).mappings())
    return tuple(sorted(found, key=lambda stream: stream.name.casefold()))


def insert(
    connection: sa.Connection, stream: Stream, *, who: str, why: str = "created", at: datetime | None = None
) -> None:
    """Add a stream; its name must be free. The first entry of its history says where it started, `at` its creation."""
    _insert(connection, stream)
    keep_offset(connection, stream, at=stream.created_at if at is None else at, who=who, why=why, run=None)


def rebase(connection: sa.Connection, old: Stream, new: Stream, *, at: datetime, who: str, why: str) -> None:
    """The stream continues as `new`, under its name and with its history, which says so in one entry. The old uid is
    never used again (V5), and with it no number of its Delta transactions.
    """
    connection.execute(streams.update().where(streams.c.uid == old.uid).values(dropped_at=at))
    touch(connection, "stream", (old.uid,))
    _insert(connection, new, rebased_from=old.uid)
    _log(connection, OffsetMove(new.uid, old.offset.version, new.offset.version, at, who, why, None))


def relocate(connection: sa.Connection, stream: Stream, to: TableRef, *, at: datetime, who: str, why: str) -> bool:
    """The source exists elsewhere, by another name or path. True if it is the same table, and nobody has moved the
    stream since it was read. The offset stays, and the move is logged.
    """
    standing = (
        (streams.c.uid == stream.uid)
        & (streams.c.source_table_id == to.table_id)
        & (streams.c.source_path == stream.source.path)
    )
    values = {"source_name": to.name, "source_path": to.path, "source_addressing": to.addressing.value}
    if (
        connection.execute(streams.update().where(standing, streams.c.dropped_at.is_(None)).values(values)).rowcount
        != 1
    ):
        return False
    keep_offset(connection, stream, at=at, who=who, why=why, run=None)
    return True


def _insert(connection: sa.Connection, stream: Stream, *, rebased_from: str | None = None) -> None:
    connection.execute(
        streams.insert().values(
            uid=stream.uid,
            name=stream.name,
            folded_name=stream.name.casefold(),
            source_name=stream.source.name,
            source_path=stream.source.path,
            source_table_id=stream.source.table_id,
            source_addressing=stream.source.addressing.value,
            mode=stream.mode.value,
            offset_version=stream.offset.version,
            initial_rows_pending=stream.initial_rows_pending,
            serial=stream.serial,
            created_at=stream.created_at,
            anchor=stream.anchor,
            comment=stream.comment,
            view_query=None if stream.view is None else to_json(stream.view),
            view_bases=None if stream.view is None else to_json(stream.view_bases),
            key_columns=to_json(stream.keys) if stream.keys else None,
            rebased_from=rebased_from,
            known_serial=stream.serial,
        )
    )


def drop(connection: sa.Connection, stream: Stream, *, at: datetime, who: str, why: str) -> None:
    """End a stream; its history stays, its uid is never used again (V5)."""
    connection.execute(streams.update().where(streams.c.uid == stream.uid).values(dropped_at=at))
    keep_offset(connection, stream, at=at, who=who, why=why, run=None)


def set_comment(connection: sa.Connection, *, uid: str, comment: str | None) -> bool:
    """Give a stream that is not dropped another comment, None for none (R4); True if there is one."""
    standing = (streams.c.uid == uid) & streams.c.dropped_at.is_(None)
    return connection.execute(streams.update().where(standing).values(comment=comment)).rowcount == 1


def advance_offset(
    connection: sa.Connection,
    *,
    uid: str,
    expected: int,
    to: int,
    bases: Sequence[BaseOffset] = (),
    at: datetime,
    who: str,
    why: str,
    run: str | None,
) -> bool:
    """Move the offset, if it is `expected` and does not go back (I4); True if it was so. The move is logged; of runs in
    a row that found nothing, the last alone.

    `bases`: the new offset of a stream on a view in each base table; `to` is their sum.
    """
    standing = (streams.c.uid == uid) & (streams.c.offset_version == expected) & streams.c.dropped_at.is_(None)
    values = {"offset_version": to, "anchor": at, **({"view_bases": to_json(tuple(bases))} if bases else {})}
    move = streams.update().where(standing, streams.c.offset_version <= to).values(**values)
    if connection.execute(move).rowcount != 1:
        return False
    moved = OffsetMove(uid, expected, to, at, who, why, run)
    if run is None or expected != to or not _logged_again(connection, moved):
        _log(connection, moved)
    return True


def renew_anchor(connection: sa.Connection, *, uid: str, expected: datetime, at: datetime) -> bool:
    """Count staleness from `at`, if the anchor is `expected` and older (R86); True if it was so. Not a move: no entry
    in the history.
    """
    standing = (streams.c.uid == uid) & (streams.c.anchor == expected) & streams.c.dropped_at.is_(None)
    renewal = streams.update().where(standing, streams.c.anchor < at).values(anchor=at)
    return connection.execute(renewal).rowcount == 1


def settle_initial_rows(
    connection: sa.Connection, *, uid: str, expected: int, at: datetime, who: str, why: str, run: str | None
) -> bool:
    """The rows at the start are delivered; the offset stays at `expected` (R10). True if they were still pending."""
    standing = (streams.c.uid == uid) & (streams.c.offset_version == expected) & streams.c.dropped_at.is_(None)
    move = (
        streams.update().where(standing, streams.c.initial_rows_pending).values(initial_rows_pending=False, anchor=at)
    )
    if connection.execute(move).rowcount != 1:
        return False
    _log(connection, OffsetMove(uid, expected, expected, at, who, why, run))
    return True


def keep_offset(
    connection: sa.Connection, stream: Stream, *, at: datetime, who: str, why: str, run: str | None
) -> None:
    """Log an act that leaves the offset where it is."""
    _log(connection, OffsetMove(stream.uid, stream.offset.version, stream.offset.version, at, who, why, run))


def draw_serial(connection: sa.Connection, uid: str) -> int:
    """The next number of the stream's Delta transactions; never drawn twice (step 7)."""
    connection.execute(streams.update().where(streams.c.uid == uid).values(serial=streams.c.serial + 1))
    return int(connection.execute(sa.select(streams.c.serial).where(streams.c.uid == uid)).scalar_one())


def holder(connection: sa.Connection, uid: str) -> str | None:
    """The id of the open transaction that holds the stream, or None."""
    held: str | None = connection.execute(sa.select(streams.c.held_by).where(streams.c.uid == uid)).scalar_one()
    return held


def held_until(connection: sa.Connection) -> dict[str, datetime]:
    """Uid → until when the open transaction that holds the stream, or a job of it, may need the pinned window."""
    held = sa.select(streams.c.uid, transactions.c.lease_until, transactions.c.job_deadline).join(
        transactions, transactions.c.id == streams.c.held_by
    )
    rows = connection.execute(held).mappings()
    return {row["uid"]: max(row["lease_until"], row["job_deadline"] or row["lease_until"]) for row in rows}


def hold(connection: sa.Connection, uid: str, transaction_id: str) -> bool:
    """Give the stream to a transaction, if none holds it (I9); True if it was free."""
    take = streams.update().where(streams.c.uid == uid, streams.c.held_by.is_(None)).values(held_by=transaction_id)
    return connection.execute(take).rowcount == 1


def free(connection: sa.Connection, transaction_id: str) -> None:
    """Let go of every stream that the transaction holds."""
    connection.execute(streams.update().where(streams.c.held_by == transaction_id).values(held_by=None))


def lineage(connection: sa.Connection, uid: str) -> tuple[str, ...]:
    """The uid, and those that the stream had before it was re-based, newest first."""
    found = [uid]
    while (earlier := _rebased_from(connection, found[-1])) is not None:
        found.append(earlier)
    return tuple(found)


def history(connection: sa.Connection, uid: str) -> tuple[OffsetMove, ...]:
    """Every act on the stream's offset, oldest first, also from before it was re-based."""
    own = offset_moves.c.stream_uid.in_(lineage(connection, uid))
    query = sa.select(offset_moves).where(own).order_by(offset_moves.c.id)
    return tuple(move_of(row) for row in connection.execute(query).mappings())


def _rebased_from(connection: sa.Connection, uid: str) -> str | None:
    query = sa.select(streams.c.rebased_from).where(streams.c.uid == uid)
    earlier: str | None = connection.execute(query).scalar_one_or_none()
    return earlier


def _live() -> sa.Select[tuple[object, ...]]:
    return sa.select(streams).where(streams.c.dropped_at.is_(None))


def _log(connection: sa.Connection, move: OffsetMove) -> None:
    touch(connection, "stream", (move.stream_uid,), by=move.run or move.who)
    connection.execute(
        offset_moves.insert().values(
            stream_uid=move.stream_uid,
            from_version=move.from_version,
            to_version=move.to_version,
            moved_at=move.moved_at,
            who=move.who,
            why=move.why,
            run=move.run,
        )
    )


def _logged_again(connection: sa.Connection, stays: OffsetMove) -> bool:
    """Whether the newest entry said the same of an earlier run, and names this one now."""
    own = sa.select(offset_moves).where(offset_moves.c.stream_uid == stays.stream_uid)
    newest = connection.execute(own.order_by(offset_moves.c.id.desc()).limit(1)).mappings().one()
    said = (newest["from_version"], newest["to_version"], newest["why"])
    if newest["run"] is None or said != (stays.from_version, stays.to_version, stays.why):
        return False
    entry = offset_moves.update().where(offset_moves.c.id == newest["id"])
    connection.execute(entry.values(moved_at=stays.moved_at, who=stays.who, run=stays.run))
    return True


def move_of(row: sa.RowMapping | Mapping[str, Any]) -> OffsetMove:
    """The act in a row that has the columns of `tidemark_offset_move`."""
    return OffsetMove(
        stream_uid=row["stream_uid"],
        from_version=row["from_version"],
        to_version=row["to_version"],
        moved_at=row["moved_at"],
        who=row["who"],
        why=row["why"],
        run=row["run"],
    )


def stream_of(row: sa.RowMapping) -> Stream:
    """The stream in a row that has the columns of `tidemark_stream`."""
    source = TableRef(
        name=row["source_name"],
        path=row["source_path"],
        table_id=row["source_table_id"],
        addressing=Addressing(row["source_addressing"]),
    )
    return Stream(
        uid=row["uid"],
        name=row["name"],
        source=source,
        mode=StreamMode(row["mode"]),
        offset=StreamOffset(row["source_table_id"], row["offset_version"]),
        initial_rows_pending=row["initial_rows_pending"],
        serial=row["serial"],
        created_at=row["created_at"],
        anchor=row["anchor"],
        comment=row["comment"],
        view=None if row["view_query"] is None else from_json(ViewQuery, row["view_query"]),
        view_bases=_bases_of(row["view_bases"]),
        keys=() if row["key_columns"] is None else tuple(json.loads(row["key_columns"])),
    )


def _bases_of(text: str | None) -> tuple[BaseOffset, ...]:
    found: tuple[BaseOffset, ...] = () if text is None else from_plain(tuple[BaseOffset, ...], json.loads(text))
    return found
