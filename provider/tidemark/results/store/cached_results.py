"""Stored answers in the index: each move by name, with its condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.model.codec import from_json, to_json
from tidemark.results.model.answers import Leaf, ReuseRules, StoredAnswer, Why, WrittenAnswer
from tidemark.results.planning.keys import evicted, expiry
from tidemark.results.store.schema import cached_results

__all__ = [
    "end",
    "ended_before",
    "evict",
    "keep",
    "live",
    "locations",
    "lookup",
    "note_removed",
    "same_text",
    "use",
]

_of = cached_results.c
_LIVE = _of.ended_at.is_(None)


def lookup(connection: sa.Connection, key: str) -> StoredAnswer | None:
    """The answer of that key that has not ended, or None. It may have expired."""
    row = connection.execute(sa.select(cached_results).where(_of.result_key == key, _LIVE)).mappings().first()
    return None if row is None else _answer(row)


def same_text(connection: sa.Connection, text_digest: str, *, most: int) -> tuple[StoredAnswer, ...]:
    """Answers of the same text, ended ones, too; the newest first."""
    newest = sa.select(cached_results).where(_of.text_digest == text_digest)
    found = connection.execute(newest.order_by(_of.created_at.desc(), _of.uid).limit(most)).mappings()
    return tuple(map(_answer, found))


def live(connection: sa.Connection) -> tuple[StoredAnswer, ...]:
    """All answers that have not ended, the last used first."""
    found = sa.select(cached_results).where(_LIVE).order_by(_of.last_used_at.desc(), _of.uid)
    return tuple(map(_answer, connection.execute(found).mappings()))


def keep(connection: sa.Connection, answer: StoredAnswer, *, replace: bool = False) -> StoredAnswer:
    """The answer that is reused from now on: this one, or the one of its key that came first. An expired one ends
    before, and with `replace` any other one. A second time changes nothing.
    """
    other = (_of.result_key == answer.key, _LIVE, _of.uid != answer.uid)
    expired = (*other, _of.expires_at <= answer.created_at)
    connection.execute(cached_results.update().where(*expired).values(_ending(answer.created_at, Why.EXPIRED)))
    if replace:
        connection.execute(cached_results.update().where(*other).values(_ending(answer.created_at, Why.OFF)))
    first = lookup(connection, answer.key)
    if first is not None:
        return first
    connection.execute(cached_results.insert().values(_row(answer)))
    return answer


def use(connection: sa.Connection, answer: StoredAnswer, *, at: datetime, rules: ReuseRules) -> None:
    """The answer was used, so it lives longer. Nothing changes if it has ended since, or was used later."""
    same = (_of.uid == answer.uid, _LIVE, _of.last_used_at < at)
    longer = {"last_used_at": at, "expires_at": expiry(at, answer.latest_at, rules)}
    connection.execute(cached_results.update().where(*same).values(longer))


def end(connection: sa.Connection, uids: Sequence[str], *, at: datetime, why: Why) -> int:
    """The answers are not reused any more; how many had not ended before. Their files stay for a while."""
    going = cached_results.update().where(_of.uid.in_(uids), _LIVE)
    return connection.execute(going.values(_ending(at, why))).rowcount


def evict(connection: sa.Connection, *, at: datetime, rules: ReuseRules) -> tuple[str, ...]:
    """End expired answers, and the least recently used of those that do not fit. Their uids."""
    found = live(connection)
    old = [answer.uid for answer in found if answer.expires_at <= at]
    fresh = [answer for answer in found if answer.expires_at > at]
    large = [answer.uid for answer in evicted(fresh, most_bytes=rules.most_bytes)]
    end(connection, old, at=at, why=Why.EXPIRED)
    end(connection, large, at=at, why=Why.EVICTED)
    return (*old, *large)


def ended_before(connection: sa.Connection, when: datetime, *, most: int) -> tuple[tuple[str, str], ...]:
    """(uid, location) of answers that ended before, and whose files may still exist; the first ended first."""
    due = sa.select(_of.uid, _of.location).where(_of.ended_at < when, _of.removed_at.is_(None))
    return tuple((row.uid, row.location) for row in connection.execute(due.order_by(_of.ended_at).limit(most)))


def note_removed(connection: sa.Connection, uids: Sequence[str], *, at: datetime) -> None:
    """The files of these answers are gone. A second time changes nothing."""
    connection.execute(cached_results.update().where(_of.uid.in_(uids), _of.removed_at.is_(None)).values(removed_at=at))


def locations(connection: sa.Connection) -> frozenset[str]:
    """The directories of all answers whose files may be read."""
    return frozenset(connection.execute(sa.select(_of.location).where(_of.removed_at.is_(None))).scalars())


def _ending(at: datetime, why: Why) -> dict[str, Any]:
    return {"ended_at": at, "ended_as": why.value}


def _row(answer: StoredAnswer) -> dict[str, Any]:
    return {
        "uid": answer.uid,
        "result_key": answer.key,
        "query_text": answer.text,
        "text_digest": answer.text_digest,
        "tables_read": to_json(answer.tables),
        "settings": to_json(answer.settings),
        "written": to_json(answer.written),
        "location": answer.written.location,
        "size": answer.written.size,
        "created_at": answer.created_at,
        "last_used_at": answer.last_used_at,
        "expires_at": answer.expires_at,
        "latest_at": answer.latest_at,
        "ended_at": answer.ended_at,
        "ended_as": answer.ended_as,
    }


def _answer(row: sa.RowMapping) -> StoredAnswer:
    return StoredAnswer(
        uid=row["uid"],
        key=row["result_key"],
        text=row["query_text"],
        text_digest=row["text_digest"],
        tables=from_json(tuple[Leaf, ...], row["tables_read"]),
        settings=from_json(dict[str, str], row["settings"]),
        written=from_json(WrittenAnswer, row["written"]),
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
        expires_at=row["expires_at"],
        latest_at=row["latest_at"],
        ended_at=row["ended_at"],
        ended_as=None if row["ended_as"] is None else Why(row["ended_as"]),
    )
