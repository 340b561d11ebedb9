"""The events that a change of a row becomes: unified, the same for every source.

Values come as canonical texts in the order of the columns (`TypeKind` says which text each type has). Positions in the
source's log are integers here. Made for many: what an object's events share is worked out once (`EventForm`), and a
row's values are looked at once.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from json.encoder import encode_basestring
from typing import Final, TypeAlias

from tidemark.model.codec import to_plain
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import TableSchema

__all__ = [
    "COMES",
    "EVENT_NAMESPACE",
    "GOES",
    "READ_METHODS",
    "TOASTED_KEY",
    "UNCHANGED",
    "Change",
    "Event",
    "EventForm",
    "Half",
    "TextOf",
    "Unchanged",
    "Values",
    "json_text",
    "schema_key",
]

EVENT_NAMESPACE = uuid.UUID("5c1e4b8e-3d0f-5a52-9a55-0d5b6c1f7e21")
READ_METHODS = {  # what the events of a source say of how they were read; envelopes and event files say it themselves
    SourceKind.POSTGRESQL: "postgres-cdc-wal",
    SourceKind.MYSQL: "mysql-cdc-binlog",
    SourceKind.MARIADB: "mariadb-cdc-binlog",
    SourceKind.DEBEZIUM: "debezium",
    SourceKind.EVENT_FILES: "event-files",
}
TOASTED_KEY = "toasted_key"
_NULL = "null"


class Change(StrEnum):
    """The kind of an event."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    UPDATE_DELETE = "UPDATE-DELETE"  # an update of a row without a key: the row that was
    UPDATE_INSERT = "UPDATE-INSERT"  # and the row that is
    TRUNCATE = "TRUNCATE"
    SCHEMA = "SCHEMA"  # what the object's columns are from here on
    HEARTBEAT = "HEARTBEAT"  # Tidemark's own sign of life
    MESSAGE = "MESSAGE"  # what somebody else wrote into the log


class Half(StrEnum):
    """The mark by which the events of one change of the source differ."""

    WHOLE = "w"
    DELETED = "d"  # a moved key, or a row without one: the row that was
    INSERTED = "i"  # and the one that is
    SCHEMA = "s"  # the object's schema, before its change


