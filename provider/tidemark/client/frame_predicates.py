"""The table and the predicate of a DataFrame, from its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidemark.jobs.remote import is_remote
from tidemark.lake.storage import canonical_uri
from tidemark.sql.foreign_sql import SqlNotUnderstood
from tidemark.sql.identifiers import quoted
from tidemark.sql.unqualified import without_qualifiers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FilteredTable", "filtered_table", "in_place_of", "predicate_of"]


@dataclass(frozen=True)
class FilteredTable:
    """A DataFrame that filters a Delta table and selects columns of it."""

    path: str
    where: str
    columns: tuple[str, ...]


def predicate_of(filtered: Callable[[Column], DataFrame], condition: str | Column) -> str | None:
    """The text of a condition; None if it has none. `filtered`: the function from a condition to the filtered table."""
    if isinstance(condition, str):
        return condition
    try:
        found = filtered_table(filtered(condition))
    except SqlNotUnderstood:
        return None
    return None if found is None else found.where


def in_place_of(empty: DataFrame, rows: DataFrame) -> DataFrame | None:
    """The rows as columns of a frame, so that `frame.x` means them; None if the columns differ. `empty`: that frame
    without rows. A union has the columns of its first part, and Spark's optimizer takes the empty part away.
    """
    return empty.union(rows) if empty.dtypes == rows.dtypes else None


def filtered_table(frame: DataFrame) -> FilteredTable | None:
    """The table that the frame filters, or None. Behind Spark Connect it is None, since the server has the plan."""
    if is_remote(frame.sparkSession):
        return None
    plan: Any = frame
    found = _Plan()
    if not found.is_of_a_table(plan._jdf.queryExecution().analyzed()) or found.path is None or not found.wheres:
        return None
    return FilteredTable(found.path, " AND ".join(found.wheres), tuple(map(quoted, frame.columns)))


@dataclass
class _Plan:
    path: str | None = None
    wheres: list[str] = field(default_factory=list)

    def is_of_a_table(self, node: Any) -> bool:
        """Whether the plan filters one Delta table, at its newest version, and selects columns."""
        while True:
            kind = node.getClass().getSimpleName()
            if kind == "Filter":
                self._note(node.condition())
            elif kind == "Project":
                if any(one.getClass().getSimpleName() != "AttributeReference" for one in _all(node.projectList())):
                    return False
            elif kind != "SubqueryAlias":
                return bool(kind == "LogicalRelation" and self._is_delta(node))
            node = node.child()

    def _note(self, condition: Any) -> None:
        columns = _all(condition.references().toSeq())
        qualifiers = {tuple(str(part) for part in _all(one.qualifier())) for one in columns}
        self.wheres.append(f"({without_qualifiers(condition.sql(), qualifiers)})")

    def _is_delta(self, node: Any) -> bool:
        relation = node.relation()
        if "HadoopFsRelation" not in _classes(relation):  # Delta's own is a class without a name, below it
            return False
        files = relation.location()
        if files.getClass().getSimpleName() != "TahoeLogFileIndex" or files.isTimeTravelQuery():
            return False
        self.path = canonical_uri(str(files.path().toString()))
        return True


def _classes(of: Any) -> Iterator[str]:
    """The names of its class and of those above."""
    one = of.getClass()
    while one is not None:
        yield str(one.getSimpleName())
        one = one.getSuperclass()


def _all(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(at) for at in range(sequence.length()))
