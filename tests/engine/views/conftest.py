"""A schema with tables of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.views.view_lake import ViewLake
from tidemark.jobs.workspace import Workspace


@pytest.fixture
def views(spark: SparkSession, tmp_path: Path, workspace: Workspace) -> Iterator[ViewLake]:
    name = f"views_{abs(hash(tmp_path)) % 10**9}"
    (tmp_path / "tables").mkdir()
    spark.sql(f"CREATE DATABASE {name}")
    yield ViewLake(spark, tmp_path / "tables", workspace, name)
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {name} CASCADE")
