"""The table of written event files: one row for each target, replaced by every commit.

A range is begun in one commit and done in another. Commits of a target are numbered, and Delta knows the newest number
of each target. So of two runs at once one begins a range, and the other one writes the files of that range, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.delivery.driver.exactly_once import until_committed
from tidemark.errors import EventFilesIncomplete, TableNotFound
from tidemark.jobs.own_tables import make_table
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import written_files_path
from tidemark.lake.written_files import FileRange, files_app_id
from tidemark.sql.identifiers import string_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.replication.model.jobs import ForgetEventFiles, WriteEventFiles

__all__ = ["WrittenFiles", "files_needed_from"]

_ATTEMPTS = 5
_TYPES = {"str": "string", "int": "bigint", "bool": "boolean", "float": "double"}
_COLUMNS = {one.name: _TYPES[str(one.type)] for one in fields(FileRange)}
_DDL = ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())


class WrittenFiles:
    """The ranges of one target. The table is created if it does not exist."""

    def __init__(
        self,
        session: SparkSession,
        store_id: str,
        request: WriteEventFiles | ForgetEventFiles,
        options: Mapping[str, str] | None,
    ) -> None:
        self._session = session
        self._request = request
        self._next = 1
        self._app_id = files_app_id(store_id, request.replication_uid, request.target)
        path = written_files_path(request.event_log)
        try:
            self._log = DeltaLog.open(path, options)
        except TableNotFound:
            self._log = make_table(session, path, _DDL, properties={}, options=options)

    def newest(self) -> FileRange | None:
        """The target's range as it is now; None before the first, and after somebody has deleted its row. Raises
        EventFilesIncomplete for a table that was restored.
        """
        known = self._log.state().transactions.get(self._app_id, 0)
        self._next = known + 1
        rows = self._session.read.format("delta").load(self._log.uri).where(F.col("target") == self._request.target)
        found = max((FileRange(**row.asDict()) for row in rows.collect()), key=lambda one: one.number, default=None)
        if found is not None and found.number < known:
            raise EventFilesIncomplete(
                replication=self._request.stream,
                target=self._request.target,
                problem=f"the table {self._log.uri} has range {found.number}, and had {known}: it was restored",
                remedy="Restore it to its newest version, or begin again with an empty target.",
            )
        return found

    def store(self, wanted: FileRange) -> FileRange | None:
        """Commit `wanted` under the number that follows what `newest` saw, and return the target's range afterwards. It
        is that of another run if that was first; then nothing was written.
        """
        until_committed()(self._save, replace(wanted, number=self._next))
        return self.newest()

    def forget(self) -> FileRange | None:
        """Take the target's row away, and return the range that it had. The next files of the target begin with the
        oldest event of the log. A second run finds none. Raises EventFilesIncomplete if another run begins ranges all
        the time.
        """
        known = found = self.newest()
        for _ in range(_ATTEMPTS):
            if found is None:
                return known
            nothing = replace(found, start="", end="", done=False, events=0, number=self._next)
            until_committed()(self._save, nothing, rows=0)
            found = self.newest()
        if found is None:
            return known
        raise EventFilesIncomplete(
            replication=self._request.stream,
            target=self._request.target,
            problem="another run writes files there at this moment",
            remedy="End that task, then forget the target.",
        )

    def _save(self, wanted: FileRange, *, rows: int = 1) -> None:
        """Delta skips a number that it has, and does not say so."""
        values = (F.lit(value).cast(_COLUMNS[name]).alias(name) for name, value in asdict(wanted).items())
        row = self._session.range(rows).select(*values)  # without a process of Python beside Spark
        writer = row.write.format("delta").mode("overwrite").option("userMetadata", wanted.to_text())
        writer = writer.option("replaceWhere", f"target = {string_literal(wanted.target)}")
        writer.option("txnAppId", self._app_id).option("txnVersion", wanted.number).save(self._log.uri)


def files_needed_from(session: SparkSession, event_log: str, options: Mapping[str, str] | None) -> str | None:
    """The position from which on some target needs the events as files; None if no files are written."""
    try:
        log = DeltaLog.open(written_files_path(event_log), options)
    except TableNotFound:
        return None
    rows = session.read.format("delta").load(log.uri)
    (first,) = rows.agg(F.min(F.when(F.col("done"), F.col("end")).otherwise(F.col("start")))).collect()[0]
    return None if first is None else str(first)
