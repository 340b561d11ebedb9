"""A run that skips batches with bad rows says how many rows it left out, and where."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.channels.test_ended_writer import channel, writer_of
from tidemark.channels.driver.channel import Channel, ChannelOptions
from tidemark.channels.driver.job_ingest_rows import _read, _report, _Skipped
from tidemark.channels.driver.json_rows import JsonLines
from tidemark.channels.driver.limits import Limits
from tidemark.channels.model.jobs import IngestRows
from tidemark.channels.model.rows import OnError

LINES = JsonLines([b'{"id": 1}\n', b'{"id": "x"}\n', b"{\n"], "a.jsonl:{}".format)


@pytest.mark.parametrize(
    ("rows", "count", "errors", "last"),
    [
        (LINES, 3, 2, "a.jsonl:2: it is not a JSON object"),
        ([{"id": 1}, {"id": "x"}], 2, 1, "row 1: column id: "),
        (iter([{"id": 1}, {"id": "x"}]), 2, 1, "row 1: column id: "),
        (pa.table({"id": ["1", "x"]}), 2, 1, "row 1: column id: "),
        (b'{"id": 1}\n\n{"id": "x"}\n', 2, 1, "row 1: column id: "),
    ],
)
def test_the_rows_of_a_skipped_batch_are_reported_and_logged(rows: Any, count: int, errors: int, last: str) -> None:
    said: list[str] = []
    job: Any = SimpleNamespace(
        source_connection=None, progress=SimpleNamespace(say=said.append), stop_if_due=lambda: None
    )

    def source(after: str | None) -> Iterator[tuple[Any, str]]:
        yield from ((rows, "3"), ([{"id": 9}], "4"))

    writer = writer_of(Limits(lag=timedelta(minutes=10)))
    on_error = OnError.SKIP_BATCH
    one = Channel(channel(), writer, ChannelOptions(on_error), lambda: datetime.now(UTC))
    request, skipped = IngestRows("/lake", "db.orders", "c", "m:f", "app", on_error=on_error.value), _Skipped()
    assert _read(job, request, one, source, skipped)
    report = _report(one, skipped, is_empty=True)
    writer.stop()
    assert (report.skipped_rows, report.errors) == (count, errors)
    assert (report.last_error or "").startswith(last)
    assert one.status().buffered_rows == 1
    assert said[1].startswith(f"between the tokens None and '3', {count} rows are skipped")
