"""The folder of event files, and how they are read, out of the address of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import foreign_object
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import ObjectName
from tidemark.replication.planning.debezium_marks import BEGINNING
from tidemark.replication.planning.patterns import fits, parts_of
from tidemark.replication.planning.positions import NOW

__all__ = ["EventFileSettings", "settings_of"]

WAIT_SECONDS = 10.0


@dataclass(frozen=True)
class EventFileSettings:
    """`location`: a directory or a bucket. `begin`: `beginning` or `now`. `keys`: columns of the keys of tables, by
    pattern. `wait_seconds`: a file of Datastream is read when it is so old.
    """

    location: str
    begin: str = BEGINNING
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wait_seconds: float = WAIT_SECONDS
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def key_of(self, name: ObjectName) -> tuple[str, ...] | None:
        """The columns of the table's key; () for a table without one, None if nothing is said."""
        path = (name.schema, name.table)
        return next((columns for pattern, columns in self.keys.items() if fits(path, parts_of(pattern))), None)


def settings_of(address: SourceAddress) -> EventFileSettings:
    """Of an address of the kind EVENT_FILES. Raises InvalidArgument."""
    said = address.parameters
    begin = said.get("begin") or BEGINNING
    if begin not in (BEGINNING, NOW):
        raise InvalidArgument(argument="begin", value=begin, problem=f"give {BEGINNING} or {NOW}")
    return EventFileSettings(
        location=address.database,
        begin=begin,
        keys={pattern: tuple(map(str, columns)) for pattern, columns in foreign_object(said.get("keys")).items()},
        wait_seconds=_seconds(said.get("wait_seconds")),
        storage_options=foreign_object(said.get("storage_options")),
    )


def _seconds(said: str | None) -> float:
    try:
        found = WAIT_SECONDS if said in (None, "") else float(str(said))
    except ValueError:
        found = -1.0
    if not 0 <= found <= 86400:
        raise InvalidArgument(argument="wait_seconds", value=said, problem="seconds, from 0 to those of a day")
    return found
