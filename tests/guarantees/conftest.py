from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.kept_objects import drifted
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
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store and tables of its own, with the stream `s` on the source at version 0; the table of objects follows all
    that happens.
    """
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "control.db")
        url = f"sqlite:///{tmp_path}/control.db"
    else:
        url = request.getfixturevalue("postgresql_store")
    made = World(tmp_path, url)
    made.stream()
    yield made
    assert drifted(made.store) == []
    made.store.close()
