"""A lake, and a directory of files that come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.pipes.desk import Desk


@pytest.fixture
def desk(spark: SparkSession, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(spark, tmp_path)
    yield made
    made.lake.close()
