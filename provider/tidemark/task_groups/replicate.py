"""A database replicated: capture beside backfills, and behind both the apply of each object, by mapped tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TaskGroup, TriggerRule, chain, task_group

from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.operators._base import key_of
from tidemark.operators._replication import ReplicationOperator
from tidemark.operators.replication_capture import CaptureEventsOperator
from tidemark.operators.replication_objects import ApplyEventsOperator, BackfillObjectOperator, RequestBackfillOperator
from tidemark.operators.replications import FinishReplicationOperator, PrepareReplicationOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["replicate"]


def replicate(
    group_id: str,
    *,
    replication: str,
    prepare: Mapping[str, Any] | None = None,
    capture: Mapping[str, Any] | None = None,
    backfill: Mapping[str, Any] | None = None,
    apply: Mapping[str, Any] | None = None,
    request: Mapping[str, Any] | None = None,
    finish: Mapping[str, Any] | None = None,
    conn_id: str = DEFAULT_CONN_ID,
    **group: Any,
) -> TaskGroup:
    """One run of a replication: prepare, then capture, and for each object its backfill. The apply of an object begins
    when capture has ended and the object's own backfill has not failed. `finish` reports the state of all.

    An object that fails stops no other. Earlier captures are applied even if the source cannot be reached, or this
    run's capture failed. The run fails at the end where a task did.

    Put `max_active_runs=3` on the DAG, so that a run captures while others backfill; runs prepare and capture one after
    another. A backfill of another run is left to that run. One run always begins none, so that it can capture.
    `prepare`, `capture`, `backfill`, `apply` and `finish` are further arguments of their operators, and Airflow's, such
    as `pool`. With `request`, arguments of RequestBackfillOperator, the run requests backfills once the replication is
    prepared. An unknown name fails the run, and has no other effect.

    :param group_id: id of the task group.
    :param replication: its name.
    :param prepare: further arguments of PrepareReplicationOperator.
    :param capture: further arguments of CaptureEventsOperator.
    :param backfill: further arguments of BackfillObjectOperator, such as `pool` and `max_active_tis_per_dagrun`.
    :param apply: further arguments of ApplyEventsOperator.
    :param request: arguments of a RequestBackfillOperator between `prepare` and `objects_to_do`. None: there is no such
        task.
    :param finish: further arguments of FinishReplicationOperator, such as `fail_on_needs_backfill`.
    :param conn_id: the Airflow connection of type `tidemark`; the default one need not exist.
    """
    of_all, alone = {"replication": replication, "conn_id": conn_id}, {"max_active_tis_per_dag": 1}
    with TaskGroup(group_id, **group) as replicating:
        # A task in front that was skipped is no reason to skip the run.
        prepared = PrepareReplicationOperator(
            task_id="prepare", **{"trigger_rule": TriggerRule.NONE_FAILED, **alone, **of_all, **(prepare or {})}
        )
        captured = CaptureEventsOperator(task_id="capture", **{**alone, **of_all, **(capture or {})})
        # Whatever became of them: what the event log has can be applied.
        capture_ended = EmptyOperator(task_id="capture_ended", trigger_rule=TriggerRule.ALL_DONE)
        to_do = _ObjectsToDo(task_id="objects_to_do", trigger_rule=TriggerRule.ALL_DONE, **of_all)
        objects = _of_each_object(of_all, capture_ended, backfill or {}, apply or {}).expand(object_name=to_do.output)
        finished = FinishReplicationOperator(
            task_id="finish", **{"trigger_rule": TriggerRule.ALL_DONE, **of_all, **(finish or {})}
        )
        # Whatever failed is seen in the run's state, though later steps ran.
        all_done = EmptyOperator(task_id="all_done", trigger_rule=TriggerRule.NONE_FAILED)
        prepared >> captured >> capture_ended
        requested = [] if request is None else [RequestBackfillOperator(task_id="request", **{**of_all, **request})]
        chain(prepared, *requested, to_do)
        [objects, capture_ended] >> finished
        [prepared, captured, *requested, to_do, objects, finished] >> all_done
    return replicating


def _of_each_object(
    of_all: Mapping[str, Any], capture_ended: EmptyOperator, backfill: Mapping[str, Any], apply: Mapping[str, Any]
) -> Any:
    """The group that is expanded over the objects: a backfill, and the apply behind it."""

    @task_group(group_id="objects")
    def objects(object_name: str) -> None:
        of_object = {**of_all, "object_name": object_name}
        copied = BackfillObjectOperator(task_id="backfill", **{**of_object, **backfill})
        applied = ApplyEventsOperator(
            task_id="apply", **{**of_object, "trigger_rule": TriggerRule.NONE_FAILED, **apply}
        )
        [copied, capture_ended] >> applied

    return objects


class _ObjectsToDo(ReplicationOperator):
    """Which objects the run has something to do for, as the control store knows them: also where the source is away.

    An object that another run backfills is left to that run, with its apply. If so many runs of the DAG do backfills
    that only one more may be active, this run begins none. It captures, and applies events of the other objects.
    """

    template_fields = ("replication", "conn_id")

    def __init__(self, *, replication: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replication = replication

    def execute(self, context: Context) -> list[str]:
        """Names; [] where there is nothing to do. Raises ReplicationNotFound, InvalidArgument."""
        from tidemark.operators._replication import require_room
        from tidemark.replication.worker.concurrent_runs import find_concurrent_runs
        from tidemark.replication.worker.objects import is_due, to_work_at

        store = self.hook.open_store()
        elsewhere = find_concurrent_runs(store, self.replication, key=key_of(context))
        due = to_work_at(store, self.replication)
        mine = [one for one in due if one.uid not in elsewhere.backfilled]
        if elsewhere.runs >= max(1, self.dag.max_active_runs - 1):
            mine = [one for one in mine if not is_due(one)]
        for one in due:
            if one not in mine:
                by = elsewhere.backfilled.get(one.uid)
                why = f"run {by} backfills it" if by else f"{elsewhere.runs} runs backfill others; a later run does it"
                self.log.info("%s: %s", one.name.text, why)
        names = [one.name.text for one in mine]
        require_room(self.replication, names)
        self.log.info("To do: %s", ", ".join(names) or "nothing")
        return names
