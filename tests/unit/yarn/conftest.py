"""A played YARN for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.played_yarn import PlayedYarn, played_yarn


@pytest.fixture
def yarn() -> Iterator[PlayedYarn]:
    with played_yarn() as running:
        yield running
