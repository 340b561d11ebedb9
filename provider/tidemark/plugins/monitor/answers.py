"""The answers of the page's routes, made of what store and log say. Times are UTC, versions the source's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from tidemark.model.statements import TransactionKey
from tidemark.model.streams import OffsetMove, WindowKind
from tidemark.plugins.monitor.actors import Actor, actor, actor_of_act, actor_of_key
from tidemark.plugins.monitor.history_answers import PartAnswer
from tidemark.plugins.monitor.owned import OF_OTHERS, actor_for_reader, is_of_others
from tidemark.plugins.monitor.status_cache import CachedStatus, NotYet, Unreadable
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.planning.stream_state import LogFacts, NoLog, StreamState, state_of
from tidemark.streams.store.overview import HeldWindow, NumberedMove, OverviewRow
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.statistics import changes_of

__all__ = [
    "LagAnswer",
    "MoveAnswer",
    "StreamAnswer",
    "StreamDetails",
    "StreamsAnswer",
    "TransactionAnswer",
    "lag_answer",
    "move_answer",
    "stream_answer",
    "transaction_answer",
]


@dataclass(frozen=True)
class LagAnswer:
    """`known`: the source's log was read; `words` then say why the stream cannot be, if so. `unreadable`: `words` say
    why the log cannot be read. `waiting`: it has not answered yet; `words` say for how long.

    `behind`: versions. `lag_seconds`: age of the oldest unread version, 0 if there is none. `hours_left`: until
    `stale_after`.
    """

    state: Literal["known", "unreadable", "waiting"]
    words: str | None = None
    head: int | None = None
    behind: int | None = None
    waiting_since: datetime | None = None
    lag_seconds: float | None = None
    stale_after: datetime | None = None
    hours_left: float | None = None
    stale: bool | None = None


@dataclass(frozen=True)
class MoveAnswer:
    """One act on an offset: from where to where, when, by whom and why. Persons and reasons are for those who may read
    the DAG that owns the stream.
    """

    number: int | None
    from_version: int
    to_version: int
    moved_at: datetime
    why: str
    who: Actor


@dataclass(frozen=True)
class HeldAnswer:
    """The open window's owner, since when it is open, and until when its lease and its job last."""

    owner: Actor
    since: datetime
    lease_until: datetime
    submitted: bool
    job_deadline: datetime | None


@dataclass(frozen=True)
class HealthAnswer:
    """How consumptions went: `rows_delivered` are those of the change sets, however many targets took them;
    `failures_in_row` attempts failed since `failing_since`. `last_error` is left out for
    those who may not read the DAG of `last_run`.
    """

    consumptions: int
    empty_windows: int
    rows_delivered: int
    rows_quarantined: int
    failures: int
    failures_in_row: int
    failing_since: datetime | None
    last_failed_at: datetime | None
    last_error_type: str | None
    last_error: str | None
    last_run: Actor | None


@dataclass(frozen=True)
class StreamAnswer:
    """One stream. `state`: the worst that holds of it. `offset`: up to it, the source has been consumed."""

    uid: str
    name: str
    source: str
    path: str
    mode: str
    state: StreamState
    offset: int
    initial_rows_pending: bool
    comment: str | None
    created_at: datetime
    advanced_at: datetime
    commit: MoveAnswer | None
    held: HeldAnswer | None
    lag: LagAnswer
    health: HealthAnswer


@dataclass(frozen=True)
class StreamsAnswer:
    """One page of streams. `store`: `absent` if no task has made the control store yet. `replications`: how many there
    are beside the streams. `looked_at`: the oldest look at a log of the page; None: no look has ended.
    `not_looked_at`: how many logs have not answered yet. `cursor`: for the page that follows; None on the last one.
    """

    connection: str
    connections: tuple[str, ...]
    store: Literal["ready", "absent"]
    now: datetime
    total: int
    limit: int
    offset: int
    cursor: str | None
    streams: tuple[StreamAnswer, ...]
    replications: int
    looked_at: datetime | None
    not_looked_at: int


@dataclass(frozen=True)
class PinnedWindow:
    """(from, to] of a stream, or the rows at `from` if they were owed. `rows`: of its change set; None while it is
    open, and if only SQL or functions read it.
    """

    stream: str
    from_version: int
    to_version: int
    initial_rows: bool
    rows: int | None


@dataclass(frozen=True)
class TargetWrite:
    """One write of a plan; `version` and `rows` are known once the target is seen to hold it."""

    number: int
    target: str
    write_as: str
    version: int | None
    rows: Mapping[str, int] | None


@dataclass(frozen=True)
class TransactionAnswer:
    """A transaction that took from the stream. `asked_for`: it is the one that the link led to."""

    owner: Actor
    state: str
    opened_at: datetime
    closed_at: datetime | None
    windows: tuple[PinnedWindow, ...]
    writes: tuple[TargetWrite, ...]
    asked_for: bool