class Unchanged(Enum):
    """Stands for a value that the source's log leaves out, as it stayed what it was (a large one)."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED

COMES: Final = (Change.INSERT.value, Change.UPDATE_INSERT.value)
GOES: Final = (Change.DELETE.value, Change.UPDATE_DELETE.value)
"""Of a row without a key: changes by which it comes, and by which it goes."""

Values: TypeAlias = "list[str | Unchanged | None]"
TextOf: TypeAlias = Callable[[str], str]
Event: TypeAlias = tuple[Change, Half, str, str | None, str | None, "tuple[str, ...] | None", str | None]
"""change, half, payload, key, old_key, unchanged, problem: as the event log has them."""

json_text: Callable[[str], str] = encode_basestring
"""A text as JSON; what is no ASCII stays as it is."""


def schema_key(schema: TableSchema) -> str:
    """40 hexadecimal digits: of the columns' names, unified types and part in the key, in their order."""
    columns = [[column.name, to_plain(column.type), column.key] for column in schema.columns]
    return hashlib.sha1(json.dumps(columns, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


class EventForm:
    """The form of an object's events under one schema.

    `names` and `texts` are in the order of the values of a row. A column with None for its name is left out. `texts`:
    how the source's text becomes the canonical one; None: it is canonical. `keys`: places of the key's columns.
    """

    __slots__ = ("_conversions", "_kept", "_keys", "_names", "_payload", "_size", "_whole")

    def __init__(self, names: Sequence[str | None], texts: Sequence[TextOf | None], keys: Sequence[int]) -> None:
        self._size = len(names)
        self._names = tuple(names)
        self._keys = tuple(keys)
        self._conversions = tuple((place, text) for place, text in enumerate(texts) if text is not None)
        self._kept = tuple((place, f"{json_text(name)}:") for place, name in enumerate(names) if name is not None)
        self._whole = len(self._kept) == self._size
        self._payload = f"{{{','.join(label.replace('%', '%%') + '%s' for _, label in self._kept)}}}"

    def inserted(self, new: Values) -> Event:
        """A row that is new."""
        texts = self._texts(new)
        return Change.INSERT, Half.WHOLE, self._payload_of(texts), self._key_of(texts), None, None, None

    def updated(self, old: Values | None, old_is_whole: bool, new: Values, unchanged: bool) -> tuple[Event, ...]:
        """The events of a row that is another now. If its key moved, the row of the old key goes first, then the row of
        the new key is added. So it is with each row that has no key, if the log has the whole row that was.

        `old`: what the log has of the row before, only its key's values unless `old_is_whole`. `unchanged`: whether
        some of `new` are UNCHANGED.
        """
        if unchanged:
            return self._updated_in_part(old, old_is_whole, new)
        texts = self._texts(new)
        key = self._key_of(texts)
        if old is not None and not self._keys and old_is_whole:
            return self._replaced(self._texts(old), self._payload_of(texts), None)
        if old is not None and self._keys:
            before = self._texts(old)
            old_key = self._key_of(before)
            if old_key != key:
                return self._moved(before, old_is_whole, old_key, self._payload_of(texts), key, None)
        return ((Change.UPDATE, Half.WHOLE, self._payload_of(texts), key, None, None, None),)

    def deleted(self, old: Values, old_is_whole: bool) -> Event:
        """A row that is gone."""
        texts = self._texts(old)
        payload = self._payload_of(texts) if old_is_whole else self._payload_of_key(texts)
        return Change.DELETE, Half.WHOLE, payload, self._key_of(texts), None, None, None

    def _updated_in_part(self, old: Values | None, old_is_whole: bool, new: Values) -> tuple[Event, ...]:
        before = None if old is None else self._texts(old)
        texts = self._texts(new)
        if before is not None:
            known = range(self._size) if old_is_whole else self._keys
            for place in known:
                if new[place] is UNCHANGED:
                    new[place], texts[place] = old[place], before[place]  # type: ignore[index]
        absent = [place for place, value in enumerate(new) if value is UNCHANGED]
        unchanged = tuple(name for place in absent if (name := self._names[place]) is not None) or None
        payload = self._payload_without(texts, absent)
        if any(place in absent for place in self._keys):
            return ((Change.UPDATE, Half.WHOLE, payload, None, None, unchanged, TOASTED_KEY),)
        key = self._key_of(texts)
        if before is not None and not self._keys and old_is_whole:
            return self._replaced(before, payload, unchanged)
        if before is not None and self._keys and (old_key := self._key_of(before)) != key:
            return self._moved(before, old_is_whole, old_key, payload, key, unchanged)
        return ((Change.UPDATE, Half.WHOLE, payload, key, None, unchanged, None),)

    def _moved(
        self,
        before: list[str],
        old_is_whole: bool,
        old_key: str | None,
        payload: str,
        key: str | None,
        unchanged: tuple[str, ...] | None,
    ) -> tuple[Event, ...]:
        gone = self._payload_of(before) if old_is_whole else self._payload_of_key(before)
        return (
            (Change.DELETE, Half.DELETED, gone, old_key, None, None, None),
            (Change.INSERT, Half.INSERTED, payload, key, old_key, unchanged, None),
        )

    def _replaced(self, before: list[str], payload: str, unchanged: tuple[str, ...] | None) -> tuple[Event, ...]:
        return (
            (Change.UPDATE_DELETE, Half.DELETED, self._payload_of(before), None, None, None, None),
            (Change.UPDATE_INSERT, Half.INSERTED, payload, None, None, unchanged, None),
        )

    def _texts(self, values: Values) -> list[str]:
        """The JSON of each value; `values` become canonical."""
        for place, text in self._conversions:
            value = values[place]
            if value is not None and value is not UNCHANGED:
                values[place] = text(value)
        return [_NULL if value is None or value is UNCHANGED else json_text(value) for value in values]

    def _payload_of(self, texts: list[str]) -> str:
        if self._whole:
            return self._payload % tuple(texts)
        return self._payload % tuple([texts[place] for place, _ in self._kept])

    def _payload_of_key(self, texts: list[str]) -> str:
        return f"{{{','.join([label + texts[place] for place, label in self._kept if place in self._keys])}}}"

    def _payload_without(self, texts: list[str], absent: Sequence[int]) -> str:
        return f"{{{','.join([label + texts[place] for place, label in self._kept if place not in absent])}}}"

    def _key_of(self, texts: list[str]) -> str | None:
        keys = self._keys
        if len(keys) == 1:
            return f"[{texts[keys[0]]}]"
        return f"[{','.join([texts[place] for place in keys])}]" if keys else None
