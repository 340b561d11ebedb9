"""The history of a table's channels, written once a minute, off the way of the acknowledgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from tidemark.channels.driver.batches import batch_of
from tidemark.channels.driver.kernel import KernelTable
from tidemark.channels.driver.lake_files import LakeFiles
from tidemark.channels.driver.parquet import write_files
from tidemark.channels.driver.table_spec import spec_of
from tidemark.channels.driver.tries import in_tries
from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.history import HISTORY_DAY, HISTORY_SCHEMA, report_rows

__all__ = ["HistoryTable", "MinuteReports"]

_BETWEEN = timedelta(minutes=1)
_TRIES = 5


class HistoryTable:
    """The table at a URI of its own. It is made with the first row."""

    def __init__(self, name: str, table: KernelTable, files: LakeFiles, token: Callable[[], str]) -> None:
        self._name, self._table, self._files, self._token = name, table, files, token

    def add(self, records: Mapping[str, ChannelRecord], now: datetime) -> None:
        """Append a row for each channel. Counts are totals, so a row that comes twice or never falsifies no other.

        Raises TableNotSupported, KernelFailed, CommitConflict and errors of the storage.
        """
        in_tries(lambda: self._append(records, now), _TRIES)

    def _append(self, records: Mapping[str, ChannelRecord], now: datetime) -> None:
        on = self._table.latest_or_new(HISTORY_SCHEMA, partition_columns=[HISTORY_DAY])
        spec = spec_of(self._name, on.metadata(), on.protocol())
        rows = batch_of(report_rows(records, now), spec, UTC, now).rows
        files = write_files(rows, spec, self._files, token=self._token(), now=now)
        self._table.do_later(self._table.commit(on, files, {}).later)


class MinuteReports:
    """Collects the records of commits, and hands the latest of each channel to `write`, once a minute and at the end.

    One thread at a time calls it.
    """

    def __init__(
        self, write: Callable[[Mapping[str, ChannelRecord], datetime], None], clock: Callable[[], datetime]
    ) -> None:
        self._write, self._clock = write, clock
        self._changed: dict[str, ChannelRecord] = {}
        self._written_at = clock()

    def note(self, key: str, record: ChannelRecord) -> None:
        """The channel has committed."""
        self._changed[key] = record

    def seconds_left(self) -> float | None:
        """Seconds until something is due; None if nothing has changed."""
        return (self._written_at + _BETWEEN - self._clock()).total_seconds() if self._changed else None

    def write_if_due(self) -> None:
        """Hand over what has changed, if a minute is over."""
        left = self.seconds_left()
        if left is not None and left <= 0:
            self.write_now()

    def write_now(self) -> None:
        """Hand over what has changed."""
        self._written_at = self._clock()
        if self._changed:
            changed, self._changed = self._changed, {}
            self._write(changed, self._written_at)
