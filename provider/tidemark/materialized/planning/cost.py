"""The cheaper way to refresh, from the sizes in the logs, and from the seconds of earlier refreshes.

All costs are bytes that a scan would read in the same time. The weights are chosen by hand;
`tests/benchmarks/kept_views.py` compares the choices with what both ways take. Bytes of one query are not seconds of
another: once both ways of a view were taken, each has its own pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from tidemark.changes.planning.views.partition import partition_keys
from tidemark.changes.planning.views.parts import is_linear, numbered
from tidemark.changes.planning.views.terms import Role, roles_of
from tidemark.materialized.model.refreshes import Measured
from tidemark.materialized.model.shapes import KeptShape, Shape
from tidemark.model.statements import RefreshHow
from tidemark.streams.model.partial_columns import EPOCH

__all__ = ["BaseSize", "Choice", "Estimate", "choose"]

_MIB = 1 << 20
_FIXED = 24 * _MIB  # the look at the logs and the collected changes, before a row is written
_CHANGED = 3.0  # changed files are read, their rows are paired
_PARTNER = 0.4  # a scan that few changed rows cut and that has no shuffle
_TOUCHED = 0.8  # one end of a scan that is cut to the groups of changed rows
_LOST = 0.5  # all scans, if groups lose their minimum or maximum
_WRITTEN = 4.0
_MERGED = 1.5  # rows of the kept table, whose ids a merge compares
_PACES, _LEAST_KNOWN = 5, 2  # refreshes, the newest ones
_TRIED = 4  # times the estimate of the changes, up to which all rows are written to know their seconds
_FEW = 64 * _MIB  # of changed files; more rows are not collected, so nothing is cut


@dataclass(frozen=True)
class BaseSize:
    """A base table in the window of a refresh.

    `changed_bytes`: of the files that its commits in the window added or removed, with deletion vectors; 0 for none.
    `bytes`: of its files at the window's end. `columns`: their names; without them nothing is known to cut its scan.
    """

    changed_bytes: int
    bytes: int
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """The sizes for one refresh. `bases`: in the order of `shape.followed.bases`. `kept_bytes`: of the kept table's
    files. `kept_rows` and `groups`: of a table of partial aggregates now, and after its last compaction or full
    refresh; None if unknown.
    """

    shape: KeptShape
    bases: tuple[BaseSize, ...]
    kept_bytes: int
    kept_rows: int | None = None
    groups: int | None = None


@dataclass(frozen=True)
class Choice:
    """The way to refresh, its reason, and the weighted bytes of both ways (None: impossible)."""

    how: RefreshHow
    why: str
    incremental_bytes: int | None
    full_bytes: int


def choose(estimate: Estimate, earlier: Sequence[Measured] = ()) -> Choice:
    """The cheaper way, by bytes, and by seconds once `earlier` refreshes, the newest first, have taken both ways.
    Partial aggregates of more than twice the groups are compacted by an incremental refresh.
    """
    shape, full = estimate.shape, round(_full(estimate))
    if shape.shape is Shape.PLAIN:
        return Choice(RefreshHow.WHOLE, shape.why or "its changes cannot be computed", None, full)
    reads = _terms(estimate) if is_linear(numbered(shape.followed).tree) else _both_ends(estimate)
    if reads is None:
        return Choice(RefreshHow.WHOLE, "no column ties what has changed to its groups or partners", None, full)
    compacted = _outgrown(estimate)
    incremental = round(_FIXED + reads + _writes(estimate, compacted=compacted))
    if compacted:
        return _by_bytes(RefreshHow.COMPACTED, incremental, full)
    return _by_seconds(earlier, incremental, full) or _by_bytes(RefreshHow.CHANGES, incremental, full)


def _by_bytes(how: RefreshHow, incremental: int, full: int) -> Choice:
    if incremental >= full:
        return Choice(RefreshHow.WHOLE, f"changes would cost {incremental:,} bytes, all {full:,}", incremental, full)
    return Choice(how, f"changes cost {incremental:,} bytes, all would {full:,}", incremental, full)


def _by_seconds(earlier: Sequence[Measured], incremental: int, full: int) -> Choice | None:
    """None as long as too little is known. If it is not much dearer, all rows are written once in a while, to know."""
    changes, whole = _pace(earlier, RefreshHow.CHANGES), _pace(earlier, RefreshHow.WHOLE)
    if changes is None:
        return None
    if whole is None:
        if not incremental < full <= _TRIED * incremental:
            return None
        why = f"changes would cost {incremental:,} bytes, all {full:,}, whose seconds are not known"
        return Choice(RefreshHow.WHOLE, why, incremental, full)
    seconds, all_seconds = incremental * changes, full * whole
    if seconds >= all_seconds:
        why = f"by earlier refreshes, changes would take {seconds:.1f} s, all {all_seconds:.1f} s"
        return Choice(RefreshHow.WHOLE, why, incremental, full)
    why = f"by earlier refreshes, changes take {seconds:.1f} s, all would {all_seconds:.1f} s"
    return Choice(RefreshHow.CHANGES, why, incremental, full)


def _pace(earlier: Sequence[Measured], how: RefreshHow) -> float | None:
    """Seconds for an estimated byte, the median of the last few. None: unknown, or of a single refresh by changes,
    which may have met a cold Spark or a hang.
    """
    found = [one.seconds / one.estimated_bytes for one in earlier if one.how is how][:_PACES]
    least = _LEAST_KNOWN if how is RefreshHow.CHANGES else 1
    return median_low(found) if len(found) >= least else None


def _full(estimate: Estimate) -> float:
    scans = numbered(estimate.shape.followed).bases.values()
    return sum(estimate.bases[base].bytes for base in scans) + _WRITTEN * estimate.kept_bytes


def _terms(estimate: Estimate) -> float:
    """Each scan that changed, and the partners of its rows."""
    parts = numbered(estimate.shape.followed)
    total = 0.0
    for scan, base in parts.bases.items():
        changed = estimate.bases[base].changed_bytes
        if changed:
            roles = roles_of(parts, scan).items()
            others = [parts.bases[other] for other, role in roles if other != scan and role is not Role.NOTHING]
            weight = _PARTNER if changed <= _FEW else 1.0
            total += _CHANGED * changed + weight * sum(estimate.bases[other].bytes for other in others)
    if EPOCH in (estimate.shape.sums or ""):
        total += _LOST * sum(estimate.bases[base].bytes for base in parts.bases.values())
    return total


def _both_ends(estimate: Estimate) -> float | None:
    """The groups or partners of changed rows at both ends; None if no key ties them to what has changed."""
    changed = [number for number, base in enumerate(estimate.bases) if base.changed_bytes]
    query = estimate.shape.followed
    if not partition_keys(query, changed, [base.columns for base in estimate.bases]):
        return None
    few = sum(base.changed_bytes for base in estimate.bases) <= _FEW
    scans = numbered(query).bases.values()
    read = sum(estimate.bases[base].bytes for base in scans)
    return _CHANGED * sum(base.changed_bytes for base in estimate.bases) + 2 * (_TOUCHED if few else 1.0) * read


def _writes(estimate: Estimate, *, compacted: bool) -> float:
    if estimate.shape.shape is Shape.ROWS:
        return _MERGED * estimate.kept_bytes
    return (1 + _WRITTEN) * estimate.kept_bytes if compacted else 0.0


def _outgrown(estimate: Estimate) -> bool:
    known = estimate.kept_rows is not None and estimate.groups is not None
    return known and (estimate.kept_rows or 0) > 2 * max(estimate.groups or 0, 1)
