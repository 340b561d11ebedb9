"""Events in the short form in which golden files have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["told"]


def told(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Without what is null; the columns of a schema in one text each."""
    found = []
    for event in events:
        one = {name: value for name, value in event.items() if value is not None}
        if one["change"] == "SCHEMA":
            one["payload"] = [_column(column) for column in one["payload"]["columns"]]
        one["change"], one["half"] = str(one["change"]), str(one["half"])
        found.append(one)
    return found


def _column(column: Mapping[str, Any]) -> str:
    kind = column["type"]
    digits = "" if kind["precision"] is None else f"({kind['precision']},{kind['scale']})"
    item = f"<{kind['item']['kind']}>" if kind["item"] else ""
    marks = " key" * column["key"] + ("" if column["filled"] is None else f" filled {column['filled']}")
    return f"{column['name']} {kind['kind']}{digits}{item} as {column['native']}{marks}"
