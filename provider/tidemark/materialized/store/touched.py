"""The kept queries that tasks have refreshed."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidemark.control.run_keys import RunPart
from tidemark.materialized.store.schema import view_refreshes

__all__ = ["views_of_runs"]

_of = view_refreshes.c


def views_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, str]:
    """The views whose refreshes these tasks planned, by uid, with the state of the newest. One query."""
    columns = (_of.view_uid, _of.state, _of.how, _of.rows)
    rows = connection.execute(sa.select(*columns).where(part.has(_of.run)).order_by(_of.id))
    return {row.view_uid: _words(row.state, row.how, row.rows) for row in rows}


def _words(state: str, how: str | None, rows: int | None) -> str:
    said = (f"refresh {state}", how, None if rows is None else f"{rows} rows")
    return ", ".join(one for one in said if one is not None)
