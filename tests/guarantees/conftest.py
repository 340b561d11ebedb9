from __future__ import annotations

from pathlib import Path

import pytest

from .world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A store and tables of its own, with the stream `s` on the source at version 0."""
    made = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    made.stream()
    return made
