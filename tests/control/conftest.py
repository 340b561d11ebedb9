from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.control.change_stream_model import ChangeStreamWorld
from tests.control.kept_objects import drifted
from tests.control.replication_model import World
from tests.postgresql import PostgresServer
from tests.tiers import some
from tidemark.control.store import ControlStore


def _sqlite(_request: pytest.FixtureRequest, root: Path) -> str:
    return f"sqlite:///{root}/control.db"


def _postgresql(request: pytest.FixtureRequest, _root: Path) -> str:
    server: PostgresServer = request.getfixturevalue("postgresql")
    return server.url(server.new_database())


STORES: dict[str, Callable[[pytest.FixtureRequest, Path], str]] = {"sqlite": _sqlite, "postgresql": _postgresql}
# `make test` runs these tests on SQLite, and those of `tests/guarantees` on PostgreSQL; `make test-all` both on both.
IN_TURN = some(STORES, now=["sqlite"], reason="the other store")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database; another kind of store is one more entry in STORES."""
    return STORES[request.param](request, tmp_path)


@pytest.fixture(params=IN_TURN)
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a store of each kind at this release's revision, as its owner has it."""
    if request.param == "sqlite":
        url: str = request.getfixturevalue("sqlite_store")
        return url
    server: PostgresServer = request.getfixturevalue("postgresql")
    return server.url(server.new_database(template=request.getfixturevalue("migrated_database")))


@pytest.fixture
def store(store_url: str) -> Iterator[ControlStore]:
    """A store at this release's revision; each call has a connection of its own."""
    opened = ControlStore(store_url)
    opened.migrate()  # of a copy it draws the id
    yield opened
    opened.close()


@pytest.fixture(params=IN_TURN)
def task_store(request: pytest.FixtureRequest) -> str:
    """The URL of a store of each kind at this release's revision, as tasks open it: on PostgreSQL with the least
    rights.
    """
    url: str = request.getfixturevalue(f"{request.param}_store")
    return url


@pytest.fixture(params=IN_TURN)
def copied_store(request: pytest.FixtureRequest) -> Iterator[ControlStore]:
    """A store of each kind that keeps its connections; migrating each would take longer. On PostgreSQL it is opened
    with the least rights, as a task opens it.
    """
    store = ControlStore(request.getfixturevalue(f"{request.param}_store"), keep_connections=True)
    yield store
    store.close()


@pytest.fixture
def owners_store(copied_store: ControlStore, request: pytest.FixtureRequest) -> ControlStore:
    """The same store, as who migrates it opens it."""
    if copied_store.embedded:
        return copied_store
    server: PostgresServer = request.getfixturevalue("postgresql")
    return ControlStore(server.url(copied_store.url.rpartition("/")[2], user="tidemark_owner"))


@pytest.fixture
def world(copied_store: ControlStore, tmp_path: Path) -> Iterator[ChangeStreamWorld]:
    """A change stream with two partitions, in each kind of store; the table of objects follows all that happens."""
    yield ChangeStreamWorld(copied_store, tmp_path / "lake")
    assert drifted(copied_store) == []


@pytest.fixture
def replication_world(copied_store: ControlStore, tmp_path: Path) -> Iterator[World]:
    """A replication that is not started, in each kind of store; nothing is lost or applied twice in it, and the table
    of objects follows all that happens.
    """
    made = World(copied_store, tmp_path)
    yield made
    assert made.wrongs == []
    assert drifted(copied_store) == []
