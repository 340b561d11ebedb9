"""Quarantine tables: bad rows go there exactly once, though two tables have no common commit.

1. A file of bad rows is written into the quarantine table's directory. Nothing reads it yet.
2. The commit of the good rows puts the file's name into the channel's record.
3. Another commit adds the file to the quarantine table. Its transaction id is the channel at this place, and its
   version is in the record. Each reader of the record may do so: the writer, the next one, and the nightly upkeep.

Versions grow with the row sequencer. They also exceed all that the quarantine has of the channel. A directory
that was put back from a copy counts its rows from an earlier number.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tidemark.channels.driver.batches import Batch, batch_of, plain_rows, python_value
from tidemark.channels.driver.json_rows import JsonLines
from tidemark.channels.driver.kernel import DataFile, KernelEngine, KernelTable
from tidemark.channels.driver.lake_files import LakeFiles
from tidemark.channels.driver.open_channel import Group
from tidemark.channels.driver.parquet import write_files
from tidemark.channels.driver.table_spec import TableSpec, spec_of
from tidemark.channels.driver.tries import in_tries
from tidemark.channels.model.channels import ChannelRecord, PendingRows
from tidemark.channels.model.rows import BadRow
from tidemark.channels.planning.quarantine import QUARANTINE_COLUMNS, QUARANTINE_SCHEMA, quarantine_rows, transaction_of
from tidemark.channels.planning.values.problem import shown
from tidemark.errors import (
    InvalidArgument,
    QuarantineMissing,
    TableNotFound,
    TableNotSupported,
    TidemarkError,
)
from tidemark.model.foreign_json import plain_text

__all__ = ["QuarantineTables", "bad_rows"]

_TRIES = 20
_LONGEST_TEXT = 1 << 20  # characters of a row in quarantine
_FORGETS = "delta.setTransactionRetentionDuration"

_log = logging.getLogger(__name__)


@dataclass
class QuarantineTables:
    """All quarantine tables of one client, by URI. `token`: gives a new text for each file. `later`: takes work that
    keeps a log short.
    """

    engine: KernelEngine
    options: Mapping[str, Any]
    token: Callable[[], str]
    later: Callable[[Callable[[], None]], None]
    _specs: dict[str, TableSpec] = field(default_factory=dict)
    _done: dict[str, int] = field(default_factory=dict)
    _taken: dict[tuple[str, str], int] = field(default_factory=dict)  # the latest version of each transaction id

    def prepare(self, uri: str) -> None:
        """Make the table if it does not exist. Raises KernelFailed, TableNotSupported, InvalidArgument."""
        on = self.engine.table(uri).latest_or_new(QUARANTINE_SCHEMA)
        metadata = on.metadata()
        spec = spec_of(uri, metadata, on.protocol())
        problem = _unfit(spec, metadata.configuration)
        if problem is not None:
            problem = f"{problem}; name a table that does not exist yet"
            raise InvalidArgument(argument="quarantine", value=uri, problem=problem)
        self._specs[uri] = spec

    def begin(self, uri: str, key: str, record: ChannelRecord, source: str) -> None:
        """Learn which bad rows the table at `uri` has of a channel that was opened, from all its writers.

        Raises TableNotFound, KernelFailed.
        """
        transaction = transaction_of(key, record, source)
        self._taken[uri, transaction] = self.engine.table(uri).latest().transaction_version(transaction)

    def write(self, group: Group, uri: str, source: str, now: datetime) -> PendingRows:
        """A file of the group's bad rows, which no table has yet. The quarantine was prepared. `source`: the URI of the
        channel's table. Raises errors of the storage.
        """
        channel, spec = group.channel, self._specs[uri]
        transaction = transaction_of(channel.key, channel.record, source)
        version = max(self._taken.get((uri, transaction), -1), channel.record.row_sequencer) + 1
        kept = quarantine_rows(group.bad, table=channel.table, channel=channel.key, now=now)
        batch = batch_of(kept, spec, UTC, now)
        if batch.errors:
            raise TableNotSupported(table=uri, problem=f"it takes no row of a quarantine: {batch.errors[0]}")
        (file,) = write_files(batch.rows, spec, LakeFiles(uri, self.options), token=self.token(), now=now)
        self._taken[uri, transaction] = version
        return PendingRows(
            uri=uri,
            transaction=transaction,
            version=version,
            path=file.path,
            size=file.size,
            modified=file.modified,
            stats=file.stats,
        )

    def complete(self, key: str, record: ChannelRecord) -> None:
        """Add the record's file to its table, unless that was done. A second run, and a race, change nothing.

        Raises QuarantineMissing, KernelFailed, CommitConflict and errors of the storage.
        """
        pending = record.pending
        if pending is None or self._done.get(pending.transaction, -1) >= pending.version:
            return
        try:
            in_tries(lambda: self._add(pending), _TRIES)
        except TableNotFound as gone:
            raise QuarantineMissing(channel=key, table=pending.uri) from gone
        self._done[pending.transaction] = pending.version

    def try_complete(self, key: str, record: ChannelRecord) -> None:
        """As `complete`. A failure is logged. The channel's next commit tries again, and insists."""
        try:
            self.complete(key, record)
        except TidemarkError as problem:
            _log.warning("Bad rows of channel %s wait for their quarantine: %s", key, problem)

    def _add(self, pending: PendingRows) -> None:
        table = self.engine.table(pending.uri)
        on = table.latest()
        if on.transaction_version(pending.transaction) >= pending.version:
            return
        if not LakeFiles(pending.uri, self.options).mark(pending.path):
            _log.error("Bad rows are lost, since their file is gone: %s/%s", pending.uri, pending.path)
            return
        file = DataFile(pending.path, pending.size, pending.modified, pending.stats, {})
        committed = table.commit(on, [file], {}, transaction=(pending.transaction, pending.version))
        self.later(partial(_keep_short, table, committed.later))


