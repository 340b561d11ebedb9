"""Estimates of query acceleration from a notebook: the method without Spark, and the statement of the source system."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.unit.acceleration.made_logs import BEGAN, lines
from tidemark.acceleration.model.estimates import Status
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import EventLogNotFound, InvalidArgument

DIRECTORY = "spark.eventLog.dir"
NOW = datetime.fromtimestamp(BEGAN / 1000, UTC) + timedelta(hours=1)


def never() -> SparkSession:
    raise AssertionError("Spark was started")


def client(spark: SparkSession | Callable[[], SparkSession], root: Path, logs: Path | None) -> Lake:
    settings = {} if logs is None else {DIRECTORY: f"file:{logs}"}
    store = f"sqlite:///{root}/control.db"
    return connect(spark, store, lake_root=str(root / "lake"), clock=lambda: NOW, session_settings=settings)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    place = tmp_path / "events"
    place.mkdir()
    (place / "app-1").write_bytes(lines([2000] * 40))
    return place


def test_an_application_is_estimated_without_spark_by_its_id_and_by_its_path(tmp_path: Path, logs: Path) -> None:
    with closing(client(never, tmp_path, logs)) as lake:
        found = lake.estimate_acceleration("app-1")
        assert (found.status, found.seconds, found.slots) == (Status.ELIGIBLE, 80.2, 1)
        assert lake.estimate_acceleration(str(logs / "app-1")) == found
        assert lake.estimate_acceleration("app-1", event_logs=str(logs)) == found
        assert lake.estimate_acceleration("app-1", execution=7).seconds == 80.0
        with pytest.raises(InvalidArgument, match="no SQL query of that number; it has 7"):
            lake.estimate_acceleration("app-1", execution=8)
        with pytest.raises(EventLogNotFound):
            lake.estimate_acceleration("app-2")


def test_without_a_directory_an_id_is_refused_with_the_setting_to_add(tmp_path: Path) -> None:
    with closing(client(never, tmp_path, None)) as lake, pytest.raises(InvalidArgument, match=r"spark\.eventLog\.dir"):
        lake.estimate_acceleration("app-1")


@pytest.mark.spark
@pytest.mark.parametrize("call", ["{}", "PARSE_JSON({})"])
def test_the_statement_answers_with_the_json_of_the_source_system(
    spark: SparkSession, tmp_path: Path, logs: Path, call: str
) -> None:
    asked = call.format(f"SYSTEM$ESTIMATE_QUERY_ACCELERATION('{logs}/app-1')")
    with closing(client(spark, tmp_path, None)) as lake:
        answer = lake.sql(f"SELECT {asked}")
        assert answer.columns == [asked]
        said = json.loads(answer.collect()[0][0])
        titled = lake.sql(f"SELECT {asked} AS estimate")
        assert titled.columns == ["estimate"]
    assert (said["status"], said["queryUUID"], said["originalQueryTime"]) == ("eligible", "app-1", 80.2)
    assert list(said["estimatedQueryTimes"])[:4] == ["1", "2", "4", "8"]
    assert str(said["upperLimitScaleFactor"]) in said["estimatedQueryTimes"]
