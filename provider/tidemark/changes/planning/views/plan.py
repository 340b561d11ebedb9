"""The way to compute the changes of a view, and its reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from sqlglot import exp

from tidemark.changes.planning.views.partition import PartitionKey, partition_keys
from tidemark.changes.planning.views.parts import is_grouped, is_linear, numbered
from tidemark.errors import InvalidArgument
from tidemark.model.streams import StreamMode
from tidemark.model.views import ViewQuery

__all__ = ["BaseReading", "Choice", "ViewPlan", "Way", "choose_way"]


class Way(StrEnum):
    """The ways from a window of a view to its changes."""

    NOTHING = "nothing"  # no row of a base table changed, nothing is read
    TERMS = "terms"  # changed rows joined with their partners, a term for each scan that changed
    GROUPS = "groups"  # the groups of changed rows, at both ends
    KEYS = "keys"  # the rows with the join key of a changed row, at both ends
    WHOLE = "whole"  # the query at both ends


@dataclass(frozen=True)
class BaseReading:
    """The reads of one base table: files of its changes (rows and bytes), and files that may have partners. Partners
    are read at the versions in `versions`. Their files have at most `rows` rows and `bytes` bytes in each version, if
    the log has both.
    """

    table: str
    start: int
    end: int
    changed_rows: int
    changed_bytes: int
    versions: tuple[int, ...]
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class ViewPlan:
    """The way of one window of a view, its reason, and its reads of each base table."""

    view: str
    mode: StreamMode
    way: Way
    why: str
    terms: int
    bases: tuple[BaseReading, ...]

    def in_words(self) -> str:
        """One line for a log."""
        read = "; ".join(_in_words(base) for base in self.bases)
        return f"view {self.view}: {self.way.value}, {self.why} ({read})"

    def explain(self) -> dict[str, Any]:
        """The plan in numbers, ready for JSON."""
        return {
            "view": self.view,
            "mode": self.mode.value,
            "way": self.way.value,
            "why": self.why,
            "terms": self.terms,
            "bases": [{**asdict(base), "versions": list(base.versions)} for base in self.bases],
        }


@dataclass(frozen=True)
class Choice:
    """A way, its reason, and the keys that can reduce its reads, best first."""

    way: Way
    why: str
    keys: tuple[PartitionKey, ...] = ()


def choose_way(
    query: ViewQuery,
    changed: Collection[int],
    mode: StreamMode,
    columns: Sequence[Sequence[str]],
    can_cut: Callable[[int, str], bool],
) -> Choice:
    """The way for changes in the base tables `changed`. `columns`: those of each base table; `can_cut`: whether a
    column can skip files.

    Raises InvalidArgument for an append-only stream on a view with groups or optional partners. One inserted row does
    not insert one row of such a view.
    """
    parts = numbered(query)
    tree = parts.tree
    linear = is_linear(tree)
    if mode is not StreamMode.STANDARD and not linear:
        problem = f"view {query.name} has groups, DISTINCT, outer, semi or anti joins, and can have a standard stream"
        raise InvalidArgument(argument="mode", value=mode.value, problem=problem)
    if not changed:
        return Choice(Way.NOTHING, "no row of a base table changed")
    if linear:
        return Choice(Way.TERMS, "the query is made of projections, filters, inner joins and UNION ALL")
    found = partition_keys(query, changed, columns)
    keys = tuple(k for k in found if all(can_cut(parts.bases[scan], column) for scan, column in k.scans.items()))
    if not keys:
        return Choice(Way.WHOLE, "no column ties what has changed to its groups or partners")
    cut = ", ".join(f"{column} of scan {scan}" for scan, column in sorted(keys[0].scans.items()))
    if any(map(is_grouped, tree.find_all(exp.Select))):
        return Choice(Way.GROUPS, f"groups of changed rows, by {cut}", keys)
    return Choice(Way.KEYS, f"partners of changed rows, by {cut}", keys)


def _in_words(base: BaseReading) -> str:
    window = f"{base.table} ({base.start}, {base.end}]"
    changes = f"{base.changed_rows:,} rows of changes in {base.changed_bytes:,} bytes"
    if not base.versions:
        return f"{window}: {changes}"
    most = [f"{n:,} {what}" for n, what in ((base.rows, "rows"), (base.bytes, "bytes")) if n is not None]
    size = f", at most {' in '.join(most)}" if most else ""
    return f"{window}: {changes}, partners in version {' and '.join(map(str, base.versions))}{size}"
