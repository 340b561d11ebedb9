"""A lake with one table for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.lakes import Lake
from tidemark.jobs.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(f"file://{tmp_path}/_tidemark", "test") as room:
        yield room


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, workspace: Workspace) -> Lake:
    return Lake(spark, tmp_path / "table", workspace)
