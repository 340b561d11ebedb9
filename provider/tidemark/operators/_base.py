"""What every operator shares: the connection, the run's identity, and how a time or version is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.model.transactions import TransactionKey
from tidemark.operators._retries import retry_policy

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["TidemarkOperator", "flag_of", "key_of", "owner_of", "python_path_of", "version_or_time", "whole_number_of"]


class TidemarkOperator(BaseOperator):
    """An operator with a Tidemark connection. An error that a retry cannot help fails the task at once.

    :param conn_id: Airflow connection of type `tidemark`; the default one need not exist. (templated)
    """

    template_fields: Sequence[str] = ("conn_id",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql", "writes": "json"}
    ui_color = "#d8eef0"

    def __init__(self, *, conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        kwargs.setdefault("retry_policy", retry_policy())
        super().__init__(**kwargs)
        self.conn_id = conn_id

    @property
    def hook(self) -> TidemarkHook:
        """A hook on the connection; ask inside `execute`, when the id is rendered."""
        return TidemarkHook(self.conn_id)


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
    """Who holds a lease: this attempt, so that the next one of the same key can tell itself apart."""
    return f"{key_of(context)}#{context['ti'].try_number}@{os.uname().nodename}:{os.getpid()}"


def python_path_of(operator: BaseOperator) -> tuple[str, ...]:
    """Where the DAG file lies: functions beside it can be imported by the job."""
    return (str(Path(operator.dag.fileloc).parent),)


def version_or_time(argument: str, value: str | int | datetime) -> int | datetime:
    """A table version (a number or its digits) or a time with a zone (ISO 8601). Raises InvalidArgument."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        time = value if isinstance(value, datetime) else None
        if isinstance(value, str):
            if value.strip().isdigit():
                return int(value)
            time = datetime.fromisoformat(value.strip())
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidArgument(
            argument=argument,
            value=value,
            problem="give a version number or a time with a zone, as 2026-01-31T12:00:00Z",
        )
    return time


def flag_of(argument: str, value: bool | str) -> bool:
    """A flag, also as a template renders it."""
    known = {"true": True, "false": False, "1": True, "0": False, "none": False, "": False}
    text = str(value).strip().lower()
    if text not in known:
        raise InvalidArgument(argument=argument, value=value, problem="it must be true or false")
    return known[text]


def whole_number_of(argument: str, value: int | str | None) -> int | None:
    """A positive number or None, also as a template renders it."""
    if value is None or str(value).strip().lower() in ("", "none"):
        return None
    if not str(value).strip().isdigit() or int(value) < 1:
        raise InvalidArgument(argument=argument, value=value, problem="it must be a whole number from 1 on")
    return int(value)
