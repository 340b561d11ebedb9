"""Snapshots that follow a log, and another table at the same path."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tidemark.lake.delta_log import DeltaLog
from tidemark.search.driver.snapshots import Snapshots

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "string", "nullable": True, "metadata": {}}]})


def commit(root: Path, version: int, *actions: dict[str, Any], at: int = 1_700_000_000) -> None:
    log = root / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    file = log / f"{version:020}.json"
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    os.utime(file, (at + version, at + version))


def table(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    metadata = {"id": name, "format": {"provider": "parquet"}, "schemaString": SCHEMA, "partitionColumns": []}
    return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata | {"configuration": {}}}


def add(path: str) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}}


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True}}


def test_a_snapshot_follows_the_commits_and_reads_nothing_again(tmp_path: Path) -> None:
    kept, log = Snapshots(), DeltaLog.open
    commit(tmp_path, 0, *table("one"), add("a"), add("b"))
    first = kept.newest(log(str(tmp_path)))
    assert list(first.files) == ["a", "b"]
    assert kept.newest(log(str(tmp_path))) is first
    commit(tmp_path, 1, add("c"), remove("a"))
    second = kept.newest(log(str(tmp_path)))
    assert (second.version, list(second.files)) == (1, ["b", "c"])


def test_another_table_at_the_same_path_is_read_as_itself(tmp_path: Path) -> None:
    kept, log = Snapshots(), DeltaLog.open
    commit(tmp_path, 0, *table("one"), add("a"))
    commit(tmp_path, 1, add("b"))
    assert list(kept.newest(log(str(tmp_path))).files) == ["a", "b"]
    commit(tmp_path, 0, *table("two"), add("x"), at=1_700_100_000)
    commit(tmp_path, 1, add("y"), at=1_700_100_000)
    assert list(kept.newest(log(str(tmp_path))).files) == ["x", "y"]
    for version in range(3):
        commit(tmp_path, version, *(table("three") if version == 0 else ()), add(f"z{version}"), at=1_700_200_000)
    assert list(kept.newest(log(str(tmp_path))).files) == ["z0", "z1", "z2"]
