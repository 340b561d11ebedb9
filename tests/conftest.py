"""Fixtures that several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tidemark.testing import SHORT_LIVED_JVM

os.environ.setdefault("JAVA_TOOL_OPTIONS", SHORT_LIVED_JVM)  # for the drivers that tests submit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark with Delta for all tests of the process; tests that change settings take `spark.newSession()`."""
    from tidemark.testing import local_spark

    session = local_spark(warehouse=tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()
