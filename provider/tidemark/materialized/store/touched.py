"""The kept queries that tasks have refreshed, and the task that refreshed each last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tidemark.control.newest import newest_value, values_of_each
from tidemark.control.run_keys import RunPart, Touch
from tidemark.materialized.model.refreshes import RefreshState
from tidemark.materialized.store.schema import kept_views, view_refreshes

__all__ = ["view_runs", "views_of_runs"]

_of = view_refreshes.c


def view_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task that planned the newest refresh of each view. One query."""
    own = kept_views.c.uid
    return values_of_each(connection, own, uids, newest_value(_of.run, _of.view_uid == own, of=own, order=_of.id))


def views_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The views whose refreshes these tasks planned, by uid, with the state of the newest and the reason of its way.
    One query.
    """
    columns = (_of.view_uid, _of.state, _of.how, _of.rows, _of.why, _of.error, _of.incremental_bytes, _of.full_bytes)
    rows = connection.execute(sa.select(*columns).where(part.has(_of.run)).order_by(_of.id))
    return {row.view_uid: Touch(_words(row.state, row.how, row.rows), _why(row)) for row in rows}


def _words(state: str, how: str | None, rows: int | None) -> str:
    said = (f"refresh {state}", how, None if rows is None else f"{rows} rows")
    return ", ".join(one for one in said if one is not None)


def _why(row: Any) -> str | None:
    """The reason of the way, with the estimates by which it was chosen; of a failure its error."""
    if row.error is not None:
        return str(row.error)
    if row.state == RefreshState.UNCHANGED.value:
        return "no base has changed, so no job was run"
    if row.why is None or row.full_bytes is None:
        return None if row.why is None else str(row.why)
    changes = "" if row.incremental_bytes is None else f"{row.incremental_bytes:,} bytes by its changes, "
    return f"{row.why}; estimated: {changes}{row.full_bytes:,} bytes in full"
