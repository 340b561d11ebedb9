"""The status of a replication, in plain values for XCom, logs and sensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.operators._replication import place_text

if TYPE_CHECKING:
    from tidemark.replication.worker.status import ObjectStatus, ReplicationStatus

__all__ = ["MOST_TOLD", "in_words", "report_object", "report_status", "told_of"]

MOST_TOLD = 100
"""Objects that are all reported, whether they are well or not."""


def report_status(status: ReplicationStatus, *, of_source: Sequence[str] = ()) -> dict[str, Any]:
    """The whole of it; `of_source`: alerts that the source itself has."""
    replication = status.replication
    return {
        "replication": replication.name,
        "state": replication.state.value,
        "captured": place_text(replication.captured),
        "lag_seconds": status.lag_seconds,
        "lag_bytes": status.lag_bytes,
        "alerts": [*status.alerts, *of_source],
        "objects": {one.object.name.text: report_object(one) for one in told_of(status)},
    }


def told_of(status: ReplicationStatus) -> tuple[ObjectStatus, ...]:
    """The objects that are reported: all of some, and of many those that are behind, or need a look."""
    if len(status.objects) <= MOST_TOLD:
        return status.objects
    return tuple(one for one in status.objects if not _is_well(one))


def _is_well(one: ObjectStatus) -> bool:
    """Whether it was copied and shows everything that was captured."""
    kept = (one.object.needs_backfill, one.object.problem)
    copied = one.object.applied is not None and one.object.state.value in ("completed", "not_started")
    return copied and not one.behind and not one.notices and not any(kept)


def report_object(one: ObjectStatus) -> dict[str, Any]:
    """One object; `rows` and `percent` of its last backfill."""
    progress = one.object.progress
    return {
        "state": one.object.state.value,
        "applied": place_text(one.object.applied),
        "lag_seconds": one.lag_seconds,
        "behind": one.behind,
        "needs_backfill": one.object.needs_backfill,
        "problem": one.object.problem,
        "notices": list(one.notices),
        "rows": progress.done if progress else None,
        "percent": round(progress.percent, 1) if progress else None,
    }


def in_words(one: ObjectStatus) -> str:
    """One line for a log."""
    lag = "" if one.lag_seconds is None else f", as of {one.lag_seconds:.0f} s ago"
    rows = "" if one.object.progress is None else f", {one.object.progress.done:,} rows at its backfill"
    behind = ", behind what was captured" if one.behind else ""
    needs_backfill = f", needs a backfill: {one.object.needs_backfill}" if one.object.needs_backfill else ""
    noticed = "".join(f"; {notice}" for notice in one.notices)
    return f"{one.object.name.text}: {one.object.state}{rows}{lag}{behind}{needs_backfill}{noticed}"
