"""An error of ours in a task's log: the line that helps first, and no frames of ours, which help no reader."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tidemark.errors import TidemarkError
from tidemark.operators._retries import raised_by

__all__ = ["useful_line_first"]

log = logging.getLogger("tidemark.operators")
Execute = TypeVar("Execute", bound=Callable[..., Any])


def useful_line_first(execute: Execute) -> Execute:
    """An error of ours is said in a line, then raised without what led to it; that is logged at level DEBUG.

    The error itself is the same, so retries and callbacks see what they saw; of Airflow 3.2 see `raised_by`.
    """

    @wraps(execute)
    def logged(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return execute(self, *arguments, **named)
        except TidemarkError as error:
            if not getattr(error, "logged", False):  # an operator that calls its parent's execute logs it once
                error.logged = True  # type: ignore[attr-defined]
                log.error("%s: %s", type(error).__name__, error)
                log.debug("Traceback of %s", type(error).__name__, exc_info=True)
            error.__cause__, error.__suppress_context__ = None, True
            raise raised_by(self, error).with_traceback(None)  # noqa: B904 - without frames and cause

    return logged  # type: ignore[return-value]
