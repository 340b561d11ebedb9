"""Answers that a table's log has: the number of rows, and the least and greatest value of a column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from sqlglot import exp

from tidemark.model.file_statistics import exact_statistics, may_be_rounded
from tidemark.model.foreign_json import exact_number, parsed
from tidemark.model.table_log import AddFile, Metadata
from tidemark.results.planning.queries import Query, TableUse
from tidemark.sql.foreign_sql import renames_columns
from tidemark.sql.functions import is_bare_star

__all__ = ["Aggregate", "LogQuery", "NotExact", "answer_of", "log_query", "spark_type"]

_SELECT = frozenset(
    {"expressions", "from_"}
)  # the parts of a tree that the log's answer has; any other part refuses it
_TABLE = frozenset({"this", "db", "catalog", "alias", "version"})
_CALL = frozenset({"this", "big_int"})
_WHOLE = frozenset({"byte", "short", "integer", "long"})
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_EXACT = Context(prec=76, traps=[Inexact, InvalidOperation])  # twice the digits of Spark's decimals
_PHYSICAL = "delta.columnMapping.physicalName"
_REASONS = {
    "string": "the log has the beginnings of texts only",
    "timestamp": "the log has times in whole milliseconds only",
    "timestamp_ntz": "the log has times in whole milliseconds only",
    "float": "a log may leave out NaN, which is greater than any number",
    "double": "a log may leave out NaN, which is greater than any number",
}


class NotExact(ValueError):
    """The reason why the log does not have the answer."""


@dataclass(frozen=True)
class Aggregate:
    """`count`, or `min` or `max` of a column, and the title of its column in the answer."""

    function: str
    column: str | None
    title: str


@dataclass(frozen=True)
class LogQuery:
    """A query of aggregates over one table, without a filter."""

    use: TableUse
    aggregates: tuple[Aggregate, ...]


def log_query(query: Query) -> LogQuery | None:
    """The query in a form that a log may answer; None for any other."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or len(query.uses) != 1 or not _has_only(tree, _SELECT):
        return None
    source = tree.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or not _has_only(source.this, _TABLE):
        return None
    if renames_columns(source.this):
        return None
    found = [_aggregate(node) for node in tree.expressions]
    aggregates = tuple(one for one in found if one is not None)
    return LogQuery(query.uses[0], aggregates) if aggregates and len(aggregates) == len(found) else None


def _has_only(node: exp.Expr, parts: frozenset[str]) -> bool:
    return all(name in parts for name, value in node.args.items() if value)


def _aggregate(node: exp.Expr) -> Aggregate | None:
    title = node.alias if isinstance(node, exp.Alias) else None
    call = node.this if isinstance(node, exp.Alias) else node
    if not _has_only(call, _CALL):
        return None
    if isinstance(call, exp.Count):
        rows = is_bare_star(call.this) or (isinstance(call.this, exp.Literal) and str(call.this.this) == "1")
        return Aggregate("count", None, title or "count(1)") if rows else None
    if not isinstance(call, exp.Min | exp.Max) or not isinstance(call.this, exp.Column):
        return None
    if not isinstance(call.this.this, exp.Identifier) or len(call.this.parts) != 1:
        return None
    function, name = ("min" if isinstance(call, exp.Min) else "max"), call.this.name
    return Aggregate(function, name, title or f"{function}({name})")


def spark_type(aggregate: Aggregate, metadata: Metadata, *, case_sensitive: bool) -> str:
    """The type of the answer's column, as Delta names it. Raises NotExact."""
    return "long" if aggregate.column is None else str(_field(aggregate.column, metadata, case_sensitive)["type"])


def answer_of(
    aggregates: Sequence[Aggregate], metadata: Metadata, files: Iterable[AddFile], *, case_sensitive: bool
) -> tuple[Any, ...]:
    """The values of the aggregates over these files. Raises NotExact."""
    columns = {
        one.column: _Column.of(_field(one.column, metadata, case_sensitive), metadata)
        for one in aggregates
        if one.column is not None
    }
    rows, extremes = 0, {name: _Extremes() for name in columns}
    for file in files:
        stats = _statistics(file)
        live = _live_rows(file, stats)
        rows += live
        for name, column in columns.items():
            extremes[name].take(column, file, stats, live)
    return tuple(rows if one.column is None else extremes[one.column].value(one.function) for one in aggregates)


