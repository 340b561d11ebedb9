"""The place of envelopes, and how they are read, out of the address of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.kafka.address import KafkaAddress
from tidemark.model.foreign_json import foreign_object
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import ObjectName
from tidemark.replication.planning.debezium_marks import BEGINNING
from tidemark.replication.planning.debezium_rows import PLACEHOLDER
from tidemark.replication.planning.patterns import fits, parts_of
from tidemark.replication.planning.positions import NOW

__all__ = ["KAFKA", "DebeziumSettings", "settings_of"]

KAFKA = "kafka:"
"""With this a location begins that is a list of topics."""


@dataclass(frozen=True)
class DebeziumSettings:
    """`location`: a directory or a bucket, or `kafka:` with patterns of topics. `begin`: `beginning` or `now`. `keys`:
    columns of the keys of tables, by pattern, for records that have no place for a key. `unavailable`: Debezium's
    unavailable.value.placeholder.
    """

    location: str
    begin: str = BEGINNING
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unavailable: str = PLACEHOLDER
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    brokers: KafkaAddress | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Patterns of topics, () for files."""
        if not self.location.startswith(KAFKA):
            return ()
        return tuple(filter(None, (one.strip() for one in self.location.removeprefix(KAFKA).split(","))))

    def key_of(self, name: ObjectName) -> tuple[str, ...] | None:
        """The columns of the table's key; () for a table without one, None if nothing is said."""
        path = (name.schema, name.table)
        return next((columns for pattern, columns in self.keys.items() if fits(path, parts_of(pattern))), None)


def settings_of(address: SourceAddress) -> DebeziumSettings:
    """Of an address of the kind DEBEZIUM. Raises InvalidArgument."""
    said = address.parameters
    begin = said.get("begin") or BEGINNING
    if begin not in (BEGINNING, NOW):
        raise InvalidArgument(argument="begin", value=begin, problem=f"give {BEGINNING} or {NOW}")
    brokers = None
    if address.host:
        settings = {name: str(value) for name, value in foreign_object(said.get("kafka")).items()}
        brokers = KafkaAddress(address.host, settings, address.conn_id)
    keys = foreign_object(said.get("keys"))
    return DebeziumSettings(
        location=address.database,
        begin=begin,
        keys={pattern: tuple(map(str, columns)) for pattern, columns in keys.items()},
        unavailable=said.get("unavailable_value") or PLACEHOLDER,
        storage_options=foreign_object(said.get("storage_options")),
        brokers=brokers,
    )
