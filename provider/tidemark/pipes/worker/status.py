"""The status of a pipe, as SYSTEM$PIPE_STATUS has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.model.status import ChannelFacts, NeededObjects, QueueFacts
from tidemark.pipes.planning.late_files import tells_late
from tidemark.pipes.planning.states import STALE_AFTER, is_stale, state_of

__all__ = ["pipe_status"]


def pipe_status(
    pipe: Pipe,
    queue_facts: QueueFacts | None,
    now: datetime,
    *,
    channel_facts: ChannelFacts | None = None,
    stage_exists: bool = True,
    format_exists: bool = True,
    table_exists: bool = True,
) -> Mapping[str, Any]:
    """The fields by their names there, in their order. A field without a value is absent, and so are those of the queue
    without `queue_facts`. A channel that cannot be reached is a notice in `error`. Times are in UTC.
    """
    channel = channel_facts or ChannelFacts()
    state = state_of(pipe, NeededObjects(stage_exists, format_exists, table_exists))
    fields = {
        "executionState": state.value,
        **({} if queue_facts is None else _of_queue(queue_facts)),
        "notificationChannelName": pipe.notification_channel,
        "numOutstandingMessagesOnChannel": channel.outstanding,
        "lastPulledFromChannelTimestamp": pipe.pulled_at,
        **_of_errors(pipe, now, channel.problem),
    }
    return {name: _shown(value) for name, value in fields.items() if value is not None}


def _of_queue(facts: QueueFacts) -> dict[str, Any]:
    waits = facts.pending > 0
    return {
        "pendingFileCount": facts.pending,
        "oldestPendingFilePath": facts.oldest_pending if waits else None,
        "oldestFileTimestamp": facts.oldest_pending_at if waits else None,
        "lastIngestedTimestamp": facts.last_ingested_at,
        "lastIngestedFilePath": facts.last_ingested,
        "lastReceivedMessageTimestamp": facts.received_at,
        "lastForwardedMessageTimestamp": facts.forwarded_at,
        "lastForwardedFilePath": facts.forwarded,
    }


def _of_errors(pipe: Pipe, now: datetime, notice: str | None) -> dict[str, Any]:
    """A fault is an error of ours. A problem of files alone is in their history, and no error of the pipe. Files that
    were left out are in no history, so they are a notice.
    """
    found: dict[str, Any] = {}
    if pipe.stalled is PipeState.STALLED_INTERNAL_ERROR:
        found = {"lastPipeFaultTimestamp": pipe.problem_at, "fault": pipe.problem}
    elif pipe.stalled is not None:
        found = {"lastPipeErrorTimestamp": pipe.problem_at, "error": pipe.problem}
    elif is_stale(pipe, now):
        since = f"{pipe.paused_at:%Y-%m-%d %H:%M} UTC"
        found = {
            "error": f"The pipe is stale: it has been paused since {since}, for more than {STALE_AFTER.days} days."
        }
    late = pipe.problem if pipe.stalled is None and tells_late(pipe.problem) else None
    return {**found, "error": " ".join(filter(None, (found.get("error"), late, notice))) or None}


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
