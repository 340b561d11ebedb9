"""The settings of a session that affect the result of a query."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.model.spark import DELTA_SETTINGS

__all__ = ["affecting", "difference"]

_EXTENSIONS = "spark.sql.extensions"
_DELTA = (_EXTENSIONS, DELTA_SETTINGS[_EXTENSIONS])
_OF_QUERIES = ("spark.sql.",)
_HARMLESS = (
    *("spark.sql.adaptive.", "spark.sql.artifact.", "spark.sql.autoBroadcastJoinThreshold"),
    *("spark.sql.broadcastTimeout", "spark.sql.cache.", "spark.sql.catalogImplementation", "spark.sql.cbo."),
    *("spark.sql.codegen.", "spark.sql.debug.", "spark.sql.defaultCatalog", "spark.sql.event.", "spark.sql.execution."),
    *("spark.sql.files.max", "spark.sql.files.min", "spark.sql.files.openCostInBytes", "spark.sql.hive."),
    *("spark.sql.globalTempDatabase", "spark.sql.inMemoryColumnarStorage.", "spark.sql.join."),
    *("spark.sql.leafNodeDefaultParallelism", "spark.sql.maxPlanStringLength", "spark.sql.optimizer."),
    *("spark.sql.orc.", "spark.sql.parquet.compression.", "spark.sql.parquet.enable", "spark.sql.parquet.fieldId."),
    *("spark.sql.parquet.filterPushdown", "spark.sql.parquet.outputTimestampType", "spark.sql.pyspark."),
    *("spark.sql.queryExecutionListeners", "spark.sql.redaction.", "spark.sql.repl.", "spark.sql.shuffle."),
    *("spark.sql.sources.parallelPartitionDiscovery.", "spark.sql.statistics.", "spark.sql.streaming."),
    *("spark.sql.thriftServer.", "spark.sql.ui.", "spark.sql.warehouse.", "spark.sql.streaming.", "spark.sql.catalog."),
)
"""The beginnings of settings that change the plan, the speed or the place of a query, and never its rows. Catalogs are
among them, since each table of a query is read by its path.
"""


def affecting(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, of those that are set, that may change the rows of a query. An unknown one may.

    Delta's extension is left out, since every session has it.
    """
    found = {
        name: str(value)
        for name, value in settings.items()
        if name.startswith(_OF_QUERIES) and not name.startswith(_HARMLESS) and (name, value) != _DELTA
    }
    return dict(sorted(found.items()))


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """The names of settings that differ, sorted."""
    return tuple(sorted(name for name in {*one, *other} if one.get(name) != other.get(name)))
