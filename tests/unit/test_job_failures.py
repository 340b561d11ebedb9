"""A job's failure says what failed: the file that could not be read, or Spark's first words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidemark.changes.driver.by_key
import tidemark.pipes.driver.readings  # noqa: F401 - both register their parsers
from tidemark.errors import DataFileUnreadable, FileFormatNotInstalled, JobFailed, KeyNotUnique, from_record
from tidemark.jobs.failures import named_failure
from tidemark.jobs.spark_failures import SPARK_FAILURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNREAD = """An error occurred while calling o142.sql.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
s3://b/a b.parquet.  SQLSTATE: KD001
\tat org.apache.spark.sql.X(X.scala:1)
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3://b/a
Caused by: org.apache.parquet.io.ParquetDecodingException: no magic number
\t... 20 more
"""

ASKS_FOR_THE_JVM = """
import os
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tidemark.errors import DriverJvmNeeded
from tidemark.jobs.failures import named_failure
spark = SparkSession.builder.getOrCreate()
rows = spark.range(3)
asked = [lambda name=name: getattr(spark, name) for name in ("sparkContext", "_sc", "_jvm", "_jsc")]
for ask in [*asked, lambda: rows._jdf, lambda: rows.rdd, SparkContext.getOrCreate]:
    try:
        ask()
    except Exception as error:
        found = named_failure(error)
        assert isinstance(found, DriverJvmNeeded), found
        print(found.facts["attribute"], flush=True)
os._exit(0)
"""


def test_a_file_that_spark_could_not_read_is_named_with_the_deepest_cause() -> None:
    found = named_failure(RuntimeError(UNREAD))
    assert isinstance(found, DataFileUnreadable)
    assert found.facts["file"] == "s3://b/a b.parquet"
    assert found.facts["problem"] == "org.apache.parquet.io.ParquetDecodingException: no magic number"
    assert str(from_record(found.to_record())) == str(found)


def test_a_spark_without_a_reader_of_avro_names_its_package() -> None:
    text = (
        "Failed to find data source: avro. Avro is built-in but external data source module since Spark 2.4. Please"
        " deploy the application as per the deployment section of Apache Avro Data Source Guide."
    )
    found = named_failure(RuntimeError(text))
    assert isinstance(found, FileFormatNotInstalled)
    assert "Add the package org.apache.spark:spark-avro_2.13:4.1.1" in str(found)
    assert isinstance(named_failure(RuntimeError(text.replace("avro", "kudu"))), JobFailed)


def test_another_failure_says_what_spark_said_not_that_it_was_called() -> None:
    text = "An error occurred while calling o1.sql.\n: org.apache.spark.SparkException: Job aborted\n\tat x"
    found = named_failure(RuntimeError(text))
    assert isinstance(found, JobFailed)
    assert found.facts == {"error": "RuntimeError", "message": "org.apache.spark.SparkException: Job aborted"}
    assert named_failure(ValueError("")).facts["message"] == ""


def test_whatever_of_the_jvm_a_function_asks_for_is_named() -> None:
    """A session of Spark Connect asks no server for it."""
    done = subprocess.run(
        [sys.executable, "-c", ASKS_FOR_THE_JVM],
        env={**os.environ, "SPARK_REMOTE": "sc://localhost:1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["sparkContext", "_sc", "_jvm", "_jsc", "_jdf", "rdd", "SparkContext"], done.stderr
    assert isinstance(named_failure(AttributeError("'Row' object has no attribute '_sc'")), JobFailed)


def test_the_deepest_cause_of_a_failure_is_told_with_it() -> None:
    printed = (
        "at a\nCaused by: org.apache.spark.SparkException: x\nCaused by: java.io.IOException: No space left on device"
    )

    class Remote(RuntimeError):
        def getStackTrace(self) -> str:
            return printed

    found = named_failure(Remote("[TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030"))
    assert found.facts["message"] == (
        "[TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030. "
        "Caused by java.io.IOException: No space left on device"
    )


@pytest.mark.spark
def test_the_cause_of_a_query_that_fails_in_this_driver_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing of the kind PAR1")
    with pytest.raises(SPARK_FAILURES) as failed:
        spark.read.schema("id BIGINT").parquet(str(tmp_path)).collect()
    found = named_failure(failed.value)
    assert isinstance(found, DataFileUnreadable)
    assert found.facts["file"].endswith("a.parquet")
    assert found.facts["problem"] != "Spark gave no cause"


def test_a_key_that_is_not_unique_comes_back_as_an_error_of_its_own() -> None:
    facts = {
        "stream": "s",
        "table": "file:///t'",
        "columns": "a, b",
        "version": 7,
        "times": 2,
        "key": '{"a":"é\\"","b":1}',
    }
    text = f"[USER_RAISED_EXCEPTION] TidemarkKeyNotUnique {json.dumps(facts)}: a, b do not identify SQLSTATE: P0001"
    found = named_failure(RuntimeError(f"An error occurred while calling o1.sql.\n: x: {text}\n\tat y"))
    assert isinstance(found, KeyNotUnique)
    assert found.facts == facts
    assert str(from_record(found.to_record())) == str(found)
    assert isinstance(named_failure(RuntimeError("TidemarkKeyNotUnique {cut off")), JobFailed)
