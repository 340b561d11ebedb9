"""Old rows of the result cache, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step
from tidemark.results.store.cached_results import drop_old

__all__ = ["drop_answers"]


def drop_answers(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Drop rows of answers whose files were removed before then. A second run finds none."""
    dropped = drop_old(connection, before, most)
    return Step(dropped, ("",) if dropped == most else None)
