"""The findings in the targets' logs before a plan is written ahead (PROTOCOL steps 1, 6 and 7), and that plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from tidemark.control.kept_tables import require_not_kept
from tidemark.control.store import ControlStore
from tidemark.delivery.planning.quarantine import quarantine_problem
from tidemark.delivery.planning.stream_numbers import RETENTION, InspectedTarget, inspect_target
from tidemark.errors import (
    InvalidArgument,
    NotADeltaTable,
    QuarantineDoesNotFit,
    TableNotFound,
    TargetForgetsTransactions,
    TargetNotDelta,
    TargetNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, Statement, WriteAs
from tidemark.model.streams import Addressing, TableRef
from tidemark.model.table_log import Metadata
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.sources import Tables

__all__ = [
    "RETENTION",
    "TargetHead",
    "look_at_targets",
    "open_target",
    "plan_statements",
    "require_memory",
    "retention",
]

SECONDS = {
    "week": 604_800.0,
    "day": 86_400.0,
    "hour": 3_600.0,
    "minute": 60.0,
    "second": 1.0,
    "millisecond": 0.001,
    "microsecond": 0.000_001,
}


@dataclass(frozen=True)
class TargetHead:
    """A target as it was read before begin's transaction: identity, newest version, numbers of streams in it.
    `problem`: why it cannot be the quarantine that it is to be. `schema_json`: its columns.
    """

    write: PlannedWrite
    table: TableRef
    version: int
    inspected: InspectedTarget
    problem: str | None = None
    schema_json: str = "{}"


def look_at_targets(
    store: ControlStore, writes: Sequence[PlannedWrite], tables: Tables, limits: Limits
) -> tuple[TargetHead, ...]:
    """The targets of `writes`, in order. Raises TargetNotFound, TargetNotDelta, TargetForgetsTransactions,
    QuarantineDoesNotFit. A target with the rows of a kept query is TargetIsKept, but for its refresh.
    """
    heads = tuple(_look(write, tables, limits) for write in writes)
    written = [head for head in heads if head.write.write_as is not WriteAs.REFRESH]
    require_not_kept(store, {head.table.path: head.write.target for head in written})
    _require_quarantines(heads)
    return heads


def open_target(target: TableRef | str, tables: Tables, *, at: str | None = None) -> DeltaLog:
    """The log of a target, which is at the path `at` if that is known. Raises TargetNotFound, TargetNotDelta."""
    name = target.name if isinstance(target, TableRef) else target
    try:
        return tables(target if at is None else at)
    except TableNotFound as error:
        raise TargetNotFound(target=name, hint=error.hint) from error
    except NotADeltaTable as error:
        raise TargetNotDelta(target=name, problem=error.facts.get("problem", str(error))) from error


def plan_statements(lead: str, serial: int, heads: Sequence[TargetHead], *, first: int) -> tuple[Statement, ...]:
    """Statements numbered from `first` on, each with the Delta transaction that makes it happen once (step 7).

    `lead`: uid of the lead stream; for a replay with its serial, so that it shuts out no other write of it.
    """
    return tuple(
        Statement(
            number=number,
            write=head.write,
            target=head.table,
            base_version=head.version,
            app_id=f"tidemark/{lead}/{number}",
            txn_version=serial,
        )
        for number, head in enumerate(heads, start=first)
    )


def retention(setting: str) -> timedelta:
    """The length of a Delta interval such as `interval 1 week 2 days`. Raises InvalidArgument for what is none."""
    text = setting.strip().lower().removeprefix("interval").strip().strip("'\"")
    parts = re.findall(r"(\d+)\s*([a-z]+?)s?(?=\s|$)", text)
    if not parts or any(unit not in SECONDS for _, unit in parts):
        raise InvalidArgument(argument=RETENTION, value=setting, problem="not an interval of weeks to microseconds")
    try:
        return timedelta(seconds=sum(int(count) * SECONDS[unit] for count, unit in parts))
    except (OverflowError, ValueError):  # more digits than a number may have
        return timedelta.max


def require_memory(target: str, metadata: Metadata, limits: Limits) -> None:
    """The target remembers transactions for as long as a window may be pinned (step 6, V9)."""
    setting = metadata.configuration.get(RETENTION)
    if setting is not None and retention(setting) < limits.longest_pin:
        raise TargetForgetsTransactions(target=target, retention=setting, needed=str(limits.longest_pin))


def _look(write: PlannedWrite, tables: Tables, limits: Limits) -> TargetHead:
    log = open_target(write.target, tables, at=write.tables.get(write.target))
    version = log.head()
    state = log.state(version)
    metadata = state.metadata
    require_memory(write.target, metadata, limits)
    problem = quarantine_problem(metadata.schema_json) if write.write_as is WriteAs.QUARANTINE else None
    table = TableRef(write.target, log.uri, metadata.table_id, Addressing.PATH)
    return TargetHead(write, table, version, inspect_target(table, state), problem, metadata.schema_json)


def _require_quarantines(heads: Sequence[TargetHead]) -> None:
    """A quarantine has the columns of one and is no target of the same plan; several statements may share one."""
    for target, head in pairwise(heads):
        if head.write.write_as is not WriteAs.QUARANTINE:
            continue
        itself = any(h.table.table_id == head.table.table_id for h in heads if h.write.write_as != head.write.write_as)
        problem = "it is a target of the same plan" if itself else head.problem
        if problem is not None:
            raise QuarantineDoesNotFit(quarantine=head.write.target, target=target.write.target, problem=problem)
