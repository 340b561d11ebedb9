"""Objects with what the lake says of them: a kind may have the state of its objects looked up in the logs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tidemark.control.object_kinds import Severity, kind_named
from tidemark.control.object_list import ObjectsWish, ShownObject, find, fitting, show_all
from tidemark.control.object_needs import Key
from tidemark.control.store import ControlStore
from tidemark.control.usual_lags import UsualLag, may_be_behind, usual_lags
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.planning.stream_state import SOON, LogFacts, NoLog, StreamState, state_of
from tidemark.streams.store import streams
from tidemark.streams.worker.background import why_unreadable
from tidemark.streams.worker.questions import LogQuestion, stream_question
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus
from tidemark.streams.worker.threads import PATIENCE, for_each

__all__ = [
    "STREAM_LOOK",
    "LakeLook",
    "Seen",
    "ask_logs",
    "describe_object",
    "judged",
    "list_objects",
    "questions_behind",
    "usual_behind",
]

Seen = Any
"""The answer of the logs; why they cannot be read, in words (str); or None: they have not answered."""

_SEVERITIES = {
    StreamState.STALE: Severity.FAILED,
    StreamState.FAILING: Severity.FAILED,
    StreamState.UNREADABLE: Severity.FAILED,
    StreamState.MAY_BE_STALE: Severity.WARNING,
    StreamState.NEARLY_STALE: Severity.WARNING,
    StreamState.UNDELIVERED: Severity.WAITING,
}


@dataclass(frozen=True)
class LakeLook:
    """The functions that a kind registers as its `look`. `questions`: by uid what the logs are asked. `judge`: the
    object with the answer at that time.
    """

    questions: Callable[[sa.Connection, Sequence[str]], Mapping[str, LogQuestion]]
    judge: Callable[[ShownObject, Seen, datetime], ShownObject]


def list_objects(store: ControlStore, tables: Tables, wish: ObjectsWish) -> tuple[ShownObject, ...]:
    """All that fit, the worst first, each with what its logs say; how long these are waited for is bounded."""
    now = store.clock()
    everything = replace(wish, state=None, problems=False)

    def kept(connection: sa.Connection) -> tuple[tuple[ShownObject, ...], Mapping[str, LogQuestion]]:
        found = show_all(connection, everything, now=now)
        return found, questions_behind(connection, found)

    found, behind = store.read(kept)
    seen = ask_logs(behind, tables)
    return fitting(judged(found, seen, usual_behind(store, found, seen, now), now), wish)


def describe_object(store: ControlStore, tables: Tables, kind: str, name: str) -> ShownObject:
    """The one of that name or uid, with what its log says. Raises InvalidArgument."""
    now = store.clock()

    def kept(connection: sa.Connection) -> tuple[ShownObject, Mapping[str, LogQuestion]]:
        found = find(connection, kind, name, now=now)
        return found, questions_behind(connection, (found,))

    found, behind = store.read(kept)
    seen = ask_logs(behind, tables)
    (shown,) = judged((found,), seen, usual_behind(store, (found,), seen, now), now)
    return shown


def questions_behind(connection: sa.Connection, found: Sequence[ShownObject]) -> Mapping[str, LogQuestion]:
    """The questions to the logs that say more of these objects, by the objects' uids."""
    behind: dict[str, LogQuestion] = {}
    for kind in sorted({one.kind for one in found}):
        look = _look_of(kind)
        if look is not None:
            behind.update(look.questions(connection, [one.uid for one in found if one.kind == kind]))
    return behind


def judged(
    found: Sequence[ShownObject], seen: Mapping[str, Seen], usual: Mapping[Key, UsualLag], now: datetime
) -> tuple[ShownObject, ...]:
    """The one judgement of objects, which overview, list, lineage, metrics, alerts and commands share.

    `seen`: the observations of them, by uid. An object without one has the state of the store. It has no lag then if
    logs tell that of its kind. `usual`: usual lags that a look has found. An object that does its work has a warning
    while it is behind its own.
    """
    as_seen = (_judged(one, seen.get(one.uid), now) for one in found)
    return tuple(_by_usual(one, usual.get((one.kind, one.uid))) for one in as_seen)


