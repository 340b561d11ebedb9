"""One run of a replication as a task group: once through all steps, or round after round until a deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TaskGroup, TriggerRule, task_group

from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.operators._replication import default_outlets
from tidemark.operators.replication_capture import CaptureEventsOperator
from tidemark.operators.replication_continuous import ReplicateContinuouslyOperator
from tidemark.operators.replication_objects import ApplyEventsOperator, BackfillObjectOperator
from tidemark.operators.replications import FinishReplicationOperator, PrepareReplicationOperator

__all__ = ["replicate", "replicate_continuously"]


def replicate(
    group_id: str,
    *,
    replication: str,
    prepare: Mapping[str, Any] | None = None,
    capture: Mapping[str, Any] | None = None,
    backfill: Mapping[str, Any] | None = None,
    apply: Mapping[str, Any] | None = None,
    finish: Mapping[str, Any] | None = None,
    conn_id: str = DEFAULT_CONN_ID,
    **group: Any,
) -> TaskGroup:
    """One run of a replication: prepare, capture, and one apply of all objects. `finish` reports the state of all.

    An object that waits for a backfill gets a backfill and an apply of its own beside them. So does one that failed
    when it was applied last. An object that fails stops no other. Earlier captures are applied even if the source
    cannot be reached, or this run's capture failed. The run fails at the end where a task or an object did.

    Put `max_active_runs=3` on the DAG, so that a run captures while others backfill; runs prepare and capture one after
    another. A backfill of another run is left to that run. One run always begins none, so that it can capture.
    `prepare`, `capture`, `backfill`, `apply` and `finish` are further arguments of their operators, and Airflow's, such
    as `pool`. With `prepare={"backfill": …}` a run requests backfills; an unknown name fails it before it captures.

    :param group_id: id of the task group.
    :param replication: its name.
    :param prepare: further arguments of PrepareReplicationOperator, such as `backfill`.
    :param capture: further arguments of CaptureEventsOperator.
    :param backfill: further arguments of BackfillObjectOperator, such as `pool` and `max_active_tis_per_dagrun`.
    :param apply: further arguments of ApplyEventsOperator.
    :param finish: further arguments of FinishReplicationOperator, such as `fail_on_needs_backfill`.
    :param conn_id: the Airflow connection of type `tidemark`; the default one need not exist.
    """
    of_all = {"replication": replication, "conn_id": conn_id}
    with TaskGroup(group_id, **group) as replicating:
        prepared = _prepared(of_all, prepare)
        captured = CaptureEventsOperator(
            task_id="capture", **{"max_active_tis_per_dag": 1, **of_all, **(capture or {})}
        )
        # Whatever became of the capture: what the event log has can be applied.
        capture_ended = EmptyOperator(task_id="capture_ended", trigger_rule=TriggerRule.ALL_DONE)
        applied = ApplyEventsOperator(
            task_id="apply",
            **{"trigger_rule": TriggerRule.ALL_DONE, **of_all, "leave": prepared.output, **(apply or {})},
        )
        objects = _of_each_object(of_all, capture_ended, backfill or {}, apply or {}).expand(
            object_name=prepared.output
        )
        prepared >> captured >> [applied, capture_ended]
        _finished([prepared, captured, applied, objects], of_all, finish)
    return replicating


def replicate_continuously(
    group_id: str,
    *,
    replication: str,
    prepare: Mapping[str, Any] | None = None,
    rounds: Mapping[str, Any] | None = None,
    backfill: Mapping[str, Any] | None = None,
    finish: Mapping[str, Any] | None = None,
    conn_id: str = DEFAULT_CONN_ID,
    **group: Any,
) -> TaskGroup:
    """A replication in rounds of capture and apply, in one task that runs until a deadline. Objects are backfilled
    beside it. `finish` reports the state of all.

    Put `schedule="@continuous"` and `max_active_runs=1` on the DAG: then the next run begins when this one has ended.
    An object that fails stops no other. The run fails at the end where a task or an object did.

    :param group_id: id of the task group.
    :param replication: its name.
    :param prepare: further arguments of PrepareReplicationOperator, such as `backfill`.
    :param rounds: further arguments of ReplicateContinuouslyOperator, such as `run_for_seconds`.
    :param backfill: further arguments of BackfillObjectOperator, such as `pool` and `max_active_tis_per_dagrun`.
    :param finish: further arguments of FinishReplicationOperator, such as `fail_on_needs_backfill`.
    :param conn_id: the Airflow connection of type `tidemark`; the default one need not exist.
    """
    of_all = {"replication": replication, "conn_id": conn_id}
    with TaskGroup(group_id, **group) as replicating:
        prepared = _prepared(of_all, prepare)
        in_rounds = ReplicateContinuouslyOperator(
            task_id="rounds",
            **{"trigger_rule": TriggerRule.ALL_DONE, **of_all, "leave": prepared.output, **(rounds or {})},
        )
        announced = {"outlets": default_outlets(replication)}  # a mapped task has no default ones
        copied = BackfillObjectOperator.partial(
            task_id="backfill", **{**announced, **of_all, **(backfill or {})}
        ).expand(object_name=prepared.output)
        _finished([prepared, in_rounds, copied], of_all, finish)
    return replicating


def _prepared(of_all: Mapping[str, Any], more: Mapping[str, Any] | None) -> PrepareReplicationOperator:
    """Runs prepare one after another. A task in front that was skipped is no reason to skip the run."""
    own = {"trigger_rule": TriggerRule.NONE_FAILED, "max_active_tis_per_dag": 1}
    return PrepareReplicationOperator(task_id="prepare", **{**own, **of_all, **(more or {})})


def _finished(steps: Sequence[Any], of_all: Mapping[str, Any], more: Mapping[str, Any] | None) -> None:
    """The report, after any result of the steps. The run's state then shows failures."""
    own = {"trigger_rule": TriggerRule.ALL_DONE, "fail_on_failed": True}
    finished = FinishReplicationOperator(task_id="finish", **{**own, **of_all, **(more or {})})
    all_done = EmptyOperator(task_id="all_done", trigger_rule=TriggerRule.NONE_FAILED)
    for step in steps:
        step >> finished
        step >> all_done
    finished >> all_done


def _of_each_object(
    of_all: Mapping[str, Any], capture_ended: EmptyOperator, backfill: Mapping[str, Any], apply: Mapping[str, Any]
) -> Any:
    """The group that is expanded over the objects: a backfill, and the apply behind it, if the backfill did not fail.
    The apply waits for the capture, with any result.
    """

    @task_group(group_id="objects")
    def objects(object_name: str) -> None:
        copied = BackfillObjectOperator(task_id="backfill", **{**of_all, "object_name": object_name, **backfill})
        applied = ApplyEventsOperator(
            task_id="apply", **{"trigger_rule": TriggerRule.NONE_FAILED, **of_all, "objects": [object_name], **apply}
        )
        [copied, capture_ended] >> applied

    return objects
