"""The INGEST_ROWS job: a replayable source is read from the channel's committed token on."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tidemark.channels.driver.channel import Channel
from tidemark.channels.driver.job_client import client_of_job
from tidemark.channels.driver.json_rows import JsonLines
from tidemark.channels.model.jobs import IngestedRows, IngestRows
from tidemark.channels.model.rows import InsertAnswer, OnError
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
        skipped = _Skipped()
        is_empty = _read(job, request, channel, source, skipped)
        channel.flush()
        return _report(channel, skipped, is_empty=is_empty)


@dataclass
class _Skipped:
    """Batches that `on_error="skip_batch"` left out. The next good batch moves the token past them."""

    rows: int = 0
    errors: int = 0
    last: str | None = None

    def note(self, rows: Any, answer: InsertAnswer) -> str:
        """Count a batch. The words of a log line."""
        count = len(rows.lines) if isinstance(rows, JsonLines) else len(rows)
        if isinstance(rows, bytes):
            count = sum(1 for line in rows.split(b"\n") if line.strip())
        last = answer.errors[-1]
        place = rows.place if isinstance(rows, JsonLines) else "row {}".format
        self.rows, self.errors = self.rows + count, self.errors + answer.error_count
        self.last = f"{place(last.row_index)}: {last}"
        return f"{count} rows are skipped, since {answer.error_count} of them do not fit; the last: {self.last}"


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


def _read(job: JobContext, request: IngestRows, channel: Channel, source: Source, skipped: _Skipped) -> bool:
    """Whether the source was empty at the last look."""
    until = utc_now() + timedelta(seconds=request.seconds) if request.seconds is not None else None
    options = dict(request.options)
    if job.source_connection is not None:
        options["connection"] = job.source_connection
    job.progress.say(f"channel {channel.name} of {channel.table} begins behind token {channel.offset_token!r}")
    read_to = channel.offset_token
    while True:
        for given, token in source(read_to, **options):
            rows = list(given) if isinstance(given, Iterator) else given
            answer = channel.insert_rows(rows, token)
            if answer.has_errors and request.on_error == OnError.SKIP_BATCH:
                job.progress.say(f"between the tokens {read_to!r} and {token!r}, {skipped.note(rows, answer)}")
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


def _report(channel: Channel, skipped: _Skipped, *, is_empty: bool) -> IngestedRows:
    before, after = channel.record_at_open, channel.status().record
    errors = after.rows_error_count - before.rows_error_count
    return IngestedRows(
        rows=after.rows_inserted - before.rows_inserted,
        errors=errors + skipped.errors,
        from_token=before.offset_token,
        to_token=after.offset_token,
        latency_ms=after.latency_ms,
        is_empty=is_empty,
        last_error=skipped.last or (after.last_error_message if errors else None),
        skipped_rows=skipped.rows,
    )
