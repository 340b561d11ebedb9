"""The INGEST_ROWS job: a replayable source is read from the channel's committed token on."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from tidemark.channels.driver.channel import Channel
from tidemark.channels.driver.job_client import client_of_job
from tidemark.channels.model.jobs import IngestedRows, IngestRows
from tidemark.errors import SourceUnreadable
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.streams.driver.function import load_function

__all__ = ["ingest_rows"]

Source = Callable[..., Iterable[tuple[Any, str]]]
_OWN = {"lines": "lines", "kafka": "kafka_partition", "sql": "sql_query", "http": "http_pages"}  # name → function
_BETWEEN_LOOKS = timedelta(seconds=1)


def ingest_rows(job: JobContext, request: IngestRows) -> IngestedRows:
    """Read the source until it is empty or the time is over, and commit its rows through the channel.

    With a time, an empty source is asked again each second. A second run continues behind the committed token, and
    fences the first one. Raises StatementRefused for a source that cannot be imported, and what a channel and the
    source raise. Rows that were committed before stay.
    """
    source = _source_of(request.source)
    lag, alone = request.max_client_lag, request.only_writer
    with client_of_job(job, request.writer, request.lake_root, only_writer=alone, max_client_lag=lag) as client:
        channel = client.open_channel(
            request.channel,
            request.table,
            on_error=request.on_error,
            default_timezone=request.default_timezone,
            verify_tokens=request.verify_tokens,
            strict_tokens=request.strict_tokens,
            evolve_schema=request.evolve_schema,
            quarantine=request.quarantine,
        )
        is_empty = _read(job, request, channel, source)
        channel.flush()
        return _report(channel, is_empty=is_empty)


def _source_of(name: str) -> Source:
    """The function of a source. Only its own libraries are imported: a driver may lack those of others."""
    own = _OWN.get(name)
    if own is None:
        return load_function(name)
    try:
        found: Source = getattr(importlib.import_module(f"tidemark.channels.driver.sources.{own}"), own)
    except ModuleNotFoundError as error:
        problem = f"the driver lacks {error.name}. Install airflow-provider-tidemark[ingest] there."
        raise SourceUnreadable(source=name, problem=problem) from error
    return found


def _read(job: JobContext, request: IngestRows, channel: Channel, source: Source) -> bool:
    """Whether the source was empty at the last look."""
    until = utc_now() + timedelta(seconds=request.seconds) if request.seconds is not None else None
    options = dict(request.options)
    if job.source_connection is not None:
        options["connection"] = job.source_connection
    job.progress.say(f"channel {channel.name} of {channel.table} begins behind token {channel.offset_token!r}")
    read_to = channel.offset_token
    while True:
        for rows, token in source(read_to, **options):
            channel.insert_rows(rows, token)
            read_to = token
            job.stop_if_due()
            if until is not None and utc_now() >= until:
                return False
        if until is None or not _waited(job, until):
            return True


def _waited(job: JobContext, until: datetime) -> bool:
    """Whether there is time for another look at an empty source, after a moment."""
    left = until - utc_now()
    time.sleep(max(0.0, min(left, _BETWEEN_LOOKS).total_seconds()))
    job.stop_if_due()
    return utc_now() < until


def _report(channel: Channel, *, is_empty: bool) -> IngestedRows:
    before, after = channel.record_at_open, channel.status().record
    return IngestedRows(
        rows=after.rows_inserted - before.rows_inserted,
        errors=after.rows_error_count - before.rows_error_count,
        from_token=before.offset_token,
        to_token=after.offset_token,
        latency_ms=after.latency_ms,
        is_empty=is_empty,
        last_error=after.last_error_message if after.rows_error_count > before.rows_error_count else None,
    )
