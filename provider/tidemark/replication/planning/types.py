"""Unified types as Delta's, and what a new schema of an object asks of its target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.replication.model.replication import Column, TableSchema, TypeKind, UnifiedType
from tidemark.replication.planning.native import holds_all

__all__ = ["SchemaChange", "change_of", "decimal_of", "delta_type", "type_text", "widens"]

MOST_DIGITS = 38
_NAMES = {
    TypeKind.BOOLEAN: "BOOLEAN",
    TypeKind.SMALLINT: "SMALLINT",
    TypeKind.INTEGER: "INT",
    TypeKind.LONG: "BIGINT",
    TypeKind.FLOAT: "FLOAT",
    TypeKind.DOUBLE: "DOUBLE",
    TypeKind.STRING: "STRING",
    TypeKind.BYTES: "BINARY",
    TypeKind.DATE: "DATE",
    TypeKind.DATETIME: "TIMESTAMP_NTZ",
    TypeKind.TIMESTAMP: "TIMESTAMP",
    TypeKind.JSON: "STRING",
}
_DIGITS = {"SMALLINT": 10, "INT": 10, "BIGINT": 20}  # before the point, as Delta wants a DECIMAL to have for them
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def decimal_of(kind: UnifiedType) -> tuple[int, int] | None:
    """Precision and scale of a DECIMAL in Delta; None where only text holds every value of it.

    A source may have a negative scale (numeric(3,-2) has five digits), or one above its precision.
    """
    if kind.kind is not TypeKind.DECIMAL or kind.precision is None:
        return None
    scale = kind.scale or 0
    precision = kind.precision - scale if scale < 0 else max(kind.precision, scale)
    return (precision, max(scale, 0)) if precision <= MOST_DIGITS else None


def delta_type(kind: UnifiedType) -> str:
    """The type of a target's column, as SQL writes it."""
    if kind.kind is TypeKind.ARRAY:
        return f"ARRAY<{'STRING' if kind.item is None else delta_type(kind.item)}>"
    if kind.kind is TypeKind.DECIMAL:
        digits = decimal_of(kind)
        return "STRING" if digits is None else "DECIMAL({},{})".format(*digits)
    return _NAMES[kind.kind]


def type_text(kind: UnifiedType) -> str:
    """A unified type as people read it: `decimal(10,2)`, `array<long>`."""
    if kind.kind is TypeKind.ARRAY:
        return f"array<{'string' if kind.item is None else type_text(kind.item)}>"
    if kind.kind is TypeKind.DECIMAL and kind.precision is not None:
        return f"decimal({kind.precision},{kind.scale or 0})"
    return kind.kind.value


def widens(old: str, new: str) -> bool:
    """Whether Delta can make a column of type `old` one of type `new` in place, every value staying what it is."""
    wider = {
        "SMALLINT": ("INT", "BIGINT", "DOUBLE"),
        "INT": ("BIGINT", "DOUBLE"),
        "FLOAT": ("DOUBLE",),
        "DATE": ("TIMESTAMP_NTZ",),
    }
    if new in wider.get(old, ()):
        return True
    to = _DECIMAL.fullmatch(new)
    if to is None:
        return False
    precision, scale = int(to[1]), int(to[2])
    if old in _DIGITS:
        return precision - scale >= _DIGITS[old]
    of = _DECIMAL.fullmatch(old)
    return of is not None and scale >= int(of[2]) and precision - scale >= int(of[1]) - int(of[2])


@dataclass(frozen=True)
class SchemaChange:
    """The change from `old` to `new`. `added` are new, `dropped` are gone. `renamed` and `retyped` are pairs of old and
    new; a column of `retyped` has another type in Delta.

    `needs_backfill`: why the rows of before cannot be known without a backfill; None where they can.
    """

    old: TableSchema
    new: TableSchema
    added: tuple[Column, ...]
    dropped: tuple[Column, ...]
    renamed: tuple[tuple[Column, Column], ...]
    retyped: tuple[tuple[Column, Column], ...]
    needs_backfill: str | None

    @property
    def rekeyed(self) -> bool:
        """Whether rows are known by other columns from here on."""
        return self.old.keys != self.new.keys

    @property
    def is_something(self) -> bool:
        """Whether the events before and after it must be written apart."""
        return bool(self.added or self.dropped or self.renamed or self.retyped or self.rekeyed)


