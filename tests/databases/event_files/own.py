"""Files as Tidemark writes them, of the events of envelopes, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from pyspark.sql import Row

from tidemark.lake.storage import Storage
from tidemark.model.codec import from_plain, to_json
from tidemark.replication.driver.event_lines import ControlLines, encoder_of
from tidemark.replication.model.jobs import FileFormat
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.event_file_ranges import FilesOfRange, RangeFile, list_name
from tidemark.replication.planning.events import schema_key
from tidemark.replication.planning.file_rotation import CONTROL_FOLDER, CONTROL_KINDS

__all__ = ["as_logged", "write_range"]


def as_logged(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events that a test has read, as rows of an event log."""
    found, schemas = [], dict[str, TableSchema]()
    for number, event in enumerate(events):
        table = str(event["table"])
        if event["change"] == "SCHEMA":
            schemas[table] = from_plain(TableSchema, event["payload"])
        metadata = {"schema": "public", "table": table, "is_deleted": event["change"] == "DELETE", "tx_id": None,
                    "change_type": str(event["change"]), "lsn": "0/1", "primary_keys": list(schemas[table].keys),
                    "connector": "postgresql", "database": "shop"}  # fmt: skip
        found.append(
            {
                **{name: event[name] for name in ("sequence", "key", "old_key", "unchanged", "problem", "read_method")},
                "stream_name": "shop",
                "object": f"public_{table}",
                "object_id": f"id of {table}",
                "schema_key": schema_key(schemas[table]),
                "uuid": f"uuid {number}",
                "read_micros": 5_000_000,
                "source_micros": event["at"],
                "sort_keys": ["5", "0/1", event["commit"], "1"],
                "source_metadata": Row(**metadata),
                "payload": json.dumps(event["payload"], ensure_ascii=False, separators=(",", ":")),
                "position": event["commit"],
                "change": str(event["change"]),
                "batch": 1,
                "schema": schemas[table],
            }
        )
    return found


def write_range(
    target: Path, number: int, events: Sequence[Mapping[str, Any]], kind: FileFormat, size: int = 7
) -> None:
    """A range with files of so many events, and its list behind them."""

    def group(event: Mapping[str, Any]) -> tuple[str, ...]:
        control = event["change"] in CONTROL_KINDS
        return (CONTROL_FOLDER,) if control else (event["object"], event["object_id"], event["schema_key"])

    storage, files = Storage(f"file://{target}"), []
    in_order = sorted(events, key=lambda one: (group(one)[:2], one["position"], one["sequence"]))
    for of_group, rows in groupby(in_order, group):
        every = list(rows)
        for part in (every[first : first + size] for first in range(0, len(every), size)):
            control = of_group == (CONTROL_FOLDER,)
            encoder = ControlLines() if control else encoder_of(kind, part[0]["schema"])
            ending = "jsonl.gz" if control or kind is FileFormat.JSON else "avro"
            name = f"{of_group[0]}/2024/01/01/00/00/{part[0]['position']}-{part[0]['sequence']:010d}_x_y.{ending}"
            storage.write(name, encoder.file_of([encoder.encode(one)[0] for one in part], name))
            places = [LogPosition(one["position"], one["sequence"]) for one in part]
            files.append(RangeFile(name, places[0], places[-1], len(part)))
    schemas = {one["schema_key"]: one["schema"] for one in events if one["change"] not in CONTROL_KINDS}
    start, end = events[0]["position"], f"{events[-1]['position']}~"
    storage.write(
        list_name(number, "uid").text, to_json(FilesOfRange("shop", start, end, tuple(files), schemas)).encode()
    )
