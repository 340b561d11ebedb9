"""Defaults of columns: constants, and the present."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from sqlglot import exp

from tidemark.channels.model.columns import Column, Kind
from tidemark.channels.planning.columns import ColumnRefused
from tidemark.channels.planning.values.convert import convert
from tidemark.model.foreign_json import exact_number
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, tree_of

__all__ = ["Default", "default_of"]

_TYPES = {
    exp.DType.DATE: Kind.DATE,
    exp.DType.TIMESTAMP: Kind.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: Kind.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: Kind.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: Kind.TIMESTAMP_NTZ,
}


@dataclass(frozen=True)
class Default:
    """The value of a row without the column. `is_present`: the time of the insert, and `value` does not count."""

    value: Any
    is_present: bool = False

    def at(self, now: datetime, column: Column, zone: tzinfo) -> Any:
        """The value for rows that are inserted now, as `convert` gives it."""
        return convert(now.astimezone(zone), column.type, zone) if self.is_present else self.value


def default_of(column: Column, zone: tzinfo) -> Default | None:
    """The default of a column; None for NULL. `zone`: of times without an offset.

    Raises ColumnRefused for an expression that is neither a constant nor the present.
    """
    if column.default is None:
        return None
    try:
        tree = tree_of(column.default, SPARK)
    except SqlNotUnderstood:
        raise _refused(column) from None
    if isinstance(tree, exp.CurrentTimestamp | exp.CurrentDate):
        return Default(None, is_present=True)
    try:
        value = convert(_constant(tree, column), column.type, zone)
    except ValueError:  # of a number beyond all bounds, or a value that does not fit
        raise _refused(column) from None
    return None if value is None else Default(value)


def _constant(tree: exp.Expression, column: Column) -> Any:
    match tree:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(tree.this)
        case exp.Literal():
            return str(tree.this) if tree.is_string else exact_number(str(tree.this))
        case exp.Neg(this=exp.Literal() as number) if not number.is_string:
            return -exact_number(str(number.this))
        case exp.Cast(this=exp.Literal() as text) if text.is_string and _TYPES.get(tree.to.this) is column.type.kind:
            return str(text.this)
        case _:
            raise _refused(column)


def _refused(column: Column) -> ColumnRefused:
    return ColumnRefused(f"column {column.name} has the default {column.default}, which is not a constant")
