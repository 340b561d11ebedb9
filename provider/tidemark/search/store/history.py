"""The history of upkeeps, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step
from tidemark.search.store.schema import upkeeps

__all__ = ["drop_upkeeps"]


def drop_upkeeps(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Delete the history of commits before then. The newest one of each search stays. A second run finds none."""
    newer = upkeeps.alias("newer")
    followed = sa.exists().where(newer.c.search_uid == upkeeps.c.search_uid, newer.c.version > upkeeps.c.version)
    old = sa.select(upkeeps.c.search_uid, upkeeps.c.version).where(upkeeps.c.at < before, followed)
    rows = list(connection.execute(old.order_by(upkeeps.c.search_uid, upkeeps.c.version).limit(most)))
    for uid, version in rows:
        connection.execute(upkeeps.delete().where(upkeeps.c.search_uid == uid, upkeeps.c.version == version))
    return Step(len(rows), ("",) if len(rows) == most else None)
