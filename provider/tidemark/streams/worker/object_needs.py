"""The objects that need attention, by the store and by earlier looks at logs and lags.

Reading a page asks the store alone. Looks are separate, since a lake may be slow. The page's server does them in the
background, and a command does one before it answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

import sqlalchemy as sa

from tidemark.control.looks import turns_of
from tidemark.control.object_acts import ObjectAct, offered
from tidemark.control.object_kinds import Advice, Finding, Severity, kind_named
from tidemark.control.object_list import ObjectsWish, ShownObject, count_kinds, of_keys
from tidemark.control.object_needs import RANKS, Key, Place, findings_of, places
from tidemark.control.object_revisions import Facts, facts_of, token_of
from tidemark.control.object_stops import stops_of
from tidemark.control.objects import dag_of
from tidemark.control.sentences import one_text
from tidemark.control.store import ControlStore
from tidemark.control.usual_lags import UsualLag
from tidemark.streams.worker.object_states import Seen, ask_logs, judged, questions_behind, usual_behind
from tidemark.streams.worker.open_looks import OpenLooks
from tidemark.streams.worker.questions import LogQuestion
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.threads import PATIENCE

__all__ = [
    "NOTHING_KNOWN",
    "Known",
    "Need",
    "NeedsPage",
    "longest_ago",
    "look_at",
    "look_at_all",
    "needs_page",
    "still_holds",
    "without_ended",
]

_PROBLEMS = (Severity.FAILED, Severity.WARNING)
_OF_USUAL = Advice(
    "Look for failed and missing runs of its DAG, and compare its lag with that of earlier runs.",
    ("airflow tidemark objects history {within} {name}",),
)


@dataclass(frozen=True)
class Known:
    """The findings of looks. `seen`: by object the answer of its logs, and the state of the object for which it holds.
    `late`: objects that are worse than the store knows, and how bad. `since`: when a look found that first.
    `looked`: objects whose lags and logs answered the last look at them. `looked_at`: the end of the last look.
    `usual`: the usual lags of those that were behind theirs. `waiting`: objects for which the last look had no time.
    """

    seen: Mapping[Key, tuple[tuple[Hashable, ...], Seen]] = field(default_factory=dict)
    late: Mapping[Key, Severity] = field(default_factory=dict)
    since: Mapping[Key, datetime] = field(default_factory=dict)
    looked: frozenset[Key] = frozenset()
    looked_at: datetime | None = None
    usual: Mapping[Key, UsualLag] = field(default_factory=dict)
    waiting: frozenset[Key] = frozenset()

    @cached_property
    def looked_by_kind(self) -> Mapping[str, int]:
        """How many objects of each kind are among `looked`."""
        return Counter(kind for kind, _ in self.looked)


NOTHING_KNOWN = Known()


@dataclass(frozen=True)
class _Beside:
    """The facts of an object in its subject's rows, beside its row in the table of objects."""

    finding: Finding | None
    facts: Facts
    met_in: tuple[str, ...]
    stopped_for: str | None
    last_run: str | None


@dataclass(frozen=True)
class Need:
    """One object that needs attention. `need`: one of `REASONS`. `since`: the first time that is known; `since_seen`:
    that of the look which found it, so it may be older. `run`: key of the task that met it last, if `run_met`; else of
    the task that touched the object last. `advice`: the way out. `acts`: those that it is offered. `revision`: the
    token of what is shown. `stopped_for`: the reason of the person who stopped it.
    """

    shown: ShownObject
    need: str
    since: datetime | None
    run: str | None
    advice: Advice
    acts: tuple[ObjectAct, ...]
    revision: str
    stopped_for: str | None = None
    since_seen: bool = False
    run_met: bool = False

    def reason(self, shown: ShownObject) -> str:
        """Why it needs attention, from the object as its reader may see it."""
        said = f"it is {shown.state.replace('_', ' ').lower()}"
        stopped = None if self.stopped_for is None else f"it was stopped: {self.stopped_for}"
        if shown.trouble is not None:
            return one_text(shown.trouble, stopped) or ""
        return said if self.stopped_for is None else f"{said}: {self.stopped_for}"


@dataclass(frozen=True)
class NeedsPage:
    """`total`: how many objects need attention and fit. `counts`: the same by `RANKS`. `kinds`: how many objects live,
    by kind. `not_looked_at`: how many of the wished kinds wait for a look, or for the answer of their logs.
    `following`: the place after which the next page begins; None on the last one.
    """

    total: int
    counts: Mapping[str, int]
    kinds: Mapping[str, int]
    not_looked_at: int
    needs: tuple[Need, ...]
    following: Place | None


