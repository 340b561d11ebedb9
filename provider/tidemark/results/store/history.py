"""Old rows of the result cache, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step, step_from_the_start
from tidemark.results.store.schema import cached_results

__all__ = ["drop_answers"]


def drop_answers(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Drop rows of answers whose files were removed before then. A second run finds none."""
    of = cached_results.c
    old = sa.select(of.uid).where(of.removed_at < before).order_by(of.removed_at).limit(most)
    uids = list(connection.execute(old).scalars())
    if uids:
        connection.execute(cached_results.delete().where(of.uid.in_(uids)))
    return step_from_the_start(len(uids), most)
