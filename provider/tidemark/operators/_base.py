"""The common part of every operator: the connection, the run's identity, and how a time or version is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout

from tidemark import metrics
from tidemark.errors import InvalidArgument, TidemarkError
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.links.streams import SparkUiLink, WindowLink, push_links
from tidemark.links.yarn import YarnLink
from tidemark.model.foreign_json import whole_number
from tidemark.model.statements import TransactionKey
from tidemark.operators._error_log import useful_line_first
from tidemark.operators._history import with_old_history_dropped
from tidemark.operators._measures import measured
from tidemark.operators._retries import PERMANENT, set_retry_policy

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    Lineage = OperatorLineage[Any, Any]

__all__ = [
    "LineageMixin",
    "TidemarkOperator",
    "days_of",
    "failures_counted",
    "flag_of",
    "is_left_out",
    "key_of",
    "one_of",
    "owner_of",
    "python_path_of",
    "seconds_of",
    "unless_left_out",
    "whole_number_of",
]

PATIENCE_TO_COUNT = timedelta(seconds=3)  # the attempt has failed, and its retry waits

Execute = TypeVar("Execute", bound=Callable[..., Any])
T = TypeVar("T")


class TidemarkOperator(BaseOperator):
    """An operator with a Tidemark connection. An error that a retry cannot help fails the task at once.

    :param conn_id: Airflow connection of type `tidemark`; the default one need not exist. (templated)
    """

    template_fields: Sequence[str] = ("conn_id",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql", "writes": "json"}
    operator_extra_links: Collection[BaseOperatorLink] = (WindowLink(), SparkUiLink(), YarnLink())
    ui_color = "#d8eef0"
    hopeless: ClassVar[Collection[type[BaseException]]] = PERMANENT
    passing: ClassVar[Collection[type[BaseException]]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "execute" in vars(cls):
            ended = with_old_history_dropped(measured(vars(cls)["execute"]))
            cls.execute = useful_line_first(ended)  # type: ignore[method-assign]

    def __init__(self, *, conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        set_retry_policy(kwargs, hopeless=self.hopeless)
        super().__init__(**kwargs)
        self.conn_id = conn_id
        self._hook: TidemarkHook | None = None

    def pre_execute(self, context: Context) -> None:
        """Show the links while the task runs."""
        push_links(self, context)

    @property
    def hook(self) -> TidemarkHook:
        """A hook on the connection; ask inside `execute`, when the id is rendered. The connection is read once."""
        if self._hook is None or self._hook.conn_id != self.conn_id:
            self._hook = TidemarkHook(self.conn_id)
        return self._hook


def failures_counted(argument: str, *, consuming: bool = True) -> Callable[[Execute], Execute]:
    """For `execute`: an attempt that ends in an error of Tidemark, or runs out of time, is reported to Airflow's
    metrics. The report has the streams that `argument` names. If the task was `consuming` them, the control store
    counts the failure.
    """

    def around(execute: Execute) -> Execute:
        @wraps(execute)
        def counted(self: Any, context: Context) -> Any:
            try:
                return execute(self, context)
            except (TidemarkError, AirflowTaskTimeout) as error:
                given = getattr(self, argument) or ()
                named = [given] if isinstance(given, str) else [str(name) for name in given]
                metrics.failed(named, error)
                if consuming and not _only_plans(self):
                    _count_in_store(self, named, context, error)
                raise

        return counted  # type: ignore[return-value]

    return around


def _only_plans(operator: Any) -> bool:
    """Whether the attempt was a dry run, which consumes nothing; a text that is no flag has begun none."""
    try:
        return flag_of("dry_run", getattr(operator, "only_plan", False))
    except InvalidArgument:
        return False


def _count_in_store(operator: Any, named: Sequence[str], context: Context, error: BaseException) -> None:
    """As well as it can be: the error of the attempt is the one to be seen."""
    from airflow.sdk.log import redact  # type: ignore[attr-defined]

    from tidemark.streams.worker.statistics import count_failure

    group = getattr(operator, "transaction", None)
    try:
        in_row = count_failure(
            operator.hook.open_store(patience=PATIENCE_TO_COUNT),
            named,
            error,
            run=key_of(context),
            transaction=None if group is None else key_of(context, group),
            hide=lambda text: str(redact(text)),
        )
    except (TidemarkError, AirflowException) as problem:  # of the connection, mostly the one that failed the attempt
        operator.log.warning("The failed attempt was not counted: %s", problem)
        return
    for stream, times in in_row.items():
        metrics.failing(stream, times)


class LineageMixin:
    """For operators that write: what Airflow's OpenLineage provider asks them. Nothing of it can fail the task: the
    provider reports an error here and continues.

    It asks in a fork of the task's process, so what `execute` has read of the connection is used again. Before the task
    nothing is reported. There is no window yet, and the fork would have to talk to the task's supervisor.
    """

    def planned_lineage(self) -> Lineage | None:
        """The names of what the task is to read and write."""
        raise NotImplementedError

    def delivered_lineage(self, key_of_task: Callable[[str | None], TransactionKey]) -> Lineage | None:
        """The tables that it read and wrote, with versions, columns and rows; None if there was nothing to do."""
        raise NotImplementedError

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """From what the control store keeps of the task's transaction, even if an earlier attempt did the work."""

        def key_of_task(group: str | None) -> TransactionKey:
            return key_of({"ti": task_instance}, group)

        return self.delivered_lineage(key_of_task) or self.planned_lineage()

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Lineage | None:
        """The part that was done: an output without a version is not written. The provider adds the error."""
        return self.get_openlineage_facets_on_complete(task_instance)


