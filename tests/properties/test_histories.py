"""Random histories on real Spark: every window against the difference of full snapshots by row id."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.properties.histories import Table, act, create, quoted, random_shape
from tests.tiers import some
from tidemark.changes.driver.every_change import plan_pages
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.plan import ChangePlan
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, COMMIT_VERSION, IS_UPDATE, ROW_ID, StreamMode

pytestmark = pytest.mark.spark

COMMITS = 12
WINDOWS = 5

Content = dict[str, Any]
Snapshot = dict[int, Content]
Columns = dict[str, source_schema.Field]
Change = tuple[str, bool, int, str]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("lake 100%").as_uri().replace("%20", " ").replace("%25", "%"), "t") as room:
        yield room


@pytest.mark.parametrize("seed", some(range(300), now=range(1)))
def test_windows_equal_the_difference_of_snapshots(
    seed: int, spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    table, snapshots = history(spark, tmp_path / "t ä%20'1", seed)
    log = DeltaLog.open(str(table.path))
    said = f"seed {seed}, {table.shape}:\n" + "\n".join(f"  {n}: {text}" for n, text in enumerate(table.done))
    for number in range(WINDOWS):
        start, end = sorted(table.chance.sample(range(table.version + 1), 2))
        columns = columns_at(table, end)
        expected = standard(snapshots[start], snapshots[end], columns)
        assert changes(spark, log, start, end, StreamMode.STANDARD, workspace) == expected, f"({start}, {end}] {said}"
        if number % 2:
            expected = appended(snapshots, start, end, columns)
            found = changes(spark, log, start, end, StreamMode.APPEND_ONLY, workspace)
            assert found == expected, f"appended in ({start}, {end}] {said}"
    pairs = zip(snapshots[start:end], snapshots[start + 1 : end + 1], strict=True)
    each = [standard(old, new, columns) for old, new in pairs]
    assert every_change(spark, log, start, end, workspace) == each, f"each in ({start}, {end}] {said}"


def history(spark: SparkSession, path: Path, seed: int) -> tuple[Table, list[Snapshot]]:
    """A table and what each of its versions holds."""
    chance = random.Random(seed)
    table = create(spark, path, random_shape(chance), chance)
    for _ in range(4 * COMMITS):
        if table.version >= COMMITS:
            break
        act(table)
    return table, read_snapshots(table)


def read_snapshots(table: Table) -> list[Snapshot]:
    """Every version's rows by row id, in one query; columns by their physical names, which outlive a renaming."""
    versions = range(table.version + 1)
    columns = [columns_at(table, version) for version in versions]
    snapshots: list[Snapshot] = [{} for _ in versions]
    for version, row_id, text in reduce(DataFrame.unionAll, [_version(table, number) for number in versions]).collect():
        assert row_id not in snapshots[version]
        content = json.loads(text)
        snapshots[version][row_id] = {columns[version][name].physical: value for name, value in content.items()}
    return snapshots


def _version(table: Table, number: int) -> DataFrame:
    frame = table.spark.read.format("delta").option("versionAsOf", number).load(str(table.path))
    return frame.select(F.lit(number), F.col("_metadata.row_id"), as_json(frame, frame.columns))


def columns_at(table: Table, version: int) -> Columns:
    """The columns at a version, by name."""
    metadata = DeltaLog.open(str(table.path)).state(version).metadata
    return {field.name: field for field in source_schema.fields(metadata)}


def as_json(frame: DataFrame, names: list[str]) -> Any:
    shown = [
        (F.array_sort(F.map_entries(name)) if kind.startswith("map<") else F.col(quoted(name))).alias(name)
        for name, kind in frame.dtypes
        if name in names
    ]
    return F.to_json(F.struct(*shown), {"ignoreNullFields": "false"})


def seen(content: Content, columns: Columns) -> str:
    """The content under the columns of the window's end: an added column is NULL before (R100), a dropped one is not
    there (R102). So are nested fields.
    """
    found = {name: _of_type(content.get(column.physical), column.form["type"]) for name, column in columns.items()}
    return as_text(found)


def as_text(content: Content) -> str:
    return json.dumps(
        {name: _without_nulls(value) for name, value in content.items()}, ensure_ascii=False, sort_keys=True
    )


def _of_type(value: Any, kind: Any) -> Any:
    """The value with only the fields of its type, which RESTORE can take away."""
    if value is None or isinstance(kind, str):
        return value
    if kind["type"] == "struct":
        return {field["name"]: _of_type(value.get(field["name"]), field["type"]) for field in kind["fields"]}
    return [_of_type(each, kind["elementType"]) for each in value] if kind["type"] == "array" else value


def _without_nulls(value: Any) -> Any:
    """A nested field that was added later is NULL before (R100)."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def standard(old: Snapshot, new: Snapshot, columns: Columns) -> list[Change]:
    before, after = ({row_id: seen(row, columns) for row_id, row in rows.items()} for rows in (old, new))
    gone = [("DELETE", row_id in after, row_id, row) for row_id, row in before.items() if after.get(row_id) != row]
    come = [("INSERT", row_id in before, row_id, row) for row_id, row in after.items() if before.get(row_id) != row]
    return sorted(gone + come)


def appended(snapshots: list[Snapshot], start: int, end: int, columns: Columns) -> list[Change]:
    """Walk the versions: a row is born in the first one that shows its id (R60)."""
    known = {row_id for rows in snapshots[: start + 1] for row_id in rows}
    born = []
    for rows in snapshots[start + 1 : end + 1]:
        born += [("INSERT", False, row_id, seen(row, columns)) for row_id, row in rows.items() if row_id not in known]
        known |= rows.keys()
    return sorted(born)


def changes(
    spark: SparkSession, log: DeltaLog, start: int, end: int, mode: StreamMode, workspace: Workspace
) -> list[Change]:
    rows = shown_both_ways(spark, log, plan_changes(log, start, end, mode), workspace)
    return sorted(change for _, change in rows)


def shown_both_ways(
    spark: SparkSession, log: DeltaLog, plan: ChangePlan, workspace: Workspace
) -> list[tuple[int, Change]]:
    """(commit version or 0, change) of each row. Rows of the driver are compared with those of Spark."""
    rows = shown(read_changes(spark, log, plan, workspace))
    if plan.in_driver:
        by_spark = shown(read_changes(spark, log, replace(plan, in_driver=False), workspace))
        assert sorted(rows) == sorted(by_spark), plan.in_words()
    return rows


def shown(frame: DataFrame) -> list[tuple[int, Change]]:
    """(commit version or 0, change)."""
    names = [name for name in frame.columns if not name.startswith("METADATA$")]
    version = F.col(COMMIT_VERSION) if COMMIT_VERSION in frame.columns else F.lit(0)
    rows = frame.select(version, ACTION, IS_UPDATE, ROW_ID, as_json(frame, names)).collect()
    return [
        (number, (action, is_update, int(row_id.rpartition(":")[2]), as_text(json.loads(text))))
        for number, action, is_update, row_id, text in rows
    ]


def every_change(spark: SparkSession, log: DeltaLog, start: int, end: int, workspace: Workspace) -> list[list[Change]]:
    """The changes of each commit of (start, end], read in pages of a few rows."""
    by_commit: dict[int, list[Change]] = {version: [] for version in range(start + 1, end + 1)}
    for page in plan_pages(log, start, end, rows_per_page=10):
        for version, change in shown_both_ways(spark, log, page, workspace):
            assert page.start < version <= page.end
            by_commit[version].append(change)
    return [sorted(found) for found in by_commit.values()]
