"""The files that VACUUM may take from a table, and how long it must keep files and commits, for its streams (R88)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil

from tidemark.changes.planning.removals import UNKNOWN, KeptBytes, Removal, kept_bytes
from tidemark.model.codec import to_plain
from tidemark.model.streams import TableRef
from tidemark.streams.planning.alterations import Settings
from tidemark.streams.planning.staleness import (
    EXTENSION,
    FILE_RETENTION,
    LOG_RETENTION,
    OWN_RETENTION,
    Retention,
    Stretched,
    file_retention,
    interval,
    retention_of,
    stretched_from,
)

__all__ = ["Holding", "Losing", "Need", "TableFacts", "VacuumPlan", "plan_vacuum"]

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_MANAGED = (EXTENSION, FILE_RETENTION, LOG_RETENTION, OWN_RETENTION)  # what settings follow from
LEAD = _DAY  # stretched so long before a file or commit would be lost: the next VACUUM of ours may be a day away


@dataclass(frozen=True)
class Need:
    """A live stream on the table: versions behind its offset were taken, and until `until` (STALE_AFTER) it may
    continue.

    `offset_time`: when the version at the offset was committed; log cleanup goes by it. None where that is gone.
    """

    stream: str
    offset: int
    until: datetime
    offset_time: datetime | None


@dataclass(frozen=True)
class TableFacts:
    """The table as it is: its properties, what the commits after the lowest offset removed, and the shortest retention
    since then. A removal older than that retention may have dropped out of Delta's checkpoints.
    """

    table: TableRef
    configuration: Mapping[str, str]
    removed: tuple[Removal, ...] = ()
    shortest: timedelta = timedelta.max


@dataclass(frozen=True)
class Holding:
    """A stream that holds files back past the table's own retention: from its offset on, until `until` at most."""

    stream: str
    offset: int
    until: datetime
    bytes: int


@dataclass(frozen=True)
class Losing:
    """A stream past its limit, nothing is held back for it any more: from `version` on its changes are being lost."""

    stream: str
    offset: int
    until: datetime
    version: int
    files: int
    bytes: int


@dataclass(frozen=True)
class VacuumPlan:
    """The plan of a VACUUM; it says no more than Delta's own retention check allows.

    `settings`: table properties to set first (None: to unset), in the order of `alterations`. `found`: the values of
    the properties that these follow from. If a value has changed since, none is set. `retain_hours`: for VACUUM …
    RETAIN, and `stream_hours` those counted back from `planned_at`: the hours until the job starts come on top.
    `keep_after`: files that commits after this version removed must stay at any age; None: no stream is held for.
    `by_list`: Delta may have forgotten some of that, so VACUUM gets a list of files without it. `kept`: how much
    streams keep.
    """

    table: TableRef
    planned_at: datetime
    retain_hours: int
    stream_hours: int = 0
    keep_after: int | None = None
    by_list: bool = False
    settings: Settings = field(default_factory=dict)
    found: Settings = field(default_factory=dict)
    held_by: tuple[Holding, ...] = ()
    losing: tuple[Losing, ...] = ()
    kept: KeptBytes = field(default_factory=KeptBytes)

    def retain_hours_at(self, started_at: datetime) -> int:
        """The hours for a job that starts then: queues and JVMs take their time, and more is removed until then."""
        waited = max(0, _hours(started_at - self.planned_at))
        return max(self.retain_hours, self.stream_hours + waited if self.stream_hours else 0)


def plan_vacuum(
    facts: TableFacts, needs: Sequence[Need], now: datetime, *, extension: timedelta | None = None, stretch: bool = True
) -> VacuumPlan:
    """Keep what each stream needs until its STALE_AFTER, and else what the table's own retention says.

    `extension`: the property `tidemark.maxDataExtension` to be set (None: it stays). `stretch`: Delta's own retention
    properties are lengthened while a stream needs it. Other VACUUMs and log cleanup then leave it its files. The
    properties are put back when no stream needs it; without `stretch`, they are put back now.
    """
    own = retention_of(facts.configuration)
    own = own if extension is None else replace(own, extension=extension)
    held = [need for need in needs if now <= need.until]
    keep_after = min((need.offset for need in held), default=None)
    needed = () if keep_after is None else _after(facts.removed, keep_after)
    oldest = min((one.removed_at for one in needed if one.removed_at > UNKNOWN), default=now)
    wanted = _wanted(own, held, oldest, now) if stretch else {}
    settings = _extension(facts.configuration, extension) | _stretched(facts.configuration, wanted)
    stream_hours = max(int(bool(held)), _hours(now - oldest) + 1 if needed else 0)
    return VacuumPlan(
        table=facts.table,
        planned_at=now,
        retain_hours=max(_hours(file_retention(_after_setting(facts.configuration, settings))), stream_hours),
        stream_hours=stream_hours,
        keep_after=keep_after,
        by_list=bool(held) and _may_be_forgotten(facts, own.files, needed, now),
        settings=settings,
        found={name: facts.configuration.get(name) for name in _MANAGED},
        held_by=tuple(_holdings(held, facts.removed, own, now)),
        losing=tuple(_losses([need for need in needs if now > need.until], facts.removed, own, keep_after, now)),
        kept=kept_bytes(needed, own.files, now),
    )


