"""Quarantine tables: bad rows go there exactly once, though two tables have no common commit.

1. A file of bad rows is written into the quarantine table's directory. Nothing reads it yet.
2. The commit of the good rows puts the file's name into the channel's record.
3. Another commit adds the file to the quarantine table. Its transaction id is the channel, and its version the row
   sequencer of step 2. Each reader of the record may do so: the writer, the
   next one, and the nightly upkeep.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tidemark.channels.driver.batches import Batch, batch_of, plain_rows
from tidemark.channels.driver.json_rows import JsonLines
from tidemark.channels.driver.kernel import DataFile, KernelEngine
from tidemark.channels.driver.lake_files import LakeFiles
from tidemark.channels.driver.open_channel import Group
from tidemark.channels.driver.parquet import write_files
from tidemark.channels.driver.table_spec import TableSpec, spec_of
from tidemark.channels.model.channels import ChannelRecord, PendingRows
from tidemark.channels.model.rows import BadRow
from tidemark.channels.planning.quarantine import QUARANTINE_COLUMNS, QUARANTINE_SCHEMA, quarantine_rows, transaction_of
from tidemark.errors import CommitConflict, InvalidArgument, QuarantineMissing, TableNotFound

__all__ = ["QuarantineTables", "bad_rows"]

_TRIES = 20
_PROPERTIES = {"delta.enableRowTracking": "true"}

_log = logging.getLogger(__name__)


@dataclass
class QuarantineTables:
    """All quarantine tables of one client, by URI. `token`: gives a new text for each file."""

    engine: KernelEngine
    options: Mapping[str, Any]
    token: Callable[[], str]
    _specs: dict[str, TableSpec] = field(default_factory=dict)
    _done: dict[str, int] = field(default_factory=dict)

    def prepare(self, uri: str) -> None:
        """Make the table if it does not exist. Raises KernelFailed, TableNotSupported, InvalidArgument."""
        table = self.engine.table(uri)
        try:
            on = table.latest()
        except TableNotFound:
            table.create(QUARANTINE_SCHEMA, partition_columns=(), properties=_PROPERTIES)
            on = table.latest()
        spec = spec_of(uri, on.metadata(), on.protocol())
        lacking = [name for name in QUARANTINE_COLUMNS if name.upper() not in spec.by_name]
        if lacking:
            problem = f"it lacks the columns {', '.join(lacking)}; name a table that does not exist yet"
            raise InvalidArgument(argument="quarantine", value=uri, problem=problem)
        self._specs[uri] = spec

    def write(self, group: Group, uri: str, now: datetime) -> PendingRows:
        """A file of the group's bad rows, which no table has yet. The table was prepared. Raises errors of the
        storage.
        """
        channel, spec = group.channel, self._specs[uri]
        kept = quarantine_rows(group.bad, table=channel.table, channel=channel.key, now=now)
        rows = batch_of(kept, spec, UTC, now).rows
        (file,) = write_files(rows, spec, LakeFiles(uri, self.options), token=self.token(), now=now)
        return PendingRows(uri, channel.record.row_sequencer + 1, file.path, file.size, file.modified, file.stats)

    def complete(self, key: str, record: ChannelRecord) -> None:
        """Add the record's file to its table, unless that was done. A second run, and a race, change nothing.

        Raises QuarantineMissing, KernelFailed, CommitConflict and errors of the storage.
        """
        pending, name = record.pending, transaction_of(key, record)
        if pending is None or self._done.get(name, -1) >= pending.version:
            return
        for _ in range(_TRIES):
            try:
                self._add(name, pending)
            except TableNotFound as gone:
                raise QuarantineMissing(channel=key, table=pending.uri) from gone
            except CommitConflict as conflict:
                problem = conflict
                continue
            self._done[name] = pending.version
            return
        raise problem

    def _add(self, name: str, pending: PendingRows) -> None:
        table = self.engine.table(pending.uri)
        on = table.latest()
        if not LakeFiles(pending.uri, self.options).mark(pending.path):
            _log.error("Bad rows are lost, since their file is gone: %s/%s", pending.uri, pending.path)
            return
        file = DataFile(pending.path, pending.size, pending.modified, pending.stats, {})
        table.commit(on, [file], {}, transaction=(name, pending.version))


def bad_rows(rows: Any, batch: Batch, spec: TableSpec, token: str | None) -> list[BadRow]:
    """The rows of the batch that do not fit, with their errors. Their text is JSON, or the line as it came."""
    text_of = _texts(rows, spec)
    return [BadRow(batch.place(one.row_index), one, text_of(one.row_index), token) for one in batch.errors]


def _texts(rows: Any, spec: TableSpec) -> Callable[[int], str]:
    if isinstance(rows, JsonLines):
        lines = rows.lines
        return lambda index: lines[index].decode(errors="replace").rstrip("\n")
    plain = plain_rows(rows, spec)
    if isinstance(plain, list):
        return lambda index: _json(plain[index])
    return lambda index: _json(plain.slice(index, 1).to_pylist()[0])


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, default=str, ensure_ascii=False)
