"""The history of upkeeps, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step, step_from_the_start
from tidemark.search.store.schema import upkeeps

__all__ = ["drop_upkeeps"]


def drop_upkeeps(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Delete the history of commits before then. The newest one of each search stays. A second run finds none."""
    key = (upkeeps.c.search_uid, upkeeps.c.version)
    newer = upkeeps.alias("newer")
    followed = sa.exists().where(newer.c.search_uid == upkeeps.c.search_uid, newer.c.version > upkeeps.c.version)
    old = sa.select(*key).where(upkeeps.c.at < before, followed).order_by(*key).limit(most)
    rows = [tuple(row) for row in connection.execute(old)]
    if rows:
        connection.execute(upkeeps.delete().where(sa.tuple_(*key).in_(rows)))
    return step_from_the_start(len(rows), most)