def needs_page(
    connection: sa.Connection,
    known: Known,
    wish: ObjectsWish,
    *,
    after: Place | None,
    limit: int | None,
    now: datetime,
) -> NeedsPage:
    """The part of the list after `after`, read from the store alone. The number of its queries does not depend on the
    number of objects.
    """
    findings = findings_of(connection, now)
    found = places(connection, wish, known.late, findings)
    rest = found if after is None else found[bisect_right(found, after) :]
    shown = rest if limit is None else rest[:limit]
    needs = _needs(connection, [place.key for place in shown], known, findings, now)
    still = {(one.shown.kind, one.shown.uid) for one in needs}
    counted = Counter(place.rank for place in found)
    counted.subtract(place.rank for place in shown if place.key not in still)
    kinds = count_kinds(connection)
    return NeedsPage(
        total=counted.total(),
        counts={name: counted[rank] for name, rank in RANKS.items()},
        kinds=kinds,
        not_looked_at=_not_looked_at(known, kinds, wish),
        needs=needs,
        following=shown[-1] if len(shown) < len(rest) else None,
    )


def _not_looked_at(known: Known, kinds: Mapping[str, int], wish: ObjectsWish) -> int:
    looked = known.looked_by_kind
    return sum(max(0, count - looked.get(kind, 0)) for kind, count in kinds.items() if wish.kind in (None, kind))


def look_at_all(store: ControlStore, tables: Tables) -> Known:
    """One look at every object, for a caller who waits: at most 30 seconds for the logs. The objects whose turn in the
    background is longest ago are first.
    """
    return look_at(store, tables, NOTHING_KNOWN, longest_ago(store.read(turns_of)))


def longest_ago(turns: Mapping[Key, datetime]) -> list[Key]:
    """The objects in the order of their last turns."""
    return sorted(turns, key=lambda key: (turns[key], key))


def look_at(
    store: ControlStore,
    tables: Tables,
    known: Known,
    keys: Sequence[Key],
    *,
    rest: float = 0.0,
    patience: timedelta = PATIENCE,
    open_looks: OpenLooks | None = None,
) -> Known:
    """The findings after a look at the logs and lags of these objects, in their order, with the earlier findings. Logs
    that have not answered leave the earlier ones, and their objects count as not looked at. `rest`, `patience`: see
    `ask_logs`. `open_looks`: those of earlier rounds; while they last, their tables are not asked again.
    """
    now = store.clock()

    def kept(connection: sa.Connection) -> tuple[tuple[ShownObject, ...], Mapping[str, LogQuestion]]:
        found = of_keys(connection, keys, now=now)
        return found, questions_behind(connection, found)

    found, questions = store.read(kept)
    ordered = {uid: questions[uid] for _, uid in keys if uid in questions}
    asked = (open_looks or OpenLooks()).next_round(ordered)
    answers = asked.no_answers | ask_logs(asked.questions, tables, rest=rest, patience=patience, around=asked.opened)
    silent = {(one.kind, one.uid) for one in found if one.uid in questions and answers[one.uid] is None}
    usual = _without(known.usual, set(keys) - silent) | usual_behind(store, found, answers, now)
    seen, late, since = dict(known.seen), dict(known.late), dict(known.since)
    for one, told in zip(found, judged(found, answers, usual, now), strict=True):
        key = (one.kind, one.uid)
        if key in silent:
            continue
        if one.uid in questions:
            seen[key] = (questions[one.uid].holds_for, answers[one.uid])
        if told.severity in _PROBLEMS and (told.severity is not one.severity or one.notice is not None):
            late[key] = told.severity
            since.setdefault(key, now)
        else:
            late.pop(key, None)
            since.pop(key, None)
    waiting = frozenset(key for key in silent if asked.waits(key[1]))
    return Known(seen, late, since, known.looked.union(keys) - silent, store.clock(), usual, waiting)


def without_ended(known: Known, living: Collection[Key]) -> Known:
    """The same without objects that live no more."""
    return Known(
        {key: value for key, value in known.seen.items() if key in living},
        {key: value for key, value in known.late.items() if key in living},
        {key: value for key, value in known.since.items() if key in living},
        known.looked.intersection(living),
        known.looked_at,
        {key: value for key, value in known.usual.items() if key in living},
    )


def _without(usual: Mapping[Key, UsualLag], keys: Collection[Key]) -> dict[Key, UsualLag]:
    return {key: lag for key, lag in usual.items() if key not in keys}