def _keep_short(table: KernelTable, work: Sequence[Any]) -> None:
    table.do_later(work)


def _unfit(spec: TableSpec, configuration: Mapping[str, str]) -> str | None:
    """The reason why a table cannot be a quarantine."""
    if lacking := [name for name in QUARANTINE_COLUMNS if name.upper() not in spec.by_name]:
        return f"it lacks the columns {', '.join(lacking)}"
    for name, kind in QUARANTINE_COLUMNS.items():
        column = spec.by_name[name.upper()]
        if column.type.kind.value != kind or column.type.length is not None:
            return f"its column {name} is not of type {kind}"
    others = [column for column in spec.columns if column.name.lower() not in QUARANTINE_COLUMNS]
    if needed := [column.name for column in others if not column.nullable and column.name not in spec.defaults]:
        return f"its column {needed[0]} needs a value"
    if spec.partition_columns:
        return "it has partitions"
    return f"it has the property {_FORGETS}" if _FORGETS in configuration else None


def bad_rows(rows: Any, batch: Batch, spec: TableSpec, token: str | None) -> list[BadRow]:
    """The rows of the batch that do not fit, with their errors. Their text is JSON, or the line as it came."""
    text_of = _texts(rows, spec)
    return [BadRow(batch.place(one.row_index), one, text_of(one.row_index), token) for one in batch.errors]


def _texts(rows: Any, spec: TableSpec) -> Callable[[int], str]:
    if isinstance(rows, JsonLines):
        lines = rows.lines
        return lambda index: _cut(lines[index].decode(errors="replace").rstrip("\n"))
    plain = plain_rows(rows, spec)
    if isinstance(plain, list):
        return lambda index: _json(plain[index].items())
    names = plain.column_names  # a row may have a name twice
    return lambda index: _json(zip(names, (python_value(column[index]) for column in plain.columns), strict=True))


def _json(pairs: Iterable[tuple[Any, Any]]) -> str:
    inner = ", ".join(f"{json.dumps(str(name), ensure_ascii=False)}: {_json_of(value)}" for name, value in pairs)
    return _cut(plain_text(f"{{{inner}}}"))


def _json_of(value: Any) -> str:
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):  # it has no form in JSON, and keeps no row from its quarantine
        return json.dumps(shown(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text):,} characters)"
