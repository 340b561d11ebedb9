"""Metrics of every operator's task at its end: seconds, failures, retries, and the rows and bytes of its objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from airflow.sdk.exceptions import AirflowException, AirflowSkipException, AirflowTaskTimeout, TaskDeferred

from tidemark import metrics
from tidemark.errors import TidemarkError

__all__ = ["MEASURED", "Measure", "Work", "measured", "works_of"]

Execute = TypeVar("Execute", bound=Callable[..., Any])
_UNKNOWN = "error"  # the outcome of an error that is neither ours nor Airflow's


@dataclass(frozen=True)
class Measure:
    """The objects of an operator. `kind`: theirs. `argument`: that names them. `within`: the argument that names the
    object to which they belong. `rows` and `size`: keys of the result. `each`: the key of an object's name in a result
    that has several.
    """

    kind: str
    argument: str | None = None
    within: str | None = None
    rows: str | None = None
    size: str | None = None
    each: str | None = None


@dataclass(frozen=True)
class Work:
    """Rows and bytes of one object; None: not known."""

    kind: str
    name: str
    rows: int | None = None
    size: int | None = None


_STREAM = Measure("stream", "stream")  # rows are counted at the commit, once
_TRANSACTION = Measure("stream", "streams")
_CHANGE_STREAM = Measure("change_stream", "change_stream")
_GROUP = Measure("consumer_group", "consumer_group", "change_stream")
_REPLICATION = Measure("replication", "replication")
_TABLE = Measure("table", "table")
_LANDING = Measure("landing_table", "table")
_PIPE = Measure("pipe", "pipe")
_VIEW = Measure("materialized_view", "view")
_REFRESH = Measure("materialized_view", "view", rows="rows", size="bytes", each="view")

MEASURED = {
    "CreateStreamOperator": _STREAM,
    "CreateKeyedStreamOperator": _STREAM,
    "CreateViewStreamOperator": _STREAM,
    "DropStreamOperator": _STREAM,
    "AdvanceStreamOperator": _STREAM,
    "RebaseStreamOperator": _STREAM,
    "ConsumeStreamOperator": _STREAM,
    "ReplayWindowOperator": _STREAM,
    "WriteStreamOperator": _STREAM,
    "StreamSQLOperator": _STREAM,
    "BeginTransactionOperator": _TRANSACTION,
    "CommitTransactionOperator": _TRANSACTION,
    "RollbackTransactionOperator": Measure("stream"),
    "CreateChangeStreamOperator": _CHANGE_STREAM,
    "AlterChangeStreamOperator": _CHANGE_STREAM,
    "DropChangeStreamOperator": _CHANGE_STREAM,
    "ExpireChangeLogOperator": _CHANGE_STREAM,
    "CaptureChangesOperator": Measure("change_stream", "change_stream", rows="rows"),
    "CreateConsumerGroupOperator": _GROUP,
    "AlterConsumerGroupOperator": _GROUP,
    "PlanPartitionsOperator": _GROUP,
    "CommitPartitionsOperator": _GROUP,
    "FinishPartitionsOperator": _GROUP,
    "BackfillTableOperator": Measure("consumer_group", "consumer_group", "change_stream", rows="rows"),
    "ReadPartitionOperator": Measure("change_stream", "change_stream", rows="rows"),
    "CreateReplicationOperator": _REPLICATION,
    "PrepareReplicationOperator": _REPLICATION,
    "CaptureEventsOperator": Measure("replication", "replication", rows="events"),
    "EventFilesOperator": _REPLICATION,
    "ReplicateContinuouslyOperator": _REPLICATION,
    "BackfillObjectOperator": Measure("replicated_table", "object_name", "replication", rows="rows"),
    "ApplyEventsOperator": Measure("replicated_table", "objects", "replication"),
    "RequestBackfillOperator": Measure("replicated_table", "objects", "replication"),
    "PauseReplicationOperator": _REPLICATION,
    "ResumeReplicationOperator": _REPLICATION,
    "RecoverReplicationOperator": _REPLICATION,
    "ExpireEventLogOperator": _REPLICATION,
    "FinishReplicationOperator": _REPLICATION,
    "DropReplicationOperator": _REPLICATION,
    "IngestRowsOperator": Measure("landing_table", "table", rows="rows"),
    "AlterChannelOperator": _LANDING,
    "KeepChannelsOperator": Measure("landing_table", "tables"),
    "CreatePipeOperator": _PIPE,
    "AlterPipeOperator": _PIPE,
    "RefreshPipeOperator": _PIPE,
    "RunPipeOperator": Measure("pipe", "pipe", rows="rows_loaded", size="bytes_loaded"),
    "CopyIntoOperator": Measure("table", rows="rows_loaded", size="bytes_loaded"),
    "CreateMaterializedViewOperator": _VIEW,
    "CreateDynamicTableOperator": Measure("dynamic_table", "view"),
    "RefreshViewOperator": _REFRESH,
    "RefreshDueViewsOperator": Measure("dynamic_table", "views", rows="rows", size="bytes", each="view"),
    "AutoClusterOperator": Measure("clustered_table", "tables", size="bytes", each="table"),
    "AlterSearchOptimizationOperator": Measure("search_optimization", "table"),
    "KeepSearchPathOperator": Measure("search_optimization", "table", rows="rows", size="bytes"),
    "CachedQueryOperator": Measure("query"),
    "RefreshExternalTableOperator": Measure("table", "external_table"),
    "VacuumTableOperator": _TABLE,
}
"""Name of the operator to its objects. Every public operator is in it."""


def measured(execute: Execute) -> Execute:
    """For `execute`: reports the end of the attempt. A deferral is no end. If an operator calls its parent's `execute`,
    the attempt is reported once.
    """

    @wraps(execute)
    def timed(self: Any, *arguments: Any, **named: Any) -> Any:
        measure = _measure_of(type(self))
        if measure is None or self.__dict__.get("_measuring"):
            return execute(self, *arguments, **named)
        self.__dict__["_measuring"], began, outcome = True, time.monotonic(), _UNKNOWN
        try:
            result = execute(self, *arguments, **named)
            outcome = "success"
        except TaskDeferred:
            outcome = ""
            raise
        except AirflowSkipException:
            outcome = "skipped"
            raise
        except (TidemarkError, AirflowException, AirflowTaskTimeout) as error:
            outcome = type(error).__name__
            raise
        finally:
            self.__dict__["_measuring"] = False
            if outcome:
                _tell_end(self, measure, time.monotonic() - began, outcome, named.get("context") or arguments[:1])
        for work in works_of(self, measure, result):
            metrics.worked_on(work.kind, work.name, rows=work.rows, size=work.size)
        return result

    return timed  # type: ignore[return-value]


def works_of(operator: Any, measure: Measure, result: object) -> Iterator[Work]:
    """The rows and bytes of each object in the task's result. Rows that an earlier attempt had written are left out:
    the result says `found`.
    """
    if isinstance(result, Mapping) and isinstance(result.get("objects"), Mapping):
        within = str(getattr(operator, "replication", ""))
        for name, facts in result["objects"].items():
            rows = _sum_of(facts.get("rows") if isinstance(facts, Mapping) else facts)
            if rows is not None and measure.kind == "replicated_table":
                yield Work("replicated_table", f"{within}/{name}", rows)
    elif isinstance(result, Mapping):
        yield from _work(measure, _name(operator, measure), result)
    elif measure.each is not None and isinstance(result, Sequence):
        for facts in result:
            if isinstance(facts, Mapping):
                yield from _work(measure, str(facts.get(measure.each, "")), facts)


def _work(measure: Measure, name: str, facts: Mapping[str, Any]) -> Iterator[Work]:
    rows = None if measure.rows is None else _sum_of(facts.get(measure.rows))
    size = None if measure.size is None else _sum_of(facts.get(measure.size))
    if facts.get("found") is not True and (rows is not None or size is not None):
        yield Work(measure.kind, name, rows, size)


def _sum_of(value: object) -> int | None:
    """A number, or the sum of numbers by name; None for anything else."""
    if isinstance(value, Mapping):
        numbers = [_sum_of(one) for one in value.values()]
        return sum(one for one in numbers if one is not None)
    return value if type(value) is int else None


def _tell_end(operator: Any, measure: Measure, seconds: float, outcome: str, given: Any) -> None:
    context = given[0] if isinstance(given, tuple) and given else given
    instance = context.get("ti") if isinstance(context, Mapping) else None
    attempt = getattr(instance, "try_number", 1)
    metrics.task_ended(
        type(operator).__name__,
        measure.kind,
        _name(operator, measure),
        seconds=seconds,
        outcome=outcome,
        attempt=attempt if type(attempt) is int else 1,
    )


def _name(operator: Any, measure: Measure) -> str:
    """The name of its object with that of the object that it belongs to; empty if it has none, or several. Lists of
    names differ from run to run, so each of them would be a series of its own.
    """
    given = None if measure.argument is None else getattr(operator, measure.argument, None)
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list | tuple) or len(found) != 1 or not isinstance(found[0], str) or "," in found[0]:
        return ""
    return found[0] if measure.within is None else f"{getattr(operator, measure.within, '')}/{found[0]}"


def _measure_of(kind: type) -> Measure | None:
    """That of the class, or of the first class above it that has one: users derive operators of their own."""
    return next((MEASURED[one.__name__] for one in kind.__mro__ if one.__name__ in MEASURED), None)
