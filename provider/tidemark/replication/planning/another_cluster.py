"""The source is another cluster, as restored from a dump: names of the last look say what ids and numbers do not.

A table or column without its last name may be a hidden one under a new name: it is hidden, or refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.replication import FoundObject, HeldTable, ObjectName, Selection, Shown
from tidemark.replication.planning.kept_out import is_named_exactly
from tidemark.replication.planning.selection import is_included, names_object

__all__ = ["Elsewhere", "LastSeen", "elsewhere", "unsure_tables"]

_MORE = (Shown.PLAIN, Shown.HASHED, Shown.MASKED, Shown.EXCLUDED)


@dataclass(frozen=True)
class LastSeen:
    """An object as it was known in the old cluster. `called`: its table there, `schema.table`. `columns`: number → name
    at the last look, None if there was none. `names`: of the columns that are known in any case.
    """

    uid: str
    source_id: str
    name: ObjectName
    called: str
    columns: Mapping[int, str] | None
    names: Collection[str]
    held: tuple[HeldColumn, ...]


@dataclass(frozen=True)
class Elsewhere:
    """The knowledge of the new cluster, by uids of objects: their tables, and the hidden columns of these. It also has
    the tables that are kept out. An object that the new cluster lacks has no entry. `alike`: those that have id and
    columns as before, as after an upgrade in place.
    """

    ids: Mapping[str, str]
    held: Mapping[str, tuple[HeldColumn, ...]]
    tables: tuple[HeldTable, ...]
    alike: frozenset[str]


def elsewhere(objects: Sequence[LastSeen], tables: Iterable[HeldTable], found: Sequence[FoundObject]) -> Elsewhere:
    """Each object and each excluded table under the name it had last."""
    there = _tables_of(objects, found)
    by_name = {one.name: one.source_id for one in found}
    return Elsewhere(
        ids={uid: one.source_id for uid, one in there.items()},
        held={one.uid: _held(one, there[one.uid]) for one in objects if one.uid in there},
        tables=tuple(replace(one, source_id=by_name[one.name]) for one in tables if one.name in by_name),
        alike=frozenset(one.uid for one in objects if one.uid in there and _is_alike(one, there[one.uid])),
    )


def unsure_tables(
    selection: Selection, objects: Sequence[LastSeen], tables: Iterable[HeldTable], found: Sequence[FoundObject]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tables that were hidden, or had hidden columns, and do not exist under their last name. Beside them the unknown
    tables that would be selected, and may be one of these. ((), ()) where nothing is unsure.
    """
    there, names = _tables_of(objects, found), {one.name for one in found}
    out = [one for one in tables if any(names_object(selection.exclude, name) for name in one.names)]
    lost = {one.called for one in objects if one.held and one.uid not in there}
    lost |= {one.name.text for one in out if one.name not in names}
    known = {one.source_id for one in there.values()}
    known_names = {one.name for one in out}
    new = sorted(
        one.name.text
        for one in found
        if one.source_id not in known
        and one.name not in known_names
        and is_included(selection, one.name)
        and not names_object(selection.exclude, one.name)
        and not is_named_exactly(selection, one.name)
    )
    return (tuple(sorted(lost)), tuple(new)) if lost and new else ((), ())


def _tables_of(objects: Sequence[LastSeen], found: Sequence[FoundObject]) -> Mapping[str, FoundObject]:
    """By the name that a table had last; where that is gone, by the one the object is registered by."""
    texts = {one.name.text: one for one in found}
    there = {one.uid: texts[one.called] for one in objects if one.called in texts}
    taken = {one.source_id for one in there.values()}
    names = {one.name: one for one in found if one.source_id not in taken}
    return {**{one.uid: names[one.name] for one in objects if one.uid not in there and one.name in names}, **there}


def _is_alike(last: LastSeen, there: FoundObject) -> bool:
    now = {column.number: column.name for column in there.schema.columns}
    return last.source_id == there.source_id and last.columns == now


def _held(last: LastSeen, there: FoundObject) -> tuple[HeldColumn, ...]:
    """Hidden columns under the name they had last. If no column has that last name, every unknown column may be the
    hidden one. Columns without numbers have their names there, too.
    """
    named = tuple(one for one in last.held if one.column is not None)
    if named:
        return named
    numbers = {column.name: column.number for column in there.schema.columns if column.number is not None}
    carried: dict[int, HeldColumn] = {}
    lost = []
    for one in last.held:
        if last.columns is not None and one.number not in last.columns:
            continue  # it was dropped, and the new log has nothing of it
        names = one.names if last.columns is None else (last.columns[one.number],)
        number = next((numbers[name] for name in names if name in numbers), None)
        if number is None:
            lost.append(one)
        else:
            carried[number] = replace(one, number=number)
    if lost:
        names = tuple(dict.fromkeys(name for one in lost for name in one.names))
        shown = max((one.shown for one in lost), key=_MORE.index)
        known = set(last.names if last.columns is None else last.columns.values())
        new = (number for name, number in numbers.items() if name not in known and number not in carried)
        carried.update({number: HeldColumn(number, names, shown) for number in new})
    return tuple(carried[number] for number in sorted(carried))
