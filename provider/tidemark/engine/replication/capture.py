"""One bounded run of capture: what the source has committed comes into the event log, batch by batch, each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from tidemark.errors import NotYetSupported
from tidemark.model.replication import SourceAddress
from tidemark.model.replication_jobs import CaptureEvents, CaptureReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.engine.workspace import Workspace

__all__ = ["FUNCTIONS_UP_TO", "capture_events"]

FUNCTIONS_UP_TO = 64 << 20  # bytes of log


def capture_events(
    session: SparkSession,
    store_id: str,
    ask: CaptureEvents,
    address: SourceAddress,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    now: datetime,
    say: Callable[[str], None],
    stop_if_due: Callable[[], None],
    functions_up_to: int = FUNCTIONS_UP_TO,
) -> CaptureReport:
    """Put every transaction that commits before now into the event log, and say what came of it."""
    raise NotYetSupported(feature="capture", instead="")