def change_of(old: TableSchema, new: TableSchema, *, keyed: bool = True, empty: bool = False) -> SchemaChange:
    """The difference of two schemas of an object. `keyed`: its target is a mirror by key, so that rows of before count;
    `empty`: there are none.

    Columns are the same by number where both schemas have numbers, else by name. Without numbers a column that came
    while another went may be that one renamed: that needs a backfill. A change of type keeps the values if the new type
    holds them all as they are. Any other change rewrites rows without an event, even if Delta has one type for both:
    that needs a backfill, too. A log does not have the values that a USING clause made. The catalog shows that the rows
    were rewritten (`unknown_fill`), and then they may have any value.
    """
    pairs, added = _paired(old, new)
    kept = {before.name for before, _ in pairs}
    dropped = tuple(column for column in old.columns if column.name not in kept)
    renamed = tuple((before, after) for before, after in pairs if before.name != after.name)
    retyped = tuple((b, a) for b, a in pairs if delta_type(b.type) != delta_type(a.type))
    change = SchemaChange(old, new, added, dropped, renamed, retyped, None)
    needs_backfill = _why_backfill(change, pairs, keyed=keyed, empty=empty)
    return SchemaChange(old, new, added, dropped, renamed, retyped, needs_backfill)


def _paired(old: TableSchema, new: TableSchema) -> tuple[list[tuple[Column, Column]], tuple[Column, ...]]:
    numbered = all(column.number is not None for column in (*old.columns, *new.columns))
    known = {column.number if numbered else column.name: column for column in old.columns}
    pairs, added = [], []
    for column in new.columns:
        before = known.get(column.number if numbered else column.name)
        if before is None:
            added.append(column)
        else:
            pairs.append((before, column))
    return pairs, tuple(added)


def _why_backfill(
    change: SchemaChange, pairs: Sequence[tuple[Column, Column]], *, keyed: bool, empty: bool
) -> str | None:
    rows = keyed and not empty
    if keyed and change.new.replaced:
        return "a statement gave it other rows, which its log does not have"
    for before, after in pairs:
        if (needs_backfill := _why_of_pair(before, after, rows=rows)) is not None:
            return needs_backfill
    if not keyed:
        return None
    if change.old.keys and not change.new.keys:
        return "it no longer has a key"
    return _why_of_old_rows(change) if rows else None


def _why_of_pair(before: Column, after: Column, *, rows: bool) -> str | None:
    """`rows`: rows of before count."""
    if before.shown is not after.shown and (rows or delta_type(before.type) != delta_type(after.type)):
        return f"column {after.name} is {after.shown.value} now, and was {before.shown.value}"
    old, new = delta_type(before.type), delta_type(after.type)
    why = f"column {after.name} changed its type from {before.native} to {after.native}"
    if not (widens(old, new) if old != new else not rows or holds_all(before.native, after.native)):
        return why
    rewritten = before.native != after.native and after.unknown_fill
    return f"{why}, and its rows were rewritten" if rows and rewritten else None


def _why_of_old_rows(change: SchemaChange) -> str | None:
    if change.rekeyed and any(column.key and column.unknown_fill for column in change.new.columns):
        return "its key changed at a time that its log does not show"
    if unknown := [column.name for column in change.added if column.unknown_fill]:
        return f"column {unknown[0]} was added with a default that its log does not have"
    numbered = all(column.number is not None for column in (*change.old.columns, *change.new.columns))
    if change.added and change.dropped and not numbered:
        came, went = change.added[0].name, change.dropped[0].name
        return f"column {came} came when {went} went, which may be one column renamed"
    return None
