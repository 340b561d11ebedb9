"""Gauges of every object, by one look at store and logs: lag, time to stale, severity, and what needs attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa

from tidemark.control.looks import not_looked_at, turns_of
from tidemark.control.object_kinds import KINDS, Severity, kind_named
from tidemark.control.object_list import ObjectsWish, ShownObject, show_all
from tidemark.control.store import ControlStore
from tidemark.model.readings import Reading
from tidemark.streams.worker.look_turns import look_in_turn
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, longest_ago, needs_page
from tidemark.streams.worker.object_states import Seen, judged
from tidemark.streams.worker.open_looks import OpenLooks
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus

__all__ = ["Counts", "look_for_gauges", "readings_of"]

_RANKS = {Severity.OK: 0, Severity.WAITING: 1, Severity.WARNING: 2, Severity.FAILED: 3}


_OPEN_LOOKS = OpenLooks()  # of this process, which may look again and again


@dataclass(frozen=True)
class Counts:
    """`needs`: how many objects need attention, by `RANKS`. `not_looked_at`: how many have had no look for too long, by
    the kinds whose state is in logs.
    """

    needs: Mapping[str, int] = field(default_factory=dict)
    not_looked_at: Mapping[str, int] = field(default_factory=dict)


def look_for_gauges(store: ControlStore, tables: Tables, *, within: timedelta) -> tuple[Reading, ...]:
    """The gauges of all objects now. Logs are waited for as by the overview, those whose turn is longest ago first, and
    the store keeps which have answered. `within`: the time in which each object should have a look.

    Raises StoreError.
    """
    turn = longest_ago(store.read(turns_of))
    known = look_in_turn(store, tables, NOTHING_KNOWN, turn, open_looks=_OPEN_LOOKS)
    now = store.clock()

    def kept(connection: sa.Connection) -> tuple[tuple[ShownObject, ...], Counts]:
        page = needs_page(connection, known, ObjectsWish(), after=None, limit=1, now=now)
        overdue = not_looked_at(connection, now - within)
        return show_all(connection, ObjectsWish(), now=now), Counts(page.counts, overdue)

    found, counts = store.read(kept)
    seen = {uid: answer for (_, uid), (_, answer) in known.seen.items()}
    return tuple(readings_of(judged(found, seen, known.usual, now), seen, counts, now))


def readings_of(
    found: Sequence[ShownObject], seen: Mapping[str, Seen], counts: Counts, now: datetime
) -> Iterator[Reading]:
    """The gauges of these objects, with the answers of their logs by uid, and the counts of the store.
    Every kind and severity has a count, so that none keeps an old number. An object whose log has not answered
    has a severity, and is counted, only if the store knows a problem.
    """
    known = [one for one in found if _is_known(one, seen.get(one.uid))]
    counted = Counter((one.kind, one.severity) for one in known)
    for kind in KINDS:
        for severity in Severity:
            yield Reading("objects", counted[kind, severity], {"kind": kind, "severity": severity.value})
    yield from (Reading("needs", count, {"need": need}) for need, count in counts.needs.items())
    yield from (Reading("objects_not_looked_at", count, {"kind": of}) for of, count in counts.not_looked_at.items())
    for one in found:
        yield from _of_one(one, seen.get(one.uid), now)
    yield Reading("emitted_at", now.timestamp())


def _is_known(one: ShownObject, seen: Seen) -> bool:
    return seen is not None or kind_named(one.kind).look is None or one.severity in (Severity.FAILED, Severity.WARNING)


def _of_one(one: ShownObject, seen: Seen, now: datetime) -> Iterable[Reading]:
    of = {"kind": one.kind, "object": one.name}
    if _is_known(one, seen):
        yield Reading("object_severity", _RANKS[one.severity], of)
    if one.lag_seconds is not None:
        yield Reading("object_lag_seconds", one.lag_seconds, of)
    if one.lag_amount is not None and one.lag_unit is not None:
        yield Reading("object_lag_amount", one.lag_amount, {**of, "unit": one.lag_unit})
    if isinstance(seen, StreamStatus):
        yield Reading("object_hours_to_stale", seen.time_left(now).total_seconds() / 3600, of)
