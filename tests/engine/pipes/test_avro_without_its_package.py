"""A Spark without the package of Avro's reader, in a process of its own: a load says which package to add."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fastavro
import pytest

from tests.tiers import nightly

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

NOTEBOOK = """
import sys
from tidemark.client import connect
from tidemark.errors import FileFormatNotInstalled
from tidemark.testing import SHORT_LIVED_JVM, local_spark

home = sys.argv[1]
spark = local_spark(cores=1, memory="1g", more={"spark.driver.extraJavaOptions": SHORT_LIVED_JVM})
spark.sql(f"CREATE TABLE delta.`{home}/lake/db/t` (id BIGINT) USING delta")
lake = connect(spark, f"sqlite:///{home}/control.db", lake_root=f"{home}/lake")
copy = f"COPY INTO db.t FROM '{home}/in/' FILE_FORMAT = (TYPE = AVRO) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
lake.create_pipe("p", copy)
for load in (lambda: lake.sql(copy), lambda: lake.run_pipe("p")):
    try:
        load()
    except FileFormatNotInstalled as error:
        print("Said:", error)
print("Status:", lake.pipe_status("p")["executionState"], spark.read.format("delta").load(f"{home}/lake/db/t").count())
"""


@nightly(
    "a Spark of its own, which lacks a package",
    "tests/unit/test_job_failures.py::test_a_spark_without_a_reader_of_avro_names_its_package",
)
def test_a_load_of_avro_files_names_the_package_that_spark_lacks(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]})
    with (tmp_path / "in" / "a.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"id": 1}])
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, str(tmp_path)], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.stdout.count("Add the package org.apache.spark:spark-avro_2.13:") == 2, done.stderr[-2000:]
    assert "Status: STALLED_INITIALIZATION_ERROR 0" in done.stdout
