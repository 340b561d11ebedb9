"""The objects of a replication: backfilled, applied, requested."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowSkipException

from tidemark.operators._base import key_of, one_of
from tidemark.operators._constants import check_constants
from tidemark.operators._partitions import number_of
from tidemark.operators._replication import (
    Names,
    ReplicationOperator,
    Transfer,
    by_of,
    default_outlets,
    names_of,
    place_text,
)
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from tidemark.replication.model.replication import ReplicatedObject

    Lineage = OperatorLineage[Any, Any]

__all__ = ["ApplyEventsOperator", "BackfillObjectOperator", "RequestBackfillOperator"]

_ACTIONS = ("start", "restart", "stop")


class _OfObject(SparkOperator, ReplicationOperator):
    """A task for one object of a replication; the map index shows its name."""

    template_fields: Sequence[str] = ("replication", "object_name", "conn_id")

    def __init__(self, *, replication: str, object_name: str, **kwargs: Any) -> None:
        kwargs.setdefault("map_index_template", "{{ task.object_name }}")
        kwargs.setdefault("outlets", default_outlets(replication))
        super().__init__(**kwargs)
        self.replication = replication
        self.object_name = object_name
        self._transfer: Transfer | None = None

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The tables that were read and written; None if there was nothing to do."""
        return None if self._transfer is None else self._transfer.lineage()

    def _object(self) -> ReplicatedObject:
        from tidemark.replication.worker.objects import get_object

        return get_object(self.hook.open_store(), self.replication, self.object_name)

    def _announce(self, context: Context, facts: dict[str, Any]) -> None:
        """An event of the object's own asset, stored together with the task's success."""
        from tidemark.assets import replicated_asset

        asset = replicated_asset(self.replication, self.object_name)
        for outlet in self.outlets:
            if isinstance(outlet, AssetAlias):
                context["outlet_events"][outlet].add(asset, extra=facts)
            else:
                context["outlet_events"][outlet].extra = facts


class BackfillObjectOperator(_OfObject):
    """Copies one object as of one exact position of the source's log, while the source is written and captured.

    It runs where a backfill was requested, failed, or was begun by this run; else it ends as skipped and says why. Rows
    and percent are said in the task's log and kept in the control store. A target that is ahead already never goes
    back: the copy catches up first and then takes its place. A retry begins from the start, under a new number; what a
    late double of it writes is known as old. Stopping it (RequestBackfillOperator) ends its job. Returns {replication,
    object, rows, snapshot, applied, found}. Raises ReplicationNotFound, ObjectNotFound, ObjectNotReplicable,
    BackfillInterrupted, TargetMovedOn, TargetLost, TargetNotDelta, ReplicationRefused, ObjectFailed, ValueDoesNotFit,
    SlotBlocked, SourceIsAnother, SourceUnreachable, SourceRefused, InvalidArgument.

    :param replication: its name. (templated)
    :param object_name: `schema.table` in the source. (templated)
    :param partitions: read it in so many parts at a time. (templated)
    """

    template_fields: Sequence[str] = ("replication", "object_name", "partitions", "conn_id")

    def __init__(self, *, replication: str, object_name: str, partitions: int | str = 4, **kwargs: Any) -> None:
        super().__init__(replication=replication, object_name=object_name, **kwargs)
        self.partitions = partitions
        check_constants(self, partitions=number_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The report of the copy."""
        from tidemark.hooks.source_connection import source_address
        from tidemark.model.spark import POSTGRESQL_PACKAGE
        from tidemark.operators._backfill_progress import read_progress
        from tidemark.replication.worker.backfill import run_backfill
        from tidemark.replication.worker.definitions import get_replication

        partitions = number_of("partitions", self.partitions)
        store, wanted = self.hook.open_store(), self._object()
        address = source_address(get_replication(store, self.replication).source_conn_id)
        outcome = run_backfill(
            self.runtime(source=address, packages=(POSTGRESQL_PACKAGE,)),
            wanted.uid,
            by=by_of(context),
            cancel=self.cancel_job,
            read_progress=read_progress,
            partitions=partitions,
            key=key_of(context),
        )
        if outcome.report is None:
            raise AirflowSkipException(f"{self.object_name}: {outcome.reason}")
        report = outcome.report
        facts = {
            "replication": self.replication,
            "object": self.object_name,
            "rows": report.rows,
            "snapshot": place_text(report.snapshot),
            "applied": place_text(report.applied),
            "found": report.found,
        }
        self._transfer = Transfer.from_source(address, [self.object_name], report.target.path, report.rows)
        self.log.info("%s: %s rows as of %s", self.object_name, report.rows, facts["snapshot"])
        self._announce(context, {**facts, "kind": "backfill"})
        return facts


class ApplyEventsOperator(_OfObject):
    """Applies what was captured of one object to its target: in the order of commits, folded by key, each event once.

    The range is written ahead; each piece of it is one commit with a mark that is read back. So a retry, a clear and a
    late double apply nothing twice. If nothing is new, no JVM starts. An object that needs a backfill first, or that
    another run applies now, ends as skipped and says why. Returns {replication, object, from, to, events, rows,
    segments, found, lag_seconds, needs_backfill}; `needs_backfill`: why only a backfill can continue from there. Raises
    ReplicationNotFound, ObjectNotFound, ObjectFailed, ValueDoesNotFit, ToastedKey, TargetMovedOn, TargetLost,
    TargetNotDelta, ReplicationRefused, EventLogChanged.

    :param replication: its name. (templated)
    :param object_name: `schema.table` in the source. (templated)
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """The report of the apply; if nothing is new the same with `events` 0."""
        from tidemark.replication.worker.apply import run_apply
        from tidemark.replication.worker.concurrent_runs import find_concurrent_runs
        from tidemark.replication.worker.definitions import get_replication

        store, before = self.hook.open_store(), self._object()
        other = find_concurrent_runs(store, self.replication, key=key_of(context)).applied.get(before.uid)
        if other is not None:
            raise AirflowSkipException(f"{self.object_name}: run {other} applies it now, up to what was captured.")
        outcome = run_apply(self.runtime(), before.uid, by=by_of(context), key=key_of(context))
        if outcome.reason is not None and outcome.report is None:
            raise AirflowSkipException(f"{self.object_name}: {outcome.reason}")
        after, report = self._object(), outcome.report
        facts = {
            "replication": self.replication,
            "object": self.object_name,
            "from": place_text(before.applied),
            "to": place_text(after.applied),
            "events": report.events if report else 0,
            "rows": dict(report.rows) if report else {},
            "segments": report.segments if report else 0,
            "found": report.found if report else 0,
            "lag_seconds": self._lag_seconds(),
            "needs_backfill": after.needs_backfill,
        }
        if report is None:
            self.log.info("%s: nothing new, %s", self.object_name, facts["to"])
            return facts
        event_log = get_replication(store, self.replication).event_log
        self._transfer = Transfer.from_log(event_log, after.target.path, sum(report.rows.values()))
        self.log.info("%s: %s events to %s, rows %s", self.object_name, facts["events"], facts["to"], facts["rows"])
        if after.needs_backfill:
            self.log.warning("%s needs a backfill: %s", self.object_name, after.needs_backfill)
        self._announce(context, {**facts, "kind": "apply"})
        return facts

    def _lag_seconds(self) -> float | None:
        from tidemark.replication.worker.status import describe_object

        return describe_object(self.hook.open_store(), self.replication, self.object_name).lag_seconds


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
