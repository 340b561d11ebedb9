"""The quarantine of a statement: by what its rows were sorted, and what its table says of each (decision 10)."""

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
"""What each quarantine table has, with Spark's names of the types; the streams' own columns come beside them."""


@dataclass(frozen=True)
class Split:
    """What sorts a window's rows, and always into the same two parts: the target's constraints at `version`, with `at`
    for the present. It stands in the commit that wrote the target, so that whoever writes the other part follows it.
    """

    version: int
    at: datetime
