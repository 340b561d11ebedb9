from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidemark.control.store import ControlStore

STORES: dict[str, Callable[[Path], str]] = {"sqlite": lambda root: f"sqlite:///{root}/control.db"}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database; another kind of store is one more entry in STORES."""
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[ControlStore]:
    """A store that stands at this release's revision."""
    opened = ControlStore(url)
    opened.migrate()
    yield opened
    opened.close()
