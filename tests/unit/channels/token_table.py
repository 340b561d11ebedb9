"""The history table of a landing table's channels, written by hand as a client of channels writes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.lake.delta_directories import add, born, commit
from tidemark.model.own_tables import HISTORY_SUFFIX

__all__ = ["START", "Tokens"]

START = datetime(2026, 11, 29, 8, tzinfo=UTC)


class Tokens:
    """Each `minute` is a commit with a row for each channel, by channel its token."""

    def __init__(self, landing: Path, start: datetime = START) -> None:
        self.landing, self.history = landing, landing.with_name(landing.name + HISTORY_SUFFIX)
        self._start, self._minutes, self._version = start, 0, 0

    def minute(self, *, zone: bool = True, **tokens: str | None) -> None:
        at = self._start + timedelta(minutes=self._minutes)
        self._minutes += 1
        rows = [self._row(at if zone else at.replace(tzinfo=None), *one) for one in tokens.items()]
        self.history.mkdir(exist_ok=True)
        name = f"part-{self._minutes:05}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), self.history / name)
        self.write(add(name))

    def write(self, *actions: dict[str, Any]) -> None:
        if self._version == 0:
            born(self.history)
        self._version += 1
        commit(self.history, self._version, *actions)

    def _row(self, at: datetime, channel: str, token: str | None) -> dict[str, Any]:
        counts = {"rows_inserted": 10 * self._minutes, "rows_parsed": 11 * self._minutes}
        more = {"rows_error_count": self._minutes, "latency_ms": 1500, "opened_by": "writer"}
        return {"created_on": at, "channel_name": channel, "end_offset_token": token, **counts, **more}
