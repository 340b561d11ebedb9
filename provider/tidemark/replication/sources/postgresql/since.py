"""The changes of a table since somebody looked at it last: the values of rows that are older than a column."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tidemark.replication.planning.seen_tables import carried, was_rewritten
from tidemark.replication.sources.postgresql.texts import canonical_of

if TYPE_CHECKING:
    from tidemark.replication.model.catalog import SeenTable
    from tidemark.replication.model.replication import Column
    from tidemark.replication.sources.postgresql.pgoutput import Relation

__all__ = ["Fill", "Since"]


class Fill(NamedTuple):
    """`text`: canonical, None for NULL; `sure`: whether all such rows have it."""

    text: str | None
    sure: bool


class Since:
    """`before`: the look that the store knows; `now`: the table as it is. Without either nothing is known."""

    def __init__(self, before: SeenTable | None, now: SeenTable | None, relation: Relation) -> None:
        self._before, self._now = before, now
        self._types = {one.name: (str(one.type_oid), one.typmod) for one in relation.columns}

    @property
    def rewritten(self) -> bool:
        """Whether rows of it have been written again, perhaps with other values."""
        return self._before is not None and self._now is not None and was_rewritten(self._before, self._now)

    def fill_of(self, column: Column) -> Fill | None:
        """Of a column of the relation that is new in the log; None where the looks tell nothing of it."""
        seen = None if self._carried is None else self._carried.column(column.number)
        if seen is None:
            return None
        if self._types.get(column.name) != (seen.type, seen.modifier):
            return Fill(None, sure=False)
        if not seen.fills:
            return Fill(None, seen.known)
        convert = canonical_of(column)
        return Fill(seen.fills[0] if convert is None else convert(seen.fills[0]), seen.known)

    @cached_property
    def _carried(self) -> SeenTable | None:
        return None if self._before is None or self._now is None else carried(self._before, self._now)
