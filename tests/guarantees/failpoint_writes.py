"""What the killed jobs write: two targets of one window, the second by SQL."""

from __future__ import annotations

from typing import Any


def name_of(point: str) -> str:
    """A failpoint as part of a table's name."""
    return point.replace(".", "_")


def write_both(tx: Any) -> None:
    (stream,), (mirror, history) = tx.streams, tx.targets
    tx.merge(tx.stream(stream), mirror, keys=["id"])
    tx.sql(f"INSERT INTO {history} SELECT id, name, `METADATA$ACTION` FROM {stream}")