@dataclass(frozen=True)
class StreamDetails:
    """A stream with its newest transactions and moves, newest first. `older_moves`: there are more. `versions`: the
    part of its history with its offset over the commits of its table. `looked_at`: when its log was looked at; None: no
    look has ended.
    """

    connection: str
    now: datetime
    stream: StreamAnswer
    table_id: str
    transactions: tuple[TransactionAnswer, ...]
    moves: tuple[MoveAnswer, ...]
    older_moves: bool
    versions: PartAnswer
    replications: int
    looked_at: datetime | None


def stream_answer(
    row: OverviewRow, status: CachedStatus, *, now: datetime, readable: Collection[str], owner: str | None
) -> StreamAnswer:
    """A row of the store with what its source's log says. `owner`: the DAG that owns the stream."""
    stream = row.stream
    return StreamAnswer(
        uid=stream.uid,
        name=stream.name,
        source=stream.source.name,
        path=stream.source.path,
        mode=stream.mode.value,
        state=state_of(row.health, _log_facts(status), initial_rows_pending=stream.initial_rows_pending, now=now),
        offset=stream.offset.version,
        initial_rows_pending=stream.initial_rows_pending,
        comment=stream.comment,
        created_at=stream.created_at,
        advanced_at=stream.anchor,
        commit=None if row.commit is None else _move(None, row.commit, readable, owner),
        held=None if row.held is None else _held(row.held, readable),
        lag=lag_answer(status, now),
        health=_health(row.health, readable),
    )


def lag_answer(status: CachedStatus, now: datetime) -> LagAnswer:
    """The status in numbers, or the reason why it is not known, in words."""
    if isinstance(status, NotYet):
        begun = f"The lake has not answered for {status.seconds:.0f} s."
        return LagAnswer("waiting", words=begun if status.seconds >= 0.5 else "Its log has not been read yet.")
    if isinstance(status, Unreadable):
        return LagAnswer("unreadable", words=status.words)
    since = status.waiting_since
    return LagAnswer(
        "known",
        words=None if status.problem is None else str(status.problem),
        head=status.head,
        behind=status.behind,
        waiting_since=since,
        lag_seconds=max(0.0, (now - since).total_seconds())
        if since is not None
        else 0.0
        if not status.behind
        else None,
        stale_after=status.stale_after,
        hours_left=status.time_left(now).total_seconds() / 3600,
        stale=status.stale(now),
    )


def move_answer(numbered: NumberedMove, readable: Collection[str], owner: str | None) -> MoveAnswer:
    """A kept move of an offset. `owner`: the DAG that owns the stream."""
    return _move(numbered.number, numbered.move, readable, owner)


def transaction_answer(
    stored: StoredTransaction, readable: Collection[str], *, asked_for: TransactionKey | None
) -> TransactionAnswer:
    """A transaction with its windows and writes, and what is known of each write."""
    transaction = stored.transaction
    result = transaction.result
    evidence = stored.all_evidence
    read = partial(changes_of, statements=transaction.plan.statements, evidence=tuple(evidence.values()))
    return TransactionAnswer(
        owner=actor_of_key(transaction.key, readable),
        state=transaction.state.value,
        opened_at=transaction.opened_at,
        closed_at=None if result is None else result.committed_at,
        windows=tuple(
            PinnedWindow(w.stream_name, w.start, w.end, w.kind is WindowKind.INITIAL_ROWS, read(w))
            for w in transaction.windows
        ),
        writes=tuple(
            TargetWrite(
                number=statement.number,
                target=statement.target.name,
                write_as=statement.write.write_as.value,
                version=found.commit_version if found is not None else None,
                rows=dict(found.rows) if found is not None else None,
            )
            for statement in transaction.plan.statements
            for found in (evidence.get(statement.number),)
        ),
        asked_for=asked_for is not None and transaction.key == asked_for,
    )


def _log_facts(status: CachedStatus) -> LogFacts | NoLog:
    if isinstance(status, NotYet):
        return NoLog.NOT_YET
    if isinstance(status, Unreadable):
        return NoLog.UNREADABLE
    return status.log_facts


def _move(number: int | None, move: OffsetMove, readable: Collection[str], owner: str | None) -> MoveAnswer:
    hidden = is_of_others([owner], readable)
    who = actor_for_reader(actor_of_act(move.who, move.run, readable), hidden=hidden)
    why = OF_OTHERS if hidden else move.why
    return MoveAnswer(number, move.from_version, move.to_version, move.moved_at, why, who)


def _health(health: StreamHealth, readable: Collection[str]) -> HealthAnswer:
    run = None if health.last_failed_run is None else actor(health.last_failed_run, readable)
    said = {name: value for name, value in vars(health).items() if name not in ("last_failed_run", "last_error")}
    hidden = run is not None and run.kind == "hidden"
    return HealthAnswer(**said, last_error=None if hidden else health.last_error, last_run=run)


def _held(held: HeldWindow, readable: Collection[str]) -> HeldAnswer:
    owner = actor(held.owner, readable)
    return HeldAnswer(
        owner=owner if owner.kind == "run" else actor_of_key(held.key, readable),
        since=held.since,
        lease_until=held.lease_until,
        submitted=held.submitted,
        job_deadline=held.job_deadline,
    )
