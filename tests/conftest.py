"""Fixtures that several rooms share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tidemark.model.spark import AVRO_PACKAGE, POSTGRESQL_PACKAGE, S3_SETTINGS
from tidemark.testing import SHORT_LIVED_JVM

os.environ.setdefault("JAVA_TOOL_OPTIONS", SHORT_LIVED_JVM)  # for the drivers that tests submit

IF_THERE_IS_TIME = (
    "tests/engine/change_streams/test_read_functions.py",
    "tests/engine/change_streams/test_capture_numbers.py",
    "tests/engine/change_streams/test_reassembly.py",
    "tests/engine/change_streams/test_trim.py",
    "tests/engine/change_streams/test_backfill.py",
    "tests/engine/test_quarantine_once.py",
    "tests/engine/test_retention.py",
    "tests/properties",
    "tests/engine/views",
    "tests/guarantees/test_fresh_streams_are_readable.py",
    "tests/engine/test_corrupt_tables.py",
    "tests/engine/test_every_change.py",
    "tests/engine/test_every_change_streams.py",
    "tests/engine/test_feed_candidate.py",
    "tests/engine/test_lake_reads_what_delta_writes.py",
    "tests/engine/test_names_schemas_and_paths.py",
    "tests/engine/test_odd_histories.py",
    "tests/engine/test_plans_read_only_what_changed.py",
    "tests/engine/test_schema_changes.py",
    "tests/engine/test_streams_by_key.py",
    "tests/engine/test_table_features_of_logs.py",
    "tests/engine/test_windows_that_cannot_be_read.py",
)  # last, in this order; after TIDEMARK_UNTIL (seconds since 1970) what is left of them is skipped, and counted

PATIENCE_WITH_SPARK = 600  # seconds after TIDEMARK_UNTIL in which every other test with Spark still begins

SPREAD = (
    "tests/properties/test_histories.py",
    "tests/guarantees/test_replication_random.py",
)  # their tests share nothing and are long

REMEMBER_LITTLE = dict.fromkeys(
    ("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.ui.retainedTasks", "spark.sql.ui.retainedExecutions"),
    "10",
)  # thousands of finished queries would fill the heap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.postgresql import PostgresServer


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark with Delta for all tests of the process; tests that change settings take `spark.newSession()`."""
    from tidemark.testing import local_spark

    packages = {"spark.jars.packages": f"{S3_SETTINGS['spark.jars.packages']},{AVRO_PACKAGE},{POSTGRESQL_PACKAGE}"}
    settings = {**S3_SETTINGS, **packages, **REMEMBER_LITTLE}
    session = local_spark(warehouse=tmp_path_factory.mktemp("warehouse"), more=settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of the process; each takes a database of its own."""
    from tests.postgresql import postgresql_or_skip

    with postgresql_or_skip() as server:
        yield server


@pytest.fixture(scope="session")
def source_server() -> Iterator[PostgresServer]:
    """One PostgreSQL server whose log can be decoded, for all tests of the process; each takes a database of its own,
    and leaves no slot behind: those that are there count for the whole server.
    """
    from tests.postgresql import LOGICAL, postgresql_or_skip

    with postgresql_or_skip(LOGICAL) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_database(postgresql: PostgresServer) -> str:
    """A database at this release's revision, to be copied: that is quicker than migrating each."""
    from tidemark.control.store import ControlStore

    name = postgresql.new_database()
    store = ControlStore(postgresql.url(name))
    store.migrate()
    postgresql.sql("DELETE FROM tidemark_store", name)  # each copy draws an id of its own
    return name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts processes of its own takes longest, and begins first; what may be left out comes last."""
    items.sort(key=lambda item: (_rank(item.nodeid), item.get_closest_marker("e2e") is None))


def _rank(nodeid: str) -> int:
    """0, or the place in IF_THERE_IS_TIME from 1 on."""
    return next((rank for rank, place in enumerate(IF_THERE_IS_TIME, 1) if nodeid.startswith(place)), 0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A slow machine runs what a fast one does, as far as the time goes that it has."""
    until = os.environ.get("TIDEMARK_UNTIL")
    if not until:
        return
    patience = 0 if _rank(item.nodeid) else PATIENCE_WITH_SPARK if item.get_closest_marker("spark") else float("inf")
    if time.time() > float(until) + patience:
        pytest.skip("the time for this run was over (TIDEMARK_UNTIL); `make test` without it runs all")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """The tests of a file stay on one worker, as what they share does; those of SPREAD go where there is time."""
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return nodeid if file.endswith(SPREAD) else file

    return Files(config, log)
