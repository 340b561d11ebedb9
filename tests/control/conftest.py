from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore


def _sqlite(_request: pytest.FixtureRequest, root: Path) -> str:
    return f"sqlite:///{root}/control.db"


def _postgresql(request: pytest.FixtureRequest, _root: Path) -> str:
    server: PostgresServer = request.getfixturevalue("postgresql")
    return server.url(server.new_database())


STORES: dict[str, Callable[[pytest.FixtureRequest, Path], str]] = {"sqlite": _sqlite, "postgresql": _postgresql}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database; another kind of store is one more entry in STORES."""
    return STORES[request.param](request, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[ControlStore]:
    """A store that stands at this release's revision."""
    opened = ControlStore(url)
    opened.migrate()
    yield opened
    opened.close()
