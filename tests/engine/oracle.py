"""What a window must show, from two full snapshots by row id: independent of plans, feeds and log-only tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tests.engine.lakes import Lake
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, StreamMode

__all__ = ["Change", "assert_difference", "shown"]

Change = tuple[str, bool, int, str]
Snapshot = dict[int, str]


def assert_difference(
    lake: Lake, start: int, end: int | None = None, *, was: Mapping[str, str] | None = None
) -> list[Change]:
    """Standard and append-only changes of (start, end] equal the difference of the snapshots; returns the standard
    ones, of which there are some.

    `was`: names that columns of the end had at the start. For windows in which no row is born and then changed.
    """
    at = lake.version if end is None else end
    old, new = _snapshots(lake, start, at, was or {})
    come = [("INSERT", row in old, row, text) for row, text in new.items() if old.get(row) != text]
    gone = [("DELETE", row in new, row, text) for row, text in old.items() if new.get(row) != text]
    found = shown(lake, start, at)
    assert found == sorted(gone + come)
    assert found, "a window without changes proves nothing"
    born = sorted(change for change in come if not change[1])
    assert shown(lake, start, at, StreamMode.APPEND_ONLY) == born
    return found


def shown(lake: Lake, start: int, end: int, mode: StreamMode = StreamMode.STANDARD) -> list[Change]:
    """What the engine gives: action, is update, number of the row id, content as JSON; sorted."""
    frame = lake.frame(start, end, mode)
    names = [name for name in frame.columns if name not in (ACTION, IS_UPDATE, ROW_ID)]
    rows = frame.select(ACTION, IS_UPDATE, ROW_ID, _content(frame, names)).collect()
    return sorted((action, pair, int(row_id.rpartition(":")[2]), text) for action, pair, row_id, text in rows)


def _snapshots(lake: Lake, start: int, end: int, was: Mapping[str, str]) -> tuple[Snapshot, Snapshot]:
    """Both versions' rows by row id, under the columns and types of `end` (R100, R101, R105); one query."""
    last = _at(lake, end)
    both = _under(_at(lake, start), last.schema, "old", was).unionAll(_under(last, last.schema, "new", {}))
    found: dict[str, Snapshot] = {"old": {}, "new": {}}
    for side, row_id, text in both.collect():
        assert row_id not in found[side], f"row id {row_id} stands twice in the {side} version"
        found[side][row_id] = text
    return found["old"], found["new"]


def _at(lake: Lake, version: int) -> DataFrame:
    return lake.spark.read.format("delta").option("versionAsOf", version).load(str(lake.path))


def _under(frame: DataFrame, kind: StructType, side: str, was: Mapping[str, str]) -> DataFrame:
    there = {name.lower() for name in frame.columns}
    columns = []
    for field in kind.fields:
        name = was.get(field.name, field.name)
        value = F.col(_quoted(name)) if name.lower() in there else F.lit(None)
        columns.append(value.cast(field.dataType).alias(field.name))
    shaped = frame.select(F.col("_metadata.row_id").alias("row_id"), *columns)
    return shaped.select(F.lit(side), "row_id", _content(shaped, kind.names))


def _content(frame: DataFrame, names: list[str]) -> Column:
    kinds = dict(frame.dtypes)
    columns = [
        (F.array_sort(F.map_entries(_quoted(name))) if kinds[name].startswith("map<") else F.col(_quoted(name))).alias(
            name
        )
        for name in names
    ]
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
