"""The options of Tidemark's own sources of rows, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.errors import InvalidArgument

__all__ = ["CONNECTION", "OWN_SOURCES", "SourceOptions", "require_source_options"]

CONNECTION = "conn_id"
"""The option that names an Airflow connection. The source gets it as `connection`."""


@dataclass(frozen=True)
class SourceOptions:
    """Names of the options that a source must have, and of those that it may have."""

    required: frozenset[str]
    others: frozenset[str]


OWN_SOURCES: Mapping[str, SourceOptions] = {
    "lines": SourceOptions(frozenset({"directory"}), frozenset({"glob", "form", "rows_per_batch", "storage_options"})),
    "kafka": SourceOptions(
        frozenset({CONNECTION, "topic"}), frozenset({"partition", "start", "form", "rows_per_batch"})
    ),
    "sql": SourceOptions(frozenset({CONNECTION, "query", "key", "initial"}), frozenset({"rows_per_batch"})),
    "http": SourceOptions(
        frozenset({"url", "next_cursor"}),
        frozenset({CONNECTION, "rows", "cursor_parameter", "parameters", "initial", "timeout_seconds"}),
    ),
}


def require_source_options(source: str, options: Mapping[str, Any]) -> None:
    """Say nothing for a function's options, and for those that an own source takes. Raises InvalidArgument."""
    known = OWN_SOURCES.get(source)
    if known is None:
        return
    if unknown := sorted(set(options) - known.required - known.others):
        names = ", ".join(sorted(known.required | known.others))
        problem = f"source {source} has no option {', '.join(unknown)}. It has {names}"
        raise InvalidArgument(argument="source_options", value=unknown, problem=problem)
    if missing := sorted(known.required - set(options)):
        problem = f"source {source} needs {', '.join(missing)}"
        raise InvalidArgument(argument="source_options", value=sorted(options), problem=problem)
