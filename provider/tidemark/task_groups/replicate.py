"""A database replicated: capture beside backfills, and behind both the write-down of each object, by mapped tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import AssetAlias, TaskGroup, TriggerRule, task_group

from tidemark.assets import replicated_alias
from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.operators.replication_capture import CaptureEventsOperator
from tidemark.operators.replication_objects import BackfillObjectOperator, WriteDownOperator
from tidemark.operators.replications import FinishReplicationOperator, PrepareReplicationOperator

__all__ = ["replicate"]


def replicate(
    group_id: str,
    *,
    replication: str,
    prepare: Mapping[str, Any] | None = None,
    capture: Mapping[str, Any] | None = None,
    backfill: Mapping[str, Any] | None = None,
    write_down: Mapping[str, Any] | None = None,
    conn_id: str = DEFAULT_CONN_ID,
    **group: Any,
) -> TaskGroup:
    """One run of a replication: prepare, then capture, and for each object its backfill; a write-down of an object
    begins when capture has ended and the object's own backfill has not failed; finish says how all stands.

    An object that fails stops no other. What was captured before is written down though this run's capture failed. The
    run fails at the end where a task did. Put `max_active_runs=1` on the DAG. `prepare`, `capture`, `backfill` and
    `write_down` are further arguments of their operators, and Airflow's, such as `pool`.
    """
    of_all = {"replication": replication, "conn_id": conn_id}
    outlets = [AssetAlias(replicated_alias(replication))]
    with TaskGroup(group_id, **group) as replicating:
        # An asked backfill that was skipped, in front of it, is no reason to skip the run.
        prepared = PrepareReplicationOperator(
            task_id="prepare", **{"trigger_rule": TriggerRule.NONE_FAILED, **of_all, **(prepare or {})}
        )
        captured = CaptureEventsOperator(task_id="capture", **{**of_all, **(capture or {})})
        # Whatever became of it: what the event log has can be written down.
        capture_ended = EmptyOperator(task_id="capture_ended", trigger_rule=TriggerRule.ALL_DONE)

        @task_group(group_id="objects")
        def objects(object_name: str) -> None:
            copied = BackfillObjectOperator(
                task_id="backfill",
                **{"object_name": object_name, "outlets": outlets, **of_all, **(backfill or {})},
            )
            applied = WriteDownOperator(
                task_id="write_down",
                **{
                    "object_name": object_name,
                    "outlets": outlets,
                    "trigger_rule": TriggerRule.NONE_FAILED,
                    **of_all,
                    **(write_down or {}),
                },
            )
            capture_ended >> applied
            copied >> applied

        mapped = objects.expand(object_name=prepared.output)
        finished = FinishReplicationOperator(task_id="finish", trigger_rule=TriggerRule.ALL_DONE, **of_all)
        prepared >> captured >> capture_ended
        [mapped, capture_ended] >> finished
        # Whatever failed is seen in the run's state, though later steps ran.
        all_done = EmptyOperator(task_id="all_done", trigger_rule=TriggerRule.NONE_FAILED)
        [prepared, captured, mapped, finished] >> all_done
    return replicating
