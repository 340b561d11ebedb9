"""The part of the demo that differs by source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from replication.compare import Comparison
    from replication.writer import ShopWriter
    from tidemark.replication.model.replication import LogPosition

__all__ = ["DemoSource"]


class DemoSource(Protocol):
    """A server with the shop, and its writer, which has not begun."""

    port: int
    rows: int  # that the shop begins with
    writer: ShopWriter
    how_copied: str | None  # said before the rounds, where a copy alone is not exact

    @property
    def airflow_connection(self) -> Mapping[str, Any]:
        """The connection that leads there, as Airflow reads it from JSON."""

    def copying(self, tables: Collection[str]) -> AbstractContextManager[None]:
        """The tables are copied while the context lasts."""

    def compare(self, table: str, position: LogPosition, target: Iterable[Mapping[str, Any]]) -> Comparison:
        """The target against its table as of the position."""
