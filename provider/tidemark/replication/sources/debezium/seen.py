"""A bounded look at envelopes that were not captured yet: which tables they show."""

from __future__ import annotations

from collections import Counter

from tidemark.errors import EnvelopeInvalid
from tidemark.replication.model.replication import FoundObject, Selection, TableSchema
from tidemark.replication.planning.debezium import Envelope, message_of, table_of
from tidemark.replication.planning.debezium_fields import Field, fields_of_avro, fields_of_connect
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.planning.debezium_rows import RowRules
from tidemark.replication.planning.debezium_tables import EnvelopeKeys, key_columns, seen_columns
from tidemark.replication.planning.debezium_types import LOSSY_TIMES
from tidemark.replication.planning.selection import selects
from tidemark.replication.sources.debezium.inputs import EnvelopeInput

__all__ = ["KEY_UNKNOWN", "MOST_LOOKED_AT", "tables_in"]

MOST_LOOKED_AT = 20_000  # envelopes of a lane
KEY_UNKNOWN = (
    "its records have no place for a key. Name the columns of its key in the extra keys of the connection, [] for none,"
    ' or land {"key": …, "value": …}'
)
NO_SCHEMA = (
    "its envelopes have no schema. Dates, decimals and bytes arrive as numbers and texts of JSON. A column added"
    " with a default is NULL in older rows. Set schemas.enable=true to have their types"
)
LOSSY = "time.precision.mode=connect cuts microseconds off: column {columns}. Set it to adaptive_time_microseconds"


def tables_in(
    landed: EnvelopeInput,
    start: Lanes,
    end: Lanes,
    named: EnvelopeKeys,
    rules: RowRules,
    selection: Selection | None = None,
) -> tuple[FoundObject, ...]:
    """The tables between the two, each by its first envelope with a row. A table that comes later than the look reaches
    is found by a later one: capture stops before it. Raises EnvelopeInvalid, unless the record names a table outside
    of `selection`.
    """
    found: dict[str, FoundObject] = {}
    for lane in sorted(end):
        looked: Counter[str] = Counter()
        begun = {lane: start[lane]} if lane in start else {}
        for record in landed.records(begun, {lane: end[lane]}):
            if record.landed is None:
                continue
            looked[lane] += 1
            if looked[lane] > MOST_LOOKED_AT:
                break
            try:
                message = message_of(record.landed, avro=record.avro)
            except ValueError as error:
                table = table_of(record.landed)
                if table is not None and selection is not None and not selects(selection, table.name):
                    continue
                file, number = record.place
                place, remedy = f"{landed.place}: {file}, {number}", landed.remedy(lane)
                raise EnvelopeInvalid(place=place, problem=str(error), remedy=remedy) from error
            if isinstance(message, Envelope) and message.op not in "tm" and message.source_id not in found:
                found[message.source_id] = _found(message, named, rules)
    return tuple(found.values())


def _found(envelope: Envelope, named: EnvelopeKeys, rules: RowRules) -> FoundObject:
    keys = key_columns(envelope, named)
    if keys is None:
        return FoundObject(envelope.name, envelope.source_id, TableSchema(()), unsupported=KEY_UNKNOWN)
    try:
        schema = seen_columns(envelope, keys, rules)
    except ValueError as error:
        return FoundObject(envelope.name, envelope.source_id, TableSchema(()), unsupported=f"{error}.")
    return FoundObject(envelope.name, envelope.source_id, schema, notices=_notices(envelope))


def _notices(envelope: Envelope) -> tuple[str, ...]:
    if envelope.row_schema is None:
        return (NO_SCHEMA,)
    lossy = [one.name for one in _fields(envelope) if one.semantic in LOSSY_TIMES]
    return (LOSSY.format(columns=", ".join(lossy)),) if lossy else ()


def _fields(envelope: Envelope) -> tuple[Field, ...]:
    said = envelope.row_schema or {}
    return fields_of_avro(said["avro"], said["named"]) if "avro" in said else fields_of_connect(said)
