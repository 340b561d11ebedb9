"""Random envelopes, cut into files and batches anywhere, tell the rows that the database has."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.databases.debezium.landed import address_of, land, read_events, reader_of
from tests.databases.debezium.random_envelopes import RandomShop
from tidemark.replication.planning.debezium_marks import Mark, mark_of


def rows_told(events: list[dict[str, Any]]) -> dict[str, dict[int, dict[str, Any]]]:
    """The rows after all events, by the simplest reading of them."""
    rows: dict[str, dict[str, Any]] = {}
    gone: dict[str, Any] = {}
    for event in events:
        table = rows.setdefault(event["table"], {})
        if event["change"] == "TRUNCATE":
            table.clear()
        elif event["change"] == "DELETE":
            gone = table.pop(event["key"])
        elif event["change"] != "SCHEMA":
            before = gone if event["old_key"] else table.get(event["key"], {})
            kept = {name: before[name] for name in event["unchanged"] or ()}
            assert event["problem"] is None
            table[event["key"]] = {**event["payload"], **kept}
    return {table: {int(json.loads(key)[0]): row for key, row in found.items()} for table, found in rows.items()}


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row as events have it, without what is null."""
    texts = {"id": str(row["id"]), "body": row["body"], "more": row.get("more")}
    texts["total"] = None if row["total"] is None else f"{row['total']:f}"
    texts["placed"] = row["placed"].isoformat(" ", "microseconds")
    return {name: str(value) for name, value in texts.items() if value is not None}


@pytest.mark.parametrize("seed", range(5))
def test_files_and_batches_may_end_anywhere(seed: int, tmp_path: Path) -> None:
    shop = RandomShop(seed, headers=True)
    cut = random.Random(seed)
    waiting: dict[str, list[Any]] = {table: [] for table in shop.tables}
    address, mark, events, number = address_of(tmp_path), Mark(), [], 0
    while number < 40 or any(waiting.values()) or mark.nth is not None:
        if number < 40:
            for table, records in shop.envelopes(8).items():
                waiting[table] += records
        for table, records in waiting.items():
            at = cut.randint(0, len(records)) if number < 40 else len(records)
            land(tmp_path, f"{table}/{number:04d}.jsonl", records[:at])
            del records[:at]
        number += 1
        reader = reader_of(address, max_events=cut.randint(1, 30), start=mark)
        reader.end = Mark(number, None, reader.end.lanes)
        events += read_events(address, reader)
        before, mark = mark, mark_of(reader.upto)
        assert before.position < mark.position
        assert number < 500, "it does not end"
    assert [one["commit"] for one in events] == sorted(one["commit"] for one in events)
    told = {table: {key: shown_text(row) for key, row in rows.items()} for table, rows in rows_told(events).items()}
    assert told == {table: {key: shown(row) for key, row in rows.items()} for table, rows in shop.rows.items()}


def shown_text(row: dict[str, Any]) -> dict[str, Any]:
    if row.get("total") is not None:
        row = {**row, "total": f"{Decimal(row['total']):f}"}
    return {name: value for name, value in row.items() if value is not None}


def test_a_moved_key_without_headers_is_known_by_its_place_in_the_log(tmp_path: Path) -> None:
    shop = RandomShop(5, headers=False)
    for table, records in shop.envelopes(300).items():
        land(tmp_path, f"{table}.jsonl", records)
    events = read_events(address_of(tmp_path))
    assert any(one["old_key"] for one in events)
    told = {table: {key: shown_text(row) for key, row in rows.items()} for table, rows in rows_told(events).items()}
    assert told == {table: {key: shown(row) for key, row in rows.items()} for table, rows in shop.rows.items()}
