"""The two statements of a write with a quarantine, and the requirements on a quarantine table (decision 10)."""

from __future__ import annotations

from tidemark.delivery.model.quarantine import QUARANTINE_COLUMNS
from tidemark.model.foreign_json import parsed
from tidemark.model.statements import PlannedWrite, WriteAs

__all__ = ["quarantine_problem", "with_quarantine"]

_NAMES_IN_LOGS = {"bigint": "long"}


def with_quarantine(write: PlannedWrite, uri: str) -> tuple[PlannedWrite, ...]:
    """The statements of `write`: itself alone, or with that of its quarantine, whose table is at `uri`."""
    if write.quarantine is None:
        return (write,)
    sorted_out = PlannedWrite(
        write_as=WriteAs.QUARANTINE,
        target=write.quarantine,
        source=write.source,
        keys=write.keys,
        tables={write.quarantine: uri},
    )
    return (write, sorted_out)


def quarantine_problem(schema_json: str) -> str | None:
    """The reason why a table with this schema cannot be a quarantine; None if it can."""
    fields = {field["name"].lower(): field for field in parsed(schema_json)["fields"]}
    lacking = [name for name, kind in QUARANTINE_COLUMNS.items() if not _is(fields.get(name.lower()), kind)]
    if lacking:
        wanted = ", ".join(f"{name} {QUARANTINE_COLUMNS[name]}" for name in lacking)
        return f"it has no column {wanted}"
    required = [field["name"] for field in fields.values() if not field["nullable"]]
    return f"its NOT NULL column {', '.join(required)} would get no value" if required else None


def _is(field: dict[str, object] | None, kind: str) -> bool:
    if field is None:
        return False
    if kind == "array<string>":
        found = field["type"]
        return isinstance(found, dict) and (found.get("type"), found.get("elementType")) == ("array", "string")
    return field["type"] == _NAMES_IN_LOGS.get(kind, kind)
