"""Rounds of upkeep inside the ingest service. On S3 nobody else may commit to its tables, not even OPTIMIZE."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from tidemark.channels.driver.keeping import Upkeeper
from tidemark.channels.driver.service.desk import IngestDesk
from tidemark.channels.model.jobs import ServeIngest
from tidemark.errors import TidemarkError
from tidemark.jobs.context import JobContext
from tidemark.jobs.failures import named_failure
from tidemark.jobs.run import utc_now

__all__ = ["kept_tables"]

_SECONDS_TO_END = 5.0


@contextmanager
def kept_tables(
    job: JobContext, request: ServeIngest, upkeeper: Upkeeper, desk: IngestDesk, locate: Callable[[str], str]
) -> Iterator[None]:
    """Keep the tables that writers have open, every `keep_hours`, in a thread of its own. An error ends no round."""
    ended = threading.Event()

    def rounds() -> None:
        while not ended.wait(timedelta(hours=request.keep_hours or 0).total_seconds()):
            for table in sorted(desk.open_tables):
                if not ended.is_set():
                    job.progress.say(_kept(upkeeper, table, locate))

    thread = threading.Thread(target=rounds, name="upkeep of tables", daemon=True)
    if request.keep_hours is not None:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join(_SECONDS_TO_END)


def _kept(upkeeper: Upkeeper, table: str, locate: Callable[[str], str]) -> str:
    try:
        kept = upkeeper.keep(table, locate(table), utc_now())
    except TidemarkError as error:
        return f"{table} was not kept: {error}"
    except Exception as error:  # noqa: BLE001 - the edge of the thread: whatever a Spark action raises
        return f"{table} was not kept: {named_failure(error)}"
    return f"{table}: {len(kept.swept)} idle channels removed, {kept.files_removed} files became {kept.files_added}"
