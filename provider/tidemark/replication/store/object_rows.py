"""Rows of replicated objects as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from tidemark.model.codec import from_json, from_plain
from tidemark.model.streams import TableRef
from tidemark.replication.model.catalog import HeldColumn, SeenTable
from tidemark.replication.model.replication import (
    BackfillProgress,
    LogPosition,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    TableSchema,
    WriteMode,
)

__all__ = ["StoredObject", "stored_of", "target_of"]

_PARSED = 4096  # texts of frozen values: a run reads its objects several times


@dataclass(frozen=True)
class StoredObject:
    """An object with what only the store knows.

    `captured_schema`: the newest that the event log has an event of. `keys`: the key as the catalog has it now.
    `excluded`: columns that no event shows. `changed_until`: no event at or behind it was captured; None: none at all.
    `expected_rows`: by statistics. `seen`: the result of the last look at the catalog; `held`: columns that a name of
    theirs hides. `notices`: what somebody should look at, in words.
    """

    object: ReplicatedObject
    captured_schema: TableSchema | None
    keys: tuple[str, ...]
    excluded: tuple[str, ...]
    changed_until: LogPosition | None
    expected_rows: int
    seen: SeenTable | None = None
    held: tuple[HeldColumn, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def column_names(self) -> frozenset[str]:
        """All that are known of its table, also those that the lake does not have."""
        schemas = (self.object.schema, self.captured_schema)
        shown = (column.name for one in schemas if one is not None for column in one.columns)
        held = (name for one in self.held for name in (*one.names, *((one.column,) if one.column is not None else ())))
        return frozenset((*shown, *self.excluded, *held))


@lru_cache(maxsize=_PARSED)
def _schema_of(text: str) -> TableSchema:
    return from_json(TableSchema, text)


@lru_cache(maxsize=_PARSED)
def target_of(text: str) -> TableRef:
    """A target, as a row has it."""
    return from_json(TableRef, text)


def stored_of(row: Mapping[str, Any] | sa.RowMapping) -> StoredObject:
    """The object of a row with all columns."""
    captured, progress = row["captured_columns"], row["progress"]
    one = ReplicatedObject(
        uid=row["uid"],
        replication_uid=row["replication_uid"],
        name=ObjectName(row["schema_name"], row["table_name"]),
        source_id=row["source_id"],
        schema=_schema_of(row["columns"]),
        mode=WriteMode(row["mode"]),
        target=target_of(row["target"]),
        state=ObjectState(row["state"]),
        snapshot=row["snapshot"],
        applied=row["applied"],
        applied_at=row["applied_at"],
        writes=row["writes"],
        progress=None if progress is None else from_json(BackfillProgress, progress),
        needs_backfill=row["needs_backfill"],
        gone=row["gone"],
        problem=row["problem"],
        selected=row["selected"],
    )
    return StoredObject(
        object=one,
        captured_schema=None if captured is None else _schema_of(captured),
        keys=tuple(json.loads(row["source_keys"])),
        excluded=tuple(json.loads(row["excluded"])),
        changed_until=row["changed_until"],
        expected_rows=row["expected_rows"],
        seen=None if row["seen"] is None else from_json(SeenTable, row["seen"]),
        held=() if row["held"] is None else from_plain(tuple[HeldColumn, ...], json.loads(row["held"])),
        notices=() if row["notices"] is None else tuple(json.loads(row["notices"])),
    )
