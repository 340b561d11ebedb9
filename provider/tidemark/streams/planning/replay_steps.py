"""The next steps of errors that a replay meets: it holds no stream and moves no offset."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.errors import (
    JobDeadlineExceeded,
    LogIncomplete,
    PastWindowLost,
    SerialReused,
    SourceRecreated,
    SplitUnreadable,
    StreamStale,
    TargetChanged,
    TargetRewound,
    TidemarkError,
    TrackingInterrupted,
    VersionVacuumed,
    ViewChanged,
)

__all__ = ["START_AGAIN", "as_of_a_replay"]

START_AGAIN = "start the replay as a new run of its DAG, or call lake.replay again in a notebook"
_START_AGAIN = f"{START_AGAIN[0].upper()}{START_AGAIN[1:]}. It writes all of its targets."
_LOAD = "The window cannot be replayed. Load the target from the table itself."

_REMEDIES: Mapping[type[TidemarkError], str] = {
    LogIncomplete: _LOAD,
    VersionVacuumed: _LOAD,
    SourceRecreated: _LOAD,
    TrackingInterrupted: _LOAD,
    ViewChanged: "The window cannot be replayed. Load the target from the view itself.",
    TargetChanged: _START_AGAIN,
    TargetRewound: _START_AGAIN,
    SerialReused: _START_AGAIN,
    SplitUnreadable: f"Then {START_AGAIN}.",
    JobDeadlineExceeded: "raise job_deadline_hours of the Tidemark connection.",
}


def as_of_a_replay(error: TidemarkError) -> TidemarkError:
    """The error with the next step for a replay; itself, if its step holds for one already."""
    if type(error) is StreamStale:
        return PastWindowLost(**error.facts)
    remedy = _REMEDIES.get(type(error))
    return error if remedy is None else type(error)(**{**error.facts, "remedy": remedy})
