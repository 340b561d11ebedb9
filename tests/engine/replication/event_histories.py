"""A table of a source as plain Python: each change is applied to its rows, and told as the event log has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.databases.postgresql.event_log import EVENT_COLUMNS, EVENT_DDL
from tidemark.model.codec import to_json
from tidemark.model.streams import TableRef
from tidemark.replication.model.jobs import ApplyEvents
from tidemark.replication.model.replication import (
    START,
    Column,
    InvalidValues,
    LogPosition,
    ObjectName,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)

__all__ = ["STORE", "SourceTable", "apply_events_of", "column", "schema_of", "write_events"]

STORE = "store"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
Row = Mapping[str, str | None]


def column(name: str, kind: TypeKind = TypeKind.STRING, **more: Any) -> Column:
    return Column(name, UnifiedType(kind), kind.value, **more)


def schema_of(*columns: Column) -> TableSchema:
    return TableSchema(columns)


@dataclass
class SourceTable:
    """`rows`: what the table has now, by key. A change that is made in no transaction is one of its own."""

    schema: TableSchema
    name: ObjectName = field(default_factory=lambda: ObjectName("shop", "orders"))
    source_id: str = "4711"
    prefix: str = ""
    rows: dict[tuple[str | None, ...], dict[str, str | None]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    commits: int = 0
    _sequence: int = 0
    _open: bool = False

    @property
    def now(self) -> LogPosition:
        """Behind everything that happened."""
        return LogPosition(self._commit(self.commits + 1))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.commits, self._sequence, self._open = self.commits + 1, 0, True
        yield
        self._open = False

    def insert(self, **row: str | None) -> None:
        key = self._key(row)
        assert key not in self.rows
        self.rows[key] = dict(row)
        self._tell("INSERT", row, key)

    def update(self, key: Sequence[str], *, unchanged: Sequence[str] = (), whole: bool = False, **changes: Any) -> None:
        """`unchanged`: large columns that the log leaves out; `whole`: it has the whole old row."""
        old_key = tuple(key)
        old = self.rows.pop(old_key)
        new = {**old, **changes}
        assert not any(name in changes for name in unchanged)
        new_key = self._key(new)
        assert new_key not in self.rows
        self.rows[new_key] = new
        told = {name: value for name, value in new.items() if name not in unchanged}
        if new_key == old_key:
            self._tell("UPDATE", told, new_key, unchanged=unchanged)
            return
        before = old if whole else {name: old[name] for name in self.schema.keys}
        self._tell("DELETE", before, old_key)
        self._tell("INSERT", told, new_key, unchanged=unchanged, old_key=old_key, same_commit=True)

    def delete(self, *key: str) -> None:
        """Of a table without a key `key` is the number of the event that told the row, and the log has all of it."""
        old = self.rows.pop(key)
        self._tell("DELETE", {name: old[name] for name in self.schema.keys} or old, key)

    def truncate(self) -> None:
        self.rows.clear()
        self._tell("TRUNCATE", {}, None)

    def alter(self, schema: TableSchema, *, renamed: Mapping[str, str] | None = None) -> None:
        """Rows of before have `filled` in columns that were added. `renamed`: new names to old ones."""
        was = renamed or {}
        for row in self.rows.values():
            values = {one.name: row.get(was.get(one.name, one.name), one.filled) for one in schema.columns}
            row.clear()
            row.update(values)
        self.schema = schema
        self.rows = {self._key(row): row for row in self.rows.values()}
        self._tell("SCHEMA", None, None, payload=to_json(schema))

    def update_with_toasted_key(self) -> None:
        """Of some row; the log does not tell which."""
        self._tell("UPDATE", {}, None, problem="toasted_key")

    def _key(self, row: Row) -> tuple[str | None, ...]:
        return tuple(row[name] for name in self.schema.keys) or (str(len(self.events)),)

    def _commit(self, number: int) -> str:
        return f"{self.prefix}{number:016X}"[: 16 + len(self.prefix)]

    def _tell(
        self,
        change: str,
        row: Row | None,
        key: tuple[str | None, ...] | None,
        *,
        unchanged: Sequence[str] = (),
        old_key: tuple[str | None, ...] | None = None,
        problem: str | None = None,
        payload: str | None = None,
        same_commit: bool = False,
    ) -> None:
        if not self._open and not same_commit:
            self.commits, self._sequence = self.commits + 1, 0
        self._sequence += 1
        has_key = bool(self.schema.keys) and key is not None
        at = BEGAN + timedelta(seconds=self.commits)
        number = len(self.events)
        self.events.append(
            {
                "stream_name": "s",
                "object": self.name.folded,
                "uuid": f"{self.prefix}-{number}",
                "read_timestamp": at,
                "source_timestamp": at,
                "sort_keys": [str(self.commits), "0/0", str(self._sequence)],
                "payload": json.dumps(row, ensure_ascii=False) if payload is None else payload,
                "object_id": self.source_id,
                "position": self._commit(self.commits),
                "sequence": self._sequence,
                "change": change,
                "key": json.dumps(key) if has_key else None,
                "old_key": None if old_key is None else json.dumps(old_key),
                "unchanged": list(unchanged) or None,
                "problem": problem,
                "batch": 1,
            }
        )


def write_events(spark: SparkSession, path: Path | str, events: Sequence[Mapping[str, Any]]) -> None:
    """Append them to the event log at `path`."""
    rows = [tuple(event.get(name) for name in EVENT_COLUMNS) for event in events]
    spark.createDataFrame(rows, EVENT_DDL).write.format("delta").mode("append").partitionBy("object").save(str(path))


def apply_events_of(
    table: SourceTable,
    *,
    target: Path | str,
    event_log: Path | str,
    schema: TableSchema,
    number: int = 1,
    start: LogPosition = START,
    end: LogPosition | None = None,
    mode: WriteMode = WriteMode.MERGE,
    invalid_values: InvalidValues = InvalidValues.FAIL,
    batches: int = 0,
) -> ApplyEvents:
    """The ask to apply the events of `table` that are in the log; `schema` as of `start`."""
    return ApplyEvents(
        replication_uid="r",
        object_uid="o",
        stream="s",
        name=table.name,
        number=number,
        start=start,
        end=table.now if end is None else end,
        schema=schema,
        mode=mode,
        target=TableRef("lake.orders", str(target), ""),
        event_log=str(event_log),
        invalid_values=invalid_values,
        batches=batches,
        source_id=table.source_id,
    )
