"""Event files by Datastream's documented forms become the events that are written beside them.

The files were written by hand after Datastream's documentation and files that it has produced. No Datastream was at
hand, and no Oracle and no SQL Server either.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.databases.debezium.golden_events import told
from tests.databases.event_files.dropped import address_of, drop, drop_avro, read_events
from tidemark.model.source_address import SourceAddress

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(str(file.relative_to(GOLDEN)) for file in GOLDEN.rglob("*.json"))


def dropped(said: dict[str, Any], directory: Path) -> SourceAddress:
    """The files of a golden one in a folder."""
    for name, lines in said.get("files", {}).items():
        drop(directory, name, lines)
    for name, schema in said.get("beside", {}).items():
        (directory / name).write_text(json.dumps(schema))
    for name, file in said.get("avro", {}).items():
        for record in file["records"]:
            record["payload"] = {
                column: Decimal(value) if column == "price" and value is not None else value
                for column, value in record["payload"].items()
            }
        drop_avro(directory, name, file["schema"], file["records"])
    return address_of(directory, keys=said.get("keys", {}))


def test_every_database_of_datastream_has_golden_files() -> None:
    assert {name.split("/")[0] for name in FILES} == {"mysql", "oracle", "postgresql", "sqlserver"}


@pytest.mark.parametrize("name", FILES)
def test_files_become_these_events(name: str, tmp_path: Path) -> None:
    said = json.loads((GOLDEN / name).read_text())
    assert told(read_events(dropped(said, tmp_path))) == said["events"]