@dataclass(frozen=True)
class _Column:
    physical: str
    partition: bool
    kind: str

    @classmethod
    def of(cls, field: Mapping[str, Any], metadata: Metadata) -> _Column:
        name, kind = str(field["name"]), field["type"]
        physical = str(field.get("metadata", {}).get(_PHYSICAL, name))
        partition = name in metadata.partition_columns
        known = isinstance(kind, str) and (kind in _WHOLE or kind == "date" or _DECIMAL.fullmatch(kind))
        if not known:
            reason = _REASONS.get(str(kind), "the log has no exact values of its type")
            raise NotExact(f"{name} is of the type {kind if isinstance(kind, str) else kind.get('type')}: {reason}")
        return cls(physical, partition, str(kind))

    def statistic(self, said: Any) -> Any:
        """The value of a statistic. Raises NotExact."""
        decimal = _DECIMAL.fullmatch(self.kind)
        if decimal is not None and isinstance(said, Decimal) and may_be_rounded(said, int(decimal[2])):
            raise NotExact(f"{self.physical} has the statistic {said}, which its writer may have rounded")
        return self.value(said)

    def value(self, said: Any) -> Any:
        """The value of a statistic that is exact, or of a partition's text. Raises NotExact."""
        try:
            if self.kind == "date":
                return date.fromisoformat(said)
            number = exact_number(str(said))
            decimal = _DECIMAL.fullmatch(self.kind)
            if decimal is not None:
                return number.quantize(Decimal(1).scaleb(-int(decimal[2])), context=_EXACT)
            if number != int(number):
                raise ValueError(said)
            return int(number)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise NotExact(f"{self.physical} has the statistic {said!r}, which is no {self.kind}") from error


class _Extremes:
    """The least and greatest value so far; None before the first that is not NULL."""

    def __init__(self) -> None:
        self.least: Any = None
        self.greatest: Any = None

    def take(self, column: _Column, file: AddFile, stats: Mapping[str, Any], live: int) -> None:
        """Add a file. Raises NotExact if it has no exact values of the column."""
        if file.deletion_vector is not None or stats.get("tightBounds") is False:
            raise NotExact("a file has a deletion vector, so its least and greatest row may be deleted")
        if live == 0:
            return
        if column.partition:
            said = file.partition_values.get(column.physical)
            if said not in (None, ""):
                self._add(column.value(said), column.value(said))
            return
        least, greatest = (_of(stats, name, column.physical) for name in ("minValues", "maxValues"))
        if least is None and greatest is None and _of(stats, "nullCount", column.physical) == live:
            return
        if least is None or greatest is None:
            raise NotExact(f"a file has no statistics of {column.physical}")
        self._add(column.statistic(least), column.statistic(greatest))

    def _add(self, least: Any, greatest: Any) -> None:
        self.least = least if self.least is None else min(self.least, least)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def value(self, function: str) -> Any:
        """The answer of `min` or `max`."""
        return self.least if function == "min" else self.greatest


def _of(stats: Mapping[str, Any], name: str, column: str) -> Any:
    found = stats.get(name)
    return found.get(column) if isinstance(found, dict) else None


def _statistics(file: AddFile) -> Mapping[str, Any]:
    found = exact_statistics(file)
    if found is None:
        raise NotExact("a file has no statistics")
    return found


def _live_rows(file: AddFile, stats: Mapping[str, Any]) -> int:
    count = stats.get("numRecords")
    if not isinstance(count, Decimal) or not count.is_finite() or count != int(count) or count < 0:
        raise NotExact("a file has no number of rows")
    live = int(count) - (file.deletion_vector.cardinality if file.deletion_vector else 0)
    if live < 0:
        raise NotExact("a file has more deleted rows than rows")
    return live


def _field(column: str, metadata: Metadata, case_sensitive: bool) -> Mapping[str, Any]:
    fields = parsed(metadata.schema_json)["fields"]
    same = [one for one in fields if one["name"] == column or (not case_sensitive and _folded(one) == column.lower())]
    if len(same) != 1:
        raise NotExact(f"{column} is not a column of the table")
    found: Mapping[str, Any] = same[0]
    return found


def _folded(field: Mapping[str, Any]) -> str:
    return str(field["name"]).lower()
