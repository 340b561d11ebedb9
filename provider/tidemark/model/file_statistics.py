"""The statistics of a data file, as the log has them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tidemark.model.foreign_json import parsed
from tidemark.model.table_log import AddFile

__all__ = ["exact_statistics"]


def exact_statistics(file: AddFile) -> Mapping[str, Any] | None:
    """The statistics with exact numbers; None if the log has none that can be read."""
    try:
        found = parsed(file.stats or "", number=Decimal)
    except (ValueError, ArithmeticError):
        return None
    return found if isinstance(found, dict) else None
