"""Which Delta Lake a Spark session needs, and the settings that switch it on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["DELTA_PACKAGE", "DELTA_SETTINGS"]

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

DELTA_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
    }
)