def key_of(context: Context, task_id: str | None = None) -> TransactionKey:
    """The run owns its window: the same key for a retry and a clear. `task_id` names the group of a task group."""
    instance = context["ti"]
    map_index = instance.map_index
    return TransactionKey(
        dag_id=instance.dag_id,
        run_id=instance.run_id,
        task_id=task_id or instance.task_id,
        map_index=-1 if map_index is None else map_index,
    )


def owner_of(context: Context) -> str:
    """The holder of a lease: this attempt, so that the next one of the same key can tell itself apart."""
    return f"{key_of(context)}#{context['ti'].try_number}@{os.uname().nodename}:{os.getpid()}"


def python_path_of(operator: BaseOperator) -> tuple[str, ...]:
    """The directory of the DAG file, so that the job can import functions beside it."""
    return (str(Path(operator.dag.fileloc).parent),)


def flag_of(argument: str, value: bool | str) -> bool:
    """A flag, also as a template renders it."""
    known = {"true": True, "false": False, "1": True, "0": False, "none": False, "": False}
    text = str(value).strip().lower()
    if text not in known:
        raise InvalidArgument(argument=argument, value=value, problem="it must be true or false")
    return known[text]


def one_of(words: Sequence[str], argument: str, value: object) -> str:
    """One of the words, in any case. Raises InvalidArgument."""
    word = str(value).strip().lower()
    if word not in words:
        raise InvalidArgument(argument=argument, value=value, problem=f"it must be one of {', '.join(words)}")
    return word


def is_left_out(value: object) -> bool:
    """Whether an argument is None, also as a template renders it."""
    return value is None or str(value).strip().lower() in ("", "none")


def unless_left_out(value: T) -> T | None:
    """The argument; None if it is None, also as a template renders it."""
    return None if is_left_out(value) else value


def whole_number_of(argument: str, value: int | str | None) -> int | None:
    """A positive number or None, also as a template renders it."""
    if is_left_out(value):
        return None
    number = whole_number(str(value).strip())
    if number is None or number < 1:
        raise InvalidArgument(argument=argument, value=value, problem="it must be a whole number from 1 on")
    return number


def seconds_of(argument: str, value: float | str) -> timedelta:
    """A time that is not negative. Raises InvalidArgument."""
    return _time_of(argument, value, "seconds")


def hours_of(argument: str, value: float | str) -> timedelta:
    """A time that is not negative. Raises InvalidArgument."""
    return _time_of(argument, value, "hours")


def days_of(argument: str, value: float | str) -> timedelta:
    """A time that is not negative. Raises InvalidArgument."""
    return _time_of(argument, value, "days")


def _time_of(argument: str, value: float | str, unit: str) -> timedelta:
    try:
        number = float(value)
        if not number >= 0:
            raise ValueError
        return timedelta(**{unit: number})
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"it must be a number of {unit}, 0 at least"
        raise InvalidArgument(argument=argument, value=value, problem=problem) from error
