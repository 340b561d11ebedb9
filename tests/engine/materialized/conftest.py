"""A lake with tables to keep queries of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.materialized.desk import Desk


@pytest.fixture
def desk(spark: SparkSession, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(spark, tmp_path)
    yield made
    assert made.drifted() == []
    made.lake.close()
