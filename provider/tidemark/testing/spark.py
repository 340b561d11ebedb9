"""A local Spark with Delta, tuned for small data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.model.spark import DELTA_PACKAGE, DELTA_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DELTA_PACKAGE", "SHORT_LIVED_JVM", "local_spark"]

SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""JVM options that halve the CPU of a session of some minutes on small data. Long jobs need the defaults.

With a smaller code cache, a session of many small queries spends a fifth of its CPU on flushing it.
"""


def local_spark(
    *,
    warehouse: str | Path | None = None,
    cores: int = 2,
    app_name: str = "tidemark",
    memory: str = "2g",
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """A local Spark session with Delta for small tables: few partitions, no generated code, reused while it is alive.

    `warehouse`: the directory of managed tables (default: a new temporary directory). `more`: further Spark settings,
    which take precedence. Spark resolves Delta's jars itself, which takes some seconds the first time.
    """
    import tempfile

    from pyspark.sql import SparkSession

    home = Path(warehouse) if warehouse is not None else Path(tempfile.mkdtemp(prefix="tidemark-"))
    settings = {
        "spark.jars.packages": DELTA_PACKAGE,
        **DELTA_SETTINGS,
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home} {SHORT_LIVED_JVM}",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),  # otherwise VACUUM starts 10,000 tasks
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    for name, value in {**settings, **(more or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
