"""A lake for searches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.search.world import SearchWorld
from tidemark.client.lake import Lake


@pytest.fixture
def world(spark: SparkSession, sqlite_store: str, tmp_path: Path) -> SearchWorld:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return SearchWorld(session, tmp_path / "lake", sqlite_store)


@pytest.fixture
def client(world: SearchWorld) -> Iterator[Lake]:
    opened = world.client()
    yield opened
    opened.close()
