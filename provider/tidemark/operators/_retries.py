"""The errors that a retry cannot help: they fail the task at once, for any number of `retries`.

Airflow 3.3 asks a policy of the task. Airflow 3.2 knows none, so such an error becomes AirflowFailException there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from airflow import sdk
from tidemark.errors.lasting import PERMANENT

__all__ = ["PERMANENT", "raised_by", "set_retry_policy"]

Kinds = Collection[type[BaseException]]

_HAS_POLICIES = hasattr(sdk, "ExceptionRetryPolicy")


def set_retry_policy(arguments: dict[str, Any], *, hopeless: Kinds, passing: Kinds = ()) -> None:
    """Let a task with these arguments fail at once for a hopeless error that is not `passing`. A policy that the DAG
    gives stays; a mapped task has None for none.
    """
    if _HAS_POLICIES and arguments.get("retry_policy") is None:
        arguments["retry_policy"] = _policy(hopeless, passing)


def raised_by(task: Any, error: BaseException) -> BaseException:
    """The error that ends the attempt: it as it is, or what fails a task of Airflow 3.2 at once."""
    hopeless, passing = getattr(task, "hopeless", ()), getattr(task, "passing", ())  # some sensors have none
    if _HAS_POLICIES or isinstance(error, tuple(passing)) or not isinstance(error, tuple(hopeless)):
        return error
    return AirflowFailException(f"{type(error).__name__}: {error}")


def _policy(hopeless: Kinds, passing: Kinds) -> sdk.ExceptionRetryPolicy:
    rules = []
    if passing:
        rules.append(sdk.RetryRule(exception=_dotted(passing), action=sdk.RetryAction.DEFAULT))
    reason = "A retry cannot help; see the message."
    rules.append(sdk.RetryRule(exception=_dotted(hopeless), action=sdk.RetryAction.FAIL, reason=reason))
    return sdk.ExceptionRetryPolicy(rules)


def _dotted(kinds: Kinds) -> list[type[BaseException] | str]:
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]
