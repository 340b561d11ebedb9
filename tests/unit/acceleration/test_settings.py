"""The argument of operators, and Spark's settings of an accelerated job."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.acceleration.planning.settings import (
    accelerated_settings,
    event_log_directory,
    executors_of,
    factor_of,
    seconds_in,
)
from tidemark.errors import InvalidArgument

STANDALONE, YARN = "spark://host:7077", "yarn"


@pytest.mark.parametrize(
    ("given", "factor"),
    [
        *((None, None), (False, None), ("", None), ("None", None), ("false", None)),
        *((True, 8), ("True", 8), (0, 0), ("0", 0), (3, 3), (" 100 ", 100)),
    ],
)
def test_the_factor_is_read_as_a_template_renders_it(given: Any, factor: int | None) -> None:
    assert factor_of("f", given) == factor


@pytest.mark.parametrize("given", [-1, 101, 1.5, "8x", "yes", [8], "١"])
def test_another_factor_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="from 0"):
        factor_of("query_acceleration_max_scale_factor", given)


@pytest.mark.parametrize(
    ("settings", "master", "base"),
    [
        ({"spark.executor.cores": "2", "spark.cores.max": "5"}, STANDALONE, 2),
        ({"spark.executor.cores": "1", "spark.executor.instances": "3"}, STANDALONE, 3),
        ({"spark.executor.cores": "1", "spark.cores.max": "2", "spark.executor.instances": "9"}, STANDALONE, 2),
        ({"spark.executor.instances": "4"}, YARN, 4),
        ({}, YARN, 2),
        ({}, "k8s://https://kube", 2),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "6"}, YARN, 6),
    ],
)
def test_the_base_is_the_number_of_executors_of_a_plain_job(settings: dict[str, str], master: str, base: int) -> None:
    found = executors_of(settings, master=master, factor=8)
    assert (found.base, found.most) == (base, base * 9)
    assert executors_of(settings, master=master, factor=0).most is None


@pytest.mark.parametrize(
    ("settings", "master", "problem"),
    [
        ({}, "local[4]", "has no executors to add"),
        ({"spark.cores.max": "4"}, STANDALONE, r"set spark\.executor\.cores"),
        ({"spark.executor.cores": "1"}, STANDALONE, r"set spark\.cores\.max"),
        ({"spark.dynamicAllocation.enabled": "true"}, YARN, r"set spark\.dynamicAllocation\.maxExecutors"),
    ],
)
def test_a_job_without_a_base_is_refused_with_the_setting_to_add(
    settings: dict[str, str], master: str, problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        accelerated_settings(settings, master=master, factor=8)


def test_an_accelerated_job_grows_from_its_base_to_its_limit() -> None:
    given = {"spark.executor.cores": "2", "spark.cores.max": "4", "spark.dynamicAllocation.executorIdleTimeout": "5s"}
    found = accelerated_settings(given, master=STANDALONE, factor=3)
    assert found == {
        "spark.executor.cores": "2",
        "spark.cores.max": "16",
        "spark.executor.instances": "2",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "5s",
        "spark.dynamicAllocation.initialExecutors": "2",
        "spark.dynamicAllocation.maxExecutors": "8",
        "spark.dynamicAllocation.minExecutors": "2",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.tidemark.queryAcceleration.baseExecutors": "2",
        "spark.tidemark.queryAcceleration.maxScaleFactor": "3",
    }


def test_without_a_limit_nothing_caps_the_executors_and_a_shuffle_service_is_used() -> None:
    given = {"spark.executor.cores": "1", "spark.cores.max": "1", "spark.shuffle.service.enabled": "true"}
    found = accelerated_settings(given, master=STANDALONE, factor=0)
    assert not {"spark.cores.max", "spark.dynamicAllocation.maxExecutors"} & found.keys()
    assert "spark.dynamicAllocation.shuffleTracking.enabled" not in found


def test_event_logs_are_where_spark_writes_them() -> None:
    assert event_log_directory({"spark.eventLog.dir": "/logs"}) is None
    assert event_log_directory({"spark.eventLog.enabled": "True", "spark.eventLog.dir": "/logs"}) == "/logs"
    assert event_log_directory({"spark.eventLog.enabled": "true"}) == "file:/tmp/spark-events"


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1), ("500ms", 0.5), ("2min", 120), ("3", 3), ("soon", 9)])
def test_spans_of_time_are_read_as_spark_writes_them(text: str, seconds: float) -> None:
    assert seconds_in(text, 9) == seconds
