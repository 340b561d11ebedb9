"""Refreshes in the store: planned ahead, decided on, ended, and kept as the history of a view."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step, drop_by_number
from tidemark.materialized.model.definitions import RefreshMode
from tidemark.materialized.model.refreshes import Measured, Refresh, RefreshState
from tidemark.materialized.store.schema import view_refreshes
from tidemark.model.codec import to_json
from tidemark.model.statements import RefreshHow

__all__ = [
    "decide",
    "drop_refreshes",
    "end_refresh",
    "fail_refresh",
    "find_refresh",
    "history",
    "is_idle",
    "measured",
    "move_ends",
    "newest_seconds",
    "plan_refresh",
    "wave_of",
]

_of = view_refreshes.c
_WAVES = 100  # the newest of a view, of which a task may begin one again
_SECONDS_OF = 5  # refreshes that forecast the next one
_REMEMBERED = 20  # writes; a way that none of them took is tried again if its estimate is the smaller one


def plan_refresh(connection: sa.Connection, refresh: Refresh) -> Refresh:
    """The refresh, written ahead; the one that the run has planned for the view before, if it has."""
    kept = find_refresh(connection, refresh.view_uid, refresh.run)
    if kept is not None:
        return kept
    connection.execute(
        view_refreshes.insert().values(
            view_uid=refresh.view_uid,
            run=refresh.run,
            moved_at=refresh.planned_at,
            as_of=refresh.as_of,
            level=refresh.level,
            ends=to_json(refresh.ends),
            asked=refresh.asked.value,
            state=refresh.state.value,
        )
    )
    return refresh


def find_refresh(connection: sa.Connection, view_uid: str, run: str) -> Refresh | None:
    """The refresh of the view that the run has planned; None if it has none."""
    query = sa.select(view_refreshes).where(_of.view_uid == view_uid, _of.run == run)
    row = connection.execute(query).mappings().first()
    return None if row is None else _of_row(row)


def wave_of(connection: sa.Connection, run: str) -> tuple[Refresh, ...]:
    """All refreshes that the run has planned, by level."""
    query = sa.select(view_refreshes).where(_of.run == run).order_by(_of.level, _of.id)
    return tuple(_of_row(row) for row in connection.execute(query).mappings())


def decide(
    connection: sa.Connection,
    refresh: Refresh,
    *,
    how: RefreshHow,
    why: str,
    incremental_bytes: int | None,
    full_bytes: int,
) -> bool:
    """Keep the choice of a way; True if the refresh has not ended. A later choice replaces it."""
    estimates = {"incremental_bytes": incremental_bytes, "full_bytes": full_bytes}
    return _change(connection, refresh, how=how.value, why=why, **estimates)


def end_refresh(connection: sa.Connection, ended: Refresh) -> bool:
    """The refresh has ended well, as `ended` says; True if it had not before."""
    return _change(
        connection,
        ended,
        state=ended.state.value,
        ended_at=ended.ended_at,
        rows=ended.rows,
        bytes=ended.bytes,
        seconds=ended.seconds,
        write_seconds=ended.write_seconds,
        versions=to_json(ended.versions),
        kept_version=ended.kept_version,
        error=None,
    )


def fail_refresh(connection: sa.Connection, refresh: Refresh, *, error: str, at: datetime) -> bool:
    """An attempt has failed; True if the refresh has not ended well before. Another attempt may end it."""
    return _change(connection, refresh, state=RefreshState.FAILED.value, error=error, ended_at=at)


def move_ends(connection: sa.Connection, view_uid: str, paths: Mapping[str, str]) -> None:
    """Tables of the view are at other paths: the waves that have not ended end there at the same versions. A second run
    changes nothing.
    """
    ended = (RefreshState.DONE.value, RefreshState.UNCHANGED.value)
    mine = sa.select(_of.id, _of.ends).where(_of.view_uid == view_uid, _of.state.not_in(ended))
    for row in connection.execute(mine.order_by(_of.id.desc()).limit(_WAVES)).all():
        ends = {paths.get(path, path): version for path, version in json.loads(row.ends).items()}
        connection.execute(view_refreshes.update().where(_of.id == row.id).values(ends=to_json(ends)))


def history(connection: sa.Connection, view_uids: Sequence[str], limit: int) -> tuple[Refresh, ...]:
    """The newest refreshes of the views, newest first."""
    query = sa.select(view_refreshes).where(_of.view_uid.in_(view_uids)).order_by(_of.id.desc()).limit(limit)
    return tuple(_of_row(row) for row in connection.execute(query).mappings())


def is_idle(connection: sa.Connection, view_uid: str) -> bool:
    """Whether the newest refresh of the view has ended well."""
    return any(one.state in (RefreshState.DONE, RefreshState.UNCHANGED) for one in history(connection, [view_uid], 1))


def newest_seconds(connection: sa.Connection, view_uid: str) -> tuple[float, ...]:
    """The seconds that the last refreshes of the view took, newest first; of those that wrote."""
    wrote = sa.select(_of.seconds).where(_of.view_uid == view_uid, _of.seconds.is_not(None))
    return tuple(connection.execute(wrote.order_by(_of.id.desc()).limit(_SECONDS_OF)).scalars())


def measured(connection: sa.Connection, view_uid: str) -> tuple[Measured, ...]:
    """The last writes of the view whose seconds and estimates are known, newest first. The first of all is left out:
    its estimate lacks the kept rows, which did not exist.
    """
    first = sa.select(sa.func.min(_of.id)).where(_of.view_uid == view_uid, _of.state == RefreshState.DONE.value)
    timed = sa.select(_of.how, _of.write_seconds, _of.incremental_bytes, _of.full_bytes).where(
        _of.view_uid == view_uid,
        _of.write_seconds.is_not(None),
        _of.how.is_not(None),
        _of.id > first.scalar_subquery(),
    )
    found = []
    for row in connection.execute(timed.order_by(_of.id.desc()).limit(_REMEMBERED)):
        how = RefreshHow(row.how)
        estimated = row.full_bytes if how is RefreshHow.WHOLE else row.incremental_bytes
        if estimated:
            found.append(Measured(how, estimated, row.write_seconds))
    return tuple(found)


def drop_refreshes(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Refreshes that later ones of the same view have followed."""
    return drop_by_number(connection, view_refreshes, _of.view_uid, before, after, most)


def _change(connection: sa.Connection, refresh: Refresh, **values: Any) -> bool:
    ended = (RefreshState.DONE.value, RefreshState.UNCHANGED.value)
    standing = view_refreshes.update().where(
        _of.view_uid == refresh.view_uid, _of.run == refresh.run, _of.state.not_in(ended)
    )
    return connection.execute(standing.values(**values)).rowcount == 1


def _of_row(row: sa.RowMapping) -> Refresh:
    return Refresh(
        view_uid=row["view_uid"],
        run=row["run"],
        planned_at=row["moved_at"],
        as_of=row["as_of"],
        asked=RefreshMode(row["asked"]),
        level=row["level"],
        ends=json.loads(row["ends"]),
        state=RefreshState(row["state"]),
        how=None if row["how"] is None else RefreshHow(row["how"]),
        why=row["why"],
        incremental_bytes=row["incremental_bytes"],
        full_bytes=row["full_bytes"],
        rows=row["rows"],
        bytes=row["bytes"],
        seconds=row["seconds"],
        write_seconds=row["write_seconds"],
        versions={} if row["versions"] is None else json.loads(row["versions"]),
        kept_version=row["kept_version"],
        ended_at=row["ended_at"],
        error=row["error"],
    )
