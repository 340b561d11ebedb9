"""The ties of landing tables: rows that channels commit are rows of the table itself."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from tidemark.channels.store.landing_tables import live
from tidemark.control.ties import Flow, TableAt, Tie

__all__ = ["landing_ties"]


def landing_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The table of each. One query."""
    return tuple(Tie(uid, Flow.WRITES, TableAt(one.name, one.path)) for uid, one in live(connection).items())
