"""Random histories on real Spark: every window against the difference of full snapshots by row id."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.properties.histories import Table, act, create, quoted, random_shape
from tidemark.engine.changes.plan import plan_changes
from tidemark.engine.changes.rows import read_changes
from tidemark.engine.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, StreamMode

pytestmark = pytest.mark.spark

HISTORIES = int(os.environ.get("TIDEMARK_HISTORIES", "30"))
FIRST_SEED = int(os.environ.get("TIDEMARK_FIRST_SEED", "0"))
COMMITS = 12
WINDOWS = 5

Content = dict[str, Any]
Snapshot = dict[int, Content]
Change = tuple[str, bool, int, str]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("lake 100%").as_uri().replace("%20", " ").replace("%25", "%"), "t") as room:
        yield room


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + HISTORIES))
def test_windows_equal_the_difference_of_snapshots(
    seed: int, spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    table, snapshots = history(spark, tmp_path / "t ä%20'1", seed)
    log = DeltaLog.open(str(table.path))
    said = f"seed {seed}, {table.shape}:\n" + "\n".join(f"  {n}: {text}" for n, text in enumerate(table.done))
    for _ in range(WINDOWS):
        start, end = sorted(table.chance.sample(range(table.version + 1), 2))
        expected = standard(snapshots[start], snapshots[end], columns(table, end))
        assert changes(spark, log, start, end, StreamMode.STANDARD, workspace) == expected, f"({start}, {end}] {said}"
        expected = appended(snapshots, start, end, columns(table, end))
        assert changes(spark, log, start, end, StreamMode.APPEND_ONLY, workspace) == expected, (
            f"({start}, {end}] {said}"
        )


def history(spark: SparkSession, path: Path, seed: int) -> tuple[Table, list[Snapshot]]:
    """A table and what each of its versions held, read while it was the newest one."""
    chance = random.Random(seed)
    table = create(spark, path, random_shape(chance), chance)
    snapshots: list[Snapshot] = [read_snapshot(table, version) for version in range(table.version + 1)]
    for _ in range(4 * COMMITS):
        if table.version >= COMMITS:
            break
        act(table)
        snapshots += [read_snapshot(table, version) for version in range(len(snapshots), table.version + 1)]
    return table, snapshots


def read_snapshot(table: Table, version: int) -> Snapshot:
    """A version's rows by row id."""
    reader = table.spark.read.format("delta")
    frame = (reader.option("versionAsOf", version) if version < table.version else reader).load(str(table.path))
    rows = frame.select(F.col("_metadata.row_id"), as_json(frame, frame.columns)).collect()
    snapshot = {row_id: json.loads(text) for row_id, text in rows}
    assert len(snapshot) == len(rows)
    return snapshot


def columns(table: Table, version: int) -> list[str]:
    frame = table.spark.read.format("delta").option("versionAsOf", version).load(str(table.path))
    return list(frame.columns)


def as_json(frame: DataFrame, names: list[str]) -> Any:
    shown = [
        (F.array_sort(F.map_entries(name)) if kind.startswith("map<") else F.col(quoted(name))).alias(name)
        for name, kind in frame.dtypes
        if name in names
    ]
    return F.to_json(F.struct(*shown), {"ignoreNullFields": "false"})


def seen(content: Content, names: list[str]) -> str:
    """The content under the columns of the window's end: an added column is NULL before (R100)."""
    return json.dumps({name: content.get(name) for name in names}, ensure_ascii=False, sort_keys=True)


def standard(old: Snapshot, new: Snapshot, names: list[str]) -> list[Change]:
    before, after = ({row_id: seen(row, names) for row_id, row in rows.items()} for rows in (old, new))
    gone = [("DELETE", row_id in after, row_id, row) for row_id, row in before.items() if after.get(row_id) != row]
    come = [("INSERT", row_id in before, row_id, row) for row_id, row in after.items() if before.get(row_id) != row]
    return sorted(gone + come)


def appended(snapshots: list[Snapshot], start: int, end: int, names: list[str]) -> list[Change]:
    """Walk the versions: a row is born in the first one that shows its id (R60)."""
    known = {row_id for rows in snapshots[: start + 1] for row_id in rows}
    born = []
    for rows in snapshots[start + 1 : end + 1]:
        born += [("INSERT", False, row_id, seen(row, names)) for row_id, row in rows.items() if row_id not in known]
        known |= rows.keys()
    return sorted(born)


def changes(
    spark: SparkSession, log: DeltaLog, start: int, end: int, mode: StreamMode, workspace: Workspace
) -> list[Change]:
    frame = read_changes(spark, log, plan_changes(log, start, end, mode), workspace)
    names = [name for name in frame.columns if name not in (ACTION, IS_UPDATE, ROW_ID)]
    rows = frame.select(ACTION, IS_UPDATE, ROW_ID, as_json(frame, names)).collect()
    return sorted(
        (action, is_update, int(row_id.rpartition(":")[2]), seen(json.loads(text), names))
        for action, is_update, row_id, text in rows
    )
