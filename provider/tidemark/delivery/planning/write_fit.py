"""Whether the columns of a stream fit a target, by the two schemas alone, before a job starts.

It refuses only writes that the job would refuse. Uncertain cases (nested types, texts of a CHAR) are left to the job,
which decides with Spark's own types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tidemark.errors import MissingMergeKey, TargetDoesNotFit
from tidemark.model.external_tables import FILENAME
from tidemark.model.foreign_json import foreign_object
from tidemark.model.statements import PlannedWrite, SchemaEvolution, WriteAs
from tidemark.model.streams import ACTION, COMMIT_TIMESTAMP, COMMIT_VERSION, IS_UPDATE, ROW_ID

__all__ = ["require_fit"]

_METADATA = (ACTION, IS_UPDATE, ROW_ID, FILENAME, COMMIT_VERSION, COMMIT_TIMESTAMP)
_FILLED = ("delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_DECIMAL = re.compile(r"^decimal\((\d+),\s*(-?\d+)\)$")
_KNOWN = {*_DIGITS, "float", "double", "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"}

Field = Mapping[str, Any]


def require_fit(write: PlannedWrite, source_schema: str, target_schema: str) -> None:
    """Nothing, if the write fits the target. Both schemas are as in the logs. Only appends and merges are checked: SQL
    and functions choose their own columns.

    Raises TargetDoesNotFit, MissingMergeKey.
    """
    source, target = _fields(source_schema), _fields(target_schema)
    if write.write_as not in (WriteAs.APPEND, WriteAs.MERGE) or not source or not target:
        return
    known = {str(field["name"]).lower(): field for field in target}
    offered = [field for field in source if field["name"] not in _METADATA or str(field["name"]).lower() in known]
    problems = [
        *_lacking(offered, known, write.schema_evolution),
        *([] if write.quarantine else _other_types(offered, known)),
        *_without_a_value(offered, target),
    ]
    if problems:
        raise TargetDoesNotFit(target=write.target, problem="; ".join(problems))
    if write.write_as is WriteAs.MERGE:
        _require_keys(write, offered, known)


def _fields(schema: str) -> list[Field]:
    """The fields that have a type. A text that is no schema has none, and fails when it is read."""
    try:
        found = foreign_object(schema).get("fields", [])
        return [field for field in found if str(field["name"]) and field["type"] != "void"]
    except (ValueError, AttributeError, KeyError, TypeError):
        return []


def _lacking(offered: Sequence[Field], known: Mapping[str, Field], evolution: SchemaEvolution) -> list[str]:
    extra = [str(field["name"]) for field in offered if str(field["name"]).lower() not in known]
    if not extra or evolution is not SchemaEvolution.FAIL:
        return []
    return [f"it has no column {', '.join(extra)} (schema_evolution='add' would add them)"]


def _other_types(offered: Sequence[Field], known: Mapping[str, Field]) -> list[str]:
    pairs = [(field, known[name]) for field in offered if (name := str(field["name"]).lower()) in known]
    return [
        f"column {field['name']} is {_shown(field['type'])}, there {_shown(wanted['type'])}"
        for field, wanted in pairs
        if _is_plain(field["type"]) and _is_plain(wanted["type"]) and not _widens(field["type"], wanted["type"])
    ]


def _without_a_value(offered: Sequence[Field], target: Sequence[Field]) -> list[str]:
    names = {str(field["name"]).lower() for field in offered} | {name.lower() for name in _METADATA}
    missing = [
        str(field["name"])
        for field in target
        if field.get("nullable") is False
        and str(field["name"]).lower() not in names
        and not any(filler in (field.get("metadata") or {}) for filler in _FILLED)
    ]
    return [f"its NOT NULL column {', '.join(missing)} would get no value"] if missing else []


def _require_keys(write: PlannedWrite, offered: Sequence[Field], known: Mapping[str, Field]) -> None:
    """Nothing, or MissingMergeKey. METADATA$ columns are in the rows if the target has columns of their names."""
    names = {str(field["name"]).lower() for field in offered}
    names |= {name.lower() for name in _METADATA if name.lower() in known}
    lacking = [key for key in write.keys if key.lower() not in names]
    if lacking:
        there = ", ".join(str(field["name"]) for field in offered)
        problem = f"the stream has no column {', '.join(lacking)}; it has {there}"
        raise MissingMergeKey(target=write.target, problem=problem)
    unknown = [key for key in write.keys if key.lower() not in known]
    if unknown:
        there = ", ".join(str(field["name"]) for field in known.values())
        problem = f"the target has no column {', '.join(unknown)}; it has {there}"
        raise MissingMergeKey(target=write.target, problem=problem)


def _is_plain(kind: object) -> bool:
    return isinstance(kind, str) and (kind in _KNOWN or _DECIMAL.match(kind) is not None)


def _shown(kind: str) -> str:
    return {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(kind, kind)


def _widens(source: str, target: str) -> bool:
    """Whether each value of `source` is one of `target`, without loss."""
    if source == target:
        return True
    wider = _decimal(target)
    if source in _DIGITS:
        if target in _DIGITS:
            return _DIGITS[target] >= _DIGITS[source]
        if wider is not None:
            return wider[0] - wider[1] >= _DIGITS[source]
        return target == "double" and _DIGITS[source] <= _DIGITS["integer"]
    narrow = _decimal(source)
    if narrow is not None and wider is not None:
        return narrow[0] - narrow[1] <= wider[0] - wider[1] and narrow[1] <= wider[1]
    return source == "float" and target == "double"


def _decimal(kind: str) -> tuple[int, int] | None:
    found = _DECIMAL.match(kind)
    return None if found is None else (int(found[1]), int(found[2]))
