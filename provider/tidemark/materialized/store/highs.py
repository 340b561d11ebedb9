"""The highest lags of views in the past, by their newest refreshes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.newest import newest_of_each
from tidemark.control.usual_lags import NEWEST, between
from tidemark.materialized.model.refreshes import RefreshState
from tidemark.materialized.store.schema import view_refreshes

__all__ = ["view_highs"]

_of = view_refreshes.c
_ENDED = (RefreshState.DONE.value, RefreshState.UNCHANGED.value)


def view_highs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """The age of the point that each view showed just before a refresh ended."""
    query = sa.select(_of.view_uid.label("uid"), _of.ended_at.label("at"), _of.as_of).where(
        _of.state.in_(_ENDED), _of.ended_at.is_not(None)
    )
    found = newest_of_each(connection, query, uids, of=_of.view_uid, order=(_of.id,), most=NEWEST)
    return {uid: between((row["at"], row["as_of"]) for row in rows) for uid, rows in found.items()}
