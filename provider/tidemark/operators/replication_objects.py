"""The objects of a replication: backfilled, applied, requested."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark.operators._base import key_of, one_of
from tidemark.operators._constants import check_constants
from tidemark.operators._deferring import DeferrableOperator
from tidemark.operators._partitions import number_of
from tidemark.operators._replication import (
    Names,
    ReplicationOperator,
    Transfer,
    announce,
    by_of,
    default_outlets,
    jdbc_packages,
    label_of,
    lineage_of,
    names_of,
    place_text,
)
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from tidemark.model.source_address import SourceAddress
    from tidemark.replication.model.jobs import BackfillReport
    from tidemark.streams.worker.runtime import Runtime

    Lineage = OperatorLineage[Any, Any]

__all__ = ["ApplyEventsOperator", "BackfillObjectOperator", "RequestBackfillOperator"]

_ACTIONS = ("start", "restart", "stop")


class BackfillObjectOperator(SparkOperator, ReplicationOperator):
    """Copies an object as of one exact position of the source's log, while the source is written and captured. A mirror
    with a key of a MySQL or MariaDB is exact once the events after that position are applied.

    It runs where a backfill was requested, failed, or was begun by this run; else it ends as skipped and says why. Rows
    and percent are said in the task's log and kept in the control store. A target that is ahead already never goes
    back: the copy catches up first and then takes its place. A retry begins from the start, under a new number; what a
    late double of it writes is known as old. Stopping it (RequestBackfillOperator) ends its job. Returns {replication,
    object, rows, snapshot, applied, found}.

    Several objects are copied in one job, one after another, each as of a position of its own. An object that fails
    stops no other, and fails the task only if no other was copied. A stop of one object does not end the job. Returns
    {replication, objects: {name: rows}, left, failed: {name: reason}} then. Raises ReplicationNotFound, ObjectNotFound,
    ObjectNotReplicable, BackfillInterrupted, TargetMovedOn, TargetLost, TargetNotDelta, ReplicationRefused,
    ObjectFailed, ValueDoesNotFit, SlotBlocked, SourceIsAnother, SourceUnreachable, SourceRefused, InvalidArgument.

    :param replication: its name. (templated)
    :param object_name: `schema.table` in the source, or a list of small tables. (templated)
    :param partitions: the number of parts that are read in parallel; small tables of a list are read in one part.
        (templated)
    """

    template_fields: Sequence[str] = ("replication", "object_name", "partitions", "conn_id")

    def __init__(
        self, *, replication: str, object_name: str | Sequence[str], partitions: int | str = 4, **kwargs: Any
    ) -> None:
        kwargs["map_index_template"] = kwargs.get("map_index_template") or "{{ task.label }}"  # `partial` gives None
        kwargs.setdefault("outlets", default_outlets(replication))
        super().__init__(**kwargs)
        self.replication = replication
        self.object_name = object_name
        self.partitions = partitions
        self._transfers: list[Transfer] = []
        check_constants(self, partitions=number_of)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The tables that were read and written; None if there was nothing to do."""
        return lineage_of(self._transfers)

    def execute(self, context: Context) -> dict[str, Any]:
        """The report of the copy, or of all copies."""
        from tidemark.hooks.source_connection import source_address
        from tidemark.replication.worker.definitions import get_replication

        partitions = number_of("partitions", self.partitions)
        store = self.hook.open_store()
        replication = get_replication(store, self.replication)
        address = source_address(replication.source_conn_id)
        runtime = self.runtime(source=address, packages=jdbc_packages(self.hook, replication.kind))
        names = self._names()
        if len(names) == 1:
            return self._copy(context, runtime, address, names[0], partitions)
        return self._copy_all(context, runtime, address, names)

    @property
    def label(self) -> str:
        """The names, for the map index."""
        return label_of(self._names())

    def _names(self) -> tuple[str, ...]:
        one = self.object_name
        return (one,) if isinstance(one, str) else names_of("object_name", one)

    def _copy(
        self, context: Context, runtime: Runtime, address: SourceAddress, name: str, partitions: int
    ) -> dict[str, Any]:
        from tidemark.operators._backfill_progress import read_progress
        from tidemark.replication.worker.backfill import run_backfill
        from tidemark.replication.worker.objects import get_object

        outcome = run_backfill(
            runtime,
            get_object(runtime.store, self.replication, name).uid,
            by=by_of(context),
            cancel=self.cancel_job,
            read_progress=read_progress,
            partitions=partitions,
            key=key_of(context),
        )
        if outcome.report is None:
            raise AirflowSkipException(f"{name}: {outcome.reason}")
        facts = self._tell(context, address, name, outcome.report)
        self.log.info("%s: %s rows as of %s", name, facts["rows"], facts["snapshot"])
        return facts

    def _copy_all(
        self, context: Context, runtime: Runtime, address: SourceAddress, names: Sequence[str]
    ) -> dict[str, Any]:
        """One job for all. The task fails with the first error if nothing was copied."""
        from tidemark.replication.worker.backfills import run_backfills
        from tidemark.replication.worker.objects import objects_named

        wanted = {one.uid: one.name.text for one in objects_named(runtime.store, self.replication, names)}
        outcomes = run_backfills(runtime, list(wanted), by=by_of(context), cancel=self.cancel_job, key=key_of(context))
        reports = {wanted[uid]: one.report for uid, one in outcomes.items() if one.report is not None}
        left = {wanted[uid]: one.reason for uid, one in outcomes.items() if one.reason is not None}
        failed = {wanted[uid]: one.error for uid, one in outcomes.items() if one.error is not None}
        for name, error in failed.items():
            self.log.error("%s failed, the others do not wait for it: %s", name, error)
        if not reports and failed:
            raise next(iter(failed.values()))
        if not reports:
            raise AirflowSkipException("; ".join(f"{name}: {why}" for name, why in left.items()))
        for name, report in reports.items():
            self._tell(context, address, name, report)
        self.log.info("%s objects are copied, %s are left, %s failed", len(reports), len(left), len(failed))
        return {
            "replication": self.replication,
            "objects": {name: report.rows for name, report in reports.items()},
            "left": left,
            "failed": {name: str(error) for name, error in failed.items()},
        }

    def _tell(self, context: Context, address: SourceAddress, name: str, report: BackfillReport) -> dict[str, Any]:
        """An asset event and the lineage of a copy; returns its facts."""
        facts = {
            "replication": self.replication,
            "object": name,
            "rows": report.rows,
            "snapshot": place_text(report.snapshot),
            "applied": place_text(report.applied),
            "found": report.found,
        }
        self._transfers.append(Transfer.from_source(address, [name], report.target.path, report.rows))
        announce(self, context, self.replication, name, {**facts, "kind": "backfill"})
        return facts