def _needs(
    connection: sa.Connection,
    keys: Sequence[Key],
    known: Known,
    findings: Mapping[Key, Finding],
    now: datetime,
) -> tuple[Need, ...]:
    found = of_keys(connection, keys, now=now)
    questions = questions_behind(connection, found)
    seen = {uid: still_holds(known.seen.get(key), questions.get(uid)) for key in keys for uid in (key[1],)}
    beside = dict(_beside(connection, found, findings))
    needs: list[Need | None] = []
    for one, told in zip(found, judged(found, seen, known.usual, now), strict=True):
        key = (one.kind, one.uid)
        if key in beside:
            needs.append(_need(one, told, beside[key], known.since.get(key), _crossed(told, now)))
    return tuple(one for one in needs if one is not None)


def _crossed(told: ShownObject, now: datetime) -> datetime | None:
    """When the lag became longer than the usual one allows; None: it is not."""
    if told.usual_seconds is None:
        return None
    limit = UsualLag(told.usual_seconds).limit
    return now - timedelta(seconds=told.lag_seconds or 0.0) + timedelta(seconds=round(limit))


def still_holds(answer: tuple[tuple[Hashable, ...], Seen] | None, question: LogQuestion | None) -> Seen:
    """The answer, if the object is where it was when its logs were asked."""
    same = answer is not None and question is not None and answer[0] == question.holds_for
    return answer[1] if same and answer is not None else None


def _beside(
    connection: sa.Connection, found: Sequence[ShownObject], findings: Mapping[Key, Finding]
) -> Iterator[tuple[Key, _Beside]]:
    for kind in dict.fromkeys(one.kind for one in found):
        own = [one for one in found if one.kind == kind]
        uids = [one.uid for one in own]
        facts, stops = facts_of(connection, kind, uids), stops_of(connection, kind, own)
        last = kind_named(kind).last_runs_of(connection, uids)
        for entry in kind_named(kind).entries(connection, uids):
            if entry.uid in facts:
                key, run = (kind, entry.uid), last.get(entry.uid)
                why = stops.get(entry.uid) or entry.stopped_for
                task = run if dag_of(run) is not None else None  # others have no page in Airflow
                yield key, _Beside(findings.get(key), facts[entry.uid], entry.met_in, why, task)


def _need(
    one: ShownObject, told: ShownObject, beside: _Beside, found_since: datetime | None, crossed: datetime | None
) -> Need | None:
    """None for an object that has moved on since a look at its log. `crossed`: the time since when it is behind its
    usual lag.
    """
    finding = beside.finding
    states = frozenset({one.state} | (set() if finding is None else {finding.state}))
    need = _named(one, told, finding, by_usual=crossed is not None)
    if need is None:
        return None
    locked = finding is not None and need == "locked"
    shown = told if finding is None else _with_finding(told, finding, locked=locked)
    dated = told.since if told.state != one.state else None
    known_since = crossed or dated or found_since or told.since or (one.since if one.severity in _PROBLEMS else None)
    since = finding.since if finding is not None and locked else known_since
    met = (finding.run if finding is not None and locked else None) or next(iter(beside.met_in), None)
    return Need(
        shown=shown,
        need=need,
        since=since,
        run=met or beside.last_run,
        run_met=met is not None,
        advice=_advice(need, shown),
        acts=offered(one.kind, states, beside.facts),
        revision=token_of(beside.facts),
        stopped_for=beside.stopped_for,
        since_seen=since is not None and since is found_since,
    )


def _advice(need: str, shown: ShownObject) -> Advice:
    if need == "behind_usual":
        return _OF_USUAL.of(shown.name, shown.kind)  # {within} is the kind here
    return kind_named(shown.kind).advice_for("" if need == "behind" else shown.state, shown.own_name, shown.within)


def _named(one: ShownObject, told: ShownObject, finding: Finding | None, *, by_usual: bool) -> str | None:
    if told.severity is Severity.FAILED:
        return "failed"
    if finding is not None:
        return "locked"
    if one.state in kind_named(one.kind).stopped:
        return "stopped"
    if told.severity is not Severity.WARNING:
        return None
    if by_usual:
        return "behind_usual"
    return "behind" if one.notice is not None and one.problem is None else "warning"


def _with_finding(told: ShownObject, finding: Finding, *, locked: bool) -> ShownObject:
    """The words of the finding are shown beside those of a worse state."""
    shown = replace(told, notice=one_text(told.notice, finding.words))
    return replace(shown, state=finding.state, severity=Severity.WARNING, since=finding.since) if locked else shown
