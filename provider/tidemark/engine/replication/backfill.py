"""A copy of an object as of one exact position of the source's log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from tidemark.model.replication import BackfillProgress, SourceAddress
from tidemark.model.replication_jobs import BackfillObject, BackfillReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.engine.workspace import Workspace

__all__ = ["backfill_object"]


def backfill_object(
    session: SparkSession,
    store_id: str,
    ask: BackfillObject,
    address: SourceAddress,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    now: Callable[[], datetime],
    say: Callable[[str], None],
    stop_if_due: Callable[[], None],
    leave: Callable[[BackfillProgress], None] | None = None,
) -> BackfillReport:
    """Copy it."""
    raise NotImplementedError
