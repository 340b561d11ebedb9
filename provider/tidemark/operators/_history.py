"""After its own work a task drops old history from the control store, if the connection says how long it stays."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from airflow.sdk.exceptions import AirflowException

from tidemark.errors import TidemarkError

__all__ = ["drop_old_history", "with_old_history_dropped"]

Execute = TypeVar("Execute", bound=Callable[..., Any])


def with_old_history_dropped(execute: Execute) -> Execute:
    """For `execute` of any operator, since each subject has a history. A task that failed or left drops nothing."""

    @wraps(execute)
    def then(self: Any, *arguments: Any, **named: Any) -> Any:
        result = execute(self, *arguments, **named)
        drop_old_history(self)
        return result

    return then  # type: ignore[return-value]


def drop_old_history(operator: Any) -> None:
    """For some seconds, if no other task did lately. A failure is a warning: the task's own work is done."""
    try:
        keep = operator.hook.settings.keep_history
        if keep is None:
            return
        from tidemark.streams.worker.pruning import prune_in_passing

        dropped = prune_in_passing(operator.hook.open_store(), keep)
    except (TidemarkError, AirflowException) as problem:
        operator.log.warning("Old history stays in the control store: %s", problem)
        return
    if dropped is not None and any(dropped.values()):
        told = ", ".join(f"{count} {kind}" for kind, count in dropped.items() if count)
        operator.log.info("Dropped from the control store, as older than %s: %s", keep, told)
