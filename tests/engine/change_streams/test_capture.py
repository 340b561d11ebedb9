"""What a capture batch puts into the log: the cells of the table of value capture types, keys, records and numbers."""

from __future__ import annotations

import json

import pytest

from tests.engine.change_streams.captured import on_one_table
from tests.engine.lakes import Lake
from tidemark.engine.workspace import Workspace

pytestmark = pytest.mark.spark


def test_an_insert_an_update_and_a_delete_become_records(lake: Lake, workspace: Workspace) -> None:
    lake.create("k INT, v STRING, w INT")
    captured = on_one_table(lake, workspace)
    lake.sql(
        "INSERT INTO {t} VALUES (1, 'a', 10), (2, 'b', NULL)",
        "UPDATE {t} SET v = 'c' WHERE k = 1",
        "DELETE FROM {t} WHERE k = 2",
    )

    result = captured.capture(lake.version)

    assert captured.mods() == [
        (1, "INSERT", {"k": "1"}, {"v": "a", "w": "10"}, {}),
        (1, "INSERT", {"k": "2"}, {"v": "b", "w": None}, {}),
        (2, "UPDATE", {"k": "1"}, {"v": "c"}, {"v": "a"}),
        (3, "DELETE", {"k": "2"}, {}, {"v": "b", "w": None}),
    ]
    assert (result.transactions, result.records, result.rows, result.found) == (3, 3, 4, False)
    assert [kind["is_primary_key"] for kind in json.loads(captured.rows()[0]["column_types"])] == [True, False, False]
