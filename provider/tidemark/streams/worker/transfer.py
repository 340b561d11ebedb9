"""Streams go from one control store to another, by a document: for a new database, a lost one, a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import ImportRefused, InvalidArgument, SourceError, StreamExists
from tidemark.model.streams import Stream
from tidemark.streams.planning.names import is_of_a_view, require_name, require_own
from tidemark.streams.planning.stream_document import ExportedStream, StreamDocument, document_of, parse_document
from tidemark.streams.store import streams, transactions
from tidemark.streams.worker.sources import Tables, checked_head, open_table
from tidemark.streams.worker.streams import require_free

__all__ = ["ImportedStream", "StreamFate", "export_streams", "import_streams"]


class StreamFate(StrEnum):
    """The outcome of an import for a stream of its document."""

    CREATED = "created"
    KEPT = "kept"  # a stream of that name was there, and stays as it is
    REPLACED = "replaced"  # the one that was there has ended


@dataclass(frozen=True)
class ImportedStream:
    """A stream of the document, as the store has it now. `open_transaction`: who held it when it was exported."""

    name: str
    fate: StreamFate
    uid: str
    version: int
    same_identity: bool
    open_transaction: str | None


class _DryRun(Exception):
    """All was possible: roll it back."""

    def __init__(self, imported: tuple[ImportedStream, ...]) -> None:
        super().__init__()
        self.imported = imported


def export_streams(store: ControlStore, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The streams of these names, all by default, as one snapshot of the store has them; ready for `json.dumps`.

    Offsets are committed ones. Changes nothing. Raises StreamNotFound.
    """
    require_own(names or ())

    def look(connection: sa.Connection) -> tuple[ExportedStream, ...]:
        live = [stream for stream in streams.live(connection) if not is_of_a_view(stream.name)]
        found = live if names is None else [streams.find(connection, name) for name in names]
        once = {stream.uid: stream for stream in found}
        return tuple(_exported(connection, stream) for stream in once.values())

    document = StreamDocument(exported_at=store.clock(), store_id=store.store_id, streams=store.read(look))
    return document_of(document)


def import_streams(
    store: ControlStore,
    document: str | Mapping[str, Any],
    *,
    who: str,
    tables: Tables = open_table,
    or_replace: bool = False,
    if_not_exists: bool = False,
    dry_run: bool = False,
    check_sources: bool = True,
    new_identity: bool = False,
) -> tuple[ImportedStream, ...]:
    """Create the document's streams in this store, all of them or none, each at its offset.

    A name that is taken raises StreamExists. With `if_not_exists` that stream is kept with its offset, so that a second
    run changes nothing. With `or_replace` it is ended, and the document's takes its place (R7). A stream keeps its uid
    and serial if the uid was never used here. So Delta refuses what the old store has written under them. Otherwise, or
    with `new_identity`, it gets a uid of its own (V5). `check_sources`: each table exists with its id, and its log
    holds what the offset needs. Streams that are kept are not looked at. `dry_run` does all of it and stores nothing.

    Raises DocumentUnreadable, ImportRefused, StreamExists, TransactionOpen, InvalidArgument, and of the sources
    SourceRecreated, TrackingInterrupted, StreamStale.
    """
    if or_replace and if_not_exists:
        raise InvalidArgument(argument="or_replace", value=True, problem="it contradicts if_not_exists (R7)")
    parsed = parse_document(document)
    for exported in parsed.streams:
        require_name(exported.stream.name)
    if check_sources:
        kept = store.read(lambda c: streams.lookup_all(c, _names(parsed))) if if_not_exists else {}
        for exported in parsed.streams:
            if exported.stream.name.casefold() not in kept:
                _require_sources(exported.stream, tables)
    move = _Import(store, parsed, who, or_replace, if_not_exists, new_identity)
    try:
        return store.write(lambda connection: move.run(connection, dry_run=dry_run))
    except _DryRun as done:
        return done.imported


@dataclass(frozen=True)
class _Import:
    """The work of one import inside its store transaction."""

    store: ControlStore
    document: StreamDocument
    who: str
    or_replace: bool
    if_not_exists: bool
    new_identity: bool

    def run(self, connection: sa.Connection, *, dry_run: bool) -> tuple[ImportedStream, ...]:
        imported = tuple(self._one(connection, exported) for exported in self.document.streams)
        if dry_run:
            raise _DryRun(imported)
        return imported

    def _one(self, connection: sa.Connection, exported: ExportedStream) -> ImportedStream:
        now = self.store.clock()
        existing = streams.lookup(connection, exported.stream.name)
        if existing is not None:
            if self.if_not_exists:
                return _imported(exported, existing, StreamFate.KEPT)
            if not self.or_replace:
                raise StreamExists(stream=existing.name, source=existing.source.name)
            require_free(connection, self.store, existing, "replaced")
            streams.drop(connection, existing, at=now, who=self.who, why="replaced")
        stream = self._with_identity(connection, exported.stream)
        why = f"imported from control store {self.document.store_id}, exported {self.document.exported_at.isoformat()}"
        streams.insert(connection, stream, who=self.who, why=why, at=now)
        return _imported(exported, stream, StreamFate.CREATED if existing is None else StreamFate.REPLACED)

    def _with_identity(self, connection: sa.Connection, stream: Stream) -> Stream:
        """The stream under its own uid and serial, or, where the uid was used here, under new ones (V5)."""
        if self.new_identity:
            return replace(stream, uid=self.store.new_id(), serial=0)
        used = streams.with_uid(connection, stream.uid)
        if used is None:
            return stream
        if not used.dropped:
            problem = f"the stream {used.stream.name!r} of this store has it; drop that one, or give new identities"
            raise ImportRefused(stream=stream.name, field="uid", problem=problem)
        return replace(stream, uid=self.store.new_id(), serial=0)


def _names(document: StreamDocument) -> list[str]:
    return [exported.stream.name for exported in document.streams]


def _exported(connection: sa.Connection, stream: Stream) -> ExportedStream:
    """The stream, with the serial below those of an open transaction that it leads. The next window takes their numbers
    again, and Delta refuses it if the open one has written.
    """
    held_by = streams.holder(connection, stream.uid)
    if held_by is None:
        return ExportedStream(stream)
    held = transactions.by_id(connection, held_by)
    if held.lead == stream.uid:
        drawn = (held.serial, *(statement.txn_version for statement in held.transaction.plan.statements))
        stream = replace(stream, serial=min(drawn) - 1)
    return ExportedStream(stream, str(held.transaction.key))


def _require_sources(stream: Stream, tables: Tables) -> None:
    """Check that each table that the stream reads can be read on from its offset. For a view, its base tables are
    checked (the rest needs Spark).
    """
    for number, base in enumerate(stream.bases):
        of_view = f"view_bases[{number}]"
        table, version = ("source", "offset.version") if stream.view is None else (of_view, f"{of_view}.version")
        try:
            head = checked_head(stream, base, tables(base.table))
        except SourceError as error:
            raise ImportRefused(stream=stream.name, field=table, problem=str(error)) from error
        if head < base.version:
            problem = f"{base.table.name} ends with version {head}, so {base.version} is none of its versions"
            raise ImportRefused(stream=stream.name, field=version, problem=problem)


def _imported(exported: ExportedStream, stored: Stream, fate: StreamFate) -> ImportedStream:
    return ImportedStream(
        name=stored.name,
        fate=fate,
        uid=stored.uid,
        version=stored.offset.version,
        same_identity=stored.uid == exported.stream.uid,
        open_transaction=exported.open_transaction,
    )
