"""The rights that the docs give to tasks that prune, for stores on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore

__all__ = ["documented_rights", "let_prune"]


def documented_rights() -> str:
    """The statement that the docs have for tasks that prune."""
    page = Path(__file__).parents[2] / "provider/docs/how-to/use-postgresql.md"
    return "GRANT DELETE ON " + page.read_text().rpartition("GRANT DELETE ON ")[2].partition(";")[0]


def let_prune(store: ControlStore, request: pytest.FixtureRequest) -> None:
    """The role of tasks has the documented rights in that store."""
    if store.url.startswith("postgresql"):
        server: PostgresServer = request.getfixturevalue("postgresql")
        server.sql(documented_rights(), store.url.rpartition("/")[2])
