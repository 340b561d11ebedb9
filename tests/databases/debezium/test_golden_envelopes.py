"""Envelopes by Debezium's documented formats become the events that are written beside them.

The files were written by hand after the documentation of Debezium 3. No Oracle and no SQL Server was at hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.databases.debezium.golden_events import told
from tests.databases.debezium.landed import address_of, land, read_events, tables

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(str(file.relative_to(GOLDEN)) for file in GOLDEN.rglob("*.json"))


def golden(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / name).read_text())
    return found


def test_every_database_has_golden_envelopes() -> None:
    assert {name.split("/")[0] for name in FILES} == {"mariadb", "mysql", "oracle", "postgresql", "sqlserver"}


@pytest.mark.parametrize("name", [one for one in FILES if "events" in golden(one)])
def test_envelopes_become_these_events(name: str, tmp_path: Path) -> None:
    said = golden(name)
    land(tmp_path, "a.jsonl", said["records"])
    assert told(read_events(address_of(tmp_path))) == said["events"]


@pytest.mark.parametrize("name", [one for one in FILES if "unsupported" in golden(one)])
def test_a_table_whose_values_debezium_was_told_to_write_wrongly_is_unsupported(name: str, tmp_path: Path) -> None:
    said = golden(name)
    land(tmp_path, "a.jsonl", said["records"])
    (found,) = tables(address_of(tmp_path)).values()
    assert found.unsupported == said["unsupported"]
