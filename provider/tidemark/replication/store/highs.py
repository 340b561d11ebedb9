"""The highest lags of replications and of their tables in the past, by their newest captures and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.newest import newest_of_each
from tidemark.control.samples import newest_figures
from tidemark.control.usual_lags import NEWEST, between
from tidemark.replication.store.object_writes import WriteState
from tidemark.replication.store.schema import object_writes

__all__ = ["replication_highs", "table_highs"]

_write = object_writes.c


def replication_highs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """The age of the captured state just before each capture that brought events ended."""
    return newest_figures(connection, "replication", uids, "lag_seconds")


def table_highs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """The age of the state that each table showed just before an apply or a backfill ended."""
    query = sa.select(_write.object_uid.label("uid"), _write.closed_at.label("at"), _write.as_of).where(
        _write.state == WriteState.DONE.value, _write.closed_at.is_not(None), _write.as_of.is_not(None)
    )
    found = newest_of_each(connection, query, uids, of=_write.object_uid, order=(_write.number,), most=NEWEST)
    return {uid: between((row["at"], row["as_of"]) for row in rows) for uid, rows in found.items()}
