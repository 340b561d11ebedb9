"""Random histories against Spark's own CHANGES, where it can answer: a second judge, independent of row snapshots."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.properties.histories import OF_ROWS, Table, act, create, random_shape
from tests.properties.test_histories import as_json
from tests.tiers import some
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, StreamMode

pytestmark = pytest.mark.spark

COMMITS = 6
_NATIVE = {
    "spark.databricks.delta.v2.enableMode": "AUTO",
    "spark.databricks.delta.changelogV2.enabled": "true",
}
Found = Counter[tuple[str, bool, str]]


@pytest.fixture
def native(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with CHANGES turned on, which is behind flags of Delta."""
    for name, value in _NATIVE.items():
        spark.conf.set(name, value)
    yield spark
    for name in _NATIVE:
        spark.conf.unset(name)


@pytest.mark.parametrize("seed", some(range(20), now=range(1)))
def test_windows_equal_native_changes(seed: int, native: SparkSession, tmp_path: Path) -> None:
    table = history(native, tmp_path / "t", seed)
    name = f"spark_catalog.default.native_{seed}"
    native.sql(f"CREATE TABLE {name} USING delta LOCATION '{table.path}'")
    try:
        start, end = sorted(table.chance.sample(range(1, table.version + 1), 2))
        found, expected = ours(native, table, start, end), theirs(native, name, start, end)
    finally:
        native.sql(f"DROP TABLE {name}")
    said = "\n".join(f"  {number}: {text}" for number, text in enumerate(table.done))
    assert found == expected, f"({start}, {end}] seed {seed}, {table.shape}:\n{said}"


def history(spark: SparkSession, path: Path, seed: int) -> Table:
    """A table of which only rows change: CHANGES answers no window in which the schema did."""
    chance = random.Random(seed)
    shape = replace(random_shape(chance), mapping="none", modern=False, cloned=False)
    table = create(spark, path, shape, chance)
    for _ in range(4 * COMMITS):
        if table.version >= COMMITS:
            break
        act(table, OF_ROWS)
    return table


def ours(spark: SparkSession, table: Table, start: int, end: int) -> Found:
    log = DeltaLog.open(str(table.path))
    with Workspace((table.path.parent / "lake").as_uri(), "t") as workspace:
        rows = read_changes(spark, log, plan_changes(log, start, end, StreamMode.STANDARD), workspace)
        return _counted(rows.withColumnsRenamed({ACTION: "action", IS_UPDATE: "pair"}))


def theirs(spark: SparkSession, name: str, start: int, end: int) -> Found:
    """Net changes, without the updates that changed nothing, which CHANGES reports and a stream does not (R54)."""
    reader = spark.read.option("startingVersion", start + 1).option("endingVersion", end)
    reader = reader.option("computeUpdates", "true").option("deduplicationMode", "netChanges")
    kind = F.col("_change_type")
    rows = reader.changes(name).withColumn("pair", kind.startswith("update"))
    rows = rows.withColumn("action", F.when(kind.isin("insert", "update_postimage"), "INSERT").otherwise("DELETE"))
    return _without_idle(_counted(rows))


def _counted(rows: DataFrame) -> Found:
    names = [
        name for name in rows.columns if not name.startswith(("METADATA$", "_")) and name not in ("action", "pair")
    ]
    return Counter(
        (action, pair, json.dumps(json.loads(text), sort_keys=True))
        for action, pair, text in rows.select("action", "pair", as_json(rows, names)).collect()
    )


def _without_idle(found: Found) -> Found:
    """An update whose images are the same takes one off both counts."""
    for action, pair, text in list(found):
        if pair and action == "DELETE":
            idle = min(found[action, pair, text], found["INSERT", pair, text])
            found[action, pair, text] -= idle
            found["INSERT", pair, text] -= idle
    return +found
