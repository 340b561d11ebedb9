"""The status of a replication, in plain values for XCom, logs and sensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.operators._replication import place_text

if TYPE_CHECKING:
    from tidemark.replication.worker.status import ObjectStatus, ReplicationStatus

__all__ = ["in_words", "report_object", "report_status"]


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
        "objects": {one.object.name.text: report_object(one) for one in status.objects},
    }


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
