"""The packages of Spark are those of the PySpark that is installed."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from tidemark.model.spark import AVRO_PACKAGE, DELTA_PACKAGE, S3_SETTINGS, release_of


@pytest.mark.filterwarnings("ignore:PySpark 4.1")
@pytest.mark.parametrize(("pyspark", "delta"), [("4.1.4", "_4.1_"), ("4.2.0", "_4.2_"), ("4.2.1.dev0", "_4.2_")])
def test_each_supported_release_has_packages_of_its_own(pyspark: str, delta: str) -> None:
    assert delta in release_of(pyspark).delta


def test_a_release_with_which_not_all_tests_passed_is_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    release_of("4.2.0")
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"PySpark 4\.1\.3 is installed.*use 4\.2"):
        release_of("4.1.3")


@pytest.mark.parametrize("pyspark", ["3.5.9", "4.0.1", "4.3.0", "5", ""])
def test_another_release_is_refused_with_those_that_are_supported(pyspark: str) -> None:
    with pytest.raises(ImportError, match=rf"Spark 4\.1 or 4\.2, and PySpark {pyspark} is installed"):
        release_of(pyspark)


def test_a_session_gets_those_of_what_is_installed() -> None:
    here = release_of(version("pyspark"))
    assert here.delta == DELTA_PACKAGE
    assert AVRO_PACKAGE.endswith(f":{here.avro}")
    assert f"hadoop-aws:{here.hadoop}" in S3_SETTINGS["spark.jars.packages"]
