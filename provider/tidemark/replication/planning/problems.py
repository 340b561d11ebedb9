"""The meaning of a source's problems for a replication that runs: one bad table stops no other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.replication.model.replication import Hinders, ReplicatedObject, SourceProblem
from tidemark.replication.planning.lifecycle import why_no_backfill

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True)
class Verdict:
    """`stops`: problems that stop everything; `unsupported`: source id → why its table cannot be replicated;
    `warnings`.
    """

    stops: tuple[str, ...] = ()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def judge(problems: Sequence[SourceProblem], known: Collection[ReplicatedObject]) -> Verdict:
    """`known`: the objects that are registered. If tables are in each other's way, the tables that are replicated
    already continue. A table that cannot be copied, but was, continues: its changes still come.
    """
    living = {one.source_id: one for one in known if why_no_backfill(one) is None}
    unsupported: dict[str, str] = {}
    warnings: list[str] = []
    for problem in problems:
        if problem.hinders is Hinders.REPLICATION:
            continue
        hit = _hit(problem, living)
        for source_id in hit:
            unsupported[source_id] = "; ".join(filter(None, (unsupported.get(source_id), problem.text)))
        if not hit:
            warnings.append(problem.text)
    stops = tuple(one.text for one in problems if one.hinders is Hinders.REPLICATION)
    return Verdict(stops, unsupported, tuple(warnings))


def _hit(problem: SourceProblem, living: Mapping[str, ReplicatedObject]) -> tuple[str, ...]:
    ids = problem.source_ids
    if problem.hinders is Hinders.BACKFILL:
        return tuple(one for one in ids if one not in living or living[one].applied is None)
    if problem.hinders is Hinders.TABLE:
        return ids if len(ids) == 1 else tuple(one for one in ids if one not in living)
    return ()
