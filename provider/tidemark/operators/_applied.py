"""Events applied to the objects of a replication by one task, and its report of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import key_of
from tidemark.operators._replication import Transfer, announce, by_of, place_text
from tidemark.operators._replication_status import MOST_TOLD

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from tidemark.errors import TidemarkError
    from tidemark.replication.model.replication import ReplicatedObject
    from tidemark.replication.worker.apply import ApplyOutcome
    from tidemark.replication.worker.run_work import Share
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["Applied", "apply_share"]


@dataclass
class Applied:
    """The results of a task, by object. `objects`: the report of each that was applied, even if nothing was new.
    `left`: why others were not; `failed`: the errors. `moved`: the data of those with new events.
    """

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    failed: dict[str, TidemarkError] = field(default_factory=dict)
    moved: dict[str, Transfer] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """Of all objects."""
        return sum(facts["events"] for facts in self.objects.values())

    def take(self, later: Applied) -> None:
        """Add the results of a later round. An object keeps the report of its last round with events."""
        for name, facts in later.objects.items():
            if facts["events"] or name not in self.objects:
                self.objects[name] = facts
        self.left = later.left
        for name in later.objects:
            self.failed.pop(name, None)
        self.failed |= later.failed
        self.moved |= later.moved

    @property
    def told(self) -> dict[str, dict[str, Any]]:
        """The objects that are reported: all of some, and of many those with events. So a quiet table of a thousand
        costs neither a line of the log nor a part of the XCom.
        """
        if len(self.objects) <= MOST_TOLD:
            return self.objects
        return {name: facts for name, facts in self.objects.items() if facts["events"] or facts["needs_backfill"]}

    def say(self, log: Any) -> None:
        """One line an object."""
        if quiet := len(self.objects) - len(self.told):
            log.info("%s objects: nothing new", quiet)
        for name, facts in self.told.items():
            new = (
                f"{facts['events']} events to {facts['to']}, rows {facts['rows']}" if facts["events"] else "nothing new"
            )
            log.info("%s: %s", name, new)
            if facts["needs_backfill"]:
                log.warning("%s needs a backfill: %s", name, facts["needs_backfill"])
        for name, why in self.left.items():
            log.info("%s is left out: %s", name, why)
        for name, error in self.failed.items():
            log.error("%s failed, the others do not wait for it: %s", name, error)

    def first_error(self) -> TidemarkError:
        """That of the first object, with a note of each other."""
        first, *others = self.failed.items()
        for name, error in others:
            first[1].add_note(f"{name} failed, too: {error}")
        return first[1]

    def announce(self, task: BaseOperator, context: Context, replication: str) -> None:
        """An asset event of each object with new events."""
        for name, facts in self.objects.items():
            if name in self.moved:
                told = {"replication": replication, "object": name, **facts, "kind": "apply"}
                announce(task, context, replication, name, told)

    def in_plain(self, replication: str) -> dict[str, Any]:
        """For XCom."""
        failed = {name: str(error) for name, error in self.failed.items()}
        return {
            "replication": replication,
            "events": self.events,
            "objects": self.told,
            "quiet": len(self.objects) - len(self.told),
            "left": self.left,
            "failed": failed,
        }


def apply_share(runtime: Runtime, replication: str, share: Share, context: Context) -> Applied:
    """Apply what was captured to the share's objects, in one job. An object that failed before has a job of its own, so
    that it stops no other. Raises JobError if the job of the others failed as a whole.
    """
    from tidemark.errors import JobError
    from tidemark.replication.worker.apply import ApplyOutcome, apply_objects

    before, by, key = {one.uid: one for one in share.objects}, by_of(context), key_of(context)
    well = [one.uid for one in share.objects if one.problem is None]
    outcomes = dict(apply_objects(runtime, well, by=by, key=key))
    for uid in before.keys() - outcomes.keys():
        try:
            outcomes |= apply_objects(runtime, (uid,), by=by, key=key)
        except JobError as error:
            outcomes[uid] = ApplyOutcome(error=error)
    found = Applied(left=dict(share.left))
    _tell(found, runtime, replication, before, outcomes)
    return found


def _tell(
    found: Applied,
    runtime: Runtime,
    replication: str,
    before: Mapping[str, ReplicatedObject],
    outcomes: Mapping[str, ApplyOutcome],
) -> None:
    from tidemark.replication.worker.status import describe

    status = describe(runtime.store, replication)
    now = {one.object.uid: one for one in status.objects}
    for uid, outcome in outcomes.items():
        name = before[uid].name.text
        if outcome.error is not None:
            found.failed[name] = outcome.error
        elif outcome.reason is not None and outcome.report is None:
            found.left[name] = outcome.reason
        if outcome.report is None and (outcome.error is not None or outcome.reason is not None):
            continue
        after, report = now[uid].object, outcome.report
        rows = dict(report.rows) if report else {}
        found.objects[name] = {
            "from": place_text(before[uid].applied),
            "to": place_text(after.applied),
            "events": report.events if report else 0,
            "rows": rows,
            "segments": report.segments if report else 0,
            "found": report.found if report else 0,
            "lag_seconds": now[uid].lag_seconds,
            "needs_backfill": after.needs_backfill,
        }
        if report:
            log = status.replication.event_log
            found.moved[name] = Transfer.from_log(log, after.target.path, sum(rows.values()))
