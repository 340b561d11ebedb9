"""Columns of sources that give them no numbers: one that came while a hidden one went may be that one, renamed.

A look at the catalog remembers such a column like one that was renamed, so it stays hidden. Between two looks the log
and copies leave it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import FoundObject, ObjectName, Shown, TableSchema
from tidemark.replication.planning.showing import most_hidden, shown

__all__ = ["held_now", "unknown_columns", "unsure_columns"]


def held_now(
    held: Mapping[str, tuple[HeldColumn, ...]], known: Mapping[str, Collection[str]], found: Sequence[FoundObject]
) -> Mapping[str, tuple[HeldColumn, ...]]:
    """The hidden columns as of this look, by source id. `held`: of the look before; `known`: all names until then."""
    carried = {
        one.source_id: _carried(held[one.source_id], known.get(one.source_id, ()), one.schema)
        for one in found
        if one.folds_columns and held.get(one.source_id)
    }
    return {**held, **carried}


def unsure_columns(
    rules: ColumnRules, of: ObjectName, schema: TableSchema, known: Iterable[str], *, there: Iterable[str] = ()
) -> frozenset[str]:
    """Names of columns that may be a hidden one and that no rule hides. `known`: names of before. `there`: more names
    that the table has, so that a hidden column of such a name is not gone.
    """
    names = (column.name for column in schema.columns)
    if not rules.by_name or not _lost(rules.held, (*names, *there)):
        return frozenset()
    unknown = unknown_columns(schema, (*known, *(one.column for one in rules.held if one.column is not None)))
    keys = set(schema.keys)
    return frozenset(name for name in unknown if shown(rules, of, name, key=name in keys) is Shown.PLAIN)


def unknown_columns(schema: TableSchema, known: Iterable[str]) -> tuple[str, ...]:
    """Names of its columns that nobody knows, in any case of letters."""
    folded = {name.casefold() for name in known}
    return tuple(column.name for column in schema.columns if column.name.casefold() not in folded)


def _carried(held: tuple[HeldColumn, ...], known: Collection[str], schema: TableSchema) -> tuple[HeldColumn, ...]:
    """With each unknown column under all names of those that are gone."""
    lost = _lost(held, (column.name for column in schema.columns))
    if not lost:
        return held
    names = tuple(dict.fromkeys(name for one in lost for name in one.names))
    how = most_hidden(one.shown for one in lost)
    return (*held, *(HeldColumn(0, names, how, column=name) for name in unknown_columns(schema, known)))


def _lost(held: Iterable[HeldColumn], there: Iterable[str]) -> list[HeldColumn]:
    folded = {name.casefold() for name in there}
    return [one for one in held if one.column is not None and one.column.casefold() not in folded]
