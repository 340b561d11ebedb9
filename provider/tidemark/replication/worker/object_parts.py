"""Parts of the lists of a replication's objects and of a source's tables, those that need somebody first."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from tidemark.control.cursors import Key, Listed, Part
from tidemark.replication.model.replication import ObjectState
from tidemark.replication.model.source_discovery import DiscoveredTable
from tidemark.replication.worker.status import ObjectStatus

__all__ = ["Urgency", "part_of_objects", "part_of_tables", "urgency"]


class Urgency(IntEnum):
    """The state to report of an object, the worst first."""

    FAILED = 0  # its last backfill or apply
    NEEDS_BACKFILL = 1  # it needs a backfill that nobody has requested
    UNSUPPORTED = 2
    ACTIVE = 3  # it is being backfilled
    PENDING = 4
    BEHIND = 5
    CURRENT = 6
    LEFT = 7  # the selection or the source no longer has it


def urgency(status: ObjectStatus) -> Urgency:
    """The worst that holds of the object. A needed backfill that is requested or active does not count: it repairs the
    object.
    """
    one = status.object
    if not one.selected:
        return Urgency.LEFT
    holds = {
        Urgency.FAILED: one.state is ObjectState.FAILED or _failed_otherwise(status),
        Urgency.LEFT: one.gone and not status.behind,
        Urgency.UNSUPPORTED: one.state is ObjectState.UNSUPPORTED,
        Urgency.ACTIVE: one.state is ObjectState.ACTIVE,
        Urgency.PENDING: one.state is ObjectState.PENDING,
        Urgency.NEEDS_BACKFILL: one.needs_backfill is not None,
        Urgency.BEHIND: status.behind,
    }
    return next((found for found, so in holds.items() if so), Urgency.CURRENT)


def _worst_first(one: ObjectStatus) -> Key:
    return int(urgency(one)), one.object.name.schema, one.object.name.table


_WORST_FIRST = Listed("objects of a replication", (int, str, str), _worst_first)
"""The order of a replication's objects; equally urgent ones by name."""


def part_of_objects(
    objects: Sequence[ObjectStatus], search: str, part: Part
) -> tuple[int, tuple[ObjectStatus, ...], str | None]:
    """That part of those whose name or target holds `search` in any case, the worst first. How many they are comes
    before it, and the cursor for what follows after it. Raises CursorInvalid.
    """
    folded = search.casefold()
    found = [one for one in objects if folded in f"{one.object.name.text}\n{one.object.target.name}".casefold()]
    return len(found), *_WORST_FIRST.taken(found, part)


def part_of_tables(
    tables: Sequence[DiscoveredTable], search: str, part: Part
) -> tuple[int, tuple[DiscoveredTable, ...], str | None]:
    """The same of the tables of a source, by their names. Tables that cannot be replicated come first."""
    folded = search.casefold()
    found = [one for one in tables if folded in one.name.text.casefold()]
    return len(found), *_UNFIT_FIRST.taken(found, part)


def _unfit_first(one: DiscoveredTable) -> Key:
    return int(one.fits), one.name.schema, one.name.table


_UNFIT_FIRST = Listed("tables of a source", (int, str, str), _unfit_first)


def _failed_otherwise(status: ObjectStatus) -> bool:
    """Its apply met a problem that is not told already."""
    one = status.object
    return one.problem not in (None, one.needs_backfill) and one.state is not ObjectState.UNSUPPORTED
