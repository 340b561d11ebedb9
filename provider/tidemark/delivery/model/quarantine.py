"""The quarantine of a statement: the split of its rows, and the columns of its table (decision 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

__all__ = ["AT", "CONSTRAINTS", "FROM", "QUARANTINE_COLUMNS", "RUN", "STREAM", "TARGET", "TO", "Split"]

CONSTRAINTS = "QUARANTINE$CONSTRAINTS"
STREAM = "QUARANTINE$STREAM"
TARGET = "QUARANTINE$TARGET"
RUN = "QUARANTINE$RUN"
FROM = "QUARANTINE$FROM"
TO = "QUARANTINE$TO"
AT = "QUARANTINE$AT"

QUARANTINE_COLUMNS: Mapping[str, str] = {
    CONSTRAINTS: "array<string>",
    STREAM: "string",
    TARGET: "string",
    RUN: "string",
    FROM: "bigint",
    TO: "bigint",
    AT: "timestamp",
}
"""The columns of each quarantine table, with Spark's names of the types. The streams' own columns are added."""


@dataclass(frozen=True)
class Split:
    """The target's constraints at `version`, with `at` as the present. They always sort a window into the same two
    parts. The commit of the target has it, and the writer of the other part follows it.
    """

    version: int
    at: datetime
