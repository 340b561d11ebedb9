"""The result of a look at the catalog for an object's rows and names: a needed backfill, or a notice for somebody.

The look before is kept with the object, and a backfill puts the catalog of its snapshot in its place. So each change is
judged once, and one that a copy has seen already is no change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.replication.model.catalog import SeenColumn, SeenTable
from tidemark.replication.model.replication import (
    Actor,
    FoundObject,
    ObjectState,
    Replication,
    Shown,
    TableSchema,
    WriteMode,
)
from tidemark.replication.planning.lifecycle import ObjectAct
from tidemark.replication.planning.seen_tables import (
    carried,
    hidden,
    parts_notices,
    unlogged_notices,
    why_lacking,
    why_unlike,
)
from tidemark.replication.planning.showing import rules_of, shown, shown_otherwise
from tidemark.replication.planning.unmatched import hiding_patterns, unmatched_notices
from tidemark.replication.planning.unnumbered import unknown_columns
from tidemark.replication.store import object_writes, replicated_objects
from tidemark.replication.store.object_writes import WriteKind
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.worker.gaps import missed
from tidemark.replication.worker.transitions import transition_object

__all__ = ["GONE", "LEFT_IN_ROWS", "CatalogChanges"]

GONE = "the source no longer shows it: it was dropped, or became a partition; its target stays as it is"
RENAMED = "its table is called {name} in the source now; its target keeps its name"
TAKEN = (
    ", and another table is called {name} there, which is not replicated. Drop or exclude the renamed table, then"
    " request a backfill of {name}"
)
NEW_BESIDE_HIDDEN = "column {name} is new and replicated as it is, and other columns of the table are hidden"
ENTERED_ANEW = "publication {publication} was altered: changes of the table in between may not be in the event log"
HIDDEN_OTHERWISE = "columns are hidden otherwise than before ({columns}); its rows have them as they were"
LEFT_IN_ROWS = (
    HIDDEN_OTHERWISE
    + ", and a backfill would not change them, since its target is append-only. Change or delete them there"
)


@dataclass(frozen=True)
class CatalogChanges:
    """`tables`: what the catalog has, by source id; `renamed`: object → the name of its table now; `taken`: names that
    another table has.
    """

    connection: sa.Connection
    store: ControlStore
    replication: Replication
    by: Actor
    tables: Mapping[str, SeenTable]
    renamed: Mapping[str, str]
    taken: Sequence[str]

    def register(self, uid: str, found: FoundObject) -> None:
        """A first look at an object."""
        stored, now = replicated_objects.by_uid(self.connection, uid), self.tables.get(found.source_id)
        notices = (*found.notices, *self._that_hide_nothing(found))
        self._keep(stored, found, None if now is None else carried(None, now), notices)

    def compare(self, stored: StoredObject, found: FoundObject) -> None:
        """`stored`: as it was before the look. If no earlier look is known, nothing is compared."""
        one, now = stored.object, self.tables.get(found.source_id)
        there = one.selected and not one.gone and one.state is not ObjectState.UNSUPPORTED and not found.unsupported
        same = there and one.source_id == found.source_id
        before = stored.seen if same else None
        seen = None if now is None else carried(before, now)
        notices = [*found.notices, *self._named(found), *self._that_hide_nothing(found)]
        if same:
            notices += self._hidden_otherwise(stored, found)
        if before is not None and seen is not None:
            self._mark_entered_anew(stored, before, seen)
            seen = self._judged(stored, found, before, seen)
        if same and found.folds_columns:
            notices += self._new_names(stored, found)
        elif before is not None and seen is not None:
            notices += self._new_beside_hidden(found, before, seen)
        if seen is not None:
            notices += [*unlogged_notices(seen), *(() if _is_empty(stored) else parts_notices(seen))]
        self._keep(stored, found, seen, notices)

    def lose(self, stored: StoredObject, *notices: str) -> None:
        """There is nothing to look at. Which columns are hidden is kept, for events that are still to come."""
        replicated_objects.record_discovery(self.connection, stored, seen=None, held=stored.held, notices=notices)

    def _keep(self, stored: StoredObject, found: FoundObject, seen: SeenTable | None, notices: Sequence[str]) -> None:
        kept = None if seen is None else hidden(seen, lambda one: self._shown(found, one) is Shown.PLAIN)
        replicated_objects.record_discovery(self.connection, stored, seen=kept, held=found.held, notices=notices)

    def _shown(self, found: FoundObject, column: SeenColumn) -> Shown:
        by_name = self.replication.kind.folds_columns
        rules = rules_of(self.replication.selection, self.replication.options, found.held, by_name=by_name)
        key = column.name in found.schema.keys
        return shown(rules, found.name, column.name, column.number, key=key)

    def _judged(self, stored: StoredObject, found: FoundObject, before: SeenTable, seen: SeenTable) -> SeenTable:
        """`seen`, as it is kept. Events from before a change may not be captured yet, so a target without rows is
        judged once it has an event. A first copy comes after the change. Rows of an append-only target are as they were
        when they came.
        """
        if stored.object.mode is WriteMode.APPEND_ONLY:
            return seen
        why = why_unlike(before, seen, lambda one: self._shown(found, one) in (Shown.PLAIN, Shown.HASHED))
        if _is_empty(stored) and why_lacking(before, seen) is None:
            return seen if stored.object.applied is None else replace(seen, unsure=before.unsure or why)
        if before.unsure is not None:
            self._mark_missed(stored, before.unsure)
        if why is not None:
            self._mark(stored, why)
        return seen

    def _mark(self, stored: StoredObject, why: str) -> None:
        """A copy that is under way begins again, as its snapshot may be from before the change. A copy that is only
        requested comes after the change.
        """
        one = replicated_objects.by_uid(self.connection, stored.object.uid).object
        write = object_writes.open_one(self.connection, one.uid)
        copying = write is not None and write.kind is WriteKind.BACKFILL
        if one.applied is None and not copying:
            return
        active = one.state is ObjectState.ACTIVE
        act = ObjectAct.RESTART if active else ObjectAct.REQUEST if one.state is ObjectState.PENDING else ObjectAct.STOP
        transition_object(
            self.connection, self.store, one, act, by=self.by, give_up=copying, needs_backfill=why, called="change"
        )

    def _mark_entered_anew(self, stored: StoredObject, before: SeenTable, now: SeenTable) -> None:
        """An existing publication may have been without the table between two looks."""
        if before.entry is not None and now.entry != before.entry:
            self._mark_missed(stored, ENTERED_ANEW.format(publication=self.replication.publication))

    def _mark_missed(self, stored: StoredObject, why: str) -> None:
        """The object as it is now, since an earlier mark of this look may have moved it."""
        again = replicated_objects.by_uid(self.connection, stored.object.uid)
        missed(self.connection, self.store, self.replication, again, why, by=self.by)

    def _hidden_otherwise(self, stored: StoredObject, found: FoundObject) -> tuple[str, ...]:
        """Columns that existed at the last look, and are hidden otherwise now. A backfill leaves the rows of an
        append-only target, so it is not requested.
        """
        numbers = {one.number for one in (stored.seen.columns if stored.seen else stored.object.schema.columns)}
        there = stored.column_names if found.folds_columns else numbers
        other = ", ".join(shown_otherwise(stored.held, found, there))
        if not other:
            return ()
        if stored.object.mode is WriteMode.APPEND_ONLY:
            return (LEFT_IN_ROWS.format(columns=other),) if stored.object.writes else ()
        self._mark_missed(stored, HIDDEN_OTHERWISE.format(columns=other))
        return ()

    def _new_beside_hidden(self, found: FoundObject, before: SeenTable, now: SeenTable) -> tuple[str, ...]:
        known = {one.number for one in before.columns}
        return tuple(
            NEW_BESIDE_HIDDEN.format(name=one.name)
            for one in now.columns
            if found.held and one.number not in known and self._shown(found, one) is Shown.PLAIN
        )

    def _new_names(self, stored: StoredObject, found: FoundObject) -> tuple[str, ...]:
        """Of a source without numbers of columns, until the log has an event of the column."""
        plain = TableSchema(tuple(one for one in found.schema.columns if one.shown is Shown.PLAIN))
        new = unknown_columns(plain, stored.column_names) if found.held else ()
        return tuple(NEW_BESIDE_HIDDEN.format(name=name) for name in new)

    def _that_hide_nothing(self, found: FoundObject) -> tuple[str, ...]:
        """Landed events do not show all columns of a table."""
        if self.replication.kind.is_landed or found.unsupported is not None:
            return ()
        patterns = hiding_patterns(self.replication.selection, self.replication.options)
        return tuple(unmatched_notices(patterns, found))

    def _named(self, found: FoundObject) -> tuple[str, ...]:
        name = self.renamed.get(found.name.text)
        if name is None:
            return ()
        taken = TAKEN.format(name=found.name.text) if found.name.text in self.taken else ""
        return (RENAMED.format(name=name) + taken,)


def _is_empty(stored: StoredObject) -> bool:
    """Whether the target can get a row only of events that are not captured yet. Nothing was ever written to it, or
    only the copy of an empty table.
    """
    one = stored.object
    copied_nothing = one.snapshot is not None and one.progress is not None and one.progress.done == 0
    return stored.changed_until is None and (one.writes == 0 or copied_nothing)
