"""An error that a replication or one of its objects has met, as its list of errors has it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["RecordedError"]


@dataclass(frozen=True)
class RecordedError:
    """Equal errors are one entry, seen `count` times. `object`: `schema.table`, None for the replication as a whole.

    `reason`: the name of the error's class, which stays the same when the words change. `run`: that met it last, None
    if no run of a DAG did.
    """

    object: str | None
    reason: str
    message: str
    first_seen: datetime
    last_seen: datetime
    count: int
    object_uid: str | None = None
    run: str | None = None
