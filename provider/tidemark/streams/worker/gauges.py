"""Gauges of every object, by one look at store and logs: lag, time to stale, severity, and what needs attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_kinds import KINDS, Severity, kind_named
from tidemark.control.object_list import ObjectsWish, ShownObject, show_all
from tidemark.control.store import ControlStore
from tidemark.model.readings import Reading
from tidemark.streams.worker.object_needs import look_at_all, needs_page
from tidemark.streams.worker.object_states import Seen, judged
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus

__all__ = ["look_for_gauges", "readings_of"]

_RANKS = {Severity.OK: 0, Severity.WAITING: 1, Severity.WARNING: 2, Severity.FAILED: 3}


def look_for_gauges(store: ControlStore, tables: Tables) -> tuple[Reading, ...]:
    """The gauges of all objects now. Logs are waited for as by the overview, and nothing is stored. Raises
    StoreError.
    """
    known = look_at_all(store, tables)
    now = store.clock()

    def kept(connection: sa.Connection) -> tuple[tuple[ShownObject, ...], Mapping[str, int]]:
        page = needs_page(connection, known, ObjectsWish(), after=None, limit=1, now=now)
        return show_all(connection, ObjectsWish(), now=now), page.counts

    found, needs = store.read(kept)
    seen = {uid: answer for (_, uid), (_, answer) in known.seen.items()}
    return tuple(readings_of(judged(found, seen, known.usual, now), seen, needs, now))


def readings_of(
    found: Sequence[ShownObject], seen: Mapping[str, Seen], needs: Mapping[str, int], now: datetime
) -> Iterator[Reading]:
    """The gauges of these objects, with the answers of their logs by uid, and the counts of those that need attention.
    Every kind and severity has a count, so that none keeps an old number. An object whose log has not answered
    has a severity, and is counted, only if the store knows a problem.
    """
    known = [one for one in found if _is_known(one, seen.get(one.uid))]
    counted = Counter((one.kind, one.severity) for one in known)
    for kind in KINDS:
        for severity in Severity:
            yield Reading("objects", counted[kind, severity], {"kind": kind, "severity": severity.value})
    yield from (Reading("needs", count, {"need": need}) for need, count in needs.items())
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
