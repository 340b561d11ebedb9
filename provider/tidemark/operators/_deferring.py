"""Operators whose tasks wait in the triggerer while a driver runs in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["DeferrableOperator"]


class DeferrableOperator(SparkOperator):
    """An operator that frees its worker while a driver runs in YARN. Then `execute` begins again, asks for the same
    job, and gets its report or its error. It may be left at each job that `runtime(leaves=…)` names.

    :param deferrable: wait in the triggerer for a driver in YARN, which outlives the worker; see "Run on a cluster".
        Default: `[operators] default_deferrable`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "execute" in vars(cls):
            cls.execute = _left_at_a_driver(vars(cls)["execute"])  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    def __init__(self, *, deferrable: bool | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if deferrable is None:
            deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = deferrable


def _left_at_a_driver(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    def left(self: DeferrableOperator, context: Context) -> Any:
        from tidemark.streams.worker.clusters import DriverGoesOn

        try:
            return execute(self, context)
        except DriverGoesOn as goes_on:
            self.wait_in_the_triggerer(goes_on, context)

    return left
