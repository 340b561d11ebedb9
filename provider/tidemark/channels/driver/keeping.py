"""Upkeep of a table with channels: idle channels leave it, old days leave its history, small files become large.

Its history and the quarantine tables of its channels are kept with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.model.jobs import KeptTable
from tidemark.channels.planning.history import HISTORY_DAY
from tidemark.errors import TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.own_tables import HISTORY_SUFFIX
from tidemark.sql.statements import path_name
from tidemark.streams.planning.staleness import FILE_RETENTION, LOG_RETENTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Upkeeper"]

_HISTORY_KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Upkeeper:
    """`options`: storage options. `idle`, `warn`: without rows and tokens. `compact`: run OPTIMIZE."""

    session: SparkSession
    client: IngestClient
    options: Mapping[str, str]
    idle: timedelta = timedelta(days=30)
    warn: timedelta = timedelta(days=23)
    compact: bool = True

    def keep(self, table: str, uri: str, now: datetime) -> KeptTable:
        """Keep the table of that name, at that URI. A second run finds nothing to do. Raises TableNotFound,
        TableNotSupported, CommitsMayBeLost.
        """
        quarantines = self.client.complete_quarantines(table)
        swept = self.client.sweep(table, idle_since=now - self.idle)
        idle = self.client.idle_channels(table, idle_since=now - self.warn)
        self._trim_history(uri + HISTORY_SUFFIX, before=now - _HISTORY_KEPT)
        removed, added = self._compacted(uri) if self.compact else (0, 0)
        self.client.shorten_log(table)
        for quarantine in quarantines:
            self._keep_beside(quarantine)
        return KeptTable(table, tuple(swept), tuple(idle), files_removed=removed, files_added=added)

    def keep_log(self, uri: str, hours: int) -> None:
        """Commits stay in the table's log for these hours. A second run changes nothing."""
        wanted = f"interval {hours} hours"
        known = DeltaLog.open(uri, self.options).state().metadata.configuration
        if known.get(LOG_RETENTION) == wanted:
            return
        files = f", '{FILE_RETENTION}' = '{known[FILE_RETENTION]}'" if FILE_RETENTION in known else ""
        # Delta compares it with the setting of files in the same statement, else with seven days.
        self.session.sql(f"ALTER TABLE {path_name(uri)} SET TBLPROPERTIES ('{LOG_RETENTION}' = '{wanted}'{files})")

    def _trim_history(self, uri: str, *, before: datetime) -> None:
        """Remove the history's old days. They are partitions, so that no commit of a minute conflicts."""
        if not self._exists(uri):
            return
        self.session.sql(f"DELETE FROM {path_name(uri)} WHERE {HISTORY_DAY} < DATE '{before.date()}'").collect()
        self._keep_beside(uri)

    def _keep_beside(self, uri: str) -> None:
        """Keep a table without channels that each of many commits has given a file."""
        if not self._exists(uri):
            return
        if self.compact:
            self._compacted(uri)
        self.client.shorten_log_at(uri)

    def _exists(self, uri: str) -> bool:
        try:
            DeltaLog.open(uri, self.options)
        except TableNotFound:
            return False
        return True

    def _compacted(self, uri: str) -> tuple[int, int]:
        """Numbers of files that OPTIMIZE removed and added. It changes no row, so streams see none of it."""
        (done,) = self.session.sql(f"OPTIMIZE {path_name(uri)}").collect()
        return int(done.metrics.numFilesRemoved), int(done.metrics.numFilesAdded)