def usual_behind(
    store: ControlStore, found: Sequence[ShownObject], seen: Mapping[str, Seen], now: datetime
) -> dict[Key, UsualLag]:
    """The usual lags of those among these objects that are behind theirs. The store is read if a lag is long."""
    long = may_be_behind(judged(found, seen, {}, now))
    return store.read(lambda connection: usual_lags(connection, long)) if long else {}


def _by_usual(one: ShownObject, usual: UsualLag | None) -> ShownObject:
    if usual is None or one.severity is not Severity.OK or one.lag_seconds is None or one.lag_seconds <= usual.limit:
        return one
    return replace(one, severity=Severity.WARNING, notice=usual.words, usual_seconds=usual.seconds)


def _judged(one: ShownObject, seen: Seen, now: datetime) -> ShownObject:
    look = _look_of(one.kind)
    if look is None:
        return one
    unknown = replace(one, lag_seconds=None, lag_amount=None, lag_unit=None)
    return unknown if seen is None else look.judge(unknown, seen, now)


def _look_of(kind: str) -> LakeLook | None:
    name = kind_named(kind).look
    if name is None:
        return None
    module, _, attribute = name.partition(":")
    found: LakeLook = getattr(importlib.import_module(f"tidemark.{module}"), attribute)
    return found


def ask_logs(
    behind: Mapping[str, LogQuestion],
    tables: Tables,
    *,
    rest: float = 0.0,
    patience: timedelta = PATIENCE,
    around: Callable[[LogQuestion], AbstractContextManager[object]] = nullcontext,
) -> dict[str, Seen]:
    """The answers to these questions, by uid. They are waited for in that time. Each thread rests for `rest`
    seconds after a question, so that other threads of the process get their turn. A log that cannot be read,
    for any reason, keeps no other one from being asked. `around`: entered by a thread for the time of its question.
    """

    def look(question: LogQuestion) -> Seen:
        try:
            with around(question):
                return question.ask(tables)
        finally:
            time.sleep(rest)

    questions = tuple(behind.values())
    about = [one.about for one in questions]
    answers = for_each(questions, look, about=about, failed=_why, patience=patience)
    return dict(zip(behind, answers, strict=True))


def _why(_: LogQuestion, error: BaseException) -> Seen:
    return why_unreadable(error)


def _of_streams(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, LogQuestion]:
    return {stream.uid: stream_question(stream) for stream in streams.with_uids(connection, uids)}


def _judge(one: ShownObject, seen: Seen, now: datetime) -> ShownObject:
    """The worst that store and log say. Since when a state holds is known where it is the one that is stored, and where
    Delta's retention dates it.
    """
    status = seen if isinstance(seen, StreamStatus) else None
    log: LogFacts | NoLog = NoLog.UNREADABLE if status is None else status.log_facts
    health = StreamHealth(
        consumptions=int(one.state != StreamState.UNDELIVERED), failures_in_row=int(one.state == StreamState.FAILING)
    )
    state = state_of(health, log, initial_rows_pending=one.state == StreamState.BEHIND, now=now)
    same = state == one.state
    shown = replace(
        one,
        state=state.value,
        severity=one.severity if same else _SEVERITIES.get(state, Severity.OK),
        since=one.since if same else _since(status, state),
        notice=seen if isinstance(seen, str) else _notice(status, state),
    )
    return shown if status is None else _with_lag(shown, status, now)


def _since(status: StreamStatus | None, state: StreamState) -> datetime | None:
    if status is None or state not in (StreamState.MAY_BE_STALE, StreamState.NEARLY_STALE):
        return None
    return status.stale_after if state is StreamState.MAY_BE_STALE else status.stale_after - SOON


def _notice(status: StreamStatus | None, state: StreamState) -> str | None:
    if status is None:
        return None
    if status.problem is not None:
        return str(status.problem)
    if state in (StreamState.MAY_BE_STALE, StreamState.NEARLY_STALE):
        return f"Delta keeps what the stream needs until {status.stale_after:%Y-%m-%d %H:%M} UTC"
    return None


def _with_lag(shown: ShownObject, status: StreamStatus, now: datetime) -> ShownObject:
    since = status.waiting_since
    seconds = 0.0 if not status.behind else None if since is None else max(0.0, (now - since).total_seconds())
    return replace(shown, lag_seconds=seconds, lag_amount=status.behind, lag_unit="versions")


STREAM_LOOK = LakeLook(_of_streams, _judge)