class ApplyEventsOperator(DeferrableOperator, ReplicationOperator):
    """Applies what was captured to the targets in one job: in the order of commits, folded by key, each event once.

    Each range is written ahead; each piece of it is one commit with a mark that is read back. So a retry, a clear and a
    late double apply nothing twice. If nothing is new, no JVM starts. An object that needs a backfill first, or that
    another run applies now, is left out. An object that fails stops no other. It fails the task only if no other was
    applied; else FinishReplicationOperator fails for it. Returns {replication, events, objects, quiet, left, failed}.
    `objects`: {name: {from, to, events, rows, segments, found, lag_seconds, needs_backfill}}; `left`, `failed`: {name:
    reason}. Of more than 100 objects those with nothing new are counted (`quiet`). `needs_backfill`: why only a
    backfill can continue from there. If all objects that were named are left out, the task ends as skipped. Raises
    ReplicationNotFound, ObjectNotFound, ObjectFailed, ValueDoesNotFit, ToastedKey, TargetMovedOn, TargetLost,
    TargetNotDelta, ReplicationRefused, EventLogChanged, InvalidArgument.

    :param replication: its name. (templated)
    :param objects: `schema.table` in the source, a list of them, or as text separated by commas. None: every object
        whose events can be applied now. (templated)
    :param leave: objects that other tasks of the run apply, in the same form. (templated)
    """

    template_fields: Sequence[str] = ("replication", "objects", "leave", "conn_id")

    def __init__(self, *, replication: str, objects: Names = None, leave: Names = None, **kwargs: Any) -> None:
        kwargs["map_index_template"] = kwargs.get("map_index_template") or "{{ task.label }}"  # `partial` gives None
        kwargs.setdefault("outlets", default_outlets(replication))
        super().__init__(**kwargs)
        self.replication = replication
        self.objects = objects
        self.leave = leave
        self._transfers: list[Transfer] = []
        check_constants(self, objects=names_of, leave=names_of)

    @property
    def label(self) -> str:
        """The names, for the map index."""
        return label_of(names_of("objects", self.objects))

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The event log and the targets; None if there was nothing to do."""
        return lineage_of(self._transfers)

    def execute(self, context: Context) -> dict[str, Any]:
        """The report of the apply; if nothing is new the same with `events` 0."""
        from tidemark.operators._applied import apply_share
        from tidemark.replication.model.jobs import APPLY_EVENTS
        from tidemark.replication.worker.run_work import objects_named, objects_together

        named, leave = names_of("objects", self.objects), names_of("leave", self.leave)
        store, key = self.hook.open_store(), key_of(context)
        if named:
            share = objects_named(store, self.replication, named, key=key)
        else:
            share = objects_together(store, self.replication, key=key, leave=leave)
        applied = apply_share(self.runtime(leaves=(APPLY_EVENTS,)), self.replication, share, context)
        applied.say(self.log)
        if applied.failed and not applied.objects:
            raise applied.first_error()
        if named and not applied.objects:
            raise AirflowSkipException("; ".join(f"{name}: {why}" for name, why in applied.left.items()))
        self._transfers = list(applied.moved.values())
        applied.announce(self, context, self.replication)
        return applied.in_plain(self.replication)


class RequestBackfillOperator(ReplicationOperator):
    """Requests, restarts or stops backfills of single objects. No Spark.

    `start` has the next run backfill them; one that is under way is left alone, which `restart` begins again. `stop`
    ends them; a stopped one begins from the start when it is requested again. The same objects a second time change
    nothing. Without objects it ends as skipped, so it may precede every run. Returns {replication, action, objects:
    {name: state}}. Raises ReplicationNotFound, ObjectNotFound, ObjectNotReplicable, InvalidArgument; nothing is
    requested then.

    :param replication: its name. (templated)
    :param objects: `schema.table`, a list of them, or as text separated by commas. (templated)
    :param action: `start`, `restart` or `stop`. (templated)
    """

    template_fields: Sequence[str] = ("replication", "objects", "action", "conn_id")

    def __init__(self, *, replication: str, objects: Names, action: str = "start", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.objects = objects
        self.action = action
        check_constants(self, objects=names_of, action=partial(one_of, _ACTIONS))

    def execute(self, context: Context) -> dict[str, Any]:
        """The state of each object after it."""
        from tidemark.replication.worker.objects import request_backfill, stop_backfill

        names, action = names_of("objects", self.objects), one_of(_ACTIONS, "action", self.action)
        if not names:
            raise AirflowSkipException("No object was named.")
        store, by = self.hook.open_store(), by_of(context)
        if action == "stop":
            requested = stop_backfill(store, self.replication, names, by=by)
        else:
            requested = request_backfill(store, self.replication, names, by=by, restart=action == "restart")
        states = {one.name.text: one.state.value for one in requested}
        self.log.info("%s: %s", action, states)
        return {"replication": self.replication, "action": action, "objects": states}
