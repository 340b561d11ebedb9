from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore

from .world import World


@pytest.fixture
def postgresql_store(postgresql: PostgresServer, migrated_database: str) -> str:
    """The URL of a migrated control store of its own on PostgreSQL, with the least rights for tasks."""
    database = postgresql.new_database(template=migrated_database)
    ControlStore(postgresql.url(database)).migrate()
    return postgresql.url(database, user="tidemark")


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A store and tables of its own, with the stream `s` on the source at version 0."""
    kept_in_a_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/control.db" if kept_in_a_file else request.getfixturevalue("postgresql_store")
    made = World(tmp_path, url)
    made.stream()
    return made
