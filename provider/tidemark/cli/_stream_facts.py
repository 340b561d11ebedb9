"""Streams, their transactions and moves as rows for people, and as documents for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidemark.errors import TidemarkError

if TYPE_CHECKING:
    from tidemark.control.transactions import StoredTransaction
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.health import StreamHealth
    from tidemark.model.streams import OffsetMove, Stream

__all__ = ["counts_of", "move_facts", "row_of", "transaction_facts"]


def row_of(hook: TidemarkHook, stream: Stream, health: StreamHealth) -> dict[str, Any]:
    """`head`: for a table that cannot be read the name of the error, so that a list goes on."""
    from tidemark.planning.stream_state import LogSaid, NoLog, state_of
    from tidemark.transactions.standing import standing_of

    said: LogSaid | NoLog = NoLog.UNREADABLE
    head: int | str
    try:
        found = standing_of(stream, hook.open_table)
    except (TidemarkError, OSError) as error:
        head, behind = type(error).__name__, None
    else:
        head, behind = found.head, found.behind
        said = found.said
    now = datetime.now(UTC)
    return {
        "name": stream.name,
        "table": stream.source.name,
        "mode": stream.mode.value,
        "state": state_of(health, said, initial_rows_pending=stream.initial_rows_pending, now=now).value,
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
    """What is not in the row; times in ISO 8601, and what never happened left out."""
    in_row = ("failures_in_row", "rows_delivered")
    found = {name: value for name, value in vars(health).items() if value is not None and name not in in_row}
    times = {name: value.isoformat(timespec="seconds") for name, value in found.items() if hasattr(value, "isoformat")}
    return {**found, **times}


def transaction_facts(stored: StoredTransaction, stream: Stream) -> dict[str, Any]:
    """`rows`: of the stream's change set, None where nobody counted them; `targets`: what each of them says it took."""
    from tidemark.transactions.counting import changes_of

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
