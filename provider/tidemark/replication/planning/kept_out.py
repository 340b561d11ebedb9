"""Tables that stay out under another name: one that an exclude names is remembered by its id.

It stays out while an exclude names any of its former names. An include of its present name, without a `*`, ends that,
too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tidemark.replication.model.replication import FoundObject, HeldTable, ObjectName, Selection
from tidemark.replication.planning.patterns import parts_of
from tidemark.replication.planning.selection import is_included, names_object

__all__ = ["held_tables", "is_named_exactly", "kept_out_notices", "without_renamed"]


def held_tables(
    selection: Selection, before: Iterable[HeldTable], found: Iterable[FoundObject], known: Mapping[str, ObjectName]
) -> tuple[HeldTable, ...]:
    """The tables to be remembered from now on: existing tables that an exclude names, by their name or a former one.
    `known`: the names by which objects are registered, by source id.
    """
    names_before = {one.source_id: one.names for one in before}
    kept = []
    for one in found:
        registered = (known[one.source_id],) if one.source_id in known else ()
        names = dict.fromkeys((*names_before.get(one.source_id, ()), *registered, one.name))
        hiding = tuple(name for name in names if names_object(selection.exclude, name))
        if hiding:
            kept.append(HeldTable(one.source_id, one.name, hiding))
    return tuple(sorted(kept, key=lambda one: (one.name, one.source_id)))


def without_renamed(
    selection: Selection, held: Iterable[HeldTable], found: Sequence[FoundObject], known: Collection[str]
) -> tuple[FoundObject, ...]:
    """The tables that can be selected by their name. `known`: source ids of objects, which keep the name they are
    registered by.
    """
    out = {one.source_id for one in held if _stays_out(selection, one)} - set(known)
    return tuple(one for one in found if one.source_id not in out)


def kept_out_notices(selection: Selection, held: Iterable[HeldTable], known: Collection[str]) -> Iterator[str]:
    """Of tables that only a name of before keeps out, as `without_renamed` does."""
    for one in held:
        if one.source_id not in known and _stays_out(selection, one) and is_included(selection, one.name):
            was = ", ".join(name.text for name in one.names if names_object(selection.exclude, name))
            yield (
                f"table {was} is called {one.name.text} now, and stays excluded. Name {one.name.text} in exclude, too,"
                " or in include, by exactly this name, to replicate it"
            )


def is_named_exactly(selection: Selection, name: ObjectName) -> bool:
    """Whether an include names the table itself, or a column of it, and not by a pattern that fits others, too."""
    return any(parts_of(one)[:2] == (name.schema, name.table) for one in selection.include)


def _stays_out(selection: Selection, one: HeldTable) -> bool:
    """Under a name that would not keep it out."""
    if names_object(selection.exclude, one.name) or is_named_exactly(selection, one.name):
        return False
    return any(names_object(selection.exclude, name) for name in one.names)
