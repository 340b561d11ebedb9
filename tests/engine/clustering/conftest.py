"""A lake with a table to keep clustered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.clustering.world import World


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    made = World(spark, tmp_path)
    yield made
    assert made.drifted() == []
    made.lake.close()
