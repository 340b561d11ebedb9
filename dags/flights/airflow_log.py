"""Lines of Airflow's log, if it is written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark.hooks import _driver_log

__all__ = ["DRIVER_LOG", "entry_of", "reason_of"]

DRIVER_LOG = Path(_driver_log.__file__).name
"""The `filename` of entries that tell the progress of Spark jobs."""


def entry_of(line: str) -> Mapping[str, Any]:
    """The entry of a line; empty if the line is no entry."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def reason_of(entry: Mapping[str, Any]) -> str:
    """The message of the entry's exception; the list has its causes after it."""
    for raised in entry.get("exception") or ():
        return f"{raised['exc_type']}: {raised['exc_value']}"
    return ""