def _may_be_forgotten(facts: TableFacts, own: timedelta, needed: Iterable[Removal], now: datetime) -> bool:
    """By Delta, when the job runs: that may be hours later, and more may have been removed by then."""
    forgotten = min(facts.shortest, own - _lead(own))
    return own < _DAY or any(now - one.removed_at > forgotten for one in needed)


def _holdings(held: Iterable[Need], removed: Sequence[Removal], own: Retention, now: datetime) -> Iterable[Holding]:
    for need in held:
        kept = kept_bytes(_after(removed, need.offset), own.files, now)
        if kept.bytes_past_retention:
            yield Holding(need.stream, need.offset, need.until, kept.bytes_past_retention)


def _losses(
    late: Iterable[Need], removed: Sequence[Removal], own: Retention, keep_after: int | None, now: datetime
) -> Iterable[Losing]:
    """The losses of each late stream; files that others' offsets keep are not lost yet."""
    for need in late:
        lost = [
            one
            for one in _after(removed, need.offset)
            if now - one.removed_at > own.files and (keep_after is None or one.version <= keep_after)
        ]
        if lost:
            sizes = kept_bytes(lost, own.files, now)
            first = min(one.version for one in lost)
            yield Losing(need.stream, need.offset, need.until, first, len(lost), sizes.bytes)


def _extension(configuration: Mapping[str, str], wanted: timedelta | None) -> dict[str, str | None]:
    if wanted is None or interval(configuration.get(EXTENSION), timedelta(-1)) == wanted:
        return {}
    return {EXTENSION: _in_days(wanted)}


def _wanted(own: Retention, held: Sequence[Need], oldest: datetime, now: datetime) -> dict[str, timedelta]:
    """The values that Delta's properties must have for these streams; none if the table's own suffice.

    Files: one stretch to the limit rather than a commit a day. The log: for as long as the streams may need it and as
    long again as it is kept by itself. So a stream on a quiet table does not stretch it daily. It is never kept for
    less time than files, which Delta refuses.
    """
    limit = own.extended if own.extension is not None else own.files
    wanted: dict[str, timedelta] = {}
    if limit > own.files and now - oldest > own.files - _lead(own.files):
        wanted[FILE_RETENTION] = limit
    offsets = [(need.until - need.offset_time, now - need.offset_time) for need in held if need.offset_time]
    if any(age > own.log - _lead(own.log) for _, age in offsets):
        wanted[LOG_RETENTION] = max(limit, own.log + max(needed for needed, _ in offsets))
    elif wanted and limit > own.log:
        wanted[LOG_RETENTION] = limit
    return wanted


def _stretched(configuration: Mapping[str, str], wanted: Mapping[str, timedelta]) -> dict[str, str | None]:
    """The properties to set; a log that is stretched far enough stays as it is."""
    current = stretched_from(configuration)
    log = current.get(LOG_RETENTION)
    own_log = interval(log.own, timedelta(days=30)) if log else timedelta()
    if log and LOG_RETENTION in wanted and interval(log.now, timedelta()) >= wanted[LOG_RETENTION] - own_log:
        wanted = {**wanted, LOG_RETENTION: max(wanted.get(FILE_RETENTION, timedelta()), interval(log.now, timedelta()))}
    if {name: _in_days(time) for name, time in wanted.items()} == {name: one.now for name, one in current.items()}:
        return {OWN_RETENTION: None} if not current and OWN_RETENTION in configuration else {}
    return _properties(configuration, current, wanted)


def _properties(
    configuration: Mapping[str, str], current: Mapping[str, Stretched], wanted: Mapping[str, timedelta]
) -> dict[str, str | None]:
    own = {name: current[name].own if name in current else configuration.get(name) for name in {*current, *wanted}}
    stretched = {name: Stretched(own[name], _in_days(time)) for name, time in sorted(wanted.items())}
    back = {name: value for name, value in own.items() if name not in wanted}
    note = json.dumps(to_plain(stretched), sort_keys=True) if stretched else None
    return {**back, **{name: one.now for name, one in stretched.items()}, OWN_RETENTION: note}


def _after_setting(configuration: Mapping[str, str], settings: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**configuration, **settings}.items() if value is not None}


def _lead(retention: timedelta) -> timedelta:
    return min(LEAD, retention / 2)


def _after(removed: Iterable[Removal], version: int) -> tuple[Removal, ...]:
    return tuple(one for one in removed if one.version > version)


def _in_days(time: timedelta) -> str:
    return f"interval {ceil(time / _DAY)} days"


def _hours(time: timedelta) -> int:
    return ceil(time / _HOUR)
