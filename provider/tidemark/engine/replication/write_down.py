"""The events of an object, applied to its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tidemark.model.replication_jobs import WriteDown, WriteDownReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["write_down"]


def write_down(
    session: SparkSession,
    store_id: str,
    ask: WriteDown,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None],
    stop_if_due: Callable[[], None],
    stop_after: int | None = None,
) -> WriteDownReport:
    """Apply the events, each once."""
    raise NotImplementedError
