from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.kept_objects import drifted
from tests.tiers import some

from .world import World


@pytest.fixture(params=some(["sqlite", "postgresql"], now=["postgresql"], reason="the other store"))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store and tables of its own, with the stream `s` on the source at version 0; the table of objects follows all
    that happens.
    """
    made = World(tmp_path, request.getfixturevalue(f"{request.param}_store"))
    made.stream()
    yield made
    assert drifted(made.store) == []
    made.store.close()
