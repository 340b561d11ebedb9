"""Fixtures that several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tidemark.model.spark import S3_SETTINGS
from tidemark.testing import SHORT_LIVED_JVM

os.environ.setdefault("JAVA_TOOL_OPTIONS", SHORT_LIVED_JVM)  # for the drivers that tests submit

SPREAD = ("tests.properties.test_histories",)  # their tests share nothing and are long

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark with Delta for all tests of the process; tests that change settings take `spark.newSession()`."""
    from tidemark.testing import local_spark

    session = local_spark(warehouse=tmp_path_factory.mktemp("warehouse"), more=S3_SETTINGS)
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file stay on one worker, as what they share does; those of SPREAD go where there is time. What
    takes longest begins first.
    """
    for item in items:
        file = item.nodeid.split("::")[0].removesuffix(".py").replace("/", ".")
        if file not in SPREAD and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(file))
    items.sort(key=lambda item: item.get_closest_marker("e2e") is None)
