"""A database at random, as Debezium's PostgreSQL connector tells of it, and the rows that it has."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tidemark.replication.planning.debezium_rows import PLACEHOLDER

__all__ = ["EPOCH", "RandomShop"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_DECIMAL = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2", "connect.decimal.precision": "10"},
}
_COLUMNS: tuple[dict[str, Any], ...] = (
    {"field": "id", "type": "int32", "optional": False},
    {"field": "total", "type": "bytes", "optional": True, **_DECIMAL},
    {"field": "body", "type": "string", "optional": True},
    {"field": "placed", "type": "int64", "optional": True, "name": "io.debezium.time.MicroTimestamp"},
)
_ADDED = {"field": "more", "type": "int32", "optional": True}


def _unscaled(value: Decimal | None) -> str | None:
    if value is None:
        return None
    number = int(value.scaleb(2))
    return base64.b64encode(number.to_bytes(max(1, (number.bit_length() + 8) // 8), "big", signed=True)).decode()


@dataclass
class RandomShop:
    """`rows`: of each table, by key. `headers`: whether moved keys are marked by them."""

    seed: int
    tables: tuple[str, ...] = ("orders", "items")
    headers: bool = True
    truncates: bool = True
    rows: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    widened: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.rows = {table: {} for table in self.tables}
        self._lsn = 1000

    def envelopes(self, count: int) -> dict[str, list[Any]]:
        """Records of about that many changes, by table, each table in its order."""
        told: dict[str, list[Any]] = {table: [] for table in self.tables}
        for _ in range(count):
            table = self.chance.choice(self.tables)
            told[table] += self._change(table)
        return told

    def _change(self, table: str) -> list[Any]:
        there, chance = self.rows[table], self.chance.random()
        self._lsn += self.chance.randint(1, 50)
        if chance < 0.02 and self.truncates:
            there.clear()
            return [self._record(table, "t", None, None, None)]
        if chance < 0.04 and table not in self.widened:
            self.widened.add(table)
            for row in there.values():
                row["more"] = None
        if not there or chance < 0.4:
            return self._inserted(table)
        key = self.chance.choice(sorted(there))
        if chance < 0.65:
            return self._updated(table, key)
        if chance < 0.8:
            gone = there.pop(key)
            return [self._record(table, "d", gone["id"], {"id": key}, None), {"key": {"id": key}, "value": None}]
        return self._moved(table, key)

    def _row(self, table: str, key: int) -> dict[str, Any]:
        chance = self.chance
        row = {
            "id": key,
            "total": chance.choice([None, Decimal(chance.randint(-99999, 99999)).scaleb(-2)]),
            "body": chance.choice([None, "x" * chance.randint(0, 9), "ü\"'\\\n"]),
            "placed": EPOCH + timedelta(microseconds=chance.randint(0, 2 * 10**15)),
        }
        return {**row, "more": chance.randint(0, 9)} if table in self.widened else row

    def _inserted(self, table: str) -> list[Any]:
        key = self.chance.randint(1, 60)
        if key in self.rows[table]:
            return []
        self.rows[table][key] = row = self._row(table, key)
        return [self._record(table, self.chance.choice("cccr"), key, None, row)]

    def _updated(self, table: str, key: int) -> list[Any]:
        before, row = self.rows[table][key], self._row(table, key)
        shown = dict(row)
        if before["body"] is not None and self.chance.random() < 0.5:
            row["body"], shown["body"] = before["body"], PLACEHOLDER
        self.rows[table][key] = row
        return [self._record(table, "u", key, None, shown)]

    def _moved(self, table: str, key: int) -> list[Any]:
        new = self.chance.randint(61, 120)
        if new in self.rows[table]:
            return []
        before = self.rows[table].pop(key)
        row = {**self._row(table, new), "body": before["body"]}
        shown = {**row, "body": None if before["body"] is None else PLACEHOLDER}
        self.rows[table][new] = row
        gone = self._record(table, "d", key, {"id": key}, None)
        come = self._record(table, "c", new, None, shown)
        if self.headers:
            gone["headers"], come["headers"] = {"__debezium.newkey": str(new)}, {"__debezium.oldkey": str(key)}
        return [gone, {"key": {"id": key}, "value": None}, come]

    def _record(
        self, table: str, op: str, key: int | None, before: dict[str, Any] | None, after: dict[str, Any] | None
    ) -> dict[str, Any]:
        columns = [*_COLUMNS, *([_ADDED] if table in self.widened else [])]
        sides = [{"type": "struct", "optional": True, "field": side, "fields": columns} for side in ("before", "after")]
        source = {
            "connector": "postgresql",
            "name": "shop",
            "db": "shop",
            "schema": "public",
            "table": table,
            "lsn": self._lsn,
            "txId": self._lsn // 100,
            "ts_ms": 1_700_000_000_000 + self._lsn,
            "snapshot": "true" if op == "r" else "false",
        }
        payload = {
            "op": op,
            "source": source,
            "before": self._shown(before, columns),
            "after": self._shown(after, columns),
        }
        value = {"schema": {"type": "struct", "fields": sides}, "payload": payload}
        return {"key": None if key is None else {"id": key}, "value": value}

    def _shown(self, row: dict[str, Any] | None, columns: list[dict[str, Any]]) -> dict[str, Any] | None:
        if row is None:
            return None
        shown = {column["field"]: row.get(column["field"]) for column in columns}
        total, placed = shown["total"], shown["placed"]
        shown["total"] = _unscaled(total)
        shown["placed"] = None if placed is None else (placed - EPOCH) // timedelta(microseconds=1)
        return shown
