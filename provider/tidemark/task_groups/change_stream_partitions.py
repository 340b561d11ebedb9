"""The partitions of a change stream, read wave by wave, each wave by mapped tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import TaskGroup, TriggerRule
from airflow.sdk.exceptions import AirflowSkipException

from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.operators._partitions import check_sink
from tidemark.operators.capture import CaptureChangesOperator
from tidemark.operators.expire_change_log import ExpireChangeLogOperator
from tidemark.operators.partitions import (
    CommitPartitionsOperator,
    FinishPartitionsOperator,
    PlanPartitionsOperator,
    ReadPartitionOperator,
)

__all__ = ["change_stream_partitions"]

OPERATOR_TRIGGERED = "operator_triggered"
"""The type of a run that a task of Airflow starts."""


def change_stream_partitions(
    group_id: str,
    *,
    change_stream: str,
    consumer_group: str,
    write_as: str,
    target: str | None = None,
    table: str | None = None,
    keys: str | Sequence[str] = (),
    waves: int = 2,
    capture: Mapping[str, Any] | None = None,
    plan: Mapping[str, Any] | None = None,
    read: Mapping[str, Any] | None = None,
    trigger_again: bool = False,
    expire: bool = False,
    only_writer: bool | str = False,
    conn_id: str = DEFAULT_CONN_ID,
    **group: Any,
) -> TaskGroup:
    """Captures new changes, then reads all partitions that can be read, in `waves`. The tasks are capture; plan, read
    and commit for each wave; finish.

    A wave reads the partitions whose parents are finished. The children of a split or merge come with the next wave, or
    the next run. A partition that fails blocks its descendants alone, fails the run at the end, and is taken up by the
    next. Put `max_active_runs=1` on the DAG. `capture`, `plan` and `read` are further arguments of their operators, and
    Airflow's, such as `pool`. `expire` takes what is older than the retention out of the log at last. Raises
    InvalidArgument.

    :param group_id: id of the task group.
    :param change_stream: its name.
    :param consumer_group: the existing group that reads.
    :param write_as: `append`, `merge`, or a function as `module:function`; see ReadPartitionOperator.
    :param target: the table that append and merge write.
    :param table: only the records of this table, which is or was watched. A merge needs it,
        unless exactly one table is watched.
    :param keys: the key columns of a merge; by default those of the watched table.
    :param waves: how often partitions are planned, read and committed in a run.
    :param capture: further arguments of CaptureChangesOperator.
    :param plan: further arguments of PlanPartitionsOperator.
    :param read: further arguments of ReadPartitionOperator, such as `pool` and `max_active_tis_per_dagrun`.
    :param trigger_again: start the DAG's next run at once if work is left and nothing failed. The DAG's
        `allowed_run_types`, if it has any, must have `operator_triggered`.
    :param expire: finally expire records that are older than the retention, as ExpireChangeLogOperator does.
    :param only_writer: whether no other run captures while records expire. On S3 it must be True, unless a log store
        coordinates commits. (templated)
    :param conn_id: the Airflow connection of type `tidemark`; the default one need not exist.
    """
    if waves < 1:
        raise InvalidArgument(argument="waves", value=waves, problem="one at least")
    of_stream = {"change_stream": change_stream, "conn_id": conn_id}
    of_group, rule = {**of_stream, "consumer_group": consumer_group}, TriggerRule.ALL_DONE
    sink = {"write_as": write_as, "target": target, "table": table, "keys": keys, "conn_id": conn_id, **(read or {})}
    check_sink(sink["write_as"], sink["target"], sink["keys"])  # mapped operators are made only when they run
    with TaskGroup(group_id, **group) as partitions:
        begin = CaptureChangesOperator(task_id="capture", **{**of_stream, **(capture or {})})
        steps: list[Any] = [begin]
        before: Any = begin
        for wave in range(1, waves + 1):
            # What was captured before can be read, whatever became of this capture.
            planned = PlanPartitionsOperator(
                task_id=f"plan_{wave}", **{"trigger_rule": rule, **of_group, **(plan or {})}
            )
            reading = ReadPartitionOperator.partial(
                task_id=f"read_{wave}",
                map_index_template="{{ task.bundle.range }}",
                **{"change_stream": change_stream, **sink},
            ).expand(bundle=planned.output)
            committed = CommitPartitionsOperator(task_id=f"commit_{wave}", trigger_rule=rule, **of_group)
            before >> planned >> reading >> committed
            steps += [planned, reading, committed]
            before = committed
        finished = FinishPartitionsOperator(task_id="finish", trigger_rule=rule, **of_group)
        before >> finished
        steps.append(finished)
        if trigger_again:  # not after a failure, which would only come again
            again = _again(finished.task_id)
            _require_its_runs(again)
            steps >> again
            steps.append(again)
        if expire:
            expiry = ExpireChangeLogOperator(task_id="expire", trigger_rule=rule, only_writer=only_writer, **of_stream)
            finished >> expiry
            steps.append(expiry)
        # Whatever failed is seen in the run's state, though later steps ran.
        steps >> EmptyOperator(task_id="all_done", trigger_rule=TriggerRule.NONE_FAILED)
    return partitions


def _again(finish: str) -> _Again:
    finished = f"ti.xcom_pull(task_ids='{finish}')"
    left = "{{ 0 if " + finished + ".paused else " + finished + ".left }}"
    return _Again(task_id="again", left=left, trigger_rule=TriggerRule.NONE_FAILED)


def _require_its_runs(again: _Again) -> None:
    """Raises InvalidArgument if Airflow would refuse the run that it starts."""
    dag = again.get_dag()
    allowed = None if dag is None else dag.allowed_run_types
    if allowed and not any(one == OPERATOR_TRIGGERED for one in allowed):
        problem = f"a task starts the run, and allowed_run_types of the DAG lacks {OPERATOR_TRIGGERED!r}"
        raise InvalidArgument(argument="trigger_again", value=True, problem=problem)


class _Again(TriggerDagRunOperator):
    """Starts the DAG's next run where something is left that can be read now; the id is the same for a retry."""

    template_fields = (*TriggerDagRunOperator.template_fields, "left")

    def __init__(self, *, left: str, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id="{{ dag.dag_id }}",
            trigger_run_id="again__{{ dag_run.start_date | ts_nodash_with_tz }}",
            skip_when_already_exists=True,
            **kwargs,
        )
        self.left = left

    def execute(self, context: Any) -> None:
        """Skips where nothing is left."""
        if str(self.left).strip() in ("", "0", "None"):
            raise AirflowSkipException("Nothing is left to read.")
        super().execute(context)
