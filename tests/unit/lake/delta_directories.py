"""Small Delta logs written by hand, for what Spark would take long to make or never makes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tidemark.lake.delta_log import DeltaLog

PROTOCOL = {
    "protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["rowTracking"]}
}

NOTHING = ({"commitInfo": {"operation": "TEST"}},)


def metadata(table_id: str = "id-1", **configuration: str) -> dict[str, Any]:
    schema = json.dumps({"type": "struct", "fields": []})
    body = {"id": table_id, "schemaString": schema, "partitionColumns": [], "configuration": configuration}
    return {"metaData": {**body, "format": {"provider": "parquet"}}}


def add(path: str, *, data_change: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "add": {
            "path": path,
            "size": 1,
            "partitionValues": {},
            "modificationTime": 1,
            "dataChange": data_change,
            **more,
        }
    }


def remove(path: str, *, data_change: bool = True) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": data_change}}


def row_id_mark(mark: int) -> dict[str, Any]:
    configuration = json.dumps({"rowIdHighWaterMark": mark})
    return {"domainMetadata": {"domain": "delta.rowTracking", "configuration": configuration, "removed": False}}


def commit(table: Path, version: int, *actions: dict[str, Any], at: datetime | None = None) -> Path:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    file = log / f"{version:020d}.json"
    file.write_text("".join(json.dumps(action) + "\n" for action in actions or NOTHING), encoding="utf-8")
    if at is not None:
        os.utime(file, (at.timestamp(), at.timestamp()))
    return file


def born(table: Path, *actions: dict[str, Any], **configuration: str) -> DeltaLog:
    commit(table, 0, PROTOCOL, metadata(**configuration), *actions)
    return DeltaLog.open(str(table))


SINGERS = (("SingerId", "long"), ("FirstName", "string"), ("LastName", "string"))


def singers(
    root: Path,
    name: str,
    *,
    key: str | None = None,
    versions: int = 1,
    columns: Sequence[tuple[str, str]] = SINGERS,
    **more: str,
) -> Path:
    """The table `name` of a lake, with row tracking and, maybe, a primary key; `more` are properties of it."""
    place = root / name.replace(".", "/")
    fields = [{"name": column, "type": kind, "nullable": True, "metadata": {}} for column, kind in columns]
    properties = {"delta.enableRowTracking": "true", **more, **({"tidemark.primaryKey": key} if key else {})}
    metadata = {
        "id": f"id-of-{name}-{len(list(place.parent.glob('*')))}",
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": properties,
        "format": {"provider": "parquet"},
    }
    features = ["rowTracking", *(["unheardOf"] if more.get("feature") else [])]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": features}
    commit(place, 0, {"protocol": protocol}, {"metaData": metadata})
    for version in range(1, versions):
        commit(place, version)
    return place
