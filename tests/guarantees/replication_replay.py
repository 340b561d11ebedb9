"""Events applied one by one in plain Python, as the event log's columns promise: the simplest apply there is."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from tests.guarantees.replication_comparison import Rows
from tests.guarantees.replication_tables import SourceTable
from tests.guarantees.replication_values import canonical, is_text

__all__ = ["replayed"]

WIDENED = ("float", "double")
_READ: Mapping[str, Callable[[str], Any]] = {
    "boolean": lambda text: {"true": True, "false": False}[text],
    "smallint": int,
    "integer": int,
    "bigint": int,
    "real": float,
    "double precision": float,
    "bytea": bytes.fromhex,
    "timestamp": lambda text: _whole(text),
    "timestamptz": lambda text: _whole(text.removesuffix("+00")),
}


def replayed(table: SourceTable, events: Iterable[Any]) -> Rows:
    """The rows that are left of a table that began empty. `events`: rows of its event log, in order."""
    rows: dict[str, dict[str, str | None]] = {}
    missing: dict[str, str | None] = {}  # what older rows have in columns that came later
    columns: dict[str, str] = {}  # name → kind of its type
    gone: tuple[str | None, dict[str, str | None] | None] = (None, None)
    for event in events:
        assert event.problem is None, event
        if event.change == "TRUNCATE":
            rows.clear()
        elif event.change == "SCHEMA":
            schema = json.loads(event.payload)["columns"]
            missing |= {one["name"]: one.get("filled") for one in schema if one["name"] not in columns and columns}
            before, columns = columns, {one["name"]: one["type"]["kind"] for one in schema}
            for row in rows.values():
                was = dict(row)
                row.clear()
                row.update({name: was[name] if name in was else missing.get(name) for name in columns})
                row.update(
                    {name: _doubled(row[name]) for name in columns if (before.get(name), columns[name]) == WIDENED}
                )
        elif event.change == "DELETE":
            gone = (event.key, rows.pop(event.key, None))
        else:
            new = json.loads(event.payload)
            for name in event.unchanged or ():
                old = gone[1] if event.old_key is not None and gone[0] == event.old_key else rows[event.key]
                assert old is not None, f"{event.key} has nothing to inherit {name} from"
                new[name] = old[name]
            rows[event.key] = new
    natives = table.columns
    return Counter(tuple(_value(native, row[name]) for name, native in natives.items()) for row in rows.values())


def _doubled(text: str | None) -> str | None:
    """The double that a real is, whose own text has fewer digits."""
    return None if text is None else repr(struct.unpack("<f", struct.pack("<f", float(text)))[0])


def _value(native: str, text: str | None) -> Any:
    if text is None:
        return None
    return canonical(native, _read(native, text))


def _read(native: str, text: str) -> Any:
    if native.endswith("[]"):
        item = native.removesuffix("[]")
        return [None if one is None else _read(item, one) for one in json.loads(text)]
    if is_text(native):
        return text
    if native.startswith("numeric(") or native == "shop.amount":
        return Decimal(text)
    return _READ.get(native, str)(text)


def _whole(text: str) -> str:
    seconds, _, fraction = text.partition(".")
    return f"{seconds}.{fraction:0<6}"
