"""Columns of a relation in the log that the lake has hidden, or not at all.

A relation has names, and a column is hidden by its number. The column is left out if its number is not sure, since a
name moved, and the object has hidden columns. A value that is in the lake cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tidemark.replication.model.replication import Column, Shown, TableSchema, TypeKind, UnifiedType
from tidemark.replication.planning.events import TextOf
from tidemark.replication.planning.hiding import MASK
from tidemark.replication.planning.showing import in_the_lake, shown

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject
    from tidemark.replication.sources.postgresql.pgoutput import RelationColumn

__all__ = ["HideOf", "Numbered", "in_the_log", "masked", "with_held"]

HideOf: TypeAlias = "Callable[[RelationColumn, Column], TextOf]"
"""What becomes of the texts of a column of a relation that the lake has hidden."""


@dataclass(frozen=True)
class Numbered:
    """All columns of a relation, with numbers. `unsure`: names of those whose number is not known."""

    schema: TableSchema
    unsure: frozenset[str] = frozenset()


def with_held(base: TableSchema, captured: CapturedObject) -> TableSchema:
    """The known columns of the object, and those of its hidden columns that `base` lacks."""
    known = {column.number for column in base.columns}
    text = UnifiedType(TypeKind.STRING)
    held = [
        Column(one.names[-1], text, "", number=one.number) for one in captured.rules.held if one.number not in known
    ]
    return TableSchema((*base.columns, *held))


def in_the_log(numbered: Numbered, captured: CapturedObject) -> TableSchema:
    """The columns that events have. Without a part of its key that is left out or masked an object has none."""
    kept = [
        in_the_lake(column, how)
        for column in numbered.schema.columns
        if (how := _shown(column, numbered, captured)) is not Shown.EXCLUDED
    ]
    keys = {column.name for column in numbered.schema.columns if column.key}
    if not keys <= {column.name for column in kept if column.shown is not Shown.MASKED}:
        kept = [replace(column, key=False) for column in kept]
    return TableSchema(tuple(kept))


def masked(_: str) -> str:
    """Of any value."""
    return MASK


def _shown(column: Column, numbered: Numbered, captured: CapturedObject) -> Shown:
    unsure = bool(captured.rules.held) and (column.number is None or column.name in numbered.unsure)
    if unsure or column.name in captured.excluded:
        return Shown.EXCLUDED
    return shown(captured.rules, captured.name, column.name, column.number, key=column.key)
