"""The errors that a retry cannot help: they fail the task at once, for any number of `retries`."""

from __future__ import annotations

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from tidemark.errors.lasting import PERMANENT

__all__ = ["PERMANENT", "retry_policy"]


def retry_policy() -> ExceptionRetryPolicy:
    """Fails at once for an error that only a person can correct. A lock, a dead job or an unreachable store is tried
    again.
    """
    names: list[type[BaseException] | str] = [f"{kind.__module__}.{kind.__qualname__}" for kind in PERMANENT]
    reason = "Trying again cannot help; see the message."
    return ExceptionRetryPolicy([RetryRule(exception=names, action=RetryAction.FAIL, reason=reason)])
