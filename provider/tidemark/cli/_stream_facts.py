"""Streams, their transactions and moves as rows for people, and as documents for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.streams import OffsetMove, Stream
    from tidemark.streams.model.health import StreamHealth
    from tidemark.streams.store.transactions import StoredTransaction
    from tidemark.streams.worker.status import StreamStatus

__all__ = ["counts_of", "move_facts", "rows_of", "transaction_facts"]

NOT_ANSWERED = "not answered"


def rows_of(hook: TidemarkHook, streams: Sequence[Stream], healths: Mapping[str, StreamHealth]) -> list[dict[str, Any]]:
    """One row for each stream. `head` has the name of the error if a table cannot be read, or says that it has not
    answered. So a list continues; the wait for a table is bounded.
    """
    from tidemark.streams.model.health import StreamHealth
    from tidemark.streams.worker.background import why_unreadable
    from tidemark.streams.worker.status import status_of
    from tidemark.streams.worker.threads import PATIENCE, for_each_stream

    def status(stream: Stream) -> StreamStatus | str:
        return status_of(stream, hook.open_table)

    def failed(_: Stream, error: BaseException) -> StreamStatus | str:
        why_unreadable(error)  # logs an unexpected one
        return type(error).__name__

    answers = for_each_stream(streams, status, failed=failed, patience=PATIENCE)
    return [
        _row(stream, healths.get(stream.uid, StreamHealth()), answer)
        for stream, answer in zip(streams, answers, strict=True)
    ]


def _row(stream: Stream, health: StreamHealth, answer: StreamStatus | str | None) -> dict[str, Any]:
    from tidemark.streams.planning.stream_state import LogFacts, NoLog, state_of

    now = datetime.now(UTC)
    facts: LogFacts | NoLog
    head: int | str
    behind: int | None
    if answer is None:
        facts, head, behind = NoLog.NOT_YET, NOT_ANSWERED, None
    elif isinstance(answer, str):
        facts, head, behind = NoLog.UNREADABLE, answer, None
    else:
        facts, head, behind = answer.log_facts, answer.head, answer.behind
    return {
        "name": stream.name,
        "table": stream.source.name,
        "mode": stream.mode.value,
        "state": state_of(health, facts, initial_rows_pending=stream.initial_rows_pending, now=now).value,
        "version": stream.offset.version,
        "head": head,
        "behind": behind,
        "initial_rows_pending": stream.initial_rows_pending,
        "rows_delivered": health.rows_delivered,
        "failures_in_row": health.failures_in_row,
        "created_at": stream.created_at.isoformat(timespec="seconds"),
        "anchor": stream.anchor.isoformat(timespec="seconds"),
    }


def counts_of(health: StreamHealth) -> dict[str, Any]:
    """The counts that are not in the row; times are in ISO 8601, and events that never happened are left out."""
    in_row = ("failures_in_row", "rows_delivered")
    found = {name: value for name, value in vars(health).items() if value is not None and name not in in_row}
    times = {name: value.isoformat(timespec="seconds") for name, value in found.items() if hasattr(value, "isoformat")}
    return {**found, **times}


def transaction_facts(stored: StoredTransaction, stream: Stream) -> dict[str, Any]:
    """`rows`: of the stream's change set, None if nobody counted them; `targets`: what each of them says it took."""
    from tidemark.streams.worker.statistics import changes_of

    found, evidence = stored.transaction, stored.all_evidence
    statements = found.plan.statements
    window = next((one for one in found.windows if one.stream_uid == stream.uid), found.windows[0])
    return {
        "run": str(found.key),
        "state": found.state.value,
        "opened_at": found.opened_at.isoformat(timespec="seconds"),
        "from": window.start,
        "to": window.end,
        "rows": changes_of(window, statements, tuple(evidence.values())),
        "targets": {
            one.target.name: dict(evidence[one.number].rows) if one.number in evidence else None for one in statements
        },
    }


def move_facts(move: OffsetMove) -> dict[str, Any]:
    return {
        "moved_at": move.moved_at.isoformat(timespec="seconds"),
        "from": move.from_version,
        "to": move.to_version,
        "why": move.why,
        "who": move.who,
        "run": move.run,
    }
