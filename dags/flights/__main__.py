"""The Spark application of the example: `spark-submit __main__.py replay|report ARGUMENTS.json RESULT.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flights.replay import replay
from flights.report import report
from flights.tables import create_missing_tables

SMALL_TABLES = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.merge.materializeSource": "none",
}


def main(job: str, arguments_file: str, result_file: str) -> None:
    arguments = json.loads(Path(arguments_file).read_text(encoding="utf-8"))
    spark = SparkSession.builder.appName(f"flights {job}").getOrCreate()
    for name, value in SMALL_TABLES.items():
        spark.conf.set(name, value)
    Path(result_file).write_text(json.dumps(JOBS[job](spark, arguments)), encoding="utf-8")
    spark.stop()


def _replay(spark: SparkSession, arguments: Mapping[str, Any]) -> dict[str, Any]:
    create_missing_tables(spark, **arguments["tables"])
    return asdict(replay(spark, arguments["tables"]["board"], arguments["days"]))


def _report(spark: SparkSession, arguments: Mapping[str, Any]) -> dict[str, Any]:
    compared = {role: arguments["tables"][role] for role in ("board", "mirror", "history")}
    return asdict(report(spark, **compared, version=arguments["version"]))


JOBS: Mapping[str, Callable[[SparkSession, Mapping[str, Any]], dict[str, Any]]] = {"replay": _replay, "report": _report}

if __name__ == "__main__":
    main(*sys.argv[1:])
