"""Lines of Airflow's log, where it is written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["entry_of", "reason_of"]


def entry_of(line: str) -> Mapping[str, Any]:
    """What a line says; nothing of one that is no entry."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def reason_of(entry: Mapping[str, Any]) -> str:
    """The message of the exception that the entry has; its causes come after it in the list."""
    for raised in entry.get("exception") or ():
        return f"{raised['exc_type']}: {raised['exc_value']}"
    return ""
