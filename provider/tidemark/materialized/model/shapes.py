"""The shapes in which a query's result is kept, and the ways in which a refresh writes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidemark.model.views import KEPT, KEPT_ROW_ID, ViewQuery

__all__ = ["KEPT", "KEPT_ROW_ID", "KeptShape", "Shape"]


class Shape(StrEnum):
    """The content of the kept table."""

    ROWS = "rows"  # the rows of the query and KEPT_ROW_ID; a refresh merges by it
    SUMS = "sums"  # signed partial aggregates, appended by each refresh
    PLAIN = "plain"  # the rows of a query whose changes cannot be computed; each refresh writes all


@dataclass(frozen=True)
class KeptShape:
    """The way in which the rows of one query are kept.

    `followed`: the query whose changes a refresh reads. For SUMS that is the query below the aggregation, else the
    query itself. `sums`: for SUMS, a SELECT of partial aggregates from KEPT. That means the rows of `followed` with a
    column `tidemark_sign` (+1, −1). `read`: a SELECT of the query's columns from the kept table, named KEPT.
    `why`: the reason for PLAIN with its place in the text, or for recomputed groups; None for none. `query`: the query
    itself if it is not `followed`. `runtime_value`: the first part of a PLAIN query or of its views whose
    value is that of its time or session. None: its rows change with its bases alone.
    """

    shape: Shape
    followed: ViewQuery
    read: str
    sums: str | None = None
    why: str | None = None
    query: ViewQuery | None = None
    runtime_value: str | None = None

    @property
    def whole(self) -> ViewQuery:
        """The query itself."""
        return self.query or self.followed

    @property
    def why_in_full(self) -> str | None:
        """The reason why each refresh writes all rows; None if changes may do."""
        return self.why if self.shape is Shape.PLAIN else None

    @property
    def note(self) -> str | None:
        """The way in which changes are kept, if that is not the usual one."""
        return None if self.shape is Shape.PLAIN else self.why
