"""A table that takes rows of channels, and clients that write it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.channels.landing import Landing


@pytest.fixture
def landing(spark: SparkSession, tmp_path: Path) -> Iterator[Landing]:
    place = Landing(spark, tmp_path / "lake")
    yield place
    place.close()
