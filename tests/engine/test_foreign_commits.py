"""Commits of other writers with odd texts, read by Spark: a stream and a change stream on the table go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.change_streams.captured import on_one_table
from tests.engine.lakes import Lake
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark

DEEP = '{"tidemark":' * 3_000


def test_rows_of_commits_with_odd_texts_are_streamed_and_captured(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured, start = on_one_table(lake, workspace), lake.version
    for key, stats in ((1, "[1]"), (2, DEEP), (3, '{"numRecords": "three", "minValues": 5}')):
        row = lake.spark.sql(f"SELECT {key} AS k, 'a' AS v UNION ALL SELECT {key + 10}, 'b'")
        row.coalesce(1).write.format("delta").mode("append").option("userMetadata", DEEP).save(str(lake.path))
        say_of_files(lake.path / "_delta_log" / f"{lake.version:020d}.json", stats)
    lake.sql("DELETE FROM {t} WHERE k = 1")
    assert sorted(row[2] for row in lake.changes(start)) == [2, 3, 11, 12, 13]
    assert captured.capture(lake.version).rows == 7
    lake.sql("INSERT INTO {t} VALUES (4, 'c')")
    assert captured.capture(lake.version).rows == 1


def say_of_files(commit: Path, stats: str) -> None:
    """Exchange the statistics, as another writer would have them."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["stats"] = stats
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
