"""A look at events that were not captured yet: which tables they show."""

from __future__ import annotations

from tidemark.errors import EventFileInvalid
from tidemark.replication.model.replication import FoundObject, TableSchema
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.planning.event_file_records import KEY_UNKNOWN, FileRecord, TableKeys
from tidemark.replication.planning.event_file_rows import key_columns
from tidemark.replication.planning.events import Change
from tidemark.replication.sources.event_files.inputs import EventFolder, invalid

__all__ = ["tables_in"]

NO_SCHEMA = (
    "its files of JSON have no schema beside them. Dates, decimals and bytes arrive as numbers and texts of JSON. Have"
    " Datastream write Avro, or a schema file beside each file of JSON, to have their types"
)


def tables_in(folder: EventFolder, start: Lanes, end: Lanes, named: TableKeys) -> tuple[FoundObject, ...]:
    """The tables between the two, each by its first event. A table that no sample shows is found by a later look:
    capture stops before it. Raises EventFileInvalid.
    """
    found: dict[str, FoundObject] = {}
    for read in folder.samples(start, end):
        record = read.record
        if record is None or record.name is None or record.source_id in found:
            continue
        if record.event.change == Change.TRUNCATE:  # it has no columns, and its SCHEMA event is before it
            continue
        file, number = read.place
        try:
            found[record.source_id] = _found(record, named)
        except ValueError as error:
            raise _invalid(folder, file, number, error) from error
    return tuple(found.values())


def _found(record: FileRecord, named: TableKeys) -> FoundObject:
    assert record.name is not None
    if (said := record.schema) is not None:
        return FoundObject(record.name, record.source_id, TableSchema(said.columns))
    keys = key_columns(record, named)
    if keys is None:
        problem = f"{KEY_UNKNOWN}."
        return FoundObject(record.name, record.source_id, TableSchema(()), unsupported=problem)
    schema = TableSchema(record.columns_after(None, keys))
    notices = (NO_SCHEMA,) if record.columns is None else ()
    return FoundObject(record.name, record.source_id, schema, notices=notices)


def _invalid(folder: EventFolder, file: str, number: int, error: ValueError) -> EventFileInvalid:
    return invalid(f"{folder.place}/{file}, {number}", str(error))
