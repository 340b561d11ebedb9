"""Envelopes landed in a directory, and the events that are read from it without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.driver.log_forms import form_of_kind
from tidemark.replication.model.jobs import CapturedObject
from tidemark.replication.model.replication import FoundObject, Selection
from tidemark.replication.planning.debezium_marks import Mark
from tidemark.replication.planning.debezium_rows import RowRules, Unavailable
from tidemark.replication.sources.debezium.opening import open_input
from tidemark.replication.sources.debezium.reader import EnvelopeReader
from tidemark.replication.sources.debezium.seen import tables_in
from tidemark.replication.sources.debezium.settings import DebeziumSettings, settings_of

__all__ = ["address_of", "captured", "land", "read_events", "reader_of", "tables"]

ROW = ("facts", *form_of_kind(SourceKind.DEBEZIUM).row, "sequence")
EVENT = ("change", "half", "payload", "key", "old_key", "unchanged", "problem")


def address_of(directory: Path, **parameters: Any) -> SourceAddress:
    """As a connection would have it."""
    said = {name: one if isinstance(one, str) else json.dumps(one) for name, one in parameters.items()}
    return SourceAddress(SourceKind.DEBEZIUM, "", 0, str(directory), "", parameters=said, conn_id="envelopes")


def land(directory: Path, name: str, records: Sequence[Any]) -> Path:
    """A file of JSON lines, whole at once."""
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in records)
    hidden = file.with_name(f".{file.name}")
    hidden.write_text(text)
    hidden.rename(file)
    return file


def _rules(settings: DebeziumSettings, numeric_as: str | None) -> RowRules:
    return RowRules(numeric_as, None, Unavailable(settings.unavailable))


def tables(address: SourceAddress, selection: Selection | None = None) -> dict[str, FoundObject]:
    """The tables that a look finds, by `schema.table`."""
    settings = settings_of(address)
    landed = open_input(settings)
    found = tables_in(landed, {}, landed.ends(), settings.key_of, _rules(settings, None), selection)
    return {one.name.text: one for one in found}


def captured(found: FoundObject, **more: Any) -> CapturedObject:
    """As an object that was registered from it."""
    return CapturedObject(found.name, found.source_id, found.schema.keys, registered=found.schema, **more)


def reader_of(
    address: SourceAddress, *, max_events: int = 10_000, start: Mark | None = None, selection: Selection | None = None
) -> EnvelopeReader:
    """Of all tables that are there, up to the present end."""
    selection = selection or Selection()
    settings = settings_of(address)
    landed = open_input(settings)
    ends, found = landed.ends(), tables(address, selection).values()
    return EnvelopeReader(
        objects={one.source_id: captured(one) for one in found if one.unsupported is None},
        schemas={},
        selection=selection,
        left_out=frozenset(),
        keys=settings.key_of,
        rules=_rules(settings, None),
        start=start or Mark(),
        end=Mark(1, None, ends),
        has_siblings=lambda lane: landed.has_siblings(lane, ends),
        place=landed.place,
        remedy=landed.remedy,
        max_events=max_events,
    )


def read_events(address: SourceAddress, reader: EnvelopeReader | None = None) -> list[Mapping[str, Any]]:
    """Rows of a batch by their names, with the table, and the payload parsed."""
    reader = reader or reader_of(address)
    landed = open_input(settings_of(address))
    rows = [row for chunk in reader.chunks(landed.records(reader.start.lanes, reader.end.lanes)) for row in chunk]
    told = []
    for row in rows:
        one = dict(zip((*ROW, *EVENT), row, strict=True))
        one["table"] = reader.facts[one.pop("facts")].table
        one["payload"] = json.loads(one["payload"])
        told.append({name: list(value) if isinstance(value, tuple) else value for name, value in one.items()})
    return told
