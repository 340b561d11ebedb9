"""The landing tables that tasks wrote or kept through channels, and the last task of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sqlalchemy as sa

from tidemark.channels.store.landing_tables import KIND
from tidemark.channels.store.schema import landing_tables
from tidemark.control.newest import values_of_each
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.samples import newest_run, sums_of_runs

__all__ = ["landing_runs", "landings_of_runs"]

_of = landing_tables.c


def landing_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task that wrote or kept each last. Programs that are no task are not known. One query."""
    return values_of_each(connection, _of.uid, uids, newest_run(KIND, _of.uid))


def landings_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The landing tables that these tasks wrote or kept, by uid, with rows, channels and files. One query."""
    found = sums_of_runs(connection, KIND, part)
    return {uid: Touch("; ".join(_words(sums))) for uid, sums in found.items()}


def _words(sums: Mapping[str, float]) -> Iterator[str]:
    """A part for each sort of work that is among the figures."""
    if "rows" in sums:
        bad = round(sums["errors"])
        yield f"{round(sums['rows']):,} rows ingested" + (f", {bad:,} did not fit" if bad else "")
    if "swept" in sums:
        files = f"{round(sums['removed']):,} files compacted into {round(sums['added']):,}"
        yield f"upkeep: {round(sums['swept']):,} channels removed, {files}"
    if "altered" in sums:
        times = round(sums["altered"])
        yield "a channel altered" if times == 1 else f"channels altered {times:,} times"
